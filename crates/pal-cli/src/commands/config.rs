//! `pal config`: lists every setting, its value and its source.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use pal_model::did_you_mean;
use pal_report::{TextStyle, clip_line};
use pal_settings::{
    KillSwitch, SETTING_KEYS, SettingEntry, SettingKey, SettingKind, SettingOrigin, SettingsSource,
};
use serde_json::{Value, json};

use crate::arguments::ConfigArgs;
use crate::failure::Failure;
use crate::notices::Notices;
use crate::settings::Settings;
use crate::terminal_style::{columns, style_for};

/// Maximum columns of a value in the table.
const VALUE_COLUMNS: usize = 32;

pub(crate) fn config(
    arguments: &ConfigArgs,
    settings: &Settings,
    notices: &Notices,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    check_words(arguments)?;
    let entries = find_settings(arguments.key.as_deref(), settings)?;
    if arguments.json {
        let entries: Vec<Value> = entries.iter().map(|entry| as_json(entry)).collect();
        writeln!(out, "{}", Value::from(entries))?;
        return Ok(ExitCode::SUCCESS);
    }
    let colors = style_for(arguments.color);
    let flags = switched_off_by_file(settings);
    for notice in settings.switches.take_notices() {
        notices.add(notice);
    }
    match entries.as_slice() {
        [entry] => print_one(entry, settings, colors, out)?,
        entries => print_table(entries, settings, colors, out)?,
    }
    if !flags.is_empty() && entries.iter().any(|entry| entry.key.name == "disabled") {
        writeln!(out, "\nswitched off by flags.toml: {}", flags.join(", "))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Rejects the commands by which other programs show settings, and names the way to do it here.
fn check_words(arguments: &ConfigArgs) -> Result<(), Failure> {
    let first = arguments.key.as_deref().unwrap_or_default();
    let hint = match (first, &arguments.other) {
        ("get" | "list" | "show", None) => {
            String::from("`pal config KEY` shows a setting, `pal config` lists all settings")
        }
        ("get" | "list" | "show", Some(key)) => format!("`pal config {key}` shows a setting"),
        (_, Some(value)) => format!("`pal config set {first} {value}` changes a setting"),
        (_, None) => return Ok(()),
    };
    match &arguments.other {
        Some(other) => Err(Failure::usage_error(format!("unexpected argument `{other}`"), hint)),
        None => Err(Failure::usage_error(format!("there is no command `pal config {first}`"), hint)),
    }
}

/// Finds a setting by name, or all settings of a table.
fn find_settings<'a>(key: Option<&str>, settings: &'a Settings) -> Result<Vec<&'a SettingEntry>, Failure> {
    let Some(wanted) = key else { return Ok(settings.entries().iter().collect()) };
    let below = format!("{wanted}.");
    let is_wanted = |entry: &&SettingEntry| entry.key.name == wanted || entry.key.name.starts_with(&below);
    let entries: Vec<&SettingEntry> = settings.entries().iter().filter(is_wanted).collect();
    if entries.is_empty() {
        let known: Vec<&str> = SETTING_KEYS.iter().map(|key| key.name).collect();
        let what = format!("unknown setting `{wanted}`{}", did_you_mean(wanted, &known));
        return Err(Failure::with_hint(what, "`pal config` lists all settings"));
    }
    Ok(entries)
}

fn as_json(entry: &SettingEntry) -> Value {
    let from: Vec<Value> = entry.parts.iter().map(|part| origin_json(&part.origin)).collect();
    json!({
        "key": entry.key.name,
        "value": shown_value(entry.key, entry.value()),
        "default": entry.key.default_value(),
        "from": from,
        "variables": entry.key.variables,
        "wants": entry.key.kind.expectation(),
        "about": entry.key.description,
    })
}

fn origin_json(origin: &SettingOrigin) -> Value {
    let source = (!origin.source.is_empty()).then_some(&origin.source);
    json!({ "place": origin.place.name(), "source": source, "line": origin.line })
}

fn print_table(
    entries: &[&SettingEntry],
    settings: &Settings,
    colors: TextStyle,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let rows: Vec<[String; 3]> = entries.iter().map(|entry| row(entry, settings)).collect();
    let wide = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(7);
    let (name, value) = (wide(0), wide(1));
    writeln!(out, "{}", colors.bold(&format!("{:<name$}  {:<value$}  from", "setting", "value")))?;
    for (entry, [key, shown, from]) in entries.iter().zip(&rows) {
        let from = clip_source(from, columns().saturating_sub(name + value + 4).max(20));
        let line = format!("{key:<name$}  {shown:<value$}  {from}");
        writeln!(out, "{}", if entry.is_set() { line } else { colors.dim(line.trim_end()) })?;
    }
    Ok(())
}

/// Clips a source to `columns` columns; paths are clipped at their start.
fn clip_source(from: &str, columns: usize) -> String {
    let too_many = from.chars().count().saturating_sub(columns);
    match from.split_once(": ") {
        Some((place, source)) if too_many > 0 && !from.contains("; ") => {
            let end: String = source.chars().skip(too_many + 1).collect();
            format!("{place}: …{end}")
        }
        _ => clip_line(from, columns),
    }
}

fn row(entry: &SettingEntry, settings: &Settings) -> [String; 3] {
    let from: Vec<String> = entry.parts.iter().map(|part| format_origin(&part.origin, settings)).collect();
    [
        entry.key.name.to_owned(),
        clip_line(&format_value(&shown_value(entry.key, entry.value())), VALUE_COLUMNS),
        from.join("; "),
    ]
}

fn print_one(
    entry: &SettingEntry,
    settings: &Settings,
    colors: TextStyle,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let key = entry.key;
    writeln!(out, "{}  {}", colors.bold(key.name), colors.dim(key.description))?;
    for part in &entry.parts {
        let from = format!("({})", format_origin(&part.origin, settings));
        let value = shown_value(key, part.value.clone());
        writeln!(out, "  {}  {}", clip_line(&format_value(&value), 400), colors.dim(&from))?;
    }
    writeln!(out, "  accepts {}", key.kind.expectation())?;
    if entry.is_set() {
        writeln!(out, "  default: {}", format_value(&key.default_value()))?;
    }
    if !key.variables.is_empty() {
        writeln!(out, "  variable: {}", key.variables.join(", "))?;
    }
    Ok(())
}

/// A value as it may be shown: environment variables may hold keys.
fn shown_value(key: &SettingKey, value: Value) -> Value {
    match value {
        Value::Object(table) if key.kind == SettingKind::Variables => {
            table.into_iter().map(|(name, _)| (name, Value::from("***"))).collect()
        }
        value => value,
    }
}

/// Formats a value in one line, as it would be written.
fn format_value(value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Formats the source of a value, with the user's home as `~`.
fn format_origin(origin: &SettingOrigin, settings: &Settings) -> String {
    if origin.place == SettingsSource::Default {
        return origin.place.name().to_owned();
    }
    let home = settings.user_home.as_deref();
    let below = home.and_then(|home| Path::new(&origin.source).strip_prefix(home).ok());
    let source = below.map_or(origin.source.clone(), |below| format!("~/{}", below.display()));
    let line = origin.line.map_or(String::new(), |line| format!(":{line}"));
    match origin.place {
        SettingsSource::Environment | SettingsSource::Flag => source,
        place if source == place.name() => source,
        place => format!("{}: {source}{line}", place.name()),
    }
}

/// Lists the switches that flags.toml currently turns off.
fn switched_off_by_file(settings: &Settings) -> Vec<&'static str> {
    let by_settings: Vec<Value> = settings
        .entries()
        .iter()
        .filter(|entry| entry.key.name == "disabled")
        .flat_map(|entry| entry.value().as_array().cloned().unwrap_or_default())
        .collect();
    let is_by_file = |switch: &KillSwitch| {
        settings.switches.is_off(*switch) && !by_settings.contains(&Value::from(switch.name()))
    };
    KillSwitch::ALL.iter().copied().filter(is_by_file).map(KillSwitch::name).collect()
}
