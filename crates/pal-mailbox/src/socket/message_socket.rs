//! Lifetime of a session's socket: created, replaced if stale, removed on drop.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use pal_store::{LockedFile, create_private_directory};
use rustix::fs::FileType;

use super::socket_server::SocketServer;
use crate::envelope::Envelope;
use crate::private_dir::{PrivateDir, PrivateDirError};

/// Maximum length of a socket path. The system limit is 108 on Linux and 104 elsewhere, and a new socket has
/// a longer temporary name.
const PATH_BYTES_MAX: usize = 96;

/// A socket served by a thread until dropped.
pub struct MessageSocket {
    path: PathBuf,
    directory: PrivateDir,
    file_name: String,
    /// Closing this ends the thread.
    wake: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
    _lock: LockedFile,
}

/// The socket cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another session listens there.
    #[error("another session listens at {}; choose another path", .path.display())]
    InUse {
        /// Path of the socket.
        path: PathBuf,
    },
    /// The path exists and is not a socket.
    #[error("{} exists and is not a socket; move it away", .path.display())]
    NotASocket {
        /// Path that was given.
        path: PathBuf,
    },
    /// The path is too long, or does not name a file in a directory.
    #[error(
        "{} cannot be the path of a socket: it must name a file in UTF-8 and have at most {PATH_BYTES_MAX} bytes; choose a shorter PAL_HOME",
        .path.display()
    )]
    Path {
        /// Path that was given.
        path: PathBuf,
    },
    /// A file operation failed.
    #[error(transparent)]
    Folder(#[from] PrivateDirError),
}

impl MessageSocket {
    /// Listens at `path` on a new thread. `receive` gets each message once; its result is sent as the
    /// acknowledgement, and after an error the sender may try again. Creates the directory if needed and
    /// replaces a stale socket.
    pub fn listen(
        path: &Path,
        receive: impl FnMut(Envelope) -> Result<(), String> + Send + 'static,
    ) -> Result<MessageSocket, ListenError> {
        let (parent, file_name) = split(path).ok_or_else(|| ListenError::Path { path: path.to_owned() })?;
        create_private_directory(parent).map_err(PrivateDirError::from)?;
        let mut directory = PrivateDir::open(parent)?;
        let failed = |action, error| PrivateDirError::new(action, path, error);
        let lock = directory.lock(&lock_name(file_name), Duration::ZERO);
        let Some(lock) = lock.map_err(|error| failed("lock", error))? else {
            return Err(ListenError::InUse { path: path.to_owned() });
        };
        if !is_free(&directory, file_name).map_err(|error| failed("read", error))? {
            return Err(ListenError::NotASocket { path: path.to_owned() });
        }
        let listener = bind(&directory, file_name).map_err(|error| failed("listen at", error))?;
        let (wake, woken) = UnixStream::pair().map_err(|error| failed("listen at", error))?;
        let server = SocketServer::new(listener, woken, receive);
        let thread = std::thread::Builder::new().name(String::from("messages")).spawn(move || server.run());
        let thread = thread.map_err(|error| failed("listen at", error))?;
        let (path, file_name) = (path.to_owned(), file_name.to_owned());
        Ok(MessageSocket { path, directory, file_name, wake: Some(wake), thread: Some(thread), _lock: lock })
    }

    /// Path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes a stale socket, if no process listens there.
    pub(crate) fn remove_stale(path: &Path) -> io::Result<()> {
        let Some((parent, file_name)) = split(path) else { return Ok(()) };
        let mut directory = PrivateDir::open(parent).map_err(io::Error::other)?;
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

impl Drop for MessageSocket {
    /// Waits for the message that is being received.
    fn drop(&mut self) {
        // Remove it first, so that no process connects to a thread that ends.
        let _ = self.directory.remove(&self.file_name);
        drop(self.wake.take());
        if let Some(thread) = self.thread.take() {
            // A panic in the receiver has already been reported.
            let _ = thread.join();
        }
        // Processes that wait for the lock check that its file is still in place.
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

/// Reports whether the path is free or a socket; under the lock, such a socket is stale.
fn is_free(directory: &PrivateDir, file_name: &str) -> io::Result<bool> {
    let stat = directory.stat(file_name)?;
    Ok(stat.is_none_or(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Socket))
}

/// Binds under a temporary name, so that the socket is never visible with a wider mode.
fn bind(directory: &PrivateDir, file_name: &str) -> io::Result<UnixListener> {
    let new = format!(".{file_name}.new");
    directory.remove(&new)?;
    let path = directory.path().join(&new);
    let listener = UnixListener::bind(&path)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    directory.rename(&new, file_name)?;
    Ok(listener)
}
