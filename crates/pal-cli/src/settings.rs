//! Sources of the settings, read once. No other module reads the environment.

use std::path::{Path, PathBuf};

use pal_model::ModelCatalog;
use pal_project::{find_project_root, managed_folders};
pub(crate) use pal_settings::{EstimatorSetting, Settings};
use pal_settings::{
    FlagSetting, KEYS_FILE, ProviderEndpoints, REFRESHED_CARDS_PREFIX, RefreshedCards, SettingsError,
    SettingsInput, SettingsSource,
};

use crate::failure::Failure;

/// Settings that the command line gives.
#[derive(Clone, Default)]
pub(crate) struct TypedSettings {
    /// Value of `--settings`.
    pub(crate) given: Option<String>,
    /// Settings of other flags.
    pub(crate) flags: Vec<FlagSetting>,
    /// Value of `--setting-sources`.
    pub(crate) sources: Option<String>,
}

/// Settings for the current directory.
pub(crate) fn from_environment(typed: TypedSettings) -> Result<Settings, Failure> {
    settings_at(std::env::current_dir().ok(), typed)
}

/// Settings for another directory.
pub(crate) fn settings_at(directory: Option<PathBuf>, typed: TypedSettings) -> Result<Settings, Failure> {
    let home = pal_store::home_from_environment();
    if let Some(home) = &home {
        check_home(home, directory.as_deref())?;
    }
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
    };
    let allowed = directory.as_ref().zip(home.as_ref());
    let allowed = allowed.map(|(directory, home)| allowed_file(home, directory));
    let sources = SettingsInput {
        allowed,
        home,
        cards: None,
        project: directory.map(|directory| find_project_root(&directory)),
        managed: managed_folders().pop().map(|folder| folder.join("settings.toml")),
        claude_managed: managed_folders().into_iter().next(),
        sources: typed.sources.as_deref().map(settings_sources).transpose()?,
        given: typed.given,
        variables: std::env::vars_os().filter_map(text).collect(),
        flags: typed.flags,
    };
    let mut settings = Settings::read(sources)?;
    if let Some(home) = settings.home.clone() {
        settings.cards = cards_of(&home, &settings.endpoints)?;
    }
    Ok(settings)
}

/// Sources of `--setting-sources`.
fn settings_sources(list: &str) -> Result<Vec<SettingsSource>, Failure> {
    let source = |name: &str| match name {
        "user" => Ok(SettingsSource::User),
        "project" => Ok(SettingsSource::Project),
        "local" => Ok(SettingsSource::Local),
        other => Err(Failure::usage_error(
            format!("--setting-sources: `{other}` is not a source"),
            "list some of user, project and local, separated by commas; an empty list reads none",
        )),
    };
    list.split(',').map(str::trim).filter(|name| !name.is_empty()).map(source).collect()
}

/// Aliases of models, for suggestions.
pub(crate) const MODEL_ALIASES: [&str; 4] = ["opus", "sonnet", "haiku", "best"];

/// Full name of a model: an alias stands for the newest model of its family, or for the one that a variable names.
pub(crate) fn full_model_name(name: &str, settings: &Settings) -> String {
    // The mark of a wide window stays with the name.
    let (plain, window) = match name.trim().strip_suffix("[1m]") {
        Some(plain) => (plain, "[1m]"),
        None => (name.trim(), ""),
    };
    let family = match plain.to_ascii_lowercase().as_str() {
        "default" => return pal_settings::DEFAULT_MODEL.to_owned(),
        "best" | "opusplan" => String::from("opus"),
        family @ ("opus" | "sonnet" | "haiku") => family.to_owned(),
        _ => return name.trim().to_owned(),
    };
    let chosen = variable(&format!("ANTHROPIC_DEFAULT_{}_MODEL", family.to_ascii_uppercase()));
    if let Some(chosen) = chosen.filter(|chosen| !chosen.trim().is_empty()) {
        return chosen.trim().to_owned();
    }
    let of_family = settings.cards.names().filter(|known| known.split('-').any(|word| word == family));
    of_family.last().map_or_else(|| name.trim().to_owned(), |full| format!("{full}{window}"))
}

/// Rejects a home directory that another user owns or can write to, before anything in it is read.
fn check_home(home: &Path, directory: Option<&Path>) -> Result<(), Failure> {
    let mut paths = vec![home.to_owned()];
    paths.extend(["settings.toml", "flags.toml", "models.toml", KEYS_FILE].map(|name| home.join(name)));
    let files = std::fs::read_dir(home).into_iter().flatten().filter_map(Result::ok);
    let refreshed =
        files.filter(|file| file.file_name().to_string_lossy().starts_with(REFRESHED_CARDS_PREFIX));
    paths.extend(refreshed.map(|file| file.path()));
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
        let is_typed = match &error {
            SettingsError::NotSettings { .. } => true,
            SettingsError::Syntax { origin, .. }
            | SettingsError::UnknownKey { origin, .. }
            | SettingsError::WrongValue { origin, .. } => origin.place == SettingsSource::Given,
            SettingsError::Unreadable { .. } => false,
        };
        match is_typed {
            true => Failure::usage_error(error.to_string(), error.hint()),
            false => Failure::with_hint(error.to_string(), error.hint()),
        }
    }
}

/// All model cards: built in, overridden by what providers reported, overridden by the user's.
fn cards_of(home: &Path, endpoints: &ProviderEndpoints) -> Result<ModelCatalog, Failure> {
    let refreshed = RefreshedCards::of_endpoints(home, endpoints);
    let apply = |cards, (_, refreshed): &(&str, RefreshedCards)| refreshed.apply(cards);
    let shipped = refreshed.iter().fold(ModelCatalog::built_in(), apply);
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
    fn aliases_name_the_newest_of_a_family() {
        let settings = Settings::read(SettingsInput::default()).unwrap();
        let full = |name: &str| full_model_name(name, &settings);
        assert_eq!((full("opus").as_str(), full("best")), ("claude-opus-5-5", full("opus")));
        assert_eq!((full("OPUS[1m]").as_str(), full("m[1m]").as_str()), ("claude-opus-5-5[1m]", "m[1m]"));
        assert!(full("sonnet").starts_with("claude-sonnet-") && full("haiku").starts_with("claude-haiku-"));
        assert_eq!((full("gpt-6-sol").as_str(), full("my-model").as_str()), ("gpt-6-sol", "my-model"));
    }

    #[test]
    fn defaults_match_those_of_pal_project() {
        let settings = Settings::read(SettingsInput::default()).unwrap();
        assert_eq!(settings.instructions.tokens_max, pal_project::INSTRUCTION_TOKENS_MAX);
        assert_eq!(settings.git.limit, pal_project::GIT_TIMEOUT);
    }
}
