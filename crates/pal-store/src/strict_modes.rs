//! Refuses a home directory that other users can write to: settings decide which programs run and where keys
//! are sent.
//!
//! Like OpenSSH with its own files: each must belong to the user or to root, and no other user
//! may write to it.

use std::io;
use std::path::{Path, PathBuf};

/// User id of root, whose files are trusted.
const ROOT: u32 = 0;
/// Write permission for group or others.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// A file or directory that is ignored for safety.
#[derive(Debug, thiserror::Error)]
pub enum UnsafeHome {
    /// It belongs to another user.
    #[error("{} belongs to {owner}, not to you: its settings are ignored", .path.display())]
    Owner {
        /// The file or directory.
        path: PathBuf,
        /// Name of the owner, or its user id.
        owner: String,
        /// User id of the current user.
        user: u32,
    },
    /// Others can write to it.
    #[error("{} (owner {owner}, mode {mode:04o}) is writable by other users: its settings are ignored", .path.display())]
    Writable {
        /// The file or directory.
        path: PathBuf,
        /// Name of the owner, or its user id.
        owner: String,
        /// Permission bits.
        mode: u32,
    },
    /// Its metadata cannot be read.
    #[error("cannot read the metadata of {}: {source}", .path.display())]
    Unreadable {
        /// The file or directory.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

impl UnsafeHome {
    /// Command or action that fixes the problem.
    pub fn hint(&self) -> String {
        match self {
            UnsafeHome::Owner { path, user, .. } => format!(
                "run `sudo chown -R {user} {}` if it is yours, or set PAL_HOME to a directory of your own",
                quoted(path)
            ),
            UnsafeHome::Writable { path, .. } => format!("run `chmod go-w {}`", quoted(path)),
            UnsafeHome::Unreadable { .. } => {
                String::from("set PAL_HOME to a directory that you can read, or correct its permissions")
            }
        }
    }
}

/// Checks that paths belong to the user or root and that only the owner can write to them. Follows links;
/// ignores missing paths.
pub fn check_owner_and_mode(paths: &[PathBuf]) -> Result<(), UnsafeHome> {
    let user = rustix::process::geteuid().as_raw();
    paths.iter().try_for_each(|path| check(path, user))
}

fn check(path: &Path, user: u32) -> Result<(), UnsafeHome> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(());
        }
        Err(source) => return Err(UnsafeHome::Unreadable { path: path.to_owned(), source }),
    };
    let (owner, mode) = (metadata.uid(), metadata.permissions().mode() & 0o7777);
    if owner != user && owner != ROOT {
        return Err(UnsafeHome::Owner { path: path.to_owned(), owner: user_name(owner), user });
    }
    // Devices and pipes hold no settings.
    if (metadata.is_file() || metadata.is_dir()) && mode & WRITABLE_BY_OTHERS != 0 {
        return Err(UnsafeHome::Writable { path: path.to_owned(), owner: user_name(owner), mode });
    }
    Ok(())
}

/// Looks up a user name in `/etc/passwd`.
fn user_name(user: u32) -> String {
    let list = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let is_meant = |line: &&str| line.split(':').nth(2) == Some(&user.to_string());
    match list.lines().find(is_meant).and_then(|line| line.split(':').next()) {
        Some(name) => format!("{name} ({user})"),
        None => format!("user {user}"),
    }
}

/// Quotes a path for a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-".contains(letter);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn file(folder: &Path, name: &str, mode: u32) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, "x").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn writable_by_others_is_refused_with_a_chmod_hint() {
        let folder = tempfile::tempdir().unwrap();
        for (mode, is_safe) in [(0o600, true), (0o644, true), (0o664, false), (0o646, false), (0o666, false)]
        {
            let path = file(folder.path(), "settings.toml", mode);
            let checked = check_owner_and_mode(std::slice::from_ref(&path));
            assert_eq!(checked.is_ok(), is_safe, "{mode:o}");
            if let Err(error) = checked {
                let told = format!("{error}; {}", error.hint());
                assert!(told.contains(&format!("chmod go-w {}", path.display())), "{told}");
                assert!(told.contains(&format!("{mode:04o}")) && told.contains("owner"), "{told}");
            }
        }
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(check_owner_and_mode(&[folder.path().to_owned()]).is_err());
        assert!(check_owner_and_mode(&[folder.path().join("nothing")]).is_ok());
    }

    #[test]
    fn files_of_another_user_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), "settings.toml", 0o600);
        let user = rustix::process::geteuid().as_raw();
        assert!(check(&path, user).is_ok());
        // Check as another user; files of root are always accepted.
        let other = check(&path, user + 1);
        assert_eq!(other.is_ok(), user == ROOT, "{other:?}");
        if user == ROOT && std::os::unix::fs::chown(&path, Some(12_345), None).is_ok() {
            let error = check(&path, user).unwrap_err();
            let told = format!("{error}; {}", error.hint());
            assert!(told.contains("user 12345") && told.contains("sudo chown -R 0 "), "{told}");
        }
    }

    #[test]
    fn paths_in_commands_are_quoted() {
        assert_eq!(quoted(Path::new("/home/ann/.palimpsest")), "/home/ann/.palimpsest");
        assert_eq!(quoted(Path::new("/home/a b/it's")), r"'/home/a b/it'\''s'");
    }
}
