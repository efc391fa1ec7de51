//! Templates: text with placeholders such as `{{last_user}}`, filled from the request.

use crate::ModelPrompt;
use crate::prompt_text;
use pal_model::did_you_mean;

/// Text with placeholders.
#[derive(Clone, Debug)]
pub(crate) struct ReplyTemplate(Vec<TemplatePart>);

#[derive(Clone, Debug)]
enum TemplatePart {
    Plain(String),
    Place { what: Placeholder, most: Option<usize> },
}

/// Source of a placeholder's value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Placeholder {
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

/// Placeholder names.
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

impl ReplyTemplate {
    /// Parses a template; the error describes an invalid placeholder.
    pub(crate) fn parse(text: &str) -> Result<ReplyTemplate, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let (place, after) = after.split_once("}}").ok_or("`{{` has no `}}`")?;
            if !before.is_empty() {
                parts.push(TemplatePart::Plain(before.to_owned()));
            }
            parts.push(TemplatePart::parse(place.trim())?);
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(TemplatePart::Plain(rest.to_owned()));
        }
        Ok(ReplyTemplate(parts))
    }

    /// Fills the template for a request; `time` is the turn's use count.
    pub(crate) fn fill(&self, ask: &ModelPrompt<'_>, time: u64) -> String {
        let mut out = String::new();
        for part in &self.0 {
            match part {
                TemplatePart::Plain(text) => out.push_str(text),
                TemplatePart::Place { what, most } => {
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

impl TemplatePart {
    fn parse(place: &str) -> Result<TemplatePart, String> {
        let (name, most) = match place.split_once(':') {
            None => (place, None),
            Some((name, most)) => {
                let wrong = || format!("`{{{{{place}}}}}`: write a number of characters behind the colon");
                (name.trim(), Some(most.trim().parse().map_err(|_| wrong())?))
            }
        };
        let what = match name {
            "last_user" => Placeholder::LastUser,
            "last_result" => Placeholder::LastResult,
            "turn" => Placeholder::Turn,
            "time" => Placeholder::Time,
            "count.messages" => Placeholder::Messages,
            "count.tools" => Placeholder::Tools,
            "count.answers" => Placeholder::Answers,
            "model" => Placeholder::Model,
            "max_tokens" => Placeholder::MaxTokens,
            name => match name.strip_prefix("tool_result.") {
                Some(tool) if !tool.is_empty() => Placeholder::ResultOf(tool.to_owned()),
                _ => {
                    let question = did_you_mean(name, &NAMES);
                    return Err(format!(
                        "unknown placeholder `{{{{{name}}}}}`{question} Use one of: {}",
                        NAMES.join(", ")
                    ));
                }
            },
        };
        Ok(TemplatePart::Place { what, most })
    }
}

impl Placeholder {
    fn value(&self, ask: &ModelPrompt<'_>, time: u64) -> String {
        match self {
            Placeholder::LastUser => prompt_text::last_user_text(ask).unwrap_or_default(),
            Placeholder::LastResult => prompt_text::last_result(ask, None).unwrap_or_default(),
            Placeholder::ResultOf(tool) => prompt_text::last_result(ask, Some(tool)).unwrap_or_default(),
            Placeholder::Turn => (prompt_text::count_answers(ask) + 1).to_string(),
            Placeholder::Time => time.to_string(),
            Placeholder::Messages => ask.messages.len().to_string(),
            Placeholder::Tools => ask.tools.len().to_string(),
            Placeholder::Answers => prompt_text::count_answers(ask).to_string(),
            Placeholder::Model => ask.model.to_owned(),
            Placeholder::MaxTokens => ask.max_tokens.to_string(),
        }
    }
}
