//! Hooks as settings hold them: event → groups with a matcher → commands.

use std::time::Duration;

use pal_model::meant;
use serde_json::{Map, Value};

use crate::event::EventName;
use crate::matcher::Matcher;

/// The hooks of one place.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Groups, in the order in which they were written.
    pub groups: Vec<Group>,
    /// What cannot be run here, and why.
    pub notices: Vec<String>,
}

/// Hooks for the same event and the same things.
#[derive(Clone, Debug)]
pub struct Group {
    /// When they run.
    pub event: EventName,
    /// What they are meant for.
    pub matcher: Matcher,
    /// What runs.
    pub commands: Vec<Command>,
}

/// One hook.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// A line for the shell, or a program if there are arguments.
    pub command: String,
    /// Arguments of the program; with none, a shell runs the line.
    pub arguments: Option<Vec<String>>,
    /// How long it may take; that of the event unless set.
    pub timeout: Option<Duration>,
    /// A permission rule that the call must fit.
    pub condition: Option<String>,
    /// Whether it runs only the first time in a session.
    pub once: bool,
}

impl Config {
    /// Reads hooks; what they want instead if they cannot be read.
    pub fn parse(value: &Value) -> Result<Config, String> {
        let events = value.as_object().ok_or("a table of events")?;
        let mut config = Config::default();
        for (name, groups) in events {
            let groups =
                groups.as_array().ok_or_else(|| format!("{name} to be a list of {{ matcher, hooks }}"))?;
            let Some(event) = EventName::find(name) else {
                config.notices.push(unknown_event(name)?);
                continue;
            };
            for group in groups {
                config.read_group(event, group)?;
            }
        }
        Ok(config)
    }

    fn read_group(&mut self, event: EventName, group: &Value) -> Result<(), String> {
        let name = event.name();
        let group = group.as_object().ok_or_else(|| format!("each of {name} to be {{ matcher, hooks }}"))?;
        known_fields(group, &["matcher", "hooks"], name)?;
        let matcher = match group.get("matcher") {
            None | Some(Value::Null) => Matcher::All,
            Some(Value::String(text)) => Matcher::parse(text)?,
            Some(_) => return Err(format!("the matcher of {name} to be a text")),
        };
        let hooks = group.get("hooks").and_then(Value::as_array);
        let hooks = hooks.ok_or_else(|| format!("hooks in {name}: a list of {{ type, command }}"))?;
        let mut commands = Vec::new();
        for hook in hooks {
            let hook = hook.as_object().ok_or_else(|| format!("each hook of {name} to be a table"))?;
            commands.extend(self.read_hook(event, hook)?);
        }
        self.groups.push(Group { event, matcher, commands });
        Ok(())
    }

    /// A hook, if it is one that we can run.
    fn read_hook(&mut self, event: EventName, hook: &Map<String, Value>) -> Result<Option<Command>, String> {
        let name = event.name();
        let text = |field: &str| hook.get(field).and_then(Value::as_str);
        match text("type") {
            Some("command") => {}
            Some(kind @ ("http" | "prompt" | "agent" | "mcp_tool")) => {
                self.notices.push(format!("a hook of {name} is skipped: the type {kind} is not supported"));
                return Ok(None);
            }
            _ => return Err(format!("each hook of {name} to have the type \"command\"")),
        }
        let command = text("command").filter(|command| !command.trim().is_empty());
        let command = command.ok_or_else(|| format!("a command in each hook of {name}"))?.to_owned();
        for field in ["async", "asyncRewake"] {
            if hook.get(field) == Some(&Value::Bool(true)) {
                self.notices.push(format!("a hook of {name} is waited for: {field} is not supported"));
            }
        }
        Ok(Some(Command {
            command,
            arguments: arguments(hook.get("args"), name)?,
            timeout: timeout(hook.get("timeout"), name)?,
            condition: text("if").map(str::to_owned),
            once: hook.get("once") == Some(&Value::Bool(true)),
        }))
    }
}

/// What is told of an event that does not happen here; an error if nobody knows it.
fn unknown_event(name: &str) -> Result<String, String> {
    if EventName::is_elsewhere(name) {
        return Ok(format!("hooks for {name} are skipped: there is no such event here"));
    }
    let known: Vec<&str> = EventName::ALL.iter().map(|event| event.name()).collect();
    Err(format!("events such as {}, and {name} is none{}", known.join(", "), meant(name, &known)))
}

fn known_fields(table: &Map<String, Value>, known: &[&str], name: &str) -> Result<(), String> {
    match table.keys().find(|field| !known.contains(&field.as_str())) {
        Some(field) => {
            Err(format!("{} in {name} and no {field}{}", known.join(" and "), meant(field, known)))
        }
        None => Ok(()),
    }
}

fn arguments(value: Option<&Value>, name: &str) -> Result<Option<Vec<String>>, String> {
    let wanted = || format!("args in a hook of {name} to be a list of texts");
    let Some(value) = value else { return Ok(None) };
    let items = value.as_array().ok_or_else(wanted)?;
    items
        .iter()
        .map(|item| item.as_str().map(str::to_owned).ok_or_else(wanted))
        .collect::<Result<_, _>>()
        .map(Some)
}

fn timeout(value: Option<&Value>, name: &str) -> Result<Option<Duration>, String> {
    let Some(value) = value else { return Ok(None) };
    let seconds = value.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    match seconds.filter(|seconds| !seconds.is_zero()) {
        Some(seconds) => Ok(Some(seconds)),
        None => Err(format!("timeout in a hook of {name} to be a number of seconds above 0")),
    }
}
