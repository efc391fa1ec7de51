//! Parser of scripts, with errors that give the position and the accepted syntax.

use std::ops::Range;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::reply_template::ReplyTemplate;
use super::turn_condition::{LastMessageKind, TurnCondition};
use super::{InputTemplate, RepeatPolicy, ScriptCall, ScriptTurn, ScriptedModel, TurnOrder};
use crate::StopOverride;
use pal_model::did_you_mean;

/// A script that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct ScriptError {
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// Description of the error and of the accepted syntax.
    pub problem: String,
}

/// An error message and its byte range.
type SpannedProblem = (Range<usize>, String);
type TomlItem<'a> = Spanned<DeValue<'a>>;

const SCRIPT: [&str; 4] = ["turn", "default", "order", "again"];
const TURN: [&str; 6] = ["text", "thinking", "tools", "stop", "when", "repeat"];
const TOOL: [&str; 3] = ["name", "input", "id"];
const WHEN: [&str; 13] = [
    "last_user_contains",
    "result_contains",
    "system_contains",
    "has_tool",
    "result_of",
    "last_is",
    "model_contains",
    "turn",
    "messages",
    "compaction",
    "not",
    "any",
    "all",
];
const STOPS: [(&str, StopOverride); 4] = [
    ("max_tokens", StopOverride::MaxTokens),
    ("pause_turn", StopOverride::PauseTurn),
    ("refusal", StopOverride::Refusal),
    ("model_context_window_exceeded", StopOverride::WindowExceeded),
];
/// Answer of a script without a default when no turn matches.
const NO_TURN: &str = "The script has no further turn for this request.";

/// Parses a script.
pub(crate) fn script(toml: &str) -> Result<ScriptedModel, ScriptError> {
    whole(toml).map_err(|(span, problem)| {
        let before = toml.get(..span.start).unwrap_or(toml);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        ScriptError { line, column, problem }
    })
}

fn whole(toml: &str) -> Result<ScriptedModel, SpannedProblem> {
    let table = DeTable::parse(toml)
        .map_err(|error| (error.span().unwrap_or_default(), error.message().trim().to_owned()))?;
    let text = ReplyTemplate::parse(NO_TURN).map_err(|problem| (0..0, problem))?;
    let mut script = ScriptedModel {
        turns: Vec::new(),
        default: ScriptTurn { text: Some(text), ..ScriptTurn::default() },
        order: TurnOrder::FirstMatch,
        again: RepeatPolicy::Same,
        used: Vec::new(),
        given: std::collections::VecDeque::new(),
    };
    for (key, value) in members(table.get_ref()) {
        match key.get_ref().as_ref() {
            "turn" => {
                let turns = list(value, "write each turn as `[[turn]]`")?;
                script.turns = turns.map(turn).collect::<Result<_, _>>()?;
            }
            "default" => {
                let default = turn(value)?;
                if default.when.is_some() || default.repeat != Some(1) {
                    return Err((value.span(), "the default has neither `when` nor `repeat`".into()));
                }
                script.default = default;
            }
            "order" => {
                script.order = one_of(
                    value,
                    &[("first-match", TurnOrder::FirstMatch), ("sequence", TurnOrder::Sequence)],
                )?
            }
            "again" => {
                script.again = one_of(value, &[("same", RepeatPolicy::Same), ("next", RepeatPolicy::Next)])?
            }
            name => return Err(unknown(key.span(), name, &SCRIPT)),
        }
    }
    script.used = vec![0; script.turns.len()];
    Ok(script)
}

fn turn(item: &TomlItem<'_>) -> Result<ScriptTurn, SpannedProblem> {
    let mut turn = ScriptTurn { repeat: Some(1), ..ScriptTurn::default() };
    for (key, value) in members(table(item, "a turn is a table")?) {
        match key.get_ref().as_ref() {
            "text" => turn.text = Some(template(value)?),
            "thinking" => turn.thinking = Some(template(value)?),
            "tools" => {
                let calls = list(value, "`tools` is a list: `[{ name = \"Read\", input = { … } }]`")?;
                turn.tools = calls.map(call).collect::<Result<_, _>>()?;
            }
            "stop" => turn.stop = Some(one_of(value, &STOPS)?),
            "when" => turn.when = Some(condition(value)?),
            "repeat" => turn.repeat = repeat(value)?,
            name => return Err(unknown(key.span(), name, &TURN)),
        }
    }
    let is_silent = turn.text.is_none() && turn.thinking.is_none() && turn.tools.is_empty();
    if is_silent && turn.stop.is_none() {
        return Err((
            item.span(),
            "this turn says nothing; give it `text`, `thinking`, `tools` or `stop`".into(),
        ));
    }
    Ok(turn)
}

fn call(item: &TomlItem<'_>) -> Result<ScriptCall, SpannedProblem> {
    let (mut name, mut id, mut input) = (None, None, InputTemplate::Table(Vec::new()));
    for (key, value) in members(table(item, "a call is a table: `{ name = \"Read\", input = { … } }`")?) {
        match key.get_ref().as_ref() {
            "name" => name = Some(string(value)?.to_owned()),
            "id" => id = Some(template(value)?),
            "input" => {
                table(value, "`input` is a table")?;
                input = read_input(value)?;
            }
            other => return Err(unknown(key.span(), other, &TOOL)),
        }
    }
    let name = name.ok_or_else(|| (item.span(), "this call has no `name`".to_owned()))?;
    Ok(ScriptCall { name, id, input })
}

fn read_input(item: &TomlItem<'_>) -> Result<InputTemplate, SpannedProblem> {
    let wrong = |what: &str| (item.span(), format!("{what} cannot be written as JSON"));
    Ok(match item.get_ref() {
        DeValue::String(_) => InputTemplate::Text(template(item)?),
        DeValue::Integer(_) => InputTemplate::Plain(Value::from(integer(item)?)),
        DeValue::Float(number) => {
            let number: f64 = number.as_str().replace('_', "").parse().map_err(|_| wrong("this number"))?;
            InputTemplate::Plain(
                serde_json::Number::from_f64(number)
                    .map(Value::Number)
                    .ok_or_else(|| wrong("this number"))?,
            )
        }
        DeValue::Boolean(truth) => InputTemplate::Plain(Value::Bool(*truth)),
        DeValue::Datetime(time) => InputTemplate::Plain(Value::String(time.to_string())),
        DeValue::Array(items) => InputTemplate::List(items.iter().map(read_input).collect::<Result<_, _>>()?),
        DeValue::Table(table) => {
            let member = |(key, value): (&Spanned<std::borrow::Cow<'_, str>>, &TomlItem<'_>)| {
                Ok((key.get_ref().to_string(), read_input(value)?))
            };
            InputTemplate::Table(members(table).into_iter().map(member).collect::<Result<_, _>>()?)
        }
    })
}

fn condition(item: &TomlItem<'_>) -> Result<TurnCondition, SpannedProblem> {
    let mut parts = Vec::new();
    for (key, value) in members(table(item, "a condition is a table: `{ has_tool = \"Bash\" }`")?) {
        let words = || string(value).map(str::to_owned);
        let many = || -> Result<Vec<TurnCondition>, SpannedProblem> {
            list(value, "write a list of conditions: `[{ … }, { … }]`")?.map(condition).collect()
        };
        parts.push(match key.get_ref().as_ref() {
            "last_user_contains" => TurnCondition::LastUserContains(words()?),
            "result_contains" => TurnCondition::ResultContains(words()?),
            "system_contains" => TurnCondition::SystemContains(words()?),
            "has_tool" => TurnCondition::HasTool(words()?),
            "result_of" => TurnCondition::ResultOf(words()?),
            "model_contains" => TurnCondition::ModelContains(words()?),
            "last_is" => TurnCondition::LastIs(last(value)?),
            "turn" => range(value).map(|(least, most)| TurnCondition::Turn(least, most))?,
            "messages" => range(value).map(|(least, most)| TurnCondition::Messages(least, most))?,
            "compaction" => match value.get_ref() {
                DeValue::Boolean(truth) => TurnCondition::Compaction(*truth),
                _ => return Err((value.span(), "write `true` or `false`".into())),
            },
            "not" => TurnCondition::Not(Box::new(condition(value)?)),
            "any" => TurnCondition::Any(many()?),
            "all" => TurnCondition::All(many()?),
            name => return Err(unknown(key.span(), name, &WHEN)),
        });
    }
    Ok(TurnCondition::All(parts))
}

fn last(value: &TomlItem<'_>) -> Result<LastMessageKind, SpannedProblem> {
    let name = string(value)?;
    LastMessageKind::from_name(name).ok_or_else(|| unknown(value.span(), name, &LastMessageKind::NAMES))
}

/// A number or a range: `3`, `"3-5"` or `"10-"`.
fn range(value: &TomlItem<'_>) -> Result<(u64, u64), SpannedProblem> {
    let wrong = || (value.span(), "write a number, or a range such as \"3-5\" or \"10-\"".to_owned());
    match value.get_ref() {
        DeValue::Integer(_) => {
            let number = u64::try_from(integer(value)?).map_err(|_| wrong())?;
            Ok((number, number))
        }
        DeValue::String(text) => {
            let (least, most) = text.split_once('-').ok_or_else(wrong)?;
            let least = least.trim().parse().map_err(|_| wrong())?;
            let most =
                if most.trim().is_empty() { u64::MAX } else { most.trim().parse().map_err(|_| wrong())? };
            Ok((least, most))
        }
        _ => Err(wrong()),
    }
}

/// A repeat count, or `"always"`.
fn repeat(value: &TomlItem<'_>) -> Result<Option<u64>, SpannedProblem> {
    let wrong =
        || (value.span(), "write how often, such as `repeat = 100`, or `repeat = \"always\"`".to_owned());
    match value.get_ref() {
        DeValue::Integer(_) => match u64::try_from(integer(value)?) {
            Ok(times) if times > 0 => Ok(Some(times)),
            _ => Err(wrong()),
        },
        DeValue::String(text) if text == "always" => Ok(None),
        _ => Err(wrong()),
    }
}

/// Members of a table in file order.
fn members<'a, 'b>(
    table: &'b DeTable<'a>,
) -> Vec<(&'b Spanned<std::borrow::Cow<'a, str>>, &'b TomlItem<'a>)> {
    let mut members: Vec<_> = table.iter().collect();
    members.sort_by_key(|(key, _)| key.span().start);
    members
}

fn table<'a, 'b>(item: &'b TomlItem<'a>, hint: &str) -> Result<&'b DeTable<'a>, SpannedProblem> {
    item.get_ref().as_table().ok_or_else(|| (item.span(), hint.to_owned()))
}

fn list<'a, 'b>(
    item: &'b TomlItem<'a>,
    hint: &str,
) -> Result<impl Iterator<Item = &'b TomlItem<'a>>, SpannedProblem> {
    item.get_ref().as_array().map(|items| items.iter()).ok_or_else(|| (item.span(), hint.to_owned()))
}

fn string<'b>(item: &'b TomlItem<'_>) -> Result<&'b str, SpannedProblem> {
    item.get_ref().as_str().ok_or_else(|| (item.span(), "write a text in quotes here".to_owned()))
}

fn template(item: &TomlItem<'_>) -> Result<ReplyTemplate, SpannedProblem> {
    ReplyTemplate::parse(string(item)?).map_err(|problem| (item.span(), problem))
}

fn integer(item: &TomlItem<'_>) -> Result<i64, SpannedProblem> {
    let wrong = || (item.span(), "this number is too large".to_owned());
    let number = item.get_ref().as_integer().ok_or_else(wrong)?;
    i64::from_str_radix(&number.as_str().replace('_', ""), number.radix()).map_err(|_| wrong())
}

fn one_of<T: Copy>(value: &TomlItem<'_>, choices: &[(&str, T)]) -> Result<T, SpannedProblem> {
    let name = string(value)?;
    match choices.iter().find(|(choice, _)| *choice == name) {
        Some((_, chosen)) => Ok(*chosen),
        None => {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            Err(unknown(value.span(), name, &names))
        }
    }
}

fn unknown(span: Range<usize>, name: &str, known: &[&str]) -> SpannedProblem {
    let question = did_you_mean(name, known);
    (span, format!("unknown name `{name}`{question} Use one of: {}", known.join(", ")))
}
