//! Reading a script, with errors that say where and what to write instead.

use std::ops::Range;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::condition::{Condition, Last};
use super::template::Template;
use super::{Again, Call, Input, Order, Script, Turn};
use crate::Stop;
use pal_model::meant;

/// A script that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct ScriptError {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// What is wrong, and what to write instead.
    pub problem: String,
}

/// A problem and where it stands.
type Wrong = (Range<usize>, String);
type Item<'a> = Spanned<DeValue<'a>>;

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
const STOPS: [(&str, Stop); 4] = [
    ("max_tokens", Stop::MaxTokens),
    ("pause_turn", Stop::PauseTurn),
    ("refusal", Stop::Refusal),
    ("model_context_window_exceeded", Stop::WindowExceeded),
];
/// What a script without a default says when it has no turn for a request.
const NO_TURN: &str = "The script has no further turn for this request.";

/// Reads a whole script.
pub(crate) fn script(toml: &str) -> Result<Script, ScriptError> {
    whole(toml).map_err(|(span, problem)| {
        let before = toml.get(..span.start).unwrap_or(toml);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        ScriptError { line, column, problem }
    })
}

fn whole(toml: &str) -> Result<Script, Wrong> {
    let table = DeTable::parse(toml)
        .map_err(|error| (error.span().unwrap_or_default(), error.message().trim().to_owned()))?;
    let text = Template::parse(NO_TURN).map_err(|problem| (0..0, problem))?;
    let mut script = Script {
        turns: Vec::new(),
        default: Turn { text: Some(text), ..Turn::default() },
        order: Order::FirstMatch,
        again: Again::Same,
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
                script.order =
                    one_of(value, &[("first-match", Order::FirstMatch), ("sequence", Order::Sequence)])?
            }
            "again" => script.again = one_of(value, &[("same", Again::Same), ("next", Again::Next)])?,
            name => return Err(unknown(key.span(), name, &SCRIPT)),
        }
    }
    script.used = vec![0; script.turns.len()];
    Ok(script)
}

fn turn(item: &Item<'_>) -> Result<Turn, Wrong> {
    let mut turn = Turn { repeat: Some(1), ..Turn::default() };
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

fn call(item: &Item<'_>) -> Result<Call, Wrong> {
    let (mut name, mut id, mut input) = (None, None, Input::Table(Vec::new()));
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
    Ok(Call { name, id, input })
}

fn read_input(item: &Item<'_>) -> Result<Input, Wrong> {
    let wrong = |what: &str| (item.span(), format!("{what} cannot be written as JSON"));
    Ok(match item.get_ref() {
        DeValue::String(_) => Input::Text(template(item)?),
        DeValue::Integer(_) => Input::Plain(Value::from(integer(item)?)),
        DeValue::Float(number) => {
            let number: f64 = number.as_str().replace('_', "").parse().map_err(|_| wrong("this number"))?;
            Input::Plain(
                serde_json::Number::from_f64(number)
                    .map(Value::Number)
                    .ok_or_else(|| wrong("this number"))?,
            )
        }
        DeValue::Boolean(truth) => Input::Plain(Value::Bool(*truth)),
        DeValue::Datetime(time) => Input::Plain(Value::String(time.to_string())),
        DeValue::Array(items) => Input::List(items.iter().map(read_input).collect::<Result<_, _>>()?),
        DeValue::Table(table) => {
            let member = |(key, value): (&Spanned<std::borrow::Cow<'_, str>>, &Item<'_>)| {
                Ok((key.get_ref().to_string(), read_input(value)?))
            };
            Input::Table(members(table).into_iter().map(member).collect::<Result<_, _>>()?)
        }
    })
}

fn condition(item: &Item<'_>) -> Result<Condition, Wrong> {
    let mut parts = Vec::new();
    for (key, value) in members(table(item, "a condition is a table: `{ has_tool = \"Bash\" }`")?) {
        let words = || string(value).map(str::to_owned);
        let many = || -> Result<Vec<Condition>, Wrong> {
            list(value, "write a list of conditions: `[{ … }, { … }]`")?.map(condition).collect()
        };
        parts.push(match key.get_ref().as_ref() {
            "last_user_contains" => Condition::LastUserContains(words()?),
            "result_contains" => Condition::ResultContains(words()?),
            "system_contains" => Condition::SystemContains(words()?),
            "has_tool" => Condition::HasTool(words()?),
            "result_of" => Condition::ResultOf(words()?),
            "model_contains" => Condition::ModelContains(words()?),
            "last_is" => Condition::LastIs(last(value)?),
            "turn" => range(value).map(|(least, most)| Condition::Turn(least, most))?,
            "messages" => range(value).map(|(least, most)| Condition::Messages(least, most))?,
            "compaction" => match value.get_ref() {
                DeValue::Boolean(truth) => Condition::Compaction(*truth),
                _ => return Err((value.span(), "write `true` or `false`".into())),
            },
            "not" => Condition::Not(Box::new(condition(value)?)),
            "any" => Condition::Any(many()?),
            "all" => Condition::All(many()?),
            name => return Err(unknown(key.span(), name, &WHEN)),
        });
    }
    Ok(Condition::All(parts))
}

fn last(value: &Item<'_>) -> Result<Last, Wrong> {
    let name = string(value)?;
    Last::from_name(name).ok_or_else(|| unknown(value.span(), name, &Last::NAMES))
}

/// `3`, or a text such as `"3-5"` or `"10-"`.
fn range(value: &Item<'_>) -> Result<(u64, u64), Wrong> {
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

/// A number of times, or `"always"`.
fn repeat(value: &Item<'_>) -> Result<Option<u64>, Wrong> {
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

/// The members of a table in the order of the file.
fn members<'a, 'b>(table: &'b DeTable<'a>) -> Vec<(&'b Spanned<std::borrow::Cow<'a, str>>, &'b Item<'a>)> {
    let mut members: Vec<_> = table.iter().collect();
    members.sort_by_key(|(key, _)| key.span().start);
    members
}

fn table<'a, 'b>(item: &'b Item<'a>, hint: &str) -> Result<&'b DeTable<'a>, Wrong> {
    item.get_ref().as_table().ok_or_else(|| (item.span(), hint.to_owned()))
}

fn list<'a, 'b>(item: &'b Item<'a>, hint: &str) -> Result<impl Iterator<Item = &'b Item<'a>>, Wrong> {
    item.get_ref().as_array().map(|items| items.iter()).ok_or_else(|| (item.span(), hint.to_owned()))
}

fn string<'b>(item: &'b Item<'_>) -> Result<&'b str, Wrong> {
    item.get_ref().as_str().ok_or_else(|| (item.span(), "write a text in quotes here".to_owned()))
}

fn template(item: &Item<'_>) -> Result<Template, Wrong> {
    Template::parse(string(item)?).map_err(|problem| (item.span(), problem))
}

fn integer(item: &Item<'_>) -> Result<i64, Wrong> {
    let wrong = || (item.span(), "this number is too large".to_owned());
    let number = item.get_ref().as_integer().ok_or_else(wrong)?;
    i64::from_str_radix(&number.as_str().replace('_', ""), number.radix()).map_err(|_| wrong())
}

fn one_of<T: Copy>(value: &Item<'_>, choices: &[(&str, T)]) -> Result<T, Wrong> {
    let name = string(value)?;
    match choices.iter().find(|(choice, _)| *choice == name) {
        Some((_, chosen)) => Ok(*chosen),
        None => {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            Err(unknown(value.span(), name, &names))
        }
    }
}

fn unknown(span: Range<usize>, name: &str, known: &[&str]) -> Wrong {
    let question = meant(name, known);
    (span, format!("`{name}` is not known here{question} What may stand here: {}", known.join(", ")))
}
