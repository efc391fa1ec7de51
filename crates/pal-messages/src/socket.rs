//! Messages between sessions: a socket that a running session listens at.
//!
//! Lines of JSON both ways: a message, then its acknowledgement. The acknowledgement comes after the receiver has the
//! message, so a sender that gets none posts the same message again; the socket knows the ids that it took and answers
//! the second time without delivering. That memory ends with the process: a session that must not get a message twice
//! over its own kill hands what it receives to a [`crate::Mailbox`], which remembers.
//!
//! Only the same user gets through, by three locks: the directory is private, the socket is 0600, and both sides ask
//! the kernel who the other is.

mod listen;
mod serve;

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::message::{Message, MessageId};

pub use listen::{ListenError, Socket};

/// The longest acknowledgement.
const ACKNOWLEDGEMENT_BYTES_MAX: u64 = 4096;

/// A message that was not acknowledged.
#[derive(Debug, thiserror::Error)]
pub enum DeliverError {
    /// No session listens there.
    #[error("no session listens at {}; it has ended, `pal agents` shows those that run", .path.display())]
    Nobody {
        /// The socket.
        path: PathBuf,
    },
    /// The session said no.
    #[error("the session at {} did not take the message: {why}", .path.display())]
    Refused {
        /// The socket.
        path: PathBuf,
        /// Its words.
        why: String,
    },
    /// No answer in time. The message may have arrived; posting the same one again delivers it once.
    #[error("the session at {} did not answer within {limit:?}; send the same message again", .path.display())]
    Late {
        /// The socket.
        path: PathBuf,
        /// The time limit.
        limit: Duration,
    },
    /// Somebody else listens there.
    #[error("{} belongs to another user; nothing was sent", .path.display())]
    Stranger {
        /// The socket.
        path: PathBuf,
    },
    /// The connection broke. The message may have arrived; posting the same one again delivers it once.
    #[error("the connection to {} broke ({source}); send the same message again", .path.display())]
    Broken {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What the receiver answers to a message.
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

impl Socket {
    /// Posts a message to the session that listens at `path`, and waits for its acknowledgement.
    pub fn post(path: &Path, message: &Message, limit: Duration) -> Result<(), DeliverError> {
        let end = Instant::now() + limit;
        let at = path.to_owned();
        let answer = exchange(path, message, end).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => DeliverError::Nobody { path: at },
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => DeliverError::Late { path: at, limit },
            io::ErrorKind::PermissionDenied => DeliverError::Stranger { path: at },
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

fn exchange(path: &Path, message: &Message, end: Instant) -> io::Result<Acknowledgement> {
    if !std::fs::symlink_metadata(path)?.file_type().is_socket() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "not a socket"));
    }
    let stream = connect(path, end)?;
    if !is_same_user(&stream) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut stream = Timed { stream, end };
    stream.write_all(format!("{}\n", message.line()).as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream.take(ACKNOWLEDGEMENT_BYTES_MAX)).read_line(&mut answer)?;
    if !answer.ends_with('\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_str(&answer)?)
}

/// A stream whose reads and writes all end by one moment.
struct Timed {
    stream: UnixStream,
    end: Instant,
}

impl Timed {
    fn left(&self) -> io::Result<Option<Duration>> {
        match self.end.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(Some(left)),
        }
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Connecting waits only where too many others wait already; that is tried again until the end.
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

/// Whether the other side is a process of this user, as the kernel tells it.
#[cfg(target_os = "linux")]
fn is_same_user(stream: &impl AsFd) -> bool {
    let peer = rustix::net::sockopt::socket_peercred(stream);
    peer.is_ok_and(|peer| peer.uid == rustix::process::geteuid())
}

/// Other systems have other ways to ask; there, the private directory and the mode of the socket stand alone.
#[cfg(not(target_os = "linux"))]
fn is_same_user(_stream: &impl AsFd) -> bool {
    true
}

impl fmt::Debug for Socket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Socket").field("path", &self.path()).finish_non_exhaustive()
    }
}
