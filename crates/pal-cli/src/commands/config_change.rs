//! `pal config set`, `unset` and `edit`: changes to a settings file.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use pal_settings::{SettingsEdit, SettingsEditError, default_settings_text};

use crate::arguments::{ConfigArgs, ConfigCommand, ConfigScopeArg};
use crate::failure::Failure;
use crate::settings::{Settings, TypedSettings, from_environment, variable};

impl From<SettingsEditError> for Failure {
    fn from(error: SettingsEditError) -> Failure {
        match error {
            SettingsEditError::File { .. } | SettingsEditError::Syntax { .. } => {
                Failure::with_hint(error.to_string(), error.hint())
            }
            _ => Failure::usage_error(error.to_string(), error.hint()),
        }
    }
}

/// Changes a settings file. `settings` is missing if the current ones cannot be read.
pub(crate) fn change_config(
    arguments: &ConfigArgs,
    settings: Option<&Settings>,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    match &arguments.command {
        Some(ConfigCommand::Set { key, value, scope }) => set_setting(key, value, *scope, out)?,
        Some(ConfigCommand::Unset { key, scope }) => {
            let path = settings_path(*scope)?;
            let mut edit = SettingsEdit::open(&path)?;
            if !edit.unset(key)? {
                return Err(Failure::with_hint(
                    format!("{key} is not set in {}", path.display()),
                    format!("`pal config {key}` shows where it is set"),
                ));
            }
            edit.save()?;
            writeln!(out, "{key} is unset  ({})", path.display())?;
        }
        Some(ConfigCommand::Edit { scope }) => edit_file(&settings_path(*scope)?, settings, out)?,
        None => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Sets a setting in a settings file, and says which one.
pub(crate) fn set_setting(
    key: &str,
    value: &str,
    scope: ConfigScopeArg,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let path = settings_path(scope)?;
    let mut edit = SettingsEdit::open(&path)?;
    let value = edit.set(key, value)?;
    edit.save()?;
    writeln!(out, "{key} = {value}  ({})", path.display())?;
    tell_winner(key, &path, out)
}

/// Path of a settings file.
pub(crate) fn settings_path(scope: ConfigScopeArg) -> Result<PathBuf, Failure> {
    let project = || {
        let directory = std::env::current_dir().map_err(|error| Failure::of_file(Path::new("."), &error))?;
        Ok::<PathBuf, Failure>(pal_project::find_project_root(&directory).join(".pal"))
    };
    match scope {
        ConfigScopeArg::Project => Ok(project()?.join("settings.toml")),
        ConfigScopeArg::Local => Ok(project()?.join("settings.local.toml")),
        ConfigScopeArg::User => match pal_store::home_from_environment() {
            Some(home) => Ok(home.join("settings.toml")),
            None => Err(Failure::with_hint(
                "no home directory is known",
                "set HOME, or set PAL_HOME to the directory for pal's files",
            )),
        },
    }
}

/// Says so if another source overrides the value that was set.
fn tell_winner(key: &str, path: &Path, out: &mut dyn Write) -> Result<(), Failure> {
    let settings = from_environment(TypedSettings::default())?;
    let entry = settings.entries().iter().find(|entry| entry.key.name == key);
    let Some(part) = entry.and_then(|entry| entry.parts.last()) else { return Ok(()) };
    let is_same = Path::new(&part.origin.source) == path;
    if !is_same && entry.is_some_and(|entry| !entry.key.accumulates) {
        writeln!(out, "It has no effect now: {} sets it, too, or the project is not trusted.", part.origin)?;
    }
    Ok(())
}

/// Opens a file in the user's editor and checks it.
fn edit_file(path: &Path, settings: Option<&Settings>, out: &mut dyn Write) -> Result<(), Failure> {
    if !path.exists() {
        write_new_settings(path)?;
    }
    let of_environment = || variable("VISUAL").or_else(|| variable("EDITOR"));
    let editor = settings.and_then(|settings| settings.editor.clone()).or_else(of_environment);
    let editor = editor.unwrap_or_else(|| String::from("vi"));
    let status = Command::new("sh").arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(path).status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => {
            return Err(Failure::with_hint(
                format!("the editor `{editor}` failed: {status}"),
                "set EDITOR to another one",
            ));
        }
        Err(error) => {
            return Err(Failure::with_hint(format!("the editor `{editor}`: {error}"), "set EDITOR"));
        }
    }
    from_environment(TypedSettings::default())?;
    writeln!(out, "{} is valid.", path.display())?;
    Ok(())
}

/// Writes a new settings file: the main settings as comments.
pub(crate) fn write_new_settings(path: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
    let failed = |error: std::io::Error| Failure::of_file(path, &error);
    if let Some(folder) = path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    }
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    file.write_all(default_settings_text().as_bytes()).map_err(failed)
}
