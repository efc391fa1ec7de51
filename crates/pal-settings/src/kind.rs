//! What values settings may have, and how a variable spells them.

use serde_json::{Value, json};

use crate::rule;
use crate::switches::Switch;

/// What a setting may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `true` or `false`.
    YesNo,
    /// A whole number.
    Count {
        /// The least.
        from: u64,
    },
    /// US dollars.
    Money,
    /// A share, from nothing to all.
    Share,
    /// A word or a line.
    Text,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// The address of a server.
    Address,
    /// A list of words.
    Texts,
    /// A path that does not depend on where one stands.
    Path,
    /// A list of paths that do not depend on where one stands.
    Paths,
    /// A list of permission rules.
    Rules,
    /// Where to compact.
    Threshold,
    /// Where to compact, by model.
    Thresholds,
    /// Hooks by event.
    Hooks,
    /// MCP servers by name.
    Servers,
    /// A list of subsystems.
    Subsystems,
    /// Something that is never shown and stands in no file.
    Secret,
}

impl Kind {
    /// What such a setting wants, as the end of a sentence.
    pub fn wanted(self) -> String {
        match self {
            Kind::YesNo => "true or false".into(),
            Kind::Count { from } => format!("a whole number from {from}"),
            Kind::Money => "a number of US dollars above 0".into(),
            Kind::Share => "a number from 0 to 1".into(),
            Kind::Text => "a text".into(),
            Kind::OneOf(words) => format!("one of {}", words.join(", ")),
            Kind::Address => "an address that begins with http:// or https://".into(),
            Kind::Texts => "a list of texts".into(),
            Kind::Path => "a path that begins with / or ~/".into(),
            Kind::Paths => "a list of paths that begin with / or ~/".into(),
            Kind::Rules => "a list of rules such as \"Bash(git status:*)\"".into(),
            Kind::Threshold => {
                "one of { used = TOKENS }, { left = TOKENS }, { percent = above 0, up to 100 }".into()
            }
            Kind::Thresholds => {
                "a table by model of { used = TOKENS }, { left = TOKENS } or { percent = above 0, up to 100 }"
                    .into()
            }
            Kind::Hooks => "hooks by event, each a list of { matcher, hooks }".into(),
            Kind::Servers => "a table of servers by name, each with a command or a url".into(),
            Kind::Subsystems => {
                let names: Vec<&str> = Switch::ALL.iter().map(|switch| switch.name()).collect();
                format!("a list of {}", names.join(", "))
            }
            Kind::Secret => "to stand in a variable of the environment, never in a file".into(),
        }
    }

    /// What is wrong with a value, as what it wants instead.
    pub(crate) fn check(self, value: &Value) -> Result<(), String> {
        let fits = match self {
            Kind::YesNo => value.is_boolean(),
            Kind::Count { from } => value.as_u64().is_some_and(|count| count >= from),
            Kind::Money => value.as_f64().is_some_and(|dollars| dollars > 0.0 && dollars.is_finite()),
            Kind::Share => value.as_f64().is_some_and(|share| (0.0..=1.0).contains(&share)),
            Kind::Text => value.as_str().is_some_and(|text| !text.trim().is_empty()),
            Kind::OneOf(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            Kind::Address => value.as_str().is_some_and(is_address),
            Kind::Texts => texts_all(value, |text| !text.is_empty()),
            Kind::Path => value.as_str().is_some_and(is_absolute),
            Kind::Paths => texts_all(value, is_absolute),
            Kind::Rules => return rule::check(value, &self.wanted()),
            Kind::Threshold => is_threshold(value),
            Kind::Thresholds => value.as_object().is_some_and(|models| models.values().all(is_threshold)),
            Kind::Hooks => return pal_hooks::Config::parse(value).map(drop),
            Kind::Servers => value.as_object().is_some_and(|servers| servers.values().all(Value::is_object)),
            Kind::Subsystems => texts_all(value, |name| Switch::find(name).is_some()),
            Kind::Secret => false,
        };
        if fits { Ok(()) } else { Err(self.wanted_by(value)) }
    }

    /// What a variable spells.
    pub(crate) fn read(self, text: &str) -> Result<Value, String> {
        let text = text.trim();
        let value = match self {
            Kind::YesNo => match text.to_ascii_lowercase().as_str() {
                "1" | "true" | "yes" | "on" => json!(true),
                "0" | "false" | "no" | "off" => json!(false),
                _ => return Err("1 or 0".into()),
            },
            Kind::Count { .. } => text.parse::<u64>().map_or(Value::Null, Value::from),
            Kind::Money | Kind::Share => text.parse::<f64>().map_or(Value::Null, Value::from),
            Kind::Threshold => match text.parse::<f64>() {
                Ok(percent) if is_percentage(percent) => json!({ "percent": percent }),
                _ => return Err("a percentage above 0, up to 100".into()),
            },
            Kind::Text | Kind::Path | Kind::OneOf(_) | Kind::Address | Kind::Secret => Value::from(text),
            Kind::Texts | Kind::Paths | Kind::Rules | Kind::Subsystems => {
                text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect()
            }
            Kind::Thresholds | Kind::Hooks | Kind::Servers => {
                serde_json::from_str(text).unwrap_or(Value::Null)
            }
        };
        self.check(&value).map(|()| value)
    }

    /// What is wanted instead of this value, with the nearest word where it is one of a few.
    fn wanted_by(self, value: &Value) -> String {
        let words: Vec<&str> = match self {
            Kind::OneOf(words) => words.to_vec(),
            Kind::Subsystems => Switch::ALL.iter().map(|switch| switch.name()).collect(),
            _ => return self.wanted(),
        };
        let said = match value {
            Value::Array(items) => {
                items.iter().find(|item| !item.as_str().is_some_and(|i| words.contains(&i)))
            }
            one => Some(one),
        };
        let near = said.and_then(Value::as_str).and_then(|said| pal_model::nearest(said, &words));
        near.map_or(self.wanted(), |near| format!("{}; did you mean `{near}`?", self.wanted()))
    }
}

fn texts_all(value: &Value, fits: impl Fn(&str) -> bool) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(|item| item.as_str().is_some_and(&fits)))
}

fn is_address(text: &str) -> bool {
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
