//! What a file that came with a repository may set.
//!
//! Whoever clones a repository has not read its settings. So nothing in them runs a command, reaches further or costs
//! more than what the user chose, until the user says that the project is trusted.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Whether a file that came with a repository may set something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trust {
    /// It may.
    Free,
    /// Only if the user trusts the project.
    Needed,
    /// It may switch it off; switching it on needs trust.
    UnlessOff,
    /// These words are harmless; any other needs trust.
    UnlessOneOf(&'static [&'static str]),
    /// These words stand from strict to lax, or from cheap to dear: it may choose one that does not stand behind what holds
    /// already, and the first where that is nothing. Any other needs trust.
    UnlessStricter(&'static [&'static str]),
    /// It may lower what holds already; more needs trust.
    UnlessLower,
}

impl Trust {
    /// Whether a value needs the user's trust; `held` is what holds without it.
    pub(crate) fn is_needed(self, value: &Value, held: &Value) -> bool {
        match self {
            Trust::Free => false,
            Trust::Needed => true,
            Trust::UnlessOff => value.as_bool() != Some(false),
            Trust::UnlessOneOf(harmless) => !value.as_str().is_some_and(|value| harmless.contains(&value)),
            Trust::UnlessStricter(words) => {
                let place = |word: &Value| words.iter().position(|known| word.as_str() == Some(known));
                place(value).is_none_or(|place_of_value| place_of_value > place(held).unwrap_or(0))
            }
            Trust::UnlessLower => match (value.as_f64(), held.as_f64()) {
                (Some(value), Some(held)) => value > held,
                (_, _) => false,
            },
        }
    }
}

/// Whether the user trusts a project: its very top is listed, whatever links lead there.
pub(crate) fn is_trusted(project: &Path, trusted: &[PathBuf]) -> bool {
    let project = real(project);
    trusted.iter().any(|folder| real(folder) == project)
}

/// A path with its links followed, as it is if it leads nowhere.
pub(crate) fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// What is told of settings that are ignored, and what to add where.
pub(crate) fn notice(file: &str, keys: &[&str], project: &Path, user_file: Option<&Path>) -> String {
    let are = if keys.len() == 1 { "is" } else { "are" };
    let user_file = user_file.map_or("your own settings.toml".to_owned(), |path| path.display().to_string());
    let project = Value::from(real(project).display().to_string());
    format!(
        "{file}: {} {are} ignored, because this project is not trusted; to trust it, add {project} to the list \
         `trusted` in {user_file}",
        keys.join(", ")
    )
}
