//! Types of settings, their checks, and their form in environment variables.

use serde_json::{Value, json};

use crate::kill_switches::KillSwitch;
use crate::rule_check;

/// Type and range of a setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SettingKind {
    /// `true` or `false`.
    Bool,
    /// A non-negative integer.
    Integer {
        /// Minimum.
        from: u64,
    },
    /// US dollars.
    Dollars,
    /// US dollars, or 0 for never.
    DollarsOrZero,
    /// A number from 0 to 1.
    Fraction,
    /// An integer from 1 to 100.
    Percent,
    /// Positive integers by name.
    Integers,
    /// A non-empty string.
    Text,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A list of these words.
    SomeOf(&'static [&'static str]),
    /// Environment variables by name; values are never shown.
    Variables,
    /// An HTTP or HTTPS URL.
    Url,
    /// A list of strings.
    Texts,
    /// An absolute path.
    Path,
    /// A list of absolute paths.
    Paths,
    /// A list of permission rules.
    Rules,
    /// Auto-compact threshold.
    Threshold,
    /// Auto-compact thresholds by model.
    Thresholds,
    /// Hooks by event.
    Hooks,
    /// MCP servers by name.
    Servers,
    /// A list of subsystems.
    Subsystems,
    /// A value that is never shown and is refused in files.
    Secret,
}

impl SettingKind {
    /// Description of a valid value, as the end of a sentence.
    pub fn expectation(self) -> String {
        match self {
            SettingKind::Bool => "true or false".into(),
            SettingKind::Integer { from } => format!("an integer of at least {from}"),
            SettingKind::Dollars => "an amount in US dollars above 0".into(),
            SettingKind::DollarsOrZero => "an amount in US dollars, or 0 for never".into(),
            SettingKind::Fraction => "a number from 0 to 1".into(),
            SettingKind::Percent => "an integer from 1 to 100".into(),
            SettingKind::Integers => "a table of integers of at least 1, by name".into(),
            SettingKind::Text => "a string".into(),
            SettingKind::OneOf(words) => format!("one of {}", words.join(", ")),
            SettingKind::SomeOf(words) => format!("a list of {}", words.join(", ")),
            SettingKind::Variables => "a table of strings by variable name".into(),
            SettingKind::Url => "a URL that starts with http:// or https://".into(),
            SettingKind::Texts => "a list of strings".into(),
            SettingKind::Path => "a path that starts with / or ~/".into(),
            SettingKind::Paths => "a list of paths that start with / or ~/".into(),
            SettingKind::Rules => "a list of rules such as \"Bash(git status:*)\"".into(),
            SettingKind::Threshold => {
                "one of { used = TOKENS }, { left = TOKENS }, { percent = above 0, up to 100 }".into()
            }
            SettingKind::Thresholds => {
                "a table by model of { used = TOKENS }, { left = TOKENS } or { percent = above 0, up to 100 }"
                    .into()
            }
            SettingKind::Hooks => "hooks by event, each a list of { matcher, hooks }".into(),
            SettingKind::Servers => "a table of servers by name, each with a command or a URL".into(),
            SettingKind::Subsystems => {
                let names: Vec<&str> = KillSwitch::ALL.iter().map(|switch| switch.name()).collect();
                format!("a list of {}", names.join(", "))
            }
            SettingKind::Secret => "an environment variable, never a file".into(),
        }
    }

    /// Checks a value; the error describes a valid one.
    pub(crate) fn check(self, value: &Value) -> Result<(), String> {
        let fits = match self {
            SettingKind::Bool => value.is_boolean(),
            SettingKind::Integer { from } => value.as_u64().is_some_and(|count| count >= from),
            SettingKind::Dollars => {
                value.as_f64().is_some_and(|dollars| dollars > 0.0 && dollars.is_finite())
            }
            SettingKind::DollarsOrZero => {
                value.as_f64().is_some_and(|dollars| dollars >= 0.0 && dollars.is_finite())
            }
            SettingKind::Fraction => value.as_f64().is_some_and(|share| (0.0..=1.0).contains(&share)),
            SettingKind::Percent => value.as_u64().is_some_and(|percent| (1..=100).contains(&percent)),
            SettingKind::Integers => value.as_object().is_some_and(|named| {
                named.values().all(|value| value.as_u64().is_some_and(|count| count >= 1))
            }),
            SettingKind::Text => value.as_str().is_some_and(|text| !text.trim().is_empty()),
            SettingKind::OneOf(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            SettingKind::SomeOf(words) => all_texts(value, |word| words.contains(&word)),
            SettingKind::Variables => value.as_object().is_some_and(|named| {
                named.iter().all(|(name, value)| is_variable_name(name) && value.is_string())
            }),
            SettingKind::Url => value.as_str().is_some_and(is_url),
            SettingKind::Texts => all_texts(value, |text| !text.is_empty()),
            SettingKind::Path => value.as_str().is_some_and(is_absolute),
            SettingKind::Paths => all_texts(value, is_absolute),
            SettingKind::Rules => return rule_check::check(value, &self.expectation()),
            SettingKind::Threshold => is_threshold(value),
            SettingKind::Thresholds => {
                value.as_object().is_some_and(|models| models.values().all(is_threshold))
            }
            SettingKind::Hooks => return pal_hooks::HookConfig::parse(value).map(drop),
            SettingKind::Servers => {
                value.as_object().is_some_and(|servers| servers.values().all(Value::is_object))
            }
            SettingKind::Subsystems => all_texts(value, |name| KillSwitch::find(name).is_some()),
            SettingKind::Secret => false,
        };
        if fits { Ok(()) } else { Err(self.expectation_for(value)) }
    }

    /// Parses the text of an environment variable.
    pub fn read(self, text: &str) -> Result<Value, String> {
        let text = text.trim();
        let value = match self {
            SettingKind::Bool => match text.to_ascii_lowercase().as_str() {
                "1" | "true" | "yes" | "on" => json!(true),
                "0" | "false" | "no" | "off" => json!(false),
                _ => return Err("1 or 0".into()),
            },
            SettingKind::Integer { .. } | SettingKind::Percent => {
                text.parse::<u64>().map_or(Value::Null, Value::from)
            }
            SettingKind::Dollars | SettingKind::DollarsOrZero | SettingKind::Fraction => {
                text.parse::<f64>().map_or(Value::Null, Value::from)
            }
            SettingKind::Threshold => match text.parse::<f64>() {
                Ok(percent) if is_percentage(percent) => json!({ "percent": percent }),
                _ => return Err("a percentage above 0, up to 100".into()),
            },
            SettingKind::Text
            | SettingKind::Path
            | SettingKind::OneOf(_)
            | SettingKind::Url
            | SettingKind::Secret => Value::from(text),
            SettingKind::Texts
            | SettingKind::Paths
            | SettingKind::Rules
            | SettingKind::Subsystems
            | SettingKind::SomeOf(_) => {
                text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect()
            }
            SettingKind::Integers
            | SettingKind::Thresholds
            | SettingKind::Hooks
            | SettingKind::Servers
            | SettingKind::Variables => serde_json::from_str(text).unwrap_or(Value::Null),
        };
        self.check(&value).map(|()| value)
    }

    /// Description of a valid value, with the nearest known word.
    fn expectation_for(self, value: &Value) -> String {
        let words: Vec<&str> = match self {
            SettingKind::OneOf(words) | SettingKind::SomeOf(words) => words.to_vec(),
            SettingKind::Subsystems => KillSwitch::ALL.iter().map(|switch| switch.name()).collect(),
            _ => return self.expectation(),
        };
        let wrong = match value {
            Value::Array(items) => {
                items.iter().find(|item| !item.as_str().is_some_and(|i| words.contains(&i)))
            }
            one => Some(one),
        };
        let near = wrong.and_then(Value::as_str).and_then(|wrong| pal_model::closest_word(wrong, &words));
        near.map_or(self.expectation(), |near| format!("{}; did you mean `{near}`?", self.expectation()))
    }
}

fn all_texts(value: &Value, fits: impl Fn(&str) -> bool) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(|item| item.as_str().is_some_and(&fits)))
}

fn is_variable_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

fn is_url(text: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| text.len() > scheme.len() && text.starts_with(scheme))
}

fn is_absolute(path: &str) -> bool {
    path == "~" || path.starts_with("~/") || std::path::Path::new(path).is_absolute()
}

fn is_threshold(value: &Value) -> bool {
    let Some(one) = value.as_object().filter(|one| one.len() == 1) else { return false };
    one.iter().all(|(name, value)| match name.as_str() {
        "used" | "left" => value.is_u64(),
        "percent" => value.as_f64().is_some_and(is_percentage),
        _ => false,
    })
}

fn is_percentage(percent: f64) -> bool {
    percent > 0.0 && percent <= 100.0
}
