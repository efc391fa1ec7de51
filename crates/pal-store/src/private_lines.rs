//! Small files of lines to which several processes append, one whole line at a time.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::safe_open::LockedFile;

/// Maximum wait for the lock, which is normally held for microseconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Appends a line to a private file and syncs it; creates the file with mode 0600 if needed and never follows
/// a link. A truncated last line is ended first, so that it does not corrupt the next one.
pub fn append_private_line(path: &Path, line: &str) -> io::Result<()> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    let mut options = OpenOptions::new();
    let file = options.read(true).append(true).create(true).mode(0o600).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let Some(locked) = LockedFile::lock_until(file, Instant::now() + LOCK_TIMEOUT)? else {
        return Err(io::Error::new(io::ErrorKind::WouldBlock, "another process has locked it"));
    };
    let mut text = String::with_capacity(line.len() + 2);
    if !ends_with_line(&locked)? {
        text.push('\n');
    }
    text.push_str(line);
    text.push('\n');
    (&*locked).write_all(text.as_bytes())?;
    locked.sync_data()
}

/// Reports whether the file is empty or ends with a line end.
fn ends_with_line(mut file: &File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn concurrent_lines_stay_whole_after_a_torn_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lines");
        std::fs::write(&path, "torn").unwrap();
        std::thread::scope(|scope| {
            for number in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..20 {
                        append_private_line(path, &format!("{number}").repeat(900)).unwrap();
                    }
                });
            }
        });
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!((text.lines().count(), text.lines().next()), (161, Some("torn")));
        for line in text.lines().skip(1) {
            assert!(line.len() == 900 && line.bytes().all(|byte| byte == line.as_bytes()[0]), "{line}");
        }
    }

    #[test]
    fn file_is_private_and_links_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let (path, link) = (directory.path().join("lines"), directory.path().join("link"));
        append_private_line(&path, "one").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        symlink(&path, &link).unwrap();
        assert!(append_private_line(&link, "two").is_err());
        assert!(append_private_line(directory.path(), "two").is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\n");
    }
}
