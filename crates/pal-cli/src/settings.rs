//! Sources of the settings, read once. No other module reads the environment.

use std::path::{Path, PathBuf};

use pal_model::ModelCatalog;
use pal_project::{find_project_root, managed_folders};
pub(crate) use pal_settings::{EstimatorSetting, Settings};
use pal_settings::{FlagSetting, MODEL_PROVIDERS, RefreshedCards, SettingsError, SettingsInput};

use crate::failure::Failure;

/// Settings for the current directory; `given` is the value of `--settings`, `flags` are settings from other flags.
pub(crate) fn from_environment(given: Option<String>, flags: Vec<FlagSetting>) -> Result<Settings, Failure> {
    settings_at(std::env::current_dir().ok(), given, flags)
}

/// Settings for another directory.
pub(crate) fn settings_at(
    directory: Option<PathBuf>,
    given: Option<String>,
    flags: Vec<FlagSetting>,
) -> Result<Settings, Failure> {
    let home = pal_store::home_from_environment();
    if let Some(home) = &home {
        check_home(home, directory.as_deref())?;
    }
    let cards = home.as_ref().map(|home| cards_of(home)).transpose()?;
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
    };
    let allowed = directory.as_ref().zip(home.as_ref());
    let allowed = allowed.map(|(directory, home)| allowed_file(home, directory));
    let sources = SettingsInput {
        allowed,
        home,
        cards,
        project: directory.map(|directory| find_project_root(&directory)),
        managed: managed_folders().pop().map(|folder| folder.join("settings.toml")),
        given,
        variables: std::env::vars_os().filter_map(text).collect(),
        flags,
    };
    Ok(Settings::read(sources)?)
}

/// Rejects a home directory that another user owns or can write to, before anything in it is read.
fn check_home(home: &Path, directory: Option<&Path>) -> Result<(), Failure> {
    let mut paths = vec![home.to_owned()];
    paths.extend(["settings.toml", "flags.toml", "models.toml"].map(|name| home.join(name)));
    paths.extend(MODEL_PROVIDERS.map(|provider| RefreshedCards::in_home(home, provider).path().to_owned()));
    paths.extend(directory.map(|directory| allowed_file(home, directory)));
    pal_store::check_owner_and_mode(&paths)
        .map_err(|error| Failure::with_hint(error.to_string(), error.hint()))
}

/// Reads an environment variable; none if it is not UTF-8.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// File of rules that the user allowed for the project of a directory.
pub(crate) fn allowed_file(home: &Path, directory: &Path) -> PathBuf {
    pal_store::project_directory(home, &pal_project::find_project(directory)).join("allowed.toml")
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Failure {
        Failure::with_hint(error.to_string(), error.hint())
    }
}

/// All model cards: built in, overridden by what providers reported, overridden by the user's.
fn cards_of(home: &Path) -> Result<ModelCatalog, Failure> {
    let refreshed = MODEL_PROVIDERS.map(|provider| RefreshedCards::in_home(home, provider));
    let shipped = refreshed.iter().fold(ModelCatalog::built_in(), |cards, refreshed| refreshed.apply(cards));
    let path = &home.join("models.toml");
    match std::fs::read_to_string(path) {
        Ok(text) => shipped.with_overrides(&text).map_err(|error| {
            Failure::with_hint(format!("{}: {error}", path.display()), "correct the file or remove it")
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(shipped),
        Err(error) => Err(Failure::of_file(path, &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_match_those_of_pal_project() {
        let settings = Settings::read(SettingsInput::default()).unwrap();
        assert_eq!(settings.instructions.tokens_max, pal_project::INSTRUCTION_TOKENS_MAX);
        assert_eq!(settings.git.limit, pal_project::GIT_TIMEOUT);
    }
}
