//! What is wrong with settings, for whoever wrote them.

use std::path::PathBuf;

use crate::place::Origin;

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A file is there and cannot be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It is neither TOML nor JSON.
    #[error("{origin}: {message}")]
    Syntax {
        /// Where.
        origin: Origin,
        /// What the parser says.
        message: String,
    },
    /// There is no such setting.
    #[error("{origin}: there is no setting `{key}`{meant}")]
    UnknownKey {
        /// Where.
        origin: Origin,
        /// What was written.
        key: String,
        /// The end of the sentence, with the nearest known name.
        meant: String,
    },
    /// A setting cannot have this value.
    #[error("{origin}: {key} = {found} does not fit: it wants {wanted}")]
    WrongValue {
        /// Where.
        origin: Origin,
        /// The setting.
        key: &'static str,
        /// What was written, shortened.
        found: String,
        /// What it wants.
        wanted: String,
    },
    /// What `--settings` names is neither a file nor settings.
    #[error("--settings {text}: there is no such file, and it is no TOML or JSON either")]
    NotSettings {
        /// What was given.
        text: String,
    },
}

impl SettingsError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            SettingsError::Unreadable { .. } => "check who may read the file, or move it away",
            SettingsError::UnknownKey { .. } => "pal config lists all settings",
            SettingsError::Syntax { .. } | SettingsError::WrongValue { .. } => {
                "correct it; docs/settings.md describes all settings"
            }
            SettingsError::NotSettings { .. } => {
                "name a file, or write the settings themselves: 'git = false'"
            }
        }
    }
}
