//! Hook configuration as in settings: event → groups with a matcher → commands.

use std::time::Duration;

use pal_model::did_you_mean;
use serde_json::{Map, Value};

use crate::event_name::HookEventName;
use crate::hook_callback::HookCallback;
use crate::hook_matcher::HookMatcher;

/// Hooks of one settings file.
#[derive(Clone, Debug, Default)]
pub struct HookConfig {
    /// Groups in order.
    pub groups: Vec<HookGroup>,
    /// Notices about unsupported hooks.
    pub notices: Vec<String>,
}

/// Hooks with the same event and matcher.
#[derive(Clone, Debug)]
pub struct HookGroup {
    /// Event at which they run.
    pub event: HookEventName,
    /// Filter on the subject of the event.
    pub matcher: HookMatcher,
    /// Commands to run.
    pub commands: Vec<HookCommand>,
}

/// Command of a hook.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HookCommand {
    /// Shell command line, or a program if there are arguments.
    pub command: String,
    /// Arguments of the program; `None` for a shell command line.
    pub arguments: Option<Vec<String>>,
    /// Time limit; that of the event by default.
    pub timeout: Option<Duration>,
    /// Permission rule that the call must match.
    pub condition: Option<String>,
    /// True to run only once per session.
    pub once: bool,
    /// Function of the driving program that is called instead of the command.
    pub callback: Option<HookCallback>,
}

impl HookConfig {
    /// Parses hooks; the error says what is expected instead.
    pub fn parse(value: &Value) -> Result<HookConfig, String> {
        let events = value.as_object().ok_or("a table of events")?;
        let mut config = HookConfig::default();
        for (name, groups) in events {
            let groups =
                groups.as_array().ok_or_else(|| format!("{name} to be a list of {{ matcher, hooks }}"))?;
            let Some(event) = HookEventName::find(name) else {
                config.notices.push(unknown_event(name)?);
                continue;
            };
            for group in groups {
                config.read_group(event, group)?;
            }
        }
        Ok(config)
    }

    fn read_group(&mut self, event: HookEventName, group: &Value) -> Result<(), String> {
        let name = event.name();
        let group = group.as_object().ok_or_else(|| format!("each of {name} to be {{ matcher, hooks }}"))?;
        known_fields(group, &["matcher", "hooks"], name)?;
        let matcher = match group.get("matcher") {
            None | Some(Value::Null) => HookMatcher::All,
            Some(Value::String(text)) => HookMatcher::parse(text)?,
            Some(_) => return Err(format!("the matcher of {name} to be a text")),
        };
        let hooks = group.get("hooks").and_then(Value::as_array);
        let hooks = hooks.ok_or_else(|| format!("hooks in {name}: a list of {{ type, command }}"))?;
        let mut commands = Vec::new();
        for hook in hooks {
            let hook = hook.as_object().ok_or_else(|| format!("each hook of {name} to be a table"))?;
            commands.extend(self.read_hook(event, hook)?);
        }
        self.groups.push(HookGroup { event, matcher, commands });
        Ok(())
    }

    /// Parses a hook; `None` if its type is unsupported.
    fn read_hook(
        &mut self,
        event: HookEventName,
        hook: &Map<String, Value>,
    ) -> Result<Option<HookCommand>, String> {
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
        Ok(Some(HookCommand {
            command,
            arguments: arguments(hook.get("args"), name)?,
            timeout: timeout(hook.get("timeout"), name)?,
            condition: text("if").map(str::to_owned),
            once: hook.get("once") == Some(&Value::Bool(true)),
            callback: None,
        }))
    }
}

/// Notice for an event that never occurs here; an error if it is unknown.
fn unknown_event(name: &str) -> Result<String, String> {
    if HookEventName::is_foreign(name) {
        return Ok(format!("hooks for {name} are skipped: there is no such event here"));
    }
    let known: Vec<&str> = HookEventName::ALL.iter().map(|event| event.name()).collect();
    Err(format!("events such as {}, and {name} is none{}", known.join(", "), did_you_mean(name, &known)))
}

fn known_fields(table: &Map<String, Value>, known: &[&str], name: &str) -> Result<(), String> {
    match table.keys().find(|field| !known.contains(&field.as_str())) {
        Some(field) => {
            Err(format!("{} in {name} and no {field}{}", known.join(" and "), did_you_mean(field, known)))
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

pub(crate) fn timeout(value: Option<&Value>, name: &str) -> Result<Option<Duration>, String> {
    let Some(value) = value else { return Ok(None) };
    let seconds = value.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    match seconds.filter(|seconds| !seconds.is_zero()) {
        Some(seconds) => Ok(Some(seconds)),
        None => Err(format!("timeout in a hook of {name} to be a number of seconds above 0")),
    }
}
