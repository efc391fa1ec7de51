//! The socket of a session: made, replaced if a killed session left one, removed at the end.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use pal_store::{LockedFile, create_private_directory};
use rustix::fs::FileType;

use super::serve::Server;
use crate::message::Message;
use crate::private::{Directory, FolderError};

/// The longest path of a socket. The system's limit is 108 on Linux and 104 elsewhere, and a new socket has a longer
/// name for a moment.
const PATH_BYTES_MAX: usize = 96;

/// A socket that a thread listens at, until this is dropped.
pub struct Socket {
    path: PathBuf,
    directory: Directory,
    file_name: String,
    /// Closing this ends the thread.
    wake: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
    _lock: LockedFile,
}

/// A socket that cannot be listened at.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another session listens there.
    #[error("another session listens at {}; choose another path", .path.display())]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// Something else is there.
    #[error("{} is there and is no socket; move it away", .path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// The system has no room for so long a path, or it names no file in a directory.
    #[error(
        "{} cannot be the path of a socket: it must name a file in UTF-8 and have at most {PATH_BYTES_MAX} bytes; choose a shorter PAL_HOME",
        .path.display()
    )]
    Path {
        /// The path.
        path: PathBuf,
    },
    /// The disk or the directory is at fault.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl Socket {
    /// Listens at `path` on a thread of its own. `receive` is given each message once; the sender's acknowledgement waits
    /// for it, and its error is told to the sender, who may try again. The directory is made if need be; a socket that a
    /// killed session left is replaced.
    pub fn listen(
        path: &Path,
        receive: impl FnMut(Message) -> Result<(), String> + Send + 'static,
    ) -> Result<Socket, ListenError> {
        let (parent, file_name) = split(path).ok_or_else(|| ListenError::Path { path: path.to_owned() })?;
        create_private_directory(parent).map_err(FolderError::from)?;
        let mut directory = Directory::open(parent)?;
        let failed = |action, error| FolderError::new(action, path, error);
        let lock = directory.lock(&lock_name(file_name), Duration::ZERO);
        let Some(lock) = lock.map_err(|error| failed("lock", error))? else {
            return Err(ListenError::InUse { path: path.to_owned() });
        };
        if !is_free(&directory, file_name).map_err(|error| failed("read", error))? {
            return Err(ListenError::NotASocket { path: path.to_owned() });
        }
        let listener = bind(&directory, file_name).map_err(|error| failed("listen at", error))?;
        let (wake, woken) = UnixStream::pair().map_err(|error| failed("listen at", error))?;
        let server = Server::new(listener, woken, receive);
        let thread = std::thread::Builder::new().name(String::from("messages")).spawn(move || server.run());
        let thread = thread.map_err(|error| failed("listen at", error))?;
        let (path, file_name) = (path.to_owned(), file_name.to_owned());
        Ok(Socket { path, directory, file_name, wake: Some(wake), thread: Some(thread), _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes what a killed session left at `path`, if nobody listens there.
    pub(crate) fn remove_stale(path: &Path) -> io::Result<()> {
        let Some((parent, file_name)) = split(path) else { return Ok(()) };
        let mut directory = Directory::open(parent).map_err(io::Error::other)?;
        let lock_name = lock_name(file_name);
        if let Some(_lock) = directory.lock(&lock_name, Duration::ZERO)?
            && is_free(&directory, file_name)?
        {
            directory.remove(file_name)?;
            directory.remove(&lock_name)?;
        }
        Ok(())
    }
}

impl Drop for Socket {
    /// Waits for the message that is just being received.
    fn drop(&mut self) {
        // First, so that nobody connects to a thread that ends.
        let _ = self.directory.remove(&self.file_name);
        drop(self.wake.take());
        if let Some(thread) = self.thread.take() {
            // A receiver that panicked has said so itself.
            let _ = thread.join();
        }
        // Whoever waits for the lock looks whether its file is still in its place.
        let _ = self.directory.remove(&lock_name(&self.file_name));
    }
}

fn split(path: &Path) -> Option<(&Path, &str)> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty())?;
    let file_name = path.file_name()?.to_str()?;
    (path.as_os_str().len() <= PATH_BYTES_MAX).then_some((parent, file_name))
}

fn lock_name(file_name: &str) -> String {
    format!("{file_name}.lock")
}

/// Whether nothing is there, or a socket: under the lock, one that nobody listens at.
fn is_free(directory: &Directory, file_name: &str) -> io::Result<bool> {
    let stat = directory.stat(file_name)?;
    Ok(stat.is_none_or(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Socket))
}

/// Under another name first, so that there is never a moment in which the socket is there and not yet private.
fn bind(directory: &Directory, file_name: &str) -> io::Result<UnixListener> {
    let new = format!(".{file_name}.new");
    directory.remove(&new)?;
    let path = directory.path().join(&new);
    let listener = UnixListener::bind(&path)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    directory.rename(&new, file_name)?;
    Ok(listener)
}
