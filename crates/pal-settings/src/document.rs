//! One file of settings, or what stands in its place: TOML or JSON, cut into known settings.

use std::collections::BTreeMap;
use std::path::Path;

use pal_model::meant;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::error::SettingsError;
use crate::file::text_of;
use crate::key::{KEYS, Key};
use crate::kind::Kind;
use crate::place::{Origin, Place};

/// Characters of a wrong value that are shown.
const SHOWN_MOST: usize = 80;

/// What one place says of one setting.
pub(crate) struct Said {
    pub(crate) key: &'static Key,
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// What a file says; nothing if there is none.
pub(crate) fn of_file(place: Place, path: &Path) -> Result<Vec<Said>, SettingsError> {
    match text_of(path) {
        Ok(text) => of_text(&text, &Origin::new(place, path.display().to_string())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        // A project whose `.pal` is a file has no settings in it.
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Ok(Vec::new()),
        Err(error) => Err(SettingsError::Unreadable { path: path.to_owned(), error }),
    }
}

/// What `--settings` says: a file's content, or the text itself.
pub(crate) fn of_given(given: &str) -> Result<Vec<Said>, SettingsError> {
    let is_json = given.trim_start().starts_with('{');
    if !is_json && Path::new(given).is_file() {
        return of_file(Place::Given, Path::new(given));
    }
    if !is_json && !given.contains('=') && !given.trim().is_empty() {
        return Err(SettingsError::NotSettings { text: given.to_owned() });
    }
    of_text(given, &Origin::new(Place::Given, "--settings"))
}

/// What a text says: JSON if it begins like an object, else TOML.
fn of_text(text: &str, origin: &Origin) -> Result<Vec<Said>, SettingsError> {
    let tree = if text.trim_start().starts_with('{') { json(text) } else { toml(text) };
    let tree = tree.map_err(|message| SettingsError::Syntax { origin: origin.clone(), message })?;
    let mut said = Vec::new();
    tree.collect("", &tree.values, origin, &mut said)?;
    Ok(said)
}

/// A value of a setting that its kind takes.
pub(crate) fn checked(key: &'static Key, value: Value, origin: Origin) -> Result<Said, SettingsError> {
    match key.kind.check(&value) {
        Ok(()) => Ok(Said { key, value, origin }),
        Err(wanted) => {
            let found = if key.kind == Kind::Secret { "***".to_owned() } else { shortened(&value) };
            Err(SettingsError::WrongValue { origin, key: key.name, found, wanted })
        }
    }
}

fn shortened(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Values, and the lines on which their names stand.
struct Tree {
    values: Map<String, Value>,
    lines: BTreeMap<String, usize>,
}

impl Tree {
    /// Cuts a table into settings. A name that is none of them but stands before a dot of some is a table of such.
    fn collect(
        &self,
        above: &str,
        table: &Map<String, Value>,
        origin: &Origin,
        said: &mut Vec<Said>,
    ) -> Result<(), SettingsError> {
        for (name, value) in table {
            let name = format!("{above}{name}");
            let origin = Origin { line: self.lines.get(&name).copied(), ..origin.clone() };
            if let Some(key) = Key::find(&name) {
                said.push(checked(key, value.clone(), origin)?);
                continue;
            }
            let below = format!("{name}.");
            let is_table = KEYS.iter().any(|key| key.name.starts_with(&below));
            match value {
                Value::Object(inner) if is_table => self.collect(&below, inner, &origin, said)?,
                _ if is_table => {
                    let meant = ": it is a table of settings".to_owned();
                    return Err(SettingsError::UnknownKey { origin, key: name, meant });
                }
                _ => return Err(SettingsError::UnknownKey { origin, meant: nearest_to(&name), key: name }),
            }
        }
        Ok(())
    }
}

/// The end of a sentence about a name that is no setting and no table of settings.
fn nearest_to(name: &str) -> String {
    let tables = KEYS.iter().filter_map(|key| key.name.split_once('.').map(|(table, _)| table));
    let known: Vec<&str> = KEYS.iter().map(|key| key.name).chain(tables).collect();
    meant(name, &known)
}

fn json(text: &str) -> Result<Tree, String> {
    let values: Map<String, Value> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut lines = BTreeMap::new();
    note_lines(text, "", &values, &mut lines);
    Ok(Tree { values, lines })
}

/// Notes the lines of names that stand in the text just once: JSON does not say where its parts stand.
fn note_lines(text: &str, above: &str, table: &Map<String, Value>, lines: &mut BTreeMap<String, usize>) {
    for (name, value) in table {
        let quoted = Value::from(name.as_str()).to_string();
        let mut places = text.match_indices(&quoted);
        if let (Some((at, _)), None) = (places.next(), places.next()) {
            lines.insert(format!("{above}{name}"), line_at(text, at));
        }
        if let Value::Object(inner) = value {
            note_lines(text, &format!("{above}{name}."), inner, lines);
        }
    }
}

fn toml(text: &str) -> Result<Tree, String> {
    let table = DeTable::parse(text).map_err(|error| error.to_string().trim_end().to_owned())?;
    let mut lines = BTreeMap::new();
    let values = table_value(text, "", table.get_ref(), &mut lines)?;
    Ok(Tree { values, lines })
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
    let wrong = || format!("line {}: {path} is no number that fits", line_at(text, value.span().start));
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

/// The line of a place in a text, counted from 1.
fn line_at(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|&&byte| byte == b'\n').count() + 1
}
