//! Settings in TOML or JSON, from a file or the command line, split into known settings.

use std::collections::BTreeMap;
use std::path::Path;

use pal_model::did_you_mean;
use pal_model::text::cut_with_ellipsis;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::error::SettingsError;
use crate::kill_switches::KillSwitch;
use crate::setting_keys::{SETTING_KEYS, SettingKey};
use crate::setting_kind::SettingKind;
use crate::sources::{SettingOrigin, SettingsSource};
use crate::text_file::text_of;

/// Maximum characters of a wrong value in an error.
const SHOWN_CHARS_MAX: usize = 80;

/// The value of one setting from one source.
pub(crate) struct SettingValue {
    pub(crate) key: &'static SettingKey,
    pub(crate) value: Value,
    pub(crate) origin: SettingOrigin,
    /// Warning about a name or value of the last release.
    pub(crate) deprecation: Option<String>,
}

impl SettingValue {
    /// A value whose type is known to be right; a value of the last release is replaced.
    pub(crate) fn new(key: &'static SettingKey, value: Value, origin: SettingOrigin) -> SettingValue {
        match key.current_value(&value) {
            None if key.kind == SettingKind::Subsystems => SettingValue::of_switches(key, &value, origin),
            None => SettingValue { key, value, origin, deprecation: None },
            Some(current) => {
                let name = key.name;
                let deprecation = format!(
                    "{origin}: `{name} = {value}` is now `{name} = \"{current}\"`; the old value works in this release only"
                );
                SettingValue { key, value: Value::from(current), origin, deprecation: Some(deprecation) }
            }
        }
    }
}

impl SettingValue {
    /// A list of kill switches under their current names.
    fn of_switches(key: &'static SettingKey, value: &Value, origin: SettingOrigin) -> SettingValue {
        let mut deprecation = None;
        let items = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        let names = items.map(|name| {
            let current = KillSwitch::find(name).map_or(name, |switch| switch.name());
            if current != name {
                deprecation = Some(renamed(&origin, name, current));
            }
            Value::from(current)
        });
        let value = names.collect();
        SettingValue { key, value, origin, deprecation }
    }
}

/// Warning about the name of a setting in the last release.
pub(crate) fn renamed(origin: &SettingOrigin, former: &str, current: &str) -> String {
    format!("{origin}: `{former}` is now `{current}`; the old name works in this release only")
}

/// Settings of a file; none if it does not exist.
pub(crate) fn read_settings_file(
    source: SettingsSource,
    path: &Path,
) -> Result<Vec<SettingValue>, SettingsError> {
    match text_of(path) {
        Ok(text) => parse_text(&text, &SettingOrigin::new(source, path.display().to_string())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        // `.pal` is a file.
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Ok(Vec::new()),
        Err(error) => Err(SettingsError::Unreadable { path: path.to_owned(), error }),
    }
}

/// Text of `--settings`, which is a path, TOML or JSON, with its origin.
pub(crate) fn read_inline(given: &str) -> Result<(String, SettingOrigin), SettingsError> {
    let is_json = given.trim_start().starts_with('{');
    if !is_json && Path::new(given).is_file() {
        let text = text_of(Path::new(given))
            .map_err(|error| SettingsError::Unreadable { path: given.into(), error })?;
        return Ok((text, SettingOrigin::new(SettingsSource::Given, given)));
    }
    if !is_json && !given.contains('=') && !given.trim().is_empty() {
        return Err(SettingsError::NotSettings { text: given.to_owned() });
    }
    Ok((given.to_owned(), SettingOrigin::new(SettingsSource::Given, "--settings")))
}

/// Settings of a text: JSON if it starts with `{`, else TOML.
pub(crate) fn parse_text(text: &str, origin: &SettingOrigin) -> Result<Vec<SettingValue>, SettingsError> {
    let tree = if text.trim_start().starts_with('{') { parse_json(text) } else { parse_toml(text) };
    let tree = tree.map_err(|message| SettingsError::Syntax { origin: origin.clone(), message })?;
    let mut found = Vec::new();
    tree.collect("", &tree.values, origin, &mut found)?;
    Ok(found)
}

/// Checks the type of a value.
pub(crate) fn check_value(
    key: &'static SettingKey,
    value: Value,
    origin: SettingOrigin,
) -> Result<SettingValue, SettingsError> {
    let is_former = key.current_value(&value).is_some();
    match key.kind.check(&value) {
        Err(expected) if !is_former => {
            let found =
                if key.kind == SettingKind::Secret { "***".to_owned() } else { truncate_value(&value) };
            Err(SettingsError::WrongValue { origin, key: key.name, found, expected })
        }
        Ok(()) | Err(_) => Ok(SettingValue::new(key, value, origin)),
    }
}

fn truncate_value(value: &Value) -> String {
    cut_with_ellipsis(&value.to_string(), SHOWN_CHARS_MAX).into_owned()
}

/// Values of a settings file, and the line of each name.
pub(crate) struct SettingsTree {
    pub(crate) values: Map<String, Value>,
    pub(crate) lines: BTreeMap<String, usize>,
}

impl SettingsTree {
    /// Splits a table into settings. The part of a setting's name before its dot is a table.
    fn collect(
        &self,
        above: &str,
        table: &Map<String, Value>,
        origin: &SettingOrigin,
        found: &mut Vec<SettingValue>,
    ) -> Result<(), SettingsError> {
        for (name, value) in table {
            let name = format!("{above}{name}");
            let origin = SettingOrigin { line: self.lines.get(&name).copied(), ..origin.clone() };
            if let Some(key) = SettingKey::find(&name) {
                found.push(check_value(key, value.clone(), origin)?);
                continue;
            }
            if let Some(key) = SettingKey::find_former(&name) {
                let deprecation = Some(renamed(&origin, &name, key.name));
                found.push(SettingValue { deprecation, ..check_value(key, value.clone(), origin)? });
                continue;
            }
            let below = format!("{name}.");
            let is_table = SETTING_KEYS.iter().any(|key| key.name.starts_with(&below));
            match value {
                Value::Object(inner) if is_table => self.collect(&below, inner, &origin, found)?,
                _ if is_table => {
                    let suggestion = ", but a table with this name".to_owned();
                    return Err(SettingsError::UnknownKey { origin, key: name, suggestion });
                }
                _ => {
                    let suggestion = suggestion_for(&name);
                    return Err(SettingsError::UnknownKey { origin, key: name, suggestion });
                }
            }
        }
        Ok(())
    }
}

/// End of the error about an unknown name.
fn suggestion_for(name: &str) -> String {
    let tables = SETTING_KEYS.iter().filter_map(|key| key.name.split_once('.').map(|(table, _)| table));
    let known: Vec<&str> = SETTING_KEYS.iter().map(|key| key.name).chain(tables).collect();
    did_you_mean(name, &known)
}

/// Parses JSON, with the lines of names that occur once.
pub(crate) fn parse_json(text: &str) -> Result<SettingsTree, String> {
    let values: Map<String, Value> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut lines = BTreeMap::new();
    record_lines(text, "", &values, &mut lines);
    Ok(SettingsTree { values, lines })
}

/// Records the lines of names that occur once in the text; the JSON parser does not report positions.
fn record_lines(text: &str, above: &str, table: &Map<String, Value>, lines: &mut BTreeMap<String, usize>) {
    for (name, value) in table {
        let quoted = Value::from(name.as_str()).to_string();
        let mut places = text.match_indices(&quoted);
        if let (Some((at, _)), None) = (places.next(), places.next()) {
            lines.insert(format!("{above}{name}"), line_at(text, at));
        }
        if let Value::Object(inner) = value {
            record_lines(text, &format!("{above}{name}."), inner, lines);
        }
    }
}

/// Parses TOML, with the lines of all names.
pub(crate) fn parse_toml(text: &str) -> Result<SettingsTree, String> {
    let table = DeTable::parse(text).map_err(|error| error.to_string().trim_end().to_owned())?;
    let mut lines = BTreeMap::new();
    let values = table_value(text, "", table.get_ref(), &mut lines)?;
    Ok(SettingsTree { values, lines })
}

fn table_value(
    text: &str,
    above: &str,
    table: &DeTable<'_>,
    lines: &mut BTreeMap<String, usize>,
) -> Result<Map<String, Value>, String> {
    let mut values = Map::new();
    for (name, value) in table {
        let path = format!("{above}{}", name.get_ref());
        lines.insert(path.clone(), line_at(text, name.span().start));
        let value = toml_value(text, &path, value, lines)?;
        values.insert(name.get_ref().to_string(), value);
    }
    Ok(values)
}

fn toml_value(
    text: &str,
    path: &str,
    value: &Spanned<DeValue<'_>>,
    lines: &mut BTreeMap<String, usize>,
) -> Result<Value, String> {
    let wrong = || format!("line {}: {path} is out of range", line_at(text, value.span().start));
    Ok(match value.get_ref() {
        DeValue::String(string) => Value::from(string.as_ref()),
        DeValue::Integer(number) => {
            let number = i64::from_str_radix(number.as_str(), number.radix()).map_err(|_| wrong())?;
            u64::try_from(number).map_or_else(|_| Value::from(number), Value::from)
        }
        DeValue::Float(number) => {
            let number: f64 = number.as_str().parse().map_err(|_| wrong())?;
            Value::from(number)
        }
        DeValue::Boolean(is_so) => Value::from(*is_so),
        DeValue::Datetime(time) => Value::from(time.to_string()),
        DeValue::Array(items) => list_value(text, path, items, lines)?,
        DeValue::Table(table) => Value::Object(table_value(text, &format!("{path}."), table, lines)?),
    })
}

fn list_value(
    text: &str,
    path: &str,
    items: &DeArray<'_>,
    lines: &mut BTreeMap<String, usize>,
) -> Result<Value, String> {
    items.iter().map(|item| toml_value(text, path, item, lines)).collect()
}

/// Line of a byte position, counted from 1.
fn line_at(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|&&byte| byte == b'\n').count() + 1
}
