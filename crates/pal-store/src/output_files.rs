//! Output files next to the logs: spilled results and command output, limited for the whole home.
//!
//! Logs are never touched. Output files can be reproduced by running the call again, so the oldest are
//! removed when all of them together exceed the limit. A short text takes the place of each and says so.
//!
//! Files of a session that another process has open are kept: an open log is locked, and removal locks the
//! log of a closed session.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use pal_model::Timestamp;

use crate::atomic_write::replace_private_file;
use crate::home_paths::log_path;
use crate::safe_open::LockedFile;

/// Directories of a session whose files can be removed.
const OUTPUT_FOLDERS: [&str; 3] = ["tool-results", "outputs", "background"];

/// Files up to this size are kept; the replacement text is shorter.
const SMALL_BYTES: u64 = 1_024;

/// An output file that can be removed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutputFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Directory of the session or subagent that owns it.
    pub session: PathBuf,
    /// Size in bytes.
    pub bytes: u64,
    /// Time of the last write.
    pub modified: SystemTime,
}

/// Result of a cleanup.
#[derive(Debug, Default)]
pub struct OutputCleanup {
    /// Removed files.
    pub removed: Vec<OutputFile>,
    /// Files kept because their session is open.
    pub open: Vec<OutputFile>,
    /// Files that could not be removed, with the error.
    pub failed: Vec<(OutputFile, io::Error)>,
}

impl OutputCleanup {
    /// Bytes freed.
    pub fn freed(&self) -> u64 {
        total_bytes(&self.removed)
    }
}

/// Lists the output files of all sessions and their subagents under a home, oldest first.
pub fn list_outputs(home: &Path) -> Vec<OutputFile> {
    let sessions = subdirectories(&home.join("projects")).into_iter();
    let sessions = sessions.flat_map(|project| subdirectories(&project.join("sessions")));
    let mut files: Vec<OutputFile> = sessions.flat_map(|session| list_session_outputs(&session)).collect();
    sort_oldest_first(&mut files);
    files
}

/// Lists the output files of a session and its subagents, oldest first.
pub fn list_session_outputs(session: &Path) -> Vec<OutputFile> {
    let mut files = Vec::new();
    collect_outputs(session, &mut files);
    sort_oldest_first(&mut files);
    files
}

/// Chooses the oldest files until the rest takes at most `bytes_max`. `files` is sorted oldest first.
pub fn choose_outputs_to_remove(files: &[OutputFile], bytes_max: u64) -> Vec<OutputFile> {
    let mut left = total_bytes(files);
    let chosen = files.iter().take_while(|file| {
        let is_too_much = left > bytes_max;
        left -= file.bytes;
        is_too_much
    });
    chosen.cloned().collect()
}

/// Removes files and leaves a text in their place. `own` is the session that the caller itself has open.
pub fn remove_outputs(files: Vec<OutputFile>, own: Option<&Path>, now: Timestamp) -> OutputCleanup {
    let mut cleanup = OutputCleanup::default();
    let mut rest = files;
    while let Some(first) = rest.first() {
        let session = first.session.clone();
        let (of_session, others) = rest.into_iter().partition(|file| file.session == session);
        rest = others;
        remove_of_session(&session, of_session, own, now, &mut cleanup);
    }
    cleanup
}

/// Total size of files.
pub fn total_bytes(files: &[OutputFile]) -> u64 {
    files.iter().map(|file| file.bytes).sum()
}

/// Total size of a directory. Does not follow links.
pub fn directory_bytes(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => directory_bytes(&entry.path()),
        Ok(metadata) if metadata.is_file() => metadata.len(),
        _ => 0,
    });
    sizes.sum()
}

fn remove_of_session(
    session: &Path,
    files: Vec<OutputFile>,
    own: Option<&Path>,
    now: Timestamp,
    cleanup: &mut OutputCleanup,
) {
    let locks = match own == Some(session) {
        true => Some(Vec::new()),
        false => lock_session(session),
    };
    let Some(_locks) = locks else { return cleanup.open.extend(files) };
    for file in files {
        let text = format!(
            "[{} bytes were here and were removed at {now} by the disk limit (setting max_outputs_mb). Run the call again if \
             they are needed.]\n",
            file.bytes
        );
        match replace_private_file(&file.path, text.as_bytes()) {
            Ok(()) => cleanup.removed.push(file),
            Err(error) => cleanup.failed.push((file, error)),
        }
    }
}

/// Locks the log of a session and those of its parent sessions; none if one of them is open elsewhere.
fn lock_session(session: &Path) -> Option<Vec<LockedFile>> {
    let mut locks = Vec::new();
    for folder in session.ancestors() {
        let log = log_path(folder);
        if folder.file_name().is_some_and(|name| name == "sessions") {
            break;
        }
        // A session without a log cannot be open.
        let Ok(file) = File::open(&log) else { continue };
        locks.push(LockedFile::try_lock(file).ok()?.ok()?);
    }
    Some(locks)
}

fn collect_outputs(folder: &Path, files: &mut Vec<OutputFile>) {
    for outputs in OUTPUT_FOLDERS.map(|name| folder.join(name)) {
        if !outputs.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
            continue;
        }
        for entry in fs::read_dir(outputs).into_iter().flatten().flatten() {
            // Metadata of the directory entry, so that a link is not followed.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_file() && metadata.len() > SMALL_BYTES {
                let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                let (path, session, bytes) = (entry.path(), folder.to_owned(), metadata.len());
                files.push(OutputFile { path, session, bytes, modified });
            }
        }
    }
    let agents = folder.join("agents");
    if agents.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
        subdirectories(&agents).iter().for_each(|agent| collect_outputs(agent, files));
    }
}

fn sort_oldest_first(files: &mut [OutputFile]) {
    files.sort_by(|one, other| (one.modified, &one.path).cmp(&(other.modified, &other.path)));
}

/// Lists subdirectories. Does not follow links.
fn subdirectories(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    directories.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    /// Writes an output file that was last modified `days` days ago.
    fn output(home: &Path, session: &str, name: &str, bytes: usize, days: u64) -> PathBuf {
        let path = home.join("projects/p/sessions").join(session).join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, vec![b'x'; bytes]).unwrap();
        let at = SystemTime::now() - Duration::from_secs(days * 86_400);
        File::options().write(true).open(&path).unwrap().set_modified(at).unwrap();
        path
    }

    fn log(home: &Path, session: &str) -> PathBuf {
        let path = home.join("projects/p/sessions").join(session).join("log.jsonl");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, vec![b'l'; 50_000]).unwrap();
        path
    }

    #[test]
    fn oldest_outputs_are_replaced_by_a_notice() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let log = log(home, "a");
        let oldest = output(home, "a", "outputs/1.txt", 10_000, 9);
        let spilled = output(home, "a", "tool-results/2.txt", 20_000, 8);
        let agents = output(home, "b/agents/x", "background/task_1.txt", 30_000, 7);
        let newest = output(home, "b", "outputs/4.txt", 40_000, 1);
        let small = output(home, "a", "outputs/5.txt", 100, 20);
        let files = list_outputs(home);
        assert_eq!(files.iter().map(|file| file.bytes).collect::<Vec<_>>(), [10_000, 20_000, 30_000, 40_000]);
        assert!(choose_outputs_to_remove(&files, 100_000).is_empty(), "nothing goes within the limit");
        let chosen = choose_outputs_to_remove(&files, 70_001);
        assert_eq!(chosen.iter().map(|file| &file.path).collect::<Vec<_>>(), [&oldest, &spilled]);
        let cleanup = remove_outputs(chosen, None, Timestamp::default());
        assert_eq!((cleanup.freed(), cleanup.removed.len()), (30_000, 2), "{cleanup:?}");
        let text = fs::read_to_string(&oldest).unwrap();
        assert!(text.starts_with("[10000 bytes were here") && text.contains("disk limit"), "{text}");
        assert!(text.contains("Run the call again"), "{text}");
        assert_eq!(fs::metadata(&spilled).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&log).unwrap().len(), 50_000, "logs are never touched");
        assert_eq!((fs::read(&small).unwrap().len(), fs::read(&newest).unwrap().len()), (100, 40_000));
        assert_eq!(fs::read(&agents).unwrap().len(), 30_000);
        assert_eq!(total_bytes(&list_outputs(home)), 70_000, "what says so is not listed again");
        assert!(directory_bytes(&home.join("projects")) > 120_000);
    }

    #[test]
    fn open_sessions_keep_their_outputs_except_our_own() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let open = LockedFile::try_lock(File::open(log(home, "a")).unwrap()).unwrap().ok().unwrap();
        let kept = output(home, "a", "outputs/1.txt", 5_000, 3);
        let of_agent = output(home, "a/agents/x", "outputs/1.txt", 6_000, 3);
        let remove = |own: Option<&Path>| remove_outputs(list_outputs(home), own, Timestamp::default());
        let cleanup = remove(None);
        assert_eq!((cleanup.removed.len(), cleanup.open.len()), (0, 2), "{cleanup:?}");
        assert_eq!(fs::read(&kept).unwrap().len(), 5_000);
        let session = home.join("projects/p/sessions/a");
        let cleanup = remove(Some(&session));
        assert_eq!(
            (cleanup.freed(), cleanup.open.len()),
            (5_000, 1),
            "an agent of it may be at work: {cleanup:?}"
        );
        drop(open);
        assert_eq!(remove(None).freed(), 6_000);
        assert!(fs::read(&of_agent).unwrap().len() < 1_000);
    }

    #[test]
    fn links_are_not_followed() {
        let (home, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let target = elsewhere.path().join("mine.txt");
        fs::write(&target, vec![b'x'; 9_000]).unwrap();
        let session = home.path().join("projects/p/sessions/a");
        fs::create_dir_all(session.join("outputs")).unwrap();
        std::os::unix::fs::symlink(&target, session.join("outputs/1.txt")).unwrap();
        for name in ["agents", "background"] {
            std::os::unix::fs::symlink(elsewhere.path(), session.join(name)).unwrap();
        }
        assert!(list_outputs(home.path()).is_empty());
        assert!(directory_bytes(home.path()) < 9_000);
    }
}
