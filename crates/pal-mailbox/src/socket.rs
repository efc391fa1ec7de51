//! Messages between sessions over a Unix socket.
//!
//! Both sides send JSON lines: a message, then its acknowledgement, which is sent after the receiver accepted
//! the message. A sender without an acknowledgement posts the same message again; the socket remembers ids
//! and acknowledges without delivering twice. That memory ends with the process: a session that must survive
//! its own kill hands messages to a [`crate::Mailbox`].
//!
//! Only the same user gets through: the directory is private, the socket has mode 0600, and both sides check
//! the peer's user id.

mod message_socket;
mod socket_server;

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::envelope::{Envelope, MessageId};

pub use message_socket::{ListenError, MessageSocket};

/// Maximum length of an acknowledgement.
const ACKNOWLEDGEMENT_BYTES_MAX: u64 = 4096;

/// A message was not acknowledged.
#[derive(Debug, thiserror::Error)]
pub enum DeliverError {
    /// No session listens there.
    #[error("no session listens at {}; it has ended, `pal agents` shows those that run", .path.display())]
    NoListener {
        /// Path of the socket.
        path: PathBuf,
    },
    /// The session refused the message.
    #[error("the session at {} refused the message: {why}", .path.display())]
    Refused {
        /// Path of the socket.
        path: PathBuf,
        /// Reason given by the session.
        why: String,
    },
    /// The session did not answer in time. The message may have arrived; post the same one again.
    #[error("the session at {} did not answer within {limit:?}; send the same message again", .path.display())]
    Timeout {
        /// Path of the socket.
        path: PathBuf,
        /// Time limit.
        limit: Duration,
    },
    /// Another user listens there.
    #[error("{} belongs to another user; nothing was sent", .path.display())]
    OtherUser {
        /// Path of the socket.
        path: PathBuf,
    },
    /// The connection broke. The message may have arrived; post the same one again.
    #[error("the connection to {} broke ({source}); send the same message again", .path.display())]
    Broken {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// Answer of the receiver.
#[derive(Serialize, Deserialize)]
struct Acknowledgement {
    id: Option<String>,
    ok: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

impl Acknowledgement {
    fn new(id: Option<MessageId>, outcome: Result<(), String>) -> Acknowledgement {
        let id = id.as_ref().map(MessageId::to_string);
        Acknowledgement { id, ok: outcome.is_ok(), why: outcome.err() }
    }
}

impl MessageSocket {
    /// Posts a message to the session that listens at `path`, and waits for its acknowledgement.
    pub fn post(path: &Path, message: &Envelope, limit: Duration) -> Result<(), DeliverError> {
        let end = Instant::now() + limit;
        let at = path.to_owned();
        let answer = exchange(path, message, end).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                DeliverError::NoListener { path: at }
            }
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => DeliverError::Timeout { path: at, limit },
            io::ErrorKind::PermissionDenied => DeliverError::OtherUser { path: at },
            _ => DeliverError::Broken { path: at, source: error },
        })?;
        match answer {
            Acknowledgement { ok: true, .. } => Ok(()),
            Acknowledgement { why, .. } => {
                Err(DeliverError::Refused { path: path.to_owned(), why: why.unwrap_or_default() })
            }
        }
    }
}

fn exchange(path: &Path, message: &Envelope, end: Instant) -> io::Result<Acknowledgement> {
    if !std::fs::symlink_metadata(path)?.file_type().is_socket() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "not a socket"));
    }
    let stream = connect(path, end)?;
    if !is_same_user(&stream) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut stream = DeadlineStream { stream, end };
    stream.write_all(format!("{}\n", message.line()).as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream.take(ACKNOWLEDGEMENT_BYTES_MAX)).read_line(&mut answer)?;
    if !answer.ends_with('\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_str(&answer)?)
}

/// A stream with one deadline for all reads and writes.
struct DeadlineStream {
    stream: UnixStream,
    end: Instant,
}

impl DeadlineStream {
    fn left(&self) -> io::Result<Option<Duration>> {
        match self.end.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(Some(left)),
        }
    }
}

impl Read for DeadlineStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer)
    }
}

impl Write for DeadlineStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Connects; retries until `end` while the listener's queue is full.
#[cfg(target_os = "linux")]
fn connect(path: &Path, end: Instant) -> io::Result<UnixStream> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let handle: OwnedFd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    loop {
        match connect(&handle, &address) {
            Ok(()) => break,
            Err(Errno::AGAIN) if Instant::now() < end => std::thread::sleep(Duration::from_millis(2)),
            Err(error) => return Err(error.into()),
        }
    }
    let stream = UnixStream::from(handle);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

#[cfg(not(target_os = "linux"))]
fn connect(path: &Path, _end: Instant) -> io::Result<UnixStream> {
    UnixStream::connect(path)
}

/// Reports whether the peer is a process of this user, according to the kernel.
#[cfg(target_os = "linux")]
fn is_same_user(stream: &impl AsFd) -> bool {
    let peer = rustix::net::sockopt::socket_peercred(stream);
    peer.is_ok_and(|peer| peer.uid == rustix::process::geteuid())
}

/// Elsewhere, the private directory and the mode of the socket have to suffice.
#[cfg(not(target_os = "linux"))]
fn is_same_user(_stream: &impl AsFd) -> bool {
    true
}

impl fmt::Debug for MessageSocket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Socket").field("path", &self.path()).finish_non_exhaustive()
    }
}
