//! The thread behind a socket: one loop over all connections, so that a slow one holds nobody up.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Acknowledgement, is_same_user};
use crate::known::{Known, REMEMBERED, Seen};
use crate::message::{MESSAGE_BYTES_MAX, Message};

/// How many may be connected; the others wait in the system's queue.
const CONNECTIONS_MAX: usize = 64;

/// How long a connection may take for its next message.
const IDLE_LIMIT: Duration = Duration::from_secs(10);

/// Everything that the thread has.
pub(super) struct Server<R> {
    listener: UnixListener,
    /// Its other end is closed when the thread is to end.
    woken: UnixStream,
    connections: Vec<Connection>,
    receive: R,
    known: Known,
}

struct Connection {
    stream: UnixStream,
    pending: Vec<u8>,
    ends: Instant,
}

/// Whether a connection goes on.
#[derive(PartialEq, Eq)]
enum Next {
    Stays,
    Ends,
}

impl<R: FnMut(Message) -> Result<(), String>> Server<R> {
    pub(super) fn new(listener: UnixListener, woken: UnixStream, receive: R) -> Server<R> {
        Server { listener, woken, connections: Vec::new(), receive, known: Known::default() }
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

    /// Waits for something to do: whether to end, and which connections have something to say.
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
                    self.connections.push(Connection { stream, pending: Vec::new(), ends });
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Too many files are open, perhaps; whoever wants to connect still waits, so this must not spin.
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
                _ if connection.ends <= now => Next::Ends,
                _ => Next::Stays,
            };
            if next == Next::Stays {
                self.connections.push(connection);
            }
        }
    }

    /// Reads once and answers every whole line; what is still there makes the next poll return at once.
    fn read(&mut self, connection: &mut Connection) -> Next {
        let mut buffer = [0; 16 * 1024];
        match connection.stream.read(&mut buffer) {
            Ok(0) => return Next::Ends,
            Ok(read) => connection.pending.extend_from_slice(&buffer[..read]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => return Next::Ends,
        }
        while let Some(end) = connection.pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = connection.pending.drain(..=end).collect();
            connection.ends = Instant::now() + IDLE_LIMIT;
            let answer = self.answer(&line);
            if tell(connection, &answer) == Next::Ends {
                return Next::Ends;
            }
        }
        if connection.pending.len() > MESSAGE_BYTES_MAX {
            let why = format!("a message may have {MESSAGE_BYTES_MAX} bytes");
            tell(connection, &Acknowledgement::new(None, Err(why)));
            return Next::Ends;
        }
        Next::Stays
    }

    fn answer(&mut self, line: &[u8]) -> Acknowledgement {
        let message = std::str::from_utf8(line).map_err(|error| error.to_string());
        let message = message.and_then(|line| Message::parse(line).map_err(|error| error.to_string()));
        let message = match message {
            Ok(message) => message,
            Err(why) => return Acknowledgement::new(None, Err(why)),
        };
        let id = message.id;
        let outcome = match self.known.look(id) {
            Seen::Before => Ok(()),
            Seen::Forgotten => Err(String::from("it is too old to tell whether it was delivered")),
            Seen::Never => (self.receive)(message),
        };
        if outcome.is_ok() {
            self.known.note(id);
            self.known.trim(REMEMBERED);
        }
        Acknowledgement::new(Some(id), outcome)
    }
}

/// An answer is far smaller than the system's buffer; who does not read that is not waited for.
fn tell(connection: &mut Connection, answer: &Acknowledgement) -> Next {
    let Ok(mut line) = serde_json::to_vec(answer) else { return Next::Ends };
    line.push(b'\n');
    match connection.stream.write_all(&line) {
        Ok(()) => Next::Stays,
        Err(_) => Next::Ends,
    }
}
