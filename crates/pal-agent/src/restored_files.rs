//! Files that a compaction restores, read as they are now.
//!
//! A log names files and its session's directory, and it may come from anywhere, so its word is not enough: the
//! caller must be in that directory. Only files inside it are read, after following links; no credentials, only
//! regular files, and none above the size limit.

use std::fs::OpenOptions;
use std::io::Read;
use std::path::{Path, PathBuf};

use pal_model::KnownFile;
use pal_permissions::is_credential_path;

/// Maximum bytes of a restored file.
const BYTES_MAX: u64 = 8 << 20;

/// Real path of the session's directory, if the caller is inside of it.
pub fn directory_around(current: &Path, directory: &Path) -> Result<PathBuf, String> {
    let real = directory
        .canonicalize()
        .map_err(|error| format!("the session's directory {}: {error}", directory.display()))?;
    let is_around = current.canonicalize().is_ok_and(|current| current.starts_with(&real));
    // Everyone is inside of the root, which is no project.
    if is_around && real.parent().is_some() && directory.is_absolute() {
        Ok(real)
    } else {
        Err(format!("run it in the session's directory, {}", directory.display()))
    }
}

/// Text of a file inside a directory, truncated to `bytes_max`, and its real path and state for tools that want it to be read
/// before it is changed; the error says why it is not read.
pub fn restored_file(
    directory: &Path,
    path: &str,
    bytes_max: usize,
) -> Result<(String, Option<(String, KnownFile)>), String> {
    let text = text_inside(directory, path, bytes_max)?;
    let real = real_path_inside(directory, path)?;
    let seen = pal_tools::file_seen(&real).map(|seen| (real.display().to_string(), seen));
    Ok((text, seen))
}

/// Text of a file inside a directory, truncated to `bytes_max`; the error says why it is not read.
fn text_inside(directory: &Path, path: &str, bytes_max: usize) -> Result<String, String> {
    let real = real_path_inside(directory, path)?;
    let failure = |error: std::io::Error| error.to_string();
    // Checked before opening: opening a pipe without a writer would block forever.
    let kind = std::fs::symlink_metadata(&real).map_err(failure)?;
    if !kind.is_file() {
        return Err(String::from("it is no regular file"));
    }
    let file = OpenOptions::new().read(true).open(&real).map_err(failure)?;
    // Check again what was actually opened.
    let kind = file.metadata().map_err(failure)?;
    if !kind.is_file() || kind.len() > BYTES_MAX {
        return Err(format!("it has {} bytes, and {BYTES_MAX} is the limit", kind.len()));
    }
    let mut bytes = Vec::new();
    file.take(bytes_max as u64).read_to_end(&mut bytes).map_err(failure)?;
    let is_cut = bytes.len() as u64 == bytes_max as u64;
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        // The truncation may split a character.
        Err(error) if is_cut && error.utf8_error().error_len().is_none() => {
            let end = error.utf8_error().valid_up_to();
            let mut bytes = error.into_bytes();
            bytes.truncate(end);
            String::from_utf8(bytes).unwrap_or_default()
        }
        Err(_) => return Err(String::from("it is no text")),
    };
    if text.contains('\0') { Err(String::from("it is no text")) } else { Ok(text) }
}

/// Real path of a file, if it is inside a directory.
fn real_path_inside(directory: &Path, path: &str) -> Result<PathBuf, String> {
    let real = directory.join(path).canonicalize().map_err(|error| error.to_string())?;
    if !real.starts_with(directory) {
        return Err(format!("it lies outside of {}", directory.display()));
    }
    // Both the link's name and its target may name credentials; the directories above do not matter.
    let below = real.strip_prefix(directory).unwrap_or(&real);
    if is_credential_path(below)
        || is_credential_path(Path::new(path).strip_prefix(directory).unwrap_or(Path::new(path)))
    {
        return Err(String::from("it may hold credentials"));
    }
    Ok(real)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_regular_files_inside_are_read() {
        let home = tempfile::tempdir().unwrap();
        let inside = home.path().canonicalize().unwrap().join("project");
        std::fs::create_dir_all(inside.join("src")).unwrap();
        std::fs::write(inside.join("src/a.rs"), "fn main() {}\n").unwrap();
        std::fs::write(home.path().join("secret"), "of somebody else").unwrap();
        std::fs::create_dir(home.path().join("project-two")).unwrap();
        std::fs::write(home.path().join("project-two/b"), "next door").unwrap();
        symlink(home.path().join("secret"), inside.join("link")).unwrap();
        symlink(home.path(), inside.join("up")).unwrap();
        symlink(inside.join("src/a.rs"), inside.join("own")).unwrap();
        std::fs::write(inside.join("picture"), [0x89, b'P', 0, 255, 1]).unwrap();
        std::fs::write(inside.join("zeros"), [0; 10]).unwrap();
        let read = |path: &str| text_inside(&inside, path, 100);
        let absolute = inside.join("src/a.rs").display().to_string();
        for good in ["src/a.rs", absolute.as_str(), "own", "src/../src/a.rs"] {
            assert_eq!(read(good).as_deref(), Ok("fn main() {}\n"), "{good}");
        }
        let secret = home.path().join("secret").display().to_string();
        for bad in ["link", "up/secret", "../secret", "../project-two/b", secret.as_str(), "/etc/passwd"] {
            assert!(read(bad).unwrap_err().contains("outside"), "{bad}");
        }
        for bad in ["src", "absent", "picture", "zeros", "", "own/x"] {
            assert!(read(bad).is_err(), "{bad}");
        }
        std::fs::File::create(inside.join("huge")).unwrap().set_len(BYTES_MAX + 1).unwrap();
        assert!(read("huge").unwrap_err().contains("limit"));
    }

    #[test]
    fn the_caller_stands_in_the_directory() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let project = home.join("project");
        std::fs::create_dir_all(project.join("src")).unwrap();
        std::fs::create_dir(home.join("project-two")).unwrap();
        symlink(&project, home.join("link")).unwrap();
        for current in [project.clone(), project.join("src"), home.join("link"), home.join("link/src")] {
            for directory in [project.clone(), home.join("link"), home.join("project-two/../project")] {
                assert_eq!(directory_around(&current, &directory), Ok(project.clone()), "{current:?}");
            }
        }
        for current in [home.clone(), home.join("project-two"), home.join("absent"), PathBuf::from("/")] {
            let why = directory_around(&current, &project).unwrap_err();
            assert!(why.contains("run it in the session's directory"), "{current:?}: {why}");
        }
        assert!(directory_around(&project, Path::new("/")).is_err(), "the whole machine is no project");
        assert!(directory_around(&project, Path::new(".")).is_err(), "a log knows nothing of where we stand");
        assert!(directory_around(&project, &home.join("absent")).is_err());
    }

    #[test]
    fn credentials_are_never_read() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let write = |path: &str| {
            let path = home.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "canary").unwrap();
        };
        for bad in [
            ".ssh/config",
            "deep/down/.gnupg/a/b",
            ".aws/config",
            ".kube/config",
            ".netrc",
            "app/.npmrc",
            ".pypirc",
            ".docker/config.json",
            "keys/id_rsa",
            "keys/id_rsa.old",
            "keys/id_ed25519_work",
            "server.pem",
            "server.KEY",
            ".env",
            "app/.Env.local",
            "credentials",
            "app/credentials.json",
            "app/.credentials.json",
        ] {
            write(bad);
            let read = text_inside(&home, bad, 100);
            assert!(read.as_ref().is_err_and(|why| why.contains("credentials")), "{bad}: {read:?}");
        }
        // The name of a link and its target both count.
        write("plain");
        symlink(home.join(".env"), home.join("harmless")).unwrap();
        symlink(home.join("plain"), home.join("link.pem")).unwrap();
        symlink(home.join(".ssh"), home.join("folder")).unwrap();
        for bad in ["harmless", "link.pem", "folder/config"] {
            assert!(text_inside(&home, bad, 100).unwrap_err().contains("credentials"), "{bad}");
        }
        for good in ["plain", "src/environment.rs", "src/keys.rs", "ssh/config", "key", "pem.rs"] {
            write(good);
            assert_eq!(text_inside(&home, good, 100).as_deref(), Ok("canary"), "{good}");
        }
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let home = tempfile::tempdir().unwrap();
        let made = std::process::Command::new("mkfifo").arg(home.path().join("pipe")).status().unwrap();
        assert!(made.success());
        assert!(
            text_inside(&home.path().canonicalize().unwrap(), "pipe", 100)
                .unwrap_err()
                .contains("no regular file")
        );
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("long"), "äöü".repeat(100)).unwrap();
        for most in 1..9 {
            let text = text_inside(&home.path().canonicalize().unwrap(), "long", most).unwrap();
            assert_eq!(text.len(), most / 2 * 2, "{text}");
        }
    }
}
