//! Changes to a settings file that keep its comments and order.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use pal_model::did_you_mean;
use serde_json::Value;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table};

use crate::setting_keys::{SETTING_KEYS, SettingKey};
use crate::setting_kind::SettingKind;
use crate::settings_file::{parse_text, parse_toml};
use crate::sources::{SettingOrigin, SettingsSource};
use crate::text_file::{replace_text, text_of};

/// Main settings of a new file, in the order in which users read them.
const MAIN_SETTINGS: &[(&str, &str)] = &[
    ("model", "\"opus\""),
    ("effort", "\"high\""),
    ("permissions.mode", "\"accept-edits\""),
    ("permissions.allow", "[\"Bash(cargo test:*)\", \"Edit(src/**)\"]"),
    ("permissions.deny", "[\"Read(.env)\"]"),
    ("sandbox", "\"on\""),
    ("max_cost_usd", "5.0"),
    ("language", "\"English\""),
    ("output_style", "\"concise\""),
    ("import_settings", "[\"claude-code\"]"),
];

/// Error of a change.
#[derive(Debug, thiserror::Error)]
pub enum SettingsEditError {
    /// The file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        error: std::io::Error,
    },
    /// The file is not valid TOML.
    #[error("{}: {message}", path.display())]
    Syntax {
        /// Path of the file.
        path: PathBuf,
        /// Message of the parser.
        message: String,
    },
    /// No setting has this name.
    #[error("unknown setting `{name}`{suggestion}")]
    UnknownKey {
        /// Name as written.
        name: String,
        /// End of the sentence, with the nearest known name.
        suggestion: String,
    },
    /// The value has the wrong type or range.
    #[error("{name} = {text} is not valid: expected {expected}")]
    WrongValue {
        /// Setting, or entry of a table, as written.
        name: String,
        /// Value as written.
        text: String,
        /// Type and range.
        expected: String,
    },
    /// Keys do not belong into settings files.
    #[error("`{name}` is a secret and does not belong into a settings file")]
    Secret {
        /// Setting.
        name: &'static str,
    },
}

impl SettingsEditError {
    /// Next step for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            SettingsEditError::File { .. } => "check the permissions of the file",
            SettingsEditError::Syntax { .. } => "correct the file with `pal config edit`",
            SettingsEditError::UnknownKey { .. } => "`pal config` lists all settings",
            SettingsEditError::WrongValue { .. } => "`pal config KEY` describes a setting",
            SettingsEditError::Secret { .. } => "`pal login` stores keys, or set the environment variable",
        }
    }
}

/// A settings file that is being changed.
#[derive(Debug)]
pub struct SettingsEdit {
    path: PathBuf,
    document: DocumentMut,
}

impl SettingsEdit {
    /// Opens a file; a missing one starts empty.
    pub fn open(path: &Path) -> Result<SettingsEdit, SettingsEditError> {
        let text = match text_of(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(SettingsEditError::File { path: path.to_owned(), error }),
        };
        let document = text.parse::<DocumentMut>().map_err(|error| SettingsEditError::Syntax {
            path: path.to_owned(),
            message: error.to_string().trim_end().to_owned(),
        })?;
        Ok(SettingsEdit { path: path.to_owned(), document })
    }

    /// Sets a setting, or one entry of a table (`env.NAME`), to a value as typed on the command line: a word, a number,
    /// a list with commas, or TOML.
    pub fn set(&mut self, name: &str, text: &str) -> Result<Value, SettingsEditError> {
        let NamedSetting { key, entry } = find_setting(name)?;
        if key.kind == SettingKind::Secret {
            return Err(SettingsEditError::Secret { name: key.name });
        }
        let value = match entry {
            Some(entry) => read_entry(key, entry, text),
            None => match read_toml(text).filter(|_| text.trim_start().starts_with(['[', '{', '"'])) {
                Some(value) => key.kind.check(&value).map(|()| value),
                None => key.kind.read(text),
            },
        };
        let value = value.map_err(|expected| SettingsEditError::WrongValue {
            name: name.to_owned(),
            text: text.to_owned(),
            expected,
        })?;
        self.put(&setting_path(key, entry), &value);
        Ok(value)
    }

    /// Removes a setting, or one entry of a table; returns whether it was there.
    pub fn unset(&mut self, name: &str) -> Result<bool, SettingsEditError> {
        let NamedSetting { key, entry } = find_setting(name)?;
        Ok(self.remove(&setting_path(key, entry)))
    }

    /// Puts a value at a path of tables.
    pub fn put(&mut self, path: &[&str], value: &Value) {
        let Some((name, tables)) = path.split_last() else { return };
        let mut table: &mut dyn toml_edit::TableLike = self.document.as_table_mut();
        for part in tables {
            let item = table.entry(part).or_insert_with(|| {
                let mut made = Table::new();
                made.set_implicit(true);
                Item::Table(made)
            });
            if !item.is_table_like() {
                *item = Item::Table(Table::new());
            }
            match item.as_table_like_mut() {
                Some(inner) => table = inner,
                None => return,
            }
        }
        match table.get_mut(name).and_then(Item::as_value_mut) {
            // The comment beside the old value stays.
            Some(old) => {
                let decor = old.decor().clone();
                *old = toml_value(value);
                *old.decor_mut() = decor;
            }
            None => drop(table.insert(name, Item::Value(toml_value(value)))),
        }
    }

    /// Removes the value at a path of tables; returns whether it was there.
    pub fn remove(&mut self, path: &[&str]) -> bool {
        let Some((name, tables)) = path.split_last() else { return false };
        let mut table: &mut dyn toml_edit::TableLike = self.document.as_table_mut();
        for part in tables {
            match table.get_mut(part).and_then(Item::as_table_like_mut) {
                Some(inner) => table = inner,
                None => return false,
            }
        }
        table.remove(name).is_some()
    }

    /// Writes the file, readable by the user only; a file that would be invalid is not written.
    pub fn save(&self) -> Result<(), SettingsEditError> {
        let text = self.document.to_string();
        let origin = SettingOrigin::new(SettingsSource::User, self.path.display().to_string());
        parse_text(&text, &origin).map_err(|error| SettingsEditError::Syntax {
            path: self.path.clone(),
            message: error.to_string(),
        })?;
        let failed = |error| SettingsEditError::File { path: self.path.clone(), error };
        if let Some(folder) = self.path.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        }
        replace_text(&self.path, &text).map_err(failed)
    }
}

/// Text of a new settings file: the main settings as comments, with a word about each.
pub fn default_settings_text() -> String {
    let mut text = String::from(
        "# Settings of pal. `pal config` shows all settings with their values and origins,\n\
         # `pal config set KEY VALUE` changes this file, `pal help settings` describes it.\n",
    );
    for (name, example) in MAIN_SETTINGS {
        if let Some(key) = SettingKey::find(name) {
            text.push_str(&format!("\n# {}\n# {name} = {example}\n", key.description));
        }
    }
    text
}

/// A setting as a user names it.
struct NamedSetting<'a> {
    key: &'static SettingKey,
    /// Entry of a setting that is a table, such as `NAME` in `env.NAME`.
    entry: Option<&'a str>,
}

fn find_setting(name: &str) -> Result<NamedSetting<'_>, SettingsEditError> {
    if let Some(key) = SettingKey::find(name).or_else(|| SettingKey::find_former(name)) {
        return Ok(NamedSetting { key, entry: None });
    }
    let entry_of = |key: &'static SettingKey| {
        let entry = name.strip_prefix(key.name)?.strip_prefix('.').filter(|entry| !entry.is_empty())?;
        Some(NamedSetting { key, entry: Some(entry) })
    };
    SETTING_KEYS.iter().filter(|key| has_plain_entries(&key.kind)).find_map(entry_of).ok_or_else(|| {
        let known: Vec<&str> = SETTING_KEYS.iter().map(|key| key.name).collect();
        let below = format!("{name}.");
        let table: Vec<&str> = known.iter().copied().filter(|known| known.starts_with(&below)).collect();
        let suggestion = match table.first() {
            Some(first) => format!(": it is a table; name a setting in it, such as `{first}`"),
            None => did_you_mean(name, &known),
        };
        SettingsEditError::UnknownKey { name: name.to_owned(), suggestion }
    })
}

/// True for tables whose entries are set one by one. Hooks and MCP servers have commands of their own.
fn has_plain_entries(kind: &SettingKind) -> bool {
    matches!(kind, SettingKind::Variables | SettingKind::Integers | SettingKind::Thresholds)
}

/// Reads the value of one entry of a table; the value of an environment variable is always text.
fn read_entry(key: &SettingKey, entry: &str, text: &str) -> Result<Value, String> {
    let value = match key.kind {
        SettingKind::Variables => Value::from(text),
        _ => read_toml(text).unwrap_or_else(|| Value::from(text)),
    };
    key.kind.check(&serde_json::json!({ entry: value })).map(|()| value)
}

fn read_toml(text: &str) -> Option<Value> {
    parse_toml(&format!("value = {text}")).ok()?.values.shift_remove("value")
}

fn setting_path<'a>(key: &'static SettingKey, entry: Option<&'a str>) -> Vec<&'a str> {
    key.name.split('.').chain(entry).collect()
}

/// A JSON value in TOML. TOML has no null; it becomes an empty text.
fn toml_value(value: &Value) -> toml_edit::Value {
    match value {
        Value::Null => "".into(),
        Value::Bool(is_so) => (*is_so).into(),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => integer.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => items.iter().map(toml_value).collect::<Array>().into(),
        Value::Object(table) => {
            let mut inline = InlineTable::new();
            for (name, value) in table.iter().filter(|(_, value)| !value.is_null()) {
                inline.insert(name, toml_value(value));
            }
            inline.into()
        }
    }
}
