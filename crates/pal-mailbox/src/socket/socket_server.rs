//! Thread behind a socket: one loop over all connections, so that a slow one does not block others.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Acknowledgement, is_same_user};
use crate::envelope::{Envelope, MESSAGE_BYTES_MAX};
use crate::known_ids::{IdStatus, KnownIds, REMEMBERED};

/// Maximum open connections; others wait in the system's queue.
const CONNECTIONS_MAX: usize = 64;

/// Maximum time between two messages of a connection.
const IDLE_LIMIT: Duration = Duration::from_secs(10);

/// State of the thread.
pub(super) struct SocketServer<R> {
    listener: UnixListener,
    /// End of a pair; closing the other end stops the thread.
    woken: UnixStream,
    connections: Vec<SocketConnection>,
    receive: R,
    known: KnownIds,
}

struct SocketConnection {
    stream: UnixStream,
    pending: Vec<u8>,
    ends: Instant,
}

/// State of a connection after reading.
#[derive(PartialEq, Eq)]
enum ConnectionOutcome {
    Stays,
    Ends,
}

impl<R: FnMut(Envelope) -> Result<(), String>> SocketServer<R> {
    pub(super) fn new(listener: UnixListener, woken: UnixStream, receive: R) -> SocketServer<R> {
        SocketServer { listener, woken, connections: Vec::new(), receive, known: KnownIds::default() }
    }

    /// Serves until the other end of `woken` is closed.
    pub(super) fn run(mut self) {
        while let Ok((is_ending, ready)) = self.wait() {
            if is_ending {
                return;
            }
            self.serve(&ready);
            self.accept();
        }
    }

    /// Waits for events; returns whether to end and which connections are readable.
    fn wait(&self) -> io::Result<(bool, Vec<bool>)> {
        let mut polled = vec![PollFd::new(&self.woken, PollFlags::IN)];
        polled.extend(self.connections.iter().map(|each| PollFd::new(&each.stream, PollFlags::IN)));
        if self.connections.len() < CONNECTIONS_MAX {
            polled.push(PollFd::new(&self.listener, PollFlags::IN));
        }
        let ends = self.connections.iter().map(|each| each.ends).min();
        let left = ends.map(|ends| ends.saturating_duration_since(Instant::now()) + Duration::from_millis(1));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut polled, left.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok((false, Vec::new())),
            Err(error) => return Err(error.into()),
        }
        let mut ready = polled.iter().map(|each| !each.revents().is_empty());
        Ok((ready.next().unwrap_or(true), ready.take(self.connections.len()).collect()))
    }

    fn accept(&mut self) {
        while self.connections.len() < CONNECTIONS_MAX {
            match self.listener.accept() {
                Ok((stream, _)) if is_same_user(&stream) && stream.set_nonblocking(true).is_ok() => {
                    let ends = Instant::now() + IDLE_LIMIT;
                    self.connections.push(SocketConnection { stream, pending: Vec::new(), ends });
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Possibly too many open files; avoid spinning while clients wait.
                Err(_) => return std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    fn serve(&mut self, ready: &[bool]) {
        let now = Instant::now();
        let connections = std::mem::take(&mut self.connections);
        for (at, mut connection) in connections.into_iter().enumerate() {
            let next = match ready.get(at) {
                Some(true) => self.read(&mut connection),
                _ if connection.ends <= now => ConnectionOutcome::Ends,
                _ => ConnectionOutcome::Stays,
            };
            if next == ConnectionOutcome::Stays {
                self.connections.push(connection);
            }
        }
    }

    /// Reads once and answers every whole line; the next poll returns at once if more is available.
    fn read(&mut self, connection: &mut SocketConnection) -> ConnectionOutcome {
        let mut buffer = [0; 16 * 1024];
        match connection.stream.read(&mut buffer) {
            Ok(0) => return ConnectionOutcome::Ends,
            Ok(read) => connection.pending.extend_from_slice(&buffer[..read]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => return ConnectionOutcome::Ends,
        }
        while let Some(end) = connection.pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = connection.pending.drain(..=end).collect();
            connection.ends = Instant::now() + IDLE_LIMIT;
            let answer = self.answer(&line);
            if send_acknowledgement(connection, &answer) == ConnectionOutcome::Ends {
                return ConnectionOutcome::Ends;
            }
        }
        if connection.pending.len() > MESSAGE_BYTES_MAX {
            let why = format!("a message may have {MESSAGE_BYTES_MAX} bytes");
            send_acknowledgement(connection, &Acknowledgement::new(None, Err(why)));
            return ConnectionOutcome::Ends;
        }
        ConnectionOutcome::Stays
    }

    fn answer(&mut self, line: &[u8]) -> Acknowledgement {
        let message = std::str::from_utf8(line).map_err(|error| error.to_string());
        let message = message.and_then(|line| Envelope::parse(line).map_err(|error| error.to_string()));
        let message = match message {
            Ok(message) => message,
            Err(why) => return Acknowledgement::new(None, Err(why)),
        };
        let id = message.id;
        let outcome = match self.known.status(id) {
            IdStatus::Before => Ok(()),
            IdStatus::Forgotten => Err(String::from("it is too old to tell whether it was delivered")),
            IdStatus::Never => (self.receive)(message),
        };
        if outcome.is_ok() {
            self.known.note(id);
            self.known.trim(REMEMBERED);
        }
        Acknowledgement::new(Some(id), outcome)
    }
}

/// Sends an acknowledgement, which always fits the system's buffer; drops clients that do not read.
fn send_acknowledgement(connection: &mut SocketConnection, answer: &Acknowledgement) -> ConnectionOutcome {
    let Ok(mut line) = serde_json::to_vec(answer) else { return ConnectionOutcome::Ends };
    line.push(b'\n');
    match connection.stream.write_all(&line) {
        Ok(()) => ConnectionOutcome::Stays,
        Err(_) => ConnectionOutcome::Ends,
    }
}
