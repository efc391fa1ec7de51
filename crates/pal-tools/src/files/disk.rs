//! Files on disk: opened without following links, known by a fingerprint, replaced as a whole.
//!
//! Everything here takes real paths. Links were followed when permission was asked; a link that is in a path now was put
//! there since, and opening it is refused.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

/// Most bytes of a file that is changed: it is held in memory, several times.
pub(crate) const CHANGED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A fingerprint of what a file holds.
pub(crate) fn print_of(bytes: &[u8]) -> String {
    let mut print = Xxh3::new();
    print.update(bytes);
    spelled(&print)
}

/// A fingerprint as it stands in the log.
pub(crate) fn spelled(print: &Xxh3) -> String {
    format!("{:032x}", print.digest128())
}

/// Opens a regular file for reading. Anything else is refused before it is opened: a pipe would wait for a writer, and a
/// device may do things when it is opened.
pub(crate) fn open(real: &Path) -> io::Result<File> {
    refuse_special(&fs::symlink_metadata(real)?)?;
    let file = open_here(real)?;
    // It may have been swapped since the look above; opening did not wait, and nothing was read yet.
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
            // Old kernels and some sandboxes do not know the call.
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {}
            opened => return Ok(File::from(opened?)),
        }
    }
    Ok(File::from(rustix::fs::open(real, flags, Mode::empty())?))
}

/// What a file to be changed holds, and its mode; nothing if there is no file.
pub(crate) fn whole(real: &Path) -> io::Result<Option<(Vec<u8>, Permissions)>> {
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

/// Puts a file in its place as a whole: readers see the old one or the new one, and nothing in between.
pub(crate) fn replace(real: &Path, bytes: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
    let (Some(folder), Some(name)) = (real.parent(), real.file_name()) else {
        return Err(io::Error::other("it is no place for a file"));
    };
    fs::create_dir_all(folder)?;
    let folder = Folder::open(folder)?;
    let mut file = temporary(&folder.path, permissions.is_some())?;
    file.write_all(bytes)?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    file.persist(folder.path.join(name)).map_err(|err| err.error)?;
    Ok(())
}

/// A file for what is to be written. One that takes the place of another is nobody else's until it has the mode of that:
/// it may be a secret. What a new file gets is for the user's mask to say, as with any other program.
fn temporary(folder: &Path, takes_a_place: bool) -> io::Result<tempfile::NamedTempFile> {
    let mode = if takes_a_place { 0o600 } else { 0o666 };
    tempfile::Builder::new().prefix(".pal-").permissions(Permissions::from_mode(mode)).tempfile_in(folder)
}

/// A folder that stays the one that it was when it was opened, wherever its path leads later.
struct Folder {
    path: PathBuf,
    #[cfg(target_os = "linux")]
    _open: Option<std::os::fd::OwnedFd>,
}

impl Folder {
    #[cfg(target_os = "linux")]
    fn open(real: &Path) -> io::Result<Folder> {
        use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
        use std::os::fd::AsRawFd;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat2(CWD, real, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            Ok(open) => {
                let path = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()));
                // Without /proc there is only the path that was checked.
                let path = if path.exists() { path } else { real.to_owned() };
                Ok(Folder { path, _open: Some(open) })
            }
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {
                Ok(Folder { path: real.to_owned(), _open: None })
            }
            Err(err) => Err(err.into()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn open(real: &Path) -> io::Result<Folder> {
        Ok(Folder { path: real.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_reads_along_while_a_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(temporary(folder.path(), true).unwrap().path()), 0o600);
        // A new file is as any other that the user makes.
        let usual = folder.path().join("usual");
        File::create(&usual).unwrap();
        assert_eq!(mode(temporary(folder.path(), false).unwrap().path()), mode(&usual));
        for wanted in [0o600, 0o640, 0o755] {
            replace(&usual, b"new", Some(Permissions::from_mode(wanted))).unwrap();
            assert_eq!((mode(&usual), fs::read(&usual).unwrap()), (wanted, b"new".to_vec()));
        }
    }
}
