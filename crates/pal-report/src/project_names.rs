//! Moves the directories of projects to names of their own. Earlier versions gave paths such as `a_b`, `a-b` and `a/b`
//! one directory, so that recall and memory of one project showed in another.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pal_project::find_project;
use pal_store::{create_private_directory, former_slug, log_path, read_session_entry, slug};

/// File in the home directory that says that all names are distinct.
const MARKER: &str = "project-names";
/// Content of the marker.
const VERSION: &str = "2\n";
/// Directory of the sessions of a project.
const SESSIONS: &str = "sessions";
/// Start of the names of index files, which are rebuilt.
const INDEX: &str = "recall.db";

/// Gives every project under a home directory its own directory, once. Sessions go by the directory that they were
/// started in. Memory and answers of projects that shared a directory are copied to each of them, since no file tells
/// whose they are. What cannot be moved stays.
pub fn separate_projects(home: &Path) -> io::Result<()> {
    let marker = home.join(MARKER);
    let projects = home.join("projects");
    if marker.exists() || !projects.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(&projects)? {
        let folder = entry?.path();
        if folder.is_dir() {
            separate_project(&projects, &folder)?;
        }
    }
    pal_store::replace_private_file(&marker, VERSION.as_bytes())
}

/// Copies what a project kept under its former name, where no session says whose it is: memory without sessions.
pub fn adopt_former_directory(home: &Path, project: &Path) -> io::Result<()> {
    let [former, own] = [former_slug(project), slug(project)].map(|name| home.join("projects").join(name));
    if former == own || own.exists() || !former.is_dir() || !entries(&former.join(SESSIONS))?.is_empty() {
        return Ok(());
    }
    copy_missing(&former, &own)
}

fn separate_project(projects: &Path, folder: &Path) -> io::Result<()> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut by_name: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for session in entries(&folder.join(SESSIONS))? {
        let own = project_of(&session, &name).map_or_else(|| name.clone(), |project| slug(&project));
        by_name.entry(own).or_default().push(session);
    }
    let stays = by_name.remove(&name).is_some();
    if let (false, Some((own, _)), 1) = (stays, by_name.first_key_value(), by_name.len()) {
        let target = projects.join(own);
        if !target.exists() {
            return fs::rename(folder, target);
        }
    }
    for (own, sessions) in by_name {
        let target = projects.join(own);
        let target_sessions = target.join(SESSIONS);
        create_private_directory(&target_sessions).map_err(io::Error::other)?;
        for session in sessions {
            let moved = target_sessions.join(session.file_name().unwrap_or_default());
            if !moved.exists() {
                fs::rename(&session, moved)?;
            }
        }
        for shared in entries(folder)? {
            let file = shared.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if file != SESSIONS && !file.starts_with(INDEX) {
                copy_missing(&shared, &target.join(file))?;
            }
        }
    }
    Ok(())
}

/// Project of a session whose directory had this name; none if the log does not say.
fn project_of(session: &Path, name: &str) -> Option<PathBuf> {
    let began = PathBuf::from(read_session_entry(&log_path(session))?.cwd?);
    let project = find_project(&began);
    let mut candidates = std::iter::once(project.as_path()).chain(began.ancestors());
    candidates.find(|candidate| former_slug(candidate) == name).map(Path::to_owned)
}

/// Copies a file or a directory without replacing anything.
fn copy_missing(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_dir() {
        create_private_directory(to).map_err(io::Error::other)?;
        return entries(from)?
            .iter()
            .try_for_each(|entry| copy_missing(entry, &to.join(entry.file_name().unwrap_or_default())));
    }
    if to.exists() { Ok(()) } else { fs::copy(from, to).map(|_| ()) }
}

/// Entries of a directory, by name; none if there is no such directory.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let read = match fs::read_dir(folder) {
        Ok(read) => read,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found: Vec<PathBuf> = read.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use pal_model::{EntryDraft, IdSource, SessionStart, Timestamp};
    use pal_store::{Log, project_directory};

    use super::*;

    /// Writes a session of a directory under the name that its project had.
    fn session(home: &Path, directory: &str, id: &str) {
        let folder = home.join("projects").join(former_slug(Path::new(directory))).join(SESSIONS).join(id);
        create_private_directory(&folder).unwrap();
        let start = SessionStart { cwd: Some(directory.to_owned()), ..SessionStart::default() };
        let seed = id.bytes().map(u64::from).sum();
        let mut log = Log::create(&log_path(&folder), IdSource::seeded(seed)).unwrap();
        log.append(EntryDraft::session(&start), Timestamp::from_milliseconds(1_790_000_000_000)).unwrap();
    }

    /// Ids of the sessions in the directory of a project.
    fn ids(home: &Path, directory: &str) -> Vec<String> {
        let found = entries(&project_directory(home, Path::new(directory)).join(SESSIONS)).unwrap();
        found.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn projects_that_shared_a_directory_get_their_own() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        session(home, "/src/a_b", "one");
        session(home, "/src/a-b", "two");
        session(home, "/src/a/b", "three");
        session(home, "/src/plain", "four");
        session(home, "/src/my_tool", "five");
        let shared = home.join("projects/-src-a-b");
        fs::create_dir_all(shared.join("memory/.versions")).unwrap();
        fs::write(shared.join("memory/port.md"), "The port is 4010.").unwrap();
        fs::write(shared.join("recall.db"), "index").unwrap();
        fs::write(home.join("projects/-src-my-tool/allowed.toml"), "kept").unwrap();
        separate_projects(home).unwrap();
        for (directory, id) in [
            ("/src/a_b", "one"),
            ("/src/a-b", "two"),
            ("/src/a/b", "three"),
            ("/src/plain", "four"),
            ("/src/my_tool", "five"),
        ] {
            assert_eq!(ids(home, directory), [id], "{directory}");
        }
        for directory in ["/src/a_b", "/src/a-b", "/src/a/b"] {
            let memory = project_directory(home, Path::new(directory)).join("memory/port.md");
            assert_eq!(fs::read_to_string(memory).unwrap(), "The port is 4010.", "{directory}");
        }
        let own = project_directory(home, Path::new("/src/my_tool"));
        assert_eq!(fs::read_to_string(own.join("allowed.toml")).unwrap(), "kept");
        assert!(!home.join("projects/-src-my-tool").exists(), "renamed as a whole");
        assert!(!project_directory(home, Path::new("/src/a_b")).join("recall.db").exists());
        // It is done once.
        session(home, "/src/late_one", "six");
        separate_projects(home).unwrap();
        assert!(ids(home, "/src/late_one").is_empty());
    }

    #[test]
    fn memory_without_sessions_is_adopted() {
        let home = tempfile::tempdir().unwrap();
        let memory = home.path().join("projects/-src-my-tool/memory");
        fs::create_dir_all(&memory).unwrap();
        fs::write(memory.join("port.md"), "4010").unwrap();
        session(home.path(), "/src/other_one", "one");
        let kept = |project: &str| {
            adopt_former_directory(home.path(), Path::new(project)).unwrap();
            project_directory(home.path(), Path::new(project)).join("memory/port.md").exists()
        };
        assert!(kept("/src/my_tool") && memory.exists());
        assert!(
            !kept("/src/other.one")
                && !home.path().join("projects").join(slug(Path::new("/src/other.one"))).exists()
        );
    }

    #[test]
    fn a_home_without_projects_stays_empty() {
        let home = tempfile::tempdir().unwrap();
        separate_projects(home.path()).unwrap();
        assert!(entries(home.path()).unwrap().is_empty());
    }

    #[test]
    fn sessions_that_say_nothing_stay() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("projects/-src-x-y/sessions/old");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("log.jsonl"), "no log").unwrap();
        session(home.path(), "/src/x_y", "one");
        separate_projects(home.path()).unwrap();
        assert!(folder.join("log.jsonl").exists());
        assert_eq!(ids(home.path(), "/src/x_y"), ["one"]);
    }
}
