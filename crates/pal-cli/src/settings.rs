//! Settings: everything that they are read from, gathered once. Nothing else reads the environment.

use std::path::{Path, PathBuf};

use pal_model::Cards;
pub(crate) use pal_settings::{EstimatorName, Settings};
use pal_settings::{Flag, SettingsError, Sources};
use pal_sources::{managed_folders, project_root};

use crate::failure::Failure;

/// Settings for the current directory; `given` is what `--settings` says, `flags` what other flags set.
pub(crate) fn from_environment(given: Option<String>, flags: Vec<Flag>) -> Result<Settings, Failure> {
    settings_at(std::env::current_dir().ok(), given, flags)
}

/// The same for another directory.
pub(crate) fn settings_at(
    directory: Option<PathBuf>,
    given: Option<String>,
    flags: Vec<Flag>,
) -> Result<Settings, Failure> {
    let home = pal_store::home_from_environment();
    if let Some(home) = &home {
        check_home(home, directory.as_deref())?;
    }
    let cards = home.as_ref().map(|home| cards_with(&home.join("models.toml"))).transpose()?;
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
    };
    let allowed = directory.as_ref().zip(home.as_ref());
    let allowed = allowed.map(|(directory, home)| allowed_file(home, directory));
    let sources = Sources {
        allowed,
        home,
        cards,
        project: directory.map(|directory| project_root(&directory)),
        managed: managed_folders().pop().map(|folder| folder.join("settings.toml")),
        given,
        variables: std::env::vars_os().filter_map(text).collect(),
        flags,
    };
    Ok(Settings::read(sources)?)
}

/// Refuses a home that another user owns or can write to, before anything in it is read.
fn check_home(home: &Path, directory: Option<&Path>) -> Result<(), Failure> {
    let mut paths = vec![home.to_owned()];
    paths.extend(["settings.toml", "flags.toml", "models.toml"].map(|name| home.join(name)));
    paths.extend(directory.map(|directory| allowed_file(home, directory)));
    pal_store::check_owner_and_mode(&paths)
        .map_err(|error| Failure::with_hint(error.to_string(), error.hint()))
}

/// A variable of the environment that is text.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The file with what was allowed in the project of a directory when somebody was asked.
pub(crate) fn allowed_file(home: &Path, directory: &Path) -> PathBuf {
    pal_store::project_directory(home, &pal_sources::project_of(directory)).join("allowed.toml")
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Failure {
        Failure::with_hint(error.to_string(), error.hint())
    }
}

fn cards_with(path: &Path) -> Result<Cards, Failure> {
    let shipped = Cards::shipped();
    match std::fs::read_to_string(path) {
        Ok(text) => shipped.overridden(&text).map_err(|error| {
            Failure::with_hint(format!("{}: {error}", path.display()), "correct the file or move it away")
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(shipped),
        Err(error) => Err(Failure::of_file(path, &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_without_settings_is_what_gathering_is_built_for() {
        let settings = Settings::read(Sources::default()).unwrap();
        assert_eq!(settings.instructions.tokens_max, pal_sources::INSTRUCTION_TOKENS_MAX);
        assert_eq!(settings.git.limit, pal_sources::GIT_TIME);
    }
}
