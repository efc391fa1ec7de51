//! Pipes of a running process, served by one thread.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::output_capture::OutputCapture;

/// Maximum bytes read from one pipe before the others and the clock are checked.
const READ_AT_ONCE: usize = 256 * 1024;

/// Pipes of a running process.
#[derive(Debug)]
pub(crate) struct PipePump {
    pub(crate) output: OutputPipe,
    pub(crate) errors: OutputPipe,
    pub(crate) report: OutputPipe,
    pub(crate) input: Option<InputPipe>,
    /// Readable after a wake-up that is not output.
    pub(crate) wake: PipeReader,
    pub(crate) buffer: Vec<u8>,
}

/// Pipe that the process writes to.
#[derive(Debug)]
pub(crate) struct OutputPipe {
    pipe: Option<PipeReader>,
    pub(crate) capture: OutputCapture,
    is_shown: bool,
}

/// Pipe that the process reads its input from.
#[derive(Debug)]
pub(crate) struct InputPipe {
    pipe: PipeWriter,
    bytes: Vec<u8>,
    done: usize,
}

impl OutputPipe {
    pub(crate) fn new(
        pipe: Option<PipeReader>,
        capture: OutputCapture,
        is_shown: bool,
    ) -> io::Result<OutputPipe> {
        if let Some(pipe) = &pipe {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(OutputPipe { pipe, capture, is_shown })
    }

    /// Reads available bytes; returns whether there were any.
    fn drain(&mut self, buffer: &mut [u8], progress: &dyn Fn(&[u8])) -> bool {
        let mut got = 0;
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(buffer) {
                Ok(0) => self.pipe = None,
                Ok(count) => {
                    let bytes = &buffer[..count];
                    self.capture.push(bytes);
                    if self.is_shown {
                        progress(bytes);
                    }
                    got += count;
                    if got >= READ_AT_ONCE {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => self.pipe = None,
            }
        }
        got > 0
    }
}

impl InputPipe {
    pub(crate) fn new(pipe: PipeWriter, bytes: Vec<u8>) -> io::Result<InputPipe> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(InputPipe { pipe, bytes, done: 0 })
    }

    /// Writes what fits; returns whether more is left.
    fn push(&mut self) -> bool {
        while self.done < self.bytes.len() {
            match self.pipe.write(&self.bytes[self.done..]) {
                Ok(count) => self.done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
        false
    }
}

impl PipePump {
    /// Returns whether all output pipes are closed.
    pub(crate) fn is_drained(&self) -> bool {
        self.output.pipe.is_none() && self.errors.pipe.is_none()
    }

    /// Waits for input or the timeout, and collects; returns whether there was output.
    pub(crate) fn wait_and_collect(&mut self, time: Option<Duration>, progress: &dyn Fn(&[u8])) -> bool {
        self.wait(time);
        self.collect(progress)
    }

    /// Collects without waiting; returns whether there was output.
    pub(crate) fn collect(&mut self, progress: &dyn Fn(&[u8])) -> bool {
        if self.input.as_mut().is_some_and(|feed| !feed.push()) {
            self.input = None;
        }
        // A remaining byte only causes another wake-up.
        let mut told = [0; 64];
        let _ = self.wake.read(&mut told);
        let output = self.output.drain(&mut self.buffer, progress);
        let errors = self.errors.drain(&mut self.buffer, progress);
        self.report.drain(&mut self.buffer, progress);
        output || errors
    }

    fn wait(&self, time: Option<Duration>) {
        let streams = [&self.output, &self.errors, &self.report];
        let mut polled: Vec<PollFd<'_>> = streams
            .iter()
            .filter_map(|stream| stream.pipe.as_ref())
            .chain([&self.wake])
            .map(|pipe| PollFd::new(pipe, PollFlags::IN))
            .collect();
        if let Some(feed) = &self.input {
            polled.push(PollFd::new(&feed.pipe, PollFlags::OUT));
        }
        // One extra millisecond, so that the deadline has passed when the wait ends.
        let time = time.map(|time| time + Duration::from_millis(1));
        let time = time.and_then(|time| Timespec::try_from(time).ok());
        // The pipes are checked next in any case.
        let _ = poll(&mut polled, time.as_ref());
    }
}
