//! Errors in settings.

use std::path::PathBuf;

use crate::sources::SettingOrigin;

/// Error in a file, variable or flag.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A file exists but cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        error: std::io::Error,
    },
    /// Neither TOML nor JSON.
    #[error("{origin}: {message}")]
    Syntax {
        /// Position.
        origin: SettingOrigin,
        /// Message of the parser.
        message: String,
    },
    /// No setting has this name.
    #[error("{origin}: `{key}` is not a setting{suggestion}")]
    UnknownKey {
        /// Position.
        origin: SettingOrigin,
        /// Name as written.
        key: String,
        /// End of the sentence, with the nearest known name.
        suggestion: String,
    },
    /// The value has the wrong type or range.
    #[error("{origin}: {key} = {found} is not valid: expected {expected}")]
    WrongValue {
        /// Position.
        origin: SettingOrigin,
        /// Setting.
        key: &'static str,
        /// Value as written, truncated.
        found: String,
        /// Type and range.
        expected: String,
    },
    /// The argument of `--settings` is neither a file nor settings.
    #[error("--settings {text}: no such file, and neither TOML nor JSON")]
    NotSettings {
        /// Argument as given.
        text: String,
    },
}

impl SettingsError {
    /// Next step for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            SettingsError::Unreadable { .. } => "check the permissions of the file, or move it away",
            SettingsError::UnknownKey { .. } => "`pal config` lists all settings",
            SettingsError::Syntax { .. } | SettingsError::WrongValue { .. } => {
                "correct it; `pal help settings` describes all settings"
            }
            SettingsError::NotSettings { .. } => "give a file, or settings such as 'git = false'",
        }
    }
}
