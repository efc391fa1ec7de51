//! Lock of a log: one writer at a time, and the PID of the current holder.
//!
//! The lock is on the log's own handle, so it ends with the process.

use std::fs::File;
use std::path::Path;

use crate::error::{FileError, OpenError};
use crate::safe_open::LockedFile;

/// Locks an open log for writing. Fails with the holder's PID if another process has locked it.
pub(crate) fn lock_log(file: File, path: &Path) -> Result<LockedFile, OpenError> {
    match LockedFile::try_lock(file) {
        Ok(Ok(locked)) => Ok(locked),
        Ok(Err(file)) => Err(OpenError::Locked { path: path.to_owned(), pid: lock_holder(&file) }),
        Err(error) => Err(FileError::new("lock", path, error).into()),
    }
}

/// PID of the process that holds the lock, from `/proc/locks`.
#[cfg(target_os = "linux")]
fn lock_holder(file: &File) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let metadata = file.metadata().ok()?;
    let (major, minor) = (rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
    let place = format!("{major:02x}:{minor:02x}:{}", metadata.ino());
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|lock| holder_in(lock, &place))
}

/// Only Linux reports the holder.
#[cfg(not(target_os = "linux"))]
fn lock_holder(_file: &File) -> Option<u32> {
    None
}

/// Parses a line such as `1: FLOCK  ADVISORY  WRITE 4711 fd:00:1234 0 EOF`.
#[cfg(target_os = "linux")]
fn holder_in(lock: &str, place: &str) -> Option<u32> {
    let words: Vec<&str> = lock.split_whitespace().collect();
    match words.as_slice() {
        [_, "FLOCK", _, "WRITE", pid, at, ..] if *at == place => pid.parse().ok().filter(|pid| *pid > 0),
        _ => None,
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn lock_holder_is_parsed_from_proc_locks() {
        assert_eq!(holder_in("1: FLOCK  ADVISORY  WRITE 4711 fd:00:1234 0 EOF", "fd:00:1234"), Some(4711));
        assert_eq!(holder_in("1: -> FLOCK  ADVISORY  WRITE 4712 fd:00:1234 0 EOF", "fd:00:1234"), None);
        assert_eq!(holder_in("2: POSIX  ADVISORY  WRITE 4711 fd:00:1234 0 EOF", "fd:00:1234"), None);
        assert_eq!(holder_in("1: FLOCK  ADVISORY  WRITE 0 fd:00:1234 0 EOF", "fd:00:1234"), None);
    }
}
