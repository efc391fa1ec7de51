//! Rules that the user allowed in answer to a question, for one project. They are kept in a file of their own under our home,
//! not in the project: what lies there may be anybody's.

use std::path::Path;

use crate::settings_file::read_settings_file;
use crate::sources::SettingsSource;
use crate::text_file::replace_text;

/// First lines of the file.
const HEADING: &str =
    "# What you allowed in this project when you were asked. A line that goes is asked about again.";

/// Keeps a rule; one that is kept already stays as it is.
pub fn allow(path: &Path, rule: &str) -> Result<(), String> {
    let mut rules = read_rules(path)?;
    if rules.iter().any(|kept| kept == rule) {
        return Ok(());
    }
    rules.push(rule.to_owned());
    let mut text = format!("{HEADING}\n[permissions]\nallow = [\n");
    for rule in &rules {
        // A basic string of TOML is spelled as one of JSON is.
        text.push_str(&format!("    {},\n", serde_json::Value::from(rule.as_str())));
    }
    text.push_str("]\n");
    replace_text(path, &text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Stores a rule in a project's file, if it has one. Returns the notice for the user.
pub fn allow_and_tell(path: Option<&Path>, rule: &str) -> String {
    let done = match path {
        Some(path) => allow(path, rule),
        None => Err(String::from("there is no home to keep it in")),
    };
    match done {
        Ok(()) => format!("allowed in this project from now on: {rule}"),
        Err(why) => format!("allowed for this session only: {why}"),
    }
}

/// The rules that are kept.
fn read_rules(path: &Path) -> Result<Vec<String>, String> {
    let said = read_settings_file(SettingsSource::Allowed, path).map_err(|error| error.to_string())?;
    let rules = said.iter().filter(|said| said.key.name == "permissions.allow");
    let rules = rules.filter_map(|said| said.value.as_array()).flatten();
    Ok(rules.filter_map(|rule| Some(rule.as_str()?.to_owned())).collect())
}
