//! Scan of a project for paths to protect: credentials and repositories.
//!
//! Commands wait for the scan, so later scans read only changed folders.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Maximum folders scanned in a project.
const FOLDERS_MAX: usize = 20_000;

/// Minimum age of a change; a younger folder may change again within the same clock tick.
const SETTLE_AGE: Duration = Duration::from_millis(50);

/// Folders that are skipped, as they hold no credentials of the user.
const SKIPPED_FOLDERS: [&str; 3] = ["node_modules", ".git", ".hg"];

/// Cache of a project's folders, refreshed at every scan.
#[derive(Debug, Default)]
pub struct ProjectScan {
    folders: HashMap<PathBuf, ScannedFolder>,
}

/// Result of a scan.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProjectFindings {
    /// Files and folders with credential names.
    pub credentials: Vec<PathBuf>,
    /// Paths named `.git`, and bare repositories.
    pub repositories: Vec<PathBuf>,
    /// True if the project has more folders than were scanned.
    pub is_cut: bool,
}

#[derive(Debug)]
struct ScannedFolder {
    changed: SystemTime,
    is_settled: bool,
    folders: Vec<OsString>,
    credentials: Vec<OsString>,
    has_git: bool,
    is_repository: bool,
}

impl ProjectScan {
    /// Scans the folders of a project.
    pub fn scan(&mut self, root: &Path) -> ProjectFindings {
        let mut findings = ProjectFindings::default();
        let mut left = vec![root.to_owned()];
        let mut n_folders = 0;
        while let Some(path) = left.pop() {
            n_folders += 1;
            if n_folders > FOLDERS_MAX {
                findings.is_cut = true;
                break;
            }
            let Some(folder) = self.folder(&path, root) else { continue };
            findings.credentials.extend(folder.credentials.iter().map(|name| path.join(name)));
            if folder.has_git {
                findings.repositories.push(path.join(".git"));
            }
            if folder.is_repository {
                findings.repositories.push(path.clone());
            }
            left.extend(folder.folders.iter().map(|name| path.join(name)));
        }
        findings.credentials.sort();
        findings.repositories.sort();
        findings
    }

    fn folder(&mut self, path: &Path, root: &Path) -> Option<&ScannedFolder> {
        let changed = std::fs::symlink_metadata(path).and_then(|found| found.modified()).ok()?;
        let is_known =
            self.folders.get(path).is_some_and(|folder| folder.is_settled && folder.changed == changed);
        if !is_known {
            let folder = read(path, root, changed)?;
            self.folders.insert(path.to_owned(), folder);
        }
        self.folders.get(path)
    }
}

fn read(path: &Path, root: &Path, changed: SystemTime) -> Option<ScannedFolder> {
    let is_settled = changed.elapsed().is_ok_and(|age| age > SETTLE_AGE);
    let mut folder = ScannedFolder {
        changed,
        is_settled,
        folders: Vec::new(),
        credentials: Vec::new(),
        has_git: false,
        is_repository: false,
    };
    let (mut has_head, mut has_objects, mut has_refs) = (false, false, false);
    for entry in std::fs::read_dir(path).ok()?.flatten() {
        let name = entry.file_name();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        has_head |= name == "HEAD";
        has_objects |= name == "objects";
        has_refs |= name == "refs";
        folder.has_git |= name == ".git";
        let below = path.strip_prefix(root).unwrap_or(Path::new("")).join(&name);
        if pal_permissions::is_credential_path(&below) {
            folder.credentials.push(name);
        } else if is_folder && !SKIPPED_FOLDERS.iter().any(|passed| name == *passed) {
            folder.folders.push(name);
        }
    }
    // Cargo's build folder is marked by this file, which could be faked in other folders.
    let is_target = path != root && path.file_name().is_some_and(|name| name == "target");
    if is_target && path.join("CACHEDIR.TAG").exists() {
        folder.folders.clear();
    }
    folder.is_repository = has_head && has_objects && has_refs;
    Some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_credentials_and_repositories_are_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        let make = |name: &str| {
            std::fs::create_dir_all(root.join(name).parent().expect("it has one")).expect("made");
            std::fs::write(root.join(name), "").expect("written");
        };
        make("src/main.rs");
        make(".env");
        make("node_modules/x/server.pem");
        make("deep/down/server.key");
        make(".env.example");
        let mut scan = ProjectScan::default();
        let names = |found: &[PathBuf]| -> Vec<String> {
            found.iter().map(|path| path.strip_prefix(root).expect("below").display().to_string()).collect()
        };
        assert_eq!(names(&scan.scan(root).credentials), [".env", "deep/down/server.key"]);
        // Cached folders are refreshed even within the same clock tick.
        make("src/id_rsa");
        assert_eq!(names(&scan.scan(root).credentials), [".env", "deep/down/server.key", "src/id_rsa"]);
        std::thread::sleep(Duration::from_millis(120));
        scan.scan(root);
        make("deep/down/.netrc");
        make("sub/.git/config");
        for name in ["bare/HEAD", "bare/objects/x", "bare/refs/x"] {
            make(name);
        }
        let found = scan.scan(root);
        assert_eq!(
            names(&found.credentials),
            [".env", "deep/down/.netrc", "deep/down/server.key", "src/id_rsa"]
        );
        assert_eq!(names(&found.repositories), ["bare", "sub/.git"]);
    }
}
