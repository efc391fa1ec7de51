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
    /// Reason why the hook cannot run here. Instead of running, it asks about tool calls and blocks prompts.
    pub unsupported: Option<String>,
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

    /// Parses hooks of another agent without failing: a part that is not understood becomes a hook that asks or blocks.
    pub fn parse_guarded(value: &Value) -> HookConfig {
        let mut config = HookConfig::default();
        let Some(events) = value.as_object() else {
            config.guard(HookEventName::PreToolUse, HookMatcher::All, "the hooks are not a table of events");
            return config;
        };
        for (name, groups) in events {
            let Some(event) = HookEventName::find(name) else {
                config.notices.push(format!("hooks for {name} are skipped: there is no such event here"));
                continue;
            };
            for group in groups.as_array().unwrap_or(&vec![groups.clone()]) {
                config.read_guarded_group(event, group);
            }
        }
        config
    }

    fn read_guarded_group(&mut self, event: HookEventName, group: &Value) {
        let text = group.get("matcher").and_then(Value::as_str).unwrap_or_default();
        let matcher = HookMatcher::parse(text);
        let why_matcher = matcher.as_ref().err().map(|wanted| format!("its matcher needs {wanted}"));
        let matcher = matcher.unwrap_or(HookMatcher::All);
        let Some(hooks) = group.get("hooks").and_then(Value::as_array) else {
            return self.guard(event, matcher, "it has no list of hooks");
        };
        for hook in hooks {
            let read = hook.as_object().map(|hook| self.read_hook(event, hook));
            match (read, &why_matcher) {
                (Some(Ok(command)), None) => {
                    self.groups.push(HookGroup { event, matcher: matcher.clone(), commands: vec![command] });
                }
                (Some(Ok(_)), Some(why)) => self.guard(event, HookMatcher::All, why),
                (Some(Err(wanted)), _) => self.guard(event, matcher.clone(), &format!("expected {wanted}")),
                (None, _) => self.guard(event, matcher.clone(), "it is not a table"),
            }
        }
    }

    /// Adds a hook that stands in for one that is not understood.
    fn guard(&mut self, event: HookEventName, matcher: HookMatcher, why: &str) {
        let name = event.name();
        self.notices.push(format!("a hook of {name} is not understood: {why}{}", effect_of(event)));
        let commands = vec![HookCommand::unsupported(&format!("hook of {name}"), why)];
        self.groups.push(HookGroup { event, matcher, commands });
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
            commands.push(self.read_hook(event, hook)?);
        }
        self.groups.push(HookGroup { event, matcher, commands });
        Ok(())
    }

    /// Parses a hook. One of an unsupported type asks or blocks instead of running.
    fn read_hook(&mut self, event: HookEventName, hook: &Map<String, Value>) -> Result<HookCommand, String> {
        let name = event.name();
        let text = |field: &str| hook.get(field).and_then(Value::as_str);
        match text("type") {
            Some("command") => {}
            Some(kind @ ("http" | "prompt" | "agent" | "mcp_tool")) => {
                let why = format!("hooks of the type {kind} are not supported");
                self.notices.push(format!(
                    "a hook of {name} cannot run: the type {kind} is not supported{}",
                    effect_of(event)
                ));
                return Ok(HookCommand::unsupported(&format!("{kind} hook of {name}"), &why));
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
        Ok(HookCommand {
            command,
            arguments: arguments(hook.get("args"), name)?,
            timeout: timeout(hook.get("timeout"), name)?,
            condition: text("if").map(str::to_owned),
            once: hook.get("once") == Some(&Value::Bool(true)),
            unsupported: None,
            callback: None,
        })
    }
}

impl HookCommand {
    /// A hook that cannot run here.
    fn unsupported(name: &str, why: &str) -> HookCommand {
        HookCommand {
            command: name.to_owned(),
            arguments: None,
            timeout: None,
            condition: None,
            once: false,
            unsupported: Some(why.to_owned()),
            callback: None,
        }
    }
}

/// Effect of a hook that cannot run, as the end of a notice.
fn effect_of(event: HookEventName) -> &'static str {
    match event {
        HookEventName::PreToolUse => "; the calls that it covers ask",
        HookEventName::UserPromptSubmit => "; it blocks prompts",
        _ => "; it has no effect",
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hooks_that_cannot_run_stand_guard() {
        let cases = [
            (json!({"type": "http", "url": "https://guard.example"}), Some("http")),
            (json!({"type": "prompt", "prompt": "is it safe?"}), Some("prompt")),
            (json!({"type": "telepathy"}), Some("type")),
            (json!({"type": "command"}), Some("command")),
            (json!({"type": "command", "command": "guard", "timeout": "soon"}), Some("timeout")),
            (json!("guard"), Some("table")),
            (json!({"type": "command", "command": "guard", "statusMessage": "…"}), None),
        ];
        for (hook, expected) in cases {
            let config = HookConfig::parse_guarded(
                &json!({"PreToolUse": [{"matcher": "Bash", "hooks": [hook], "later": 1}]}),
            );
            let [group] = config.groups.as_slice() else { panic!("{hook}: {:?}", config.groups) };
            assert!(group.matcher.matches("Bash") && !group.matcher.matches("Read"), "{hook}");
            let why = group.commands[0].unsupported.as_deref();
            assert_eq!(why.is_some(), expected.is_some(), "{hook}: {why:?}");
            assert!(expected.is_none_or(|word| why.is_some_and(|why| why.contains(word))), "{hook}: {why:?}");
            assert_eq!(config.notices.is_empty(), expected.is_none(), "{hook}: {:?}", config.notices);
        }
    }

    #[test]
    fn an_unreadable_matcher_covers_every_call() {
        for value in [
            json!({"PreToolUse": [{"matcher": "(?=Bash)x", "hooks": [{"type": "command", "command": "guard"}]}]}),
            json!({"PreToolUse": [{"matcher": "Bash"}]}),
            json!([]),
        ] {
            let config = HookConfig::parse_guarded(&value);
            let [group] = config.groups.as_slice() else { panic!("{value}") };
            assert!(group.matcher.matches("Bash") && group.commands[0].unsupported.is_some(), "{value}");
        }
        let config = HookConfig::parse_guarded(&json!({"FutureEvent": [{"hooks": []}]}));
        assert!(config.groups.is_empty() && config.notices[0].contains("FutureEvent"));
    }
}
