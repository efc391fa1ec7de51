//! `pal config`: every setting, its value and where it came from.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use pal_model::meant;
use pal_settings::{Entry, KEYS, Origin, Place, Switch};
use serde_json::{Value, json};

use crate::arguments::Config;
use crate::aside;
use crate::colour::{Colours, clipped, columns};
use crate::failure::Failure;
use crate::settings::Settings;

/// Columns that a value may take where others stand beside it.
const VALUE_COLUMNS: usize = 32;

pub(crate) fn config(
    arguments: &Config,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let entries = chosen(arguments.key.as_deref(), settings)?;
    if arguments.json {
        let entries: Vec<Value> = entries.iter().map(|entry| as_json(entry)).collect();
        writeln!(out, "{}", Value::from(entries))?;
        return Ok(ExitCode::SUCCESS);
    }
    let colours = Colours::of(arguments.colour);
    let flags = switched_off_by_file(settings);
    for notice in settings.switches.take_notices() {
        aside::tell(notice);
    }
    match entries.as_slice() {
        [entry] => print_one(entry, settings, colours, out)?,
        entries => print_table(entries, settings, colours, out)?,
    }
    if !flags.is_empty() && entries.iter().any(|entry| entry.key.name == "disabled") {
        writeln!(out, "\nswitched off by flags.toml: {}", flags.join(", "))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The setting of this name, or those of the table of this name.
fn chosen<'a>(key: Option<&str>, settings: &'a Settings) -> Result<Vec<&'a Entry>, Failure> {
    let Some(wanted) = key else { return Ok(settings.entries().iter().collect()) };
    let below = format!("{wanted}.");
    let is_wanted = |entry: &&Entry| entry.key.name == wanted || entry.key.name.starts_with(&below);
    let entries: Vec<&Entry> = settings.entries().iter().filter(is_wanted).collect();
    if entries.is_empty() {
        let known: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
        let what = format!("there is no setting `{wanted}`{}", meant(wanted, &known));
        return Err(Failure::with_hint(what, "pal config lists all settings"));
    }
    Ok(entries)
}

fn as_json(entry: &Entry) -> Value {
    let from: Vec<Value> = entry.parts.iter().map(|part| origin_json(&part.origin)).collect();
    json!({
        "key": entry.key.name,
        "value": entry.value(),
        "default": entry.key.default_value(),
        "from": from,
        "variables": entry.key.variables,
        "wants": entry.key.kind.wanted(),
        "about": entry.key.about,
    })
}

fn origin_json(origin: &Origin) -> Value {
    let source = (!origin.source.is_empty()).then_some(&origin.source);
    json!({ "place": origin.place.name(), "source": source, "line": origin.line })
}

fn print_table(
    entries: &[&Entry],
    settings: &Settings,
    colours: Colours,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let rows: Vec<[String; 3]> = entries.iter().map(|entry| row(entry, settings)).collect();
    let wide = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(7);
    let (name, value) = (wide(0), wide(1));
    writeln!(out, "{}", colours.bold(&format!("{:<name$}  {:<value$}  from", "setting", "value")))?;
    for (entry, [key, shown, from]) in entries.iter().zip(&rows) {
        let from = with_its_end(from, columns().saturating_sub(name + value + 4).max(20));
        let line = format!("{key:<name$}  {shown:<value$}  {from}");
        writeln!(out, "{}", if entry.is_set() { line } else { colours.dim(line.trim_end()) })?;
    }
    Ok(())
}

/// A place in so many columns: the end of a path says more than its beginning.
fn with_its_end(from: &str, columns: usize) -> String {
    let too_many = from.chars().count().saturating_sub(columns);
    match from.split_once(": ") {
        Some((place, source)) if too_many > 0 && !from.contains("; ") => {
            let end: String = source.chars().skip(too_many + 1).collect();
            format!("{place}: …{end}")
        }
        _ => clipped(from, columns),
    }
}

fn row(entry: &Entry, settings: &Settings) -> [String; 3] {
    let from: Vec<String> = entry.parts.iter().map(|part| told(&part.origin, settings)).collect();
    [entry.key.name.to_owned(), clipped(&shown(&entry.value()), VALUE_COLUMNS), from.join("; ")]
}

fn print_one(
    entry: &Entry,
    settings: &Settings,
    colours: Colours,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let key = entry.key;
    writeln!(out, "{}  {}", colours.bold(key.name), colours.dim(key.about))?;
    for part in &entry.parts {
        let from = format!("({})", told(&part.origin, settings));
        writeln!(out, "  {}  {}", clipped(&shown(&part.value), 400), colours.dim(&from))?;
    }
    writeln!(out, "  wants {}", key.kind.wanted())?;
    if entry.is_set() {
        writeln!(out, "  default: {}", shown(&key.default_value()))?;
    }
    if !key.variables.is_empty() {
        writeln!(out, "  variable: {}", key.variables.join(", "))?;
    }
    Ok(())
}

/// A value on one line, as it would be written.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Where a value came from, with the user's home as `~`.
fn told(origin: &Origin, settings: &Settings) -> String {
    if origin.place == Place::Default {
        return origin.place.name().to_owned();
    }
    let home = settings.user_home.as_deref();
    let below = home.and_then(|home| Path::new(&origin.source).strip_prefix(home).ok());
    let source = below.map_or(origin.source.clone(), |below| format!("~/{}", below.display()));
    let line = origin.line.map_or(String::new(), |line| format!(":{line}"));
    match origin.place {
        Place::Environment | Place::Flag => source,
        place if source == place.name() => source,
        place => format!("{}: {source}{line}", place.name()),
    }
}

/// What the flags file switches off right now.
fn switched_off_by_file(settings: &Settings) -> Vec<&'static str> {
    let by_settings: Vec<Value> = settings
        .entries()
        .iter()
        .filter(|entry| entry.key.name == "disabled")
        .flat_map(|entry| entry.value().as_array().cloned().unwrap_or_default())
        .collect();
    let is_by_file = |switch: &Switch| {
        settings.switches.is_off(*switch) && !by_settings.contains(&Value::from(switch.name()))
    };
    Switch::ALL.iter().copied().filter(is_by_file).map(Switch::name).collect()
}
