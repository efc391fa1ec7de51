//! Configuration of hooks that are functions of the driving program.

use std::sync::Arc;

use serde_json::Value;

use crate::event_name::HookEventName;
use crate::hook_callback::{HookCallback, HookHost};
use crate::hook_config::{HookCommand, HookConfig, HookGroup, timeout};
use crate::hook_matcher::HookMatcher;

impl HookConfig {
    /// Parses the hooks of a host: event → groups of `matcher`, `hookCallbackIds`, `timeout` and `onFailure`. Events that
    /// do not occur here are skipped with a notice.
    pub fn of_callbacks(value: &Value, host: &Arc<dyn HookHost>) -> Result<HookConfig, String> {
        let mut config = HookConfig::default();
        let events = match value {
            Value::Null => return Ok(config),
            Value::Object(events) => events,
            _ => return Err(String::from("`hooks` must be an object of events")),
        };
        for (name, groups) in events {
            let groups = groups.as_array().ok_or_else(|| format!("`hooks.{name}` must be a list"))?;
            let Some(event) = HookEventName::find(name) else {
                config.notices.push(format!("hooks for {name} are skipped: there is no such event here"));
                continue;
            };
            for group in groups {
                config.groups.push(callback_group(event, group, host)?);
            }
        }
        Ok(config)
    }
}

fn callback_group(
    event: HookEventName,
    group: &Value,
    host: &Arc<dyn HookHost>,
) -> Result<HookGroup, String> {
    let name = event.name();
    let matcher = match group.get("matcher") {
        None | Some(Value::Null) => HookMatcher::All,
        Some(Value::String(text)) => {
            HookMatcher::parse(text).map_err(|wanted| format!("expected {wanted}"))?
        }
        Some(_) => return Err(format!("`matcher` of {name} must be a string")),
    };
    let ids = group.get("hookCallbackIds").and_then(Value::as_array);
    let ids = ids.ok_or_else(|| format!("`hookCallbackIds` of {name} must be a list"))?;
    let limit = match group.get("timeout") {
        None | Some(Value::Null) => None,
        given => timeout(given, name).map_err(|wanted| format!("expected {wanted}"))?,
    };
    // An unknown value must not weaken a guard.
    let blocks_on_failure = group.get("onFailure").is_some_and(|mode| !mode.is_null() && mode != "continue");
    let command = |id: &Value| {
        let id = id.as_str().ok_or_else(|| format!("ids of callbacks of {name} must be strings"))?;
        Ok(HookCommand {
            command: format!("callback {id}"),
            arguments: None,
            timeout: limit,
            condition: None,
            once: false,
            unsupported: None,
            callback: Some(HookCallback { id: id.to_owned(), host: Arc::clone(host), blocks_on_failure }),
        })
    };
    let commands = ids.iter().map(command).collect::<Result<Vec<_>, String>>()?;
    Ok(HookGroup { event, matcher, commands })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pal_process::CancelToken;
    use serde_json::json;

    use super::*;
    use crate::hook_answer::HookAnswer;

    #[derive(Debug)]
    struct ScriptedHost(Result<&'static str, &'static str>);

    impl HookHost for ScriptedHost {
        fn call(
            &self,
            callback: &str,
            input: &str,
            tool_use_id: Option<&str>,
            limit: Duration,
            _: &CancelToken,
        ) -> Result<String, String> {
            assert_eq!((callback, tool_use_id, limit), ("hook_0", Some("toolu_1"), Duration::from_secs(5)));
            assert!(input.contains("PreToolUse"));
            self.0.map(str::to_owned).map_err(str::to_owned)
        }
    }

    fn answer(said: Result<&'static str, &'static str>, on_failure: &str) -> HookAnswer {
        let host: Arc<dyn HookHost> = Arc::new(ScriptedHost(said));
        let hooks = json!({"PreToolUse": [
            {"matcher": "Bash", "hookCallbackIds": ["hook_0"], "timeout": 5, "onFailure": on_failure}
        ]});
        let config = HookConfig::of_callbacks(&hooks, &host).unwrap();
        let callback = config.groups[0].commands[0].callback.clone().unwrap();
        let input = r#"{"hook_event_name":"PreToolUse","tool_use_id":"toolu_1"}"#;
        let limit = config.groups[0].commands[0].timeout.unwrap();
        callback.answer(HookEventName::PreToolUse, input, limit, &CancelToken::new())
    }

    #[test]
    fn a_callback_answers_like_a_command() {
        let deny = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}"#;
        let said = answer(Ok(deny), "continue");
        assert_eq!(said.permission, Some((crate::HookPermission::Deny, String::from("no"))));
        assert!(answer(Ok("{}"), "block").failures.is_empty());
    }

    #[test]
    fn a_guard_that_fails_blocks_if_the_host_wants_it() {
        assert!(answer(Err("broke"), "continue").blocked.is_none());
        assert_eq!(answer(Err("broke"), "continue").failures, ["broke"]);
        for mode in ["block", "something new"] {
            assert!(answer(Err("broke"), mode).blocked.is_some_and(|why| why.ends_with("broke")), "{mode}");
        }
    }

    #[test]
    fn unknown_events_are_named_and_bad_shapes_are_errors() {
        let host: Arc<dyn HookHost> = Arc::new(ScriptedHost(Ok("{}")));
        let config = HookConfig::of_callbacks(&json!({"Notification": []}), &host).unwrap();
        assert!(config.groups.is_empty() && config.notices[0].contains("Notification"));
        assert!(HookConfig::of_callbacks(&Value::Null, &host).unwrap().groups.is_empty());
        for wrong in [json!([]), json!({"Stop": {}}), json!({"Stop": [{"matcher": "x"}]})] {
            assert!(HookConfig::of_callbacks(&wrong, &host).is_err(), "{wrong}");
        }
    }
}
