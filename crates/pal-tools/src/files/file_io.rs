//! File access without following links: opening, fingerprints, atomic replacement.
//!
//! All functions take resolved paths. Links were resolved for the permission check; a link in a path now was
//! added since, and opening it is refused.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

/// Maximum bytes of a file that is changed: several copies are held in memory.
pub(crate) const CHANGED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Fingerprint of file content.
pub(crate) fn fingerprint(bytes: &[u8]) -> String {
    let mut print = Xxh3::new();
    print.update(bytes);
    format_fingerprint(&print)
}

/// Formats a fingerprint as in the log.
pub(crate) fn format_fingerprint(print: &Xxh3) -> String {
    format!("{:032x}", print.digest128())
}

/// Opens a regular file for reading. Anything else is refused before opening: a pipe would wait for a writer,
/// and a device may react to it.
pub(crate) fn open(real: &Path) -> io::Result<File> {
    refuse_special(&fs::symlink_metadata(real)?)?;
    let file = open_here(real)?;
    // It may have been swapped since the check above; opening did not block, and nothing was read yet.
    refuse_special(&file.metadata()?)?;
    Ok(file)
}

fn refuse_special(metadata: &fs::Metadata) -> io::Result<()> {
    let what = match metadata.file_type() {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        kind if kind.is_symlink() => "a link that was not there when permission was asked",
        _ => "a pipe, a socket or a device, which is not read",
    };
    Err(io::Error::other(format!("it is {what}")))
}

fn open_here(real: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, ResolveFlags, openat2};
        match openat2(CWD, real, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            // Old kernels and some sandboxes lack this call.
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {}
            opened => return Ok(File::from(opened?)),
        }
    }
    Ok(File::from(rustix::fs::open(real, flags, Mode::empty())?))
}

/// Content and permissions of a file to be changed; `None` if it does not exist.
pub(crate) fn read_for_change(real: &Path) -> io::Result<Option<(Vec<u8>, Permissions)>> {
    let file = match open(real) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let permissions = file.metadata()?.permissions();
    let mut bytes = Vec::new();
    (&file).take(CHANGED_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > CHANGED_BYTES_MAX {
        let most = CHANGED_BYTES_MAX / (1024 * 1024);
        return Err(io::Error::other(format!("it has more than {most} MB; change it with a command")));
    }
    Ok(Some((bytes, permissions)))
}

/// Replaces a file atomically: readers see the old or the new content.
pub(crate) fn replace(real: &Path, bytes: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
    let (Some(folder), Some(name)) = (real.parent(), real.file_name()) else {
        return Err(io::Error::other("it is no place for a file"));
    };
    fs::create_dir_all(folder)?;
    let folder = OpenFolder::open(folder)?;
    let mut file = temporary(&folder.path, permissions.is_some())?;
    file.write_all(bytes)?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    file.persist(folder.path.join(name)).map_err(|err| err.error)?;
    Ok(())
}

/// Creates a temporary file. A replacement is private until it gets the mode of the old file, which may be
/// secret. A new file gets its mode from the user's umask.
fn temporary(folder: &Path, takes_a_place: bool) -> io::Result<tempfile::NamedTempFile> {
    let mode = if takes_a_place { 0o600 } else { 0o666 };
    tempfile::Builder::new().prefix(".pal-").permissions(Permissions::from_mode(mode)).tempfile_in(folder)
}

/// Folder pinned by a descriptor, even if its path changes later.
struct OpenFolder {
    path: PathBuf,
    #[cfg(target_os = "linux")]
    _open: Option<std::os::fd::OwnedFd>,
}

impl OpenFolder {
    #[cfg(target_os = "linux")]
    fn open(real: &Path) -> io::Result<OpenFolder> {
        use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
        use std::os::fd::AsRawFd;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat2(CWD, real, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            Ok(open) => {
                let path = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()));
                // Without /proc only the checked path is left.
                let path = if path.exists() { path } else { real.to_owned() };
                Ok(OpenFolder { path, _open: Some(open) })
            }
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {
                Ok(OpenFolder { path: real.to_owned(), _open: None })
            }
            Err(err) => Err(err.into()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn open(real: &Path) -> io::Result<OpenFolder> {
        Ok(OpenFolder { path: real.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_is_never_readable_by_others() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(temporary(folder.path(), true).unwrap().path()), 0o600);
        // A new file has the user's default mode.
        let usual = folder.path().join("usual");
        File::create(&usual).unwrap();
        assert_eq!(mode(temporary(folder.path(), false).unwrap().path()), mode(&usual));
        for wanted in [0o600, 0o640, 0o755] {
            replace(&usual, b"new", Some(Permissions::from_mode(wanted))).unwrap();
            assert_eq!((mode(&usual), fs::read(&usual).unwrap()), (wanted, b"new".to_vec()));
        }
    }
}
