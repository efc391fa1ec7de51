//! Templates: words with places such as `{{last_user}}` that are filled from the request.

use crate::Ask;
use crate::heard;
use pal_model::meant;

/// Words with places to fill.
#[derive(Clone, Debug)]
pub(crate) struct Template(Vec<Part>);

#[derive(Clone, Debug)]
enum Part {
    Plain(String),
    Place { what: Place, most: Option<usize> },
}

/// What a place is filled with.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    LastUser,
    LastResult,
    ResultOf(String),
    Turn,
    Time,
    Messages,
    Tools,
    Answers,
    Model,
    MaxTokens,
}

/// The places by name.
const NAMES: [&str; 10] = [
    "last_user",
    "last_result",
    "tool_result.NAME",
    "turn",
    "time",
    "count.messages",
    "count.tools",
    "count.answers",
    "model",
    "max_tokens",
];

impl Template {
    /// Reads a template; the error says what is wrong with a place.
    pub(crate) fn parse(text: &str) -> Result<Template, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let (place, after) = after.split_once("}}").ok_or("`{{` has no `}}`")?;
            if !before.is_empty() {
                parts.push(Part::Plain(before.to_owned()));
            }
            parts.push(Part::parse(place.trim())?);
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Plain(rest.to_owned()));
        }
        Ok(Template(parts))
    }

    /// The words for a request that this turn answers for the `time`-th time.
    pub(crate) fn fill(&self, ask: &Ask<'_>, time: u64) -> String {
        let mut out = String::new();
        for part in &self.0 {
            match part {
                Part::Plain(text) => out.push_str(text),
                Part::Place { what, most } => {
                    let value = what.value(ask, time);
                    match most {
                        Some(most) => out.extend(value.chars().take(*most)),
                        None => out.push_str(&value),
                    }
                }
            }
        }
        out
    }
}

impl Part {
    fn parse(place: &str) -> Result<Part, String> {
        let (name, most) = match place.split_once(':') {
            None => (place, None),
            Some((name, most)) => {
                let wrong = || format!("`{{{{{place}}}}}`: write a number of characters behind the colon");
                (name.trim(), Some(most.trim().parse().map_err(|_| wrong())?))
            }
        };
        let what = match name {
            "last_user" => Place::LastUser,
            "last_result" => Place::LastResult,
            "turn" => Place::Turn,
            "time" => Place::Time,
            "count.messages" => Place::Messages,
            "count.tools" => Place::Tools,
            "count.answers" => Place::Answers,
            "model" => Place::Model,
            "max_tokens" => Place::MaxTokens,
            name => match name.strip_prefix("tool_result.") {
                Some(tool) if !tool.is_empty() => Place::ResultOf(tool.to_owned()),
                _ => {
                    let question = meant(name, &NAMES);
                    return Err(format!(
                        "there is no place `{{{{{name}}}}}`{question} The places are {}",
                        NAMES.join(", ")
                    ));
                }
            },
        };
        Ok(Part::Place { what, most })
    }
}

impl Place {
    fn value(&self, ask: &Ask<'_>, time: u64) -> String {
        match self {
            Place::LastUser => heard::last_words(ask).unwrap_or_default(),
            Place::LastResult => heard::last_result(ask, None).unwrap_or_default(),
            Place::ResultOf(tool) => heard::last_result(ask, Some(tool)).unwrap_or_default(),
            Place::Turn => (heard::answers(ask) + 1).to_string(),
            Place::Time => time.to_string(),
            Place::Messages => ask.messages.len().to_string(),
            Place::Tools => ask.tools.len().to_string(),
            Place::Answers => heard::answers(ask).to_string(),
            Place::Model => ask.model.to_owned(),
            Place::MaxTokens => ask.max_tokens.to_string(),
        }
    }
}
