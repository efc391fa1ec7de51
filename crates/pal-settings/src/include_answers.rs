//! The user's answers about files outside of a project that its instruction files include.
//!
//! They are kept beside the project's sessions in the home directory, never in the project. Deleting the file forgets them.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::text_file::{replace_text, text_of};

/// Name of the file in the directory of a project's sessions.
const FILE: &str = "includes.json";

/// Answers about included files of one project.
#[derive(Clone, Debug)]
pub struct IncludeAnswers {
    path: PathBuf,
}

/// Files and directories that the user allowed and refused.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AnsweredIncludes {
    /// Allowed paths.
    pub allowed: Vec<PathBuf>,
    /// Refused paths.
    pub refused: Vec<PathBuf>,
}

impl IncludeAnswers {
    /// Uses the file in the directory of a project's sessions; it need not exist.
    pub fn in_directory(directory: &Path) -> IncludeAnswers {
        IncludeAnswers { path: directory.join(FILE) }
    }

    /// Reads all answers. An unreadable file counts as empty: then the user is asked again.
    pub fn read(&self) -> AnsweredIncludes {
        text_of(&self.path).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    /// Stores an answer; it replaces an earlier one about the same path.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn record(&self, path: &Path, is_allowed: bool) -> std::io::Result<()> {
        let mut answers = self.read();
        answers.allowed.retain(|known| known != path);
        answers.refused.retain(|known| known != path);
        let answered = if is_allowed { &mut answers.allowed } else { &mut answers.refused };
        answered.push(path.to_owned());
        replace_text(&self.path, &serde_json::to_string_pretty(&answers)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_answer_about_a_path_counts() {
        let folder = tempfile::tempdir().unwrap();
        let answers = IncludeAnswers::in_directory(folder.path());
        assert_eq!(answers.read(), AnsweredIncludes::default());
        answers.record(Path::new("/a"), true).unwrap();
        answers.record(Path::new("/b"), false).unwrap();
        answers.record(Path::new("/a"), false).unwrap();
        let read = IncludeAnswers::in_directory(folder.path()).read();
        assert_eq!(read.allowed, Vec::<PathBuf>::new());
        assert_eq!(read.refused, [PathBuf::from("/b"), PathBuf::from("/a")]);
    }
}
