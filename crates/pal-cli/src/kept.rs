//! Which sessions are kept under our home, and which of them belong to a project.

use std::path::{Path, PathBuf};

use pal_model::{Body, Entry, Session, Text};
use pal_sources::project_of;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};

/// A session that is kept.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Kept {
    /// Its id: the name of its folder.
    pub(crate) id: String,
    /// Its log.
    pub(crate) log: PathBuf,
}

/// All sessions under a home.
pub(crate) fn all(home: &Path) -> Vec<Kept> {
    folders(&home.join("projects")).iter().flat_map(|project| in_project_folder(project)).collect()
}

/// The sessions of the project that a directory belongs to, and that project. Sessions that began in another worktree or
/// deeper in it count. Where there are none, those of the nearest directory around it that has any.
pub(crate) fn of_directory(home: &Path, directory: &Path) -> (PathBuf, Vec<Kept>) {
    let project = project_of(directory);
    let known: Vec<(PathBuf, Option<PathBuf>)> = folders(&home.join("projects"))
        .into_iter()
        .map(|folder| {
            let began = in_project_folder(&folder).iter().find_map(|kept| beginning(&kept.log)?.cwd);
            (folder, began.map(PathBuf::from))
        })
        .collect();
    for around in project.ancestors() {
        let own = pal_store::project_directory(home, around);
        let belongs = |folder: &Path, began: Option<&PathBuf>| {
            folder == own
                || began.is_some_and(|began| {
                    if around == project {
                        began.starts_with(around) || project_of(began) == around
                    } else {
                        began == around
                    }
                })
        };
        let found = known.iter().filter(|(folder, began)| belongs(folder, began.as_ref()));
        let sessions: Vec<Kept> = found.flat_map(|(folder, _)| in_project_folder(folder)).collect();
        if !sessions.is_empty() {
            return (around.to_owned(), sessions);
        }
    }
    (project, Vec::new())
}

/// How a log says that its session began. Only the first line is read.
pub(crate) fn beginning(log: &Path) -> Option<Session> {
    let mut line = String::new();
    BufReader::new(File::open(log).ok()?.take(64 << 10)).read_line(&mut line).ok()?;
    match Entry::parse(Text::from(line.trim_end())) {
        Ok(Entry { body: Body::Session(session), .. }) => Some(session),
        _ => None,
    }
}

/// The sessions in the folder of a project.
fn in_project_folder(project: &Path) -> Vec<Kept> {
    let sessions = folders(&project.join("sessions")).into_iter();
    let kept = sessions.filter_map(|folder| {
        let id = folder.file_name()?.to_string_lossy().into_owned();
        Some(Kept { id, log: pal_store::log_path(&folder) })
    });
    kept.filter(|kept| kept.log.is_file()).collect()
}

/// What a folder holds, in the order of the names.
fn folders(path: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}
