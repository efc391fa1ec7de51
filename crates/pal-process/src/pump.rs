//! The pipes of a process that runs, served by one thread.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::capture::Capture;

/// The most that is read of one pipe before the others and the clock are looked at.
const READ_AT_ONCE: usize = 256 * 1024;

/// The pipes of a process that runs.
#[derive(Debug)]
pub(crate) struct Pump {
    pub(crate) output: Stream,
    pub(crate) errors: Stream,
    pub(crate) report: Stream,
    pub(crate) input: Option<Feed>,
    /// Readable when something happened that is no output.
    pub(crate) wake: PipeReader,
    pub(crate) buffer: Vec<u8>,
}

/// A pipe that the process writes to.
#[derive(Debug)]
pub(crate) struct Stream {
    pipe: Option<PipeReader>,
    pub(crate) capture: Capture,
    is_shown: bool,
}

/// The pipe that the process reads its input from.
#[derive(Debug)]
pub(crate) struct Feed {
    pipe: PipeWriter,
    bytes: Vec<u8>,
    done: usize,
}

impl Stream {
    pub(crate) fn new(pipe: Option<PipeReader>, capture: Capture, is_shown: bool) -> io::Result<Stream> {
        if let Some(pipe) = &pipe {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(Stream { pipe, capture, is_shown })
    }

    /// Reads what is there; whether there was anything.
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

impl Feed {
    pub(crate) fn new(pipe: PipeWriter, bytes: Vec<u8>) -> io::Result<Feed> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Feed { pipe, bytes, done: 0 })
    }

    /// Writes what fits; whether there is more to write.
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

impl Pump {
    /// Whether all that the process can print to is at its end.
    pub(crate) fn is_dry(&self) -> bool {
        self.output.pipe.is_none() && self.errors.pipe.is_none()
    }

    /// Waits until something comes or the time is over, and takes what came; whether it was output.
    pub(crate) fn turn(&mut self, time: Option<Duration>, progress: &dyn Fn(&[u8])) -> bool {
        self.wait(time);
        self.collect(progress)
    }

    /// Takes what is there, without waiting; whether it was output.
    pub(crate) fn collect(&mut self, progress: &dyn Fn(&[u8])) -> bool {
        if self.input.as_mut().is_some_and(|feed| !feed.push()) {
            self.input = None;
        }
        // A byte that stays there only wakes us once more.
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
        // A millisecond more, so that a deadline has passed when the wait for it is over.
        let time = time.map(|time| time + Duration::from_millis(1));
        let time = time.and_then(|time| Timespec::try_from(time).ok());
        // Whatever it says, the pipes are looked at next.
        let _ = poll(&mut polled, time.as_ref());
    }
}
