//! Answer of one hook: exit code, text or JSON.

use pal_process::{CapturedOutput, CommandOutcome, ProcessStatus, TerminationCause};
use serde_json::{Map, Value};

use crate::event_name::HookEventName;

/// Exit code that blocks.
const BLOCK_EXIT_CODE: i32 = 2;
/// Maximum reported characters of standard error.
const STDERR_CHARACTERS_MAX: usize = 2_000;

/// Decision of a hook on a tool call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum HookPermission {
    /// Run without asking.
    Allow,
    /// Ask the user.
    Ask,
    /// Refuse the call.
    Deny,
}

/// Answer of one hook.
#[derive(Default)]
pub(crate) struct HookAnswer {
    pub(crate) blocked: Option<String>,
    pub(crate) permission: Option<(HookPermission, String)>,
    pub(crate) updated_input: Option<Value>,
    pub(crate) updated_output: Option<Value>,
    pub(crate) context: Option<String>,
    pub(crate) system_message: Option<String>,
    pub(crate) stop: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) failures: Vec<String>,
}

impl HookAnswer {
    /// Answer of a hook that failed.
    pub(crate) fn failed(what: impl Into<String>) -> HookAnswer {
        HookAnswer { failures: vec![what.into()], ..HookAnswer::default() }
    }

    /// Answer in place of a hook that cannot run here: a call asks, a prompt is blocked.
    pub(crate) fn unsupported(event: HookEventName, why: &str) -> HookAnswer {
        let reason = format!("a hook covers this and cannot run here: {why}");
        match event {
            HookEventName::PreToolUse => {
                HookAnswer { permission: Some((HookPermission::Ask, reason)), ..HookAnswer::default() }
            }
            HookEventName::UserPromptSubmit => HookAnswer {
                blocked: Some(format!("{reason}; change the hook, or set `disabled = [\"hooks\"]`")),
                ..HookAnswer::default()
            },
            _ => HookAnswer::default(),
        }
    }

    /// Answer of a hook that says nothing but JSON.
    pub(crate) fn of_json(event: HookEventName, text: &str) -> HookAnswer {
        let mut answer = HookAnswer::default();
        answer.read_json(event, text, false);
        answer
    }

    /// Answer of a hook that blocks the event.
    pub(crate) fn blocked(reason: String) -> HookAnswer {
        HookAnswer { blocked: Some(reason), ..HookAnswer::default() }
    }

    /// Parses the outcome of a hook.
    pub(crate) fn read(event: HookEventName, finished: &CommandOutcome) -> HookAnswer {
        match finished.stopped {
            Some(TerminationCause::TimedOut) => {
                let seconds = finished.took.as_secs_f64();
                return HookAnswer::failed(format!(
                    "it took longer than its limit and was ended after {seconds:.1} s"
                ));
            }
            Some(TerminationCause::Cancelled) => return HookAnswer::failed("it was interrupted"),
            None => {}
        }
        let mut answer = HookAnswer::default();
        let text = String::from_utf8_lossy(&finished.output.head);
        let text = text.trim();
        if text.starts_with('{') {
            answer.read_json(event, text, finished.output.left_out > 0);
        } else if finished.status == ProcessStatus::Exited(0) && event.accepts_text() && !text.is_empty() {
            answer.context = Some(text.to_owned());
            if finished.output.left_out > 0 {
                answer.failures.push("its output is too long; only the beginning counts".to_owned());
            }
        }
        answer.read_status(event, finished.status, &finished.errors);
        answer
    }

    /// Applies the exit code, which overrides JSON.
    fn read_status(&mut self, event: HookEventName, status: ProcessStatus, errors: &CapturedOutput) {
        let said = stderr_text(errors);
        match status {
            ProcessStatus::Exited(0) => {}
            ProcessStatus::Exited(BLOCK_EXIT_CODE) if event.can_block() => {
                let reason =
                    if said.is_empty() { "a hook blocks it and says no more".to_owned() } else { said };
                self.blocked = Some(reason);
                (self.permission, self.updated_input) = (None, None);
            }
            ProcessStatus::Exited(code) => {
                self.failures.push(with_errors(format!("it exited with {code}"), &said))
            }
            ProcessStatus::Signalled(signal) => {
                self.failures.push(with_errors(format!("it was ended by signal {signal}"), &said));
            }
            ProcessStatus::Unknown => self.failures.push("its exit status is unknown".to_owned()),
        }
    }

    fn read_json(&mut self, event: HookEventName, text: &str, is_cut: bool) {
        if is_cut {
            self.failures.push("its JSON output is too long and is ignored".to_owned());
            return;
        }
        let output: Map<String, Value> = match serde_json::from_str(text) {
            Ok(output) => output,
            Err(error) => {
                self.failures.push(format!("its output starts like JSON but is invalid: {error}"));
                return;
            }
        };
        let reason = self.text(&output, "reason");
        self.system_message = self.text(&output, "systemMessage");
        if output.get("continue") == Some(&Value::Bool(false)) {
            let why = self.text(&output, "stopReason");
            self.stop = Some(why.unwrap_or_else(|| "a hook stopped the session".to_owned()));
        }
        if let Some(decision) = self.text(&output, "decision") {
            self.read_decision(event, &decision, reason);
        }
        match output.get("hookSpecificOutput") {
            None | Some(Value::Null) => {}
            Some(Value::Object(specific)) => self.read_specific(event, specific),
            Some(_) => self.failures.push("hookSpecificOutput is not a JSON object".to_owned()),
        }
    }

    /// Applies the common `decision` field; for a tool call, the older form of a permission.
    fn read_decision(&mut self, event: HookEventName, decision: &str, reason: Option<String>) {
        let reason = reason.unwrap_or_default();
        match (decision, event) {
            ("block", HookEventName::PreToolUse) => self.permission = Some((HookPermission::Deny, reason)),
            ("approve", HookEventName::PreToolUse) => self.permission = Some((HookPermission::Allow, reason)),
            ("block", event) if event.can_block() => self.blocked = Some(reason),
            ("approve", _) => {}
            (other, event) => {
                self.failures.push(format!("{} has no decision {other:?}", event.name()));
            }
        }
    }

    fn read_specific(&mut self, event: HookEventName, specific: &Map<String, Value>) {
        if let Some(name) = self.text(specific, "hookEventName").filter(|name| name != event.name()) {
            self.failures
                .push(format!("it answered {name} to the event {}; the answer is ignored", event.name()));
            return;
        }
        // Before a compaction only plain text counts.
        if event != HookEventName::PreCompact {
            self.context = self.text(specific, "additionalContext").filter(|context| !context.is_empty());
        }
        match event {
            HookEventName::PreToolUse => self.read_permission(specific),
            HookEventName::PostToolUse => {
                self.updated_output = specific.get("updatedToolOutput").filter(|new| !new.is_null()).cloned();
            }
            HookEventName::SessionStart | HookEventName::UserPromptSubmit => {
                self.title = self.text(specific, "sessionTitle").filter(|title| !title.trim().is_empty());
            }
            _ => {}
        }
    }

    fn read_permission(&mut self, specific: &Map<String, Value>) {
        let reason = self.text(specific, "permissionDecisionReason").unwrap_or_default();
        let decision = self.text(specific, "permissionDecision");
        match decision.as_deref() {
            Some("allow") => self.permission = Some((HookPermission::Allow, reason)),
            Some("ask") => self.permission = Some((HookPermission::Ask, reason)),
            Some("deny") => self.permission = Some((HookPermission::Deny, reason)),
            None | Some("defer") => {}
            Some(other) => self.failures.push(format!("unknown permissionDecision {other:?}")),
        }
        match specific.get("updatedInput") {
            None | Some(Value::Null) => {}
            Some(input @ Value::Object(_)) => self.updated_input = Some(input.clone()),
            Some(_) => self.failures.push("updatedInput is not a JSON object".to_owned()),
        }
    }

    /// String field; any other type is reported as a failure.
    fn text(&mut self, table: &Map<String, Value>, name: &str) -> Option<String> {
        match table.get(name) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => {
                self.failures.push(format!("{name} is not a string"));
                None
            }
        }
    }
}

/// Standard error of a hook, truncated.
fn stderr_text(errors: &CapturedOutput) -> String {
    let text = errors.text();
    let text = text.trim();
    text.char_indices()
        .nth(STDERR_CHARACTERS_MAX)
        .map_or(text.to_owned(), |(end, _)| format!("{}…", &text[..end]))
}

fn with_errors(what: String, said: &str) -> String {
    if said.is_empty() { what } else { format!("{what}: {said}") }
}
