//! What one hook said: by its exit code, as text, as JSON.

use pal_process::{Captured, Finished, Status, Stopped};
use serde_json::{Map, Value};

use crate::event::EventName;
use crate::said::Permission;

/// The exit code that blocks.
const BLOCKS: i32 = 2;
/// Characters of an error that are told.
const TOLD_MOST: usize = 2_000;

/// What one hook said.
#[derive(Default)]
pub(crate) struct Answer {
    pub(crate) blocked: Option<String>,
    pub(crate) permission: Option<(Permission, String)>,
    pub(crate) updated_input: Option<Value>,
    pub(crate) updated_output: Option<Value>,
    pub(crate) context: Option<String>,
    pub(crate) system_message: Option<String>,
    pub(crate) stop: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) failures: Vec<String>,
}

impl Answer {
    /// A hook that could not say anything.
    pub(crate) fn failed(what: impl Into<String>) -> Answer {
        Answer { failures: vec![what.into()], ..Answer::default() }
    }

    /// Reads what a hook left.
    pub(crate) fn read(event: EventName, finished: &Finished) -> Answer {
        match finished.stopped {
            Some(Stopped::TimedOut) => {
                let seconds = finished.took.as_secs_f64();
                return Answer::failed(format!(
                    "it took longer than its limit and was ended after {seconds:.1} s"
                ));
            }
            Some(Stopped::Cancelled) => return Answer::failed("it was interrupted"),
            None => {}
        }
        let mut answer = Answer::default();
        let text = String::from_utf8_lossy(&finished.output.head);
        let text = text.trim();
        if text.starts_with('{') {
            answer.read_json(event, text, finished.output.left_out > 0);
        } else if finished.status == Status::Exited(0) && event.takes_text() && !text.is_empty() {
            answer.context = Some(text.to_owned());
            if finished.output.left_out > 0 {
                answer.failures.push("it printed too much; only the beginning counts".to_owned());
            }
        }
        answer.read_status(event, finished.status, &finished.errors);
        answer
    }

    /// The exit code. It counts more than what JSON says.
    fn read_status(&mut self, event: EventName, status: Status, errors: &Captured) {
        let said = told(errors);
        match status {
            Status::Exited(0) => {}
            Status::Exited(BLOCKS) if event.can_block() => {
                let reason =
                    if said.is_empty() { "a hook blocks it and says no more".to_owned() } else { said };
                self.blocked = Some(reason);
                (self.permission, self.updated_input) = (None, None);
            }
            Status::Exited(code) => self.failures.push(with_errors(format!("it exited with {code}"), &said)),
            Status::Signalled(signal) => {
                self.failures.push(with_errors(format!("it was ended by signal {signal}"), &said));
            }
            Status::Unknown => self.failures.push("nobody knows how it ended".to_owned()),
        }
    }

    fn read_json(&mut self, event: EventName, text: &str, is_cut: bool) {
        if is_cut {
            self.failures.push("it printed too much JSON, which is ignored".to_owned());
            return;
        }
        let output: Map<String, Value> = match serde_json::from_str(text) {
            Ok(output) => output,
            Err(error) => {
                self.failures.push(format!("what it printed begins like JSON and is none: {error}"));
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
            Some(_) => self.failures.push("hookSpecificOutput is no JSON object".to_owned()),
        }
    }

    /// The decision that all events share; for a call, the older spelling of a permission.
    fn read_decision(&mut self, event: EventName, decision: &str, reason: Option<String>) {
        let reason = reason.unwrap_or_default();
        match (decision, event) {
            ("block", EventName::PreToolUse) => self.permission = Some((Permission::Deny, reason)),
            ("approve", EventName::PreToolUse) => self.permission = Some((Permission::Allow, reason)),
            ("block", event) if event.can_block() => self.blocked = Some(reason),
            ("approve", _) => {}
            (other, event) => {
                self.failures.push(format!("{} knows no decision {other:?}", event.name()));
            }
        }
    }

    fn read_specific(&mut self, event: EventName, specific: &Map<String, Value>) {
        if let Some(name) = self.text(specific, "hookEventName").filter(|name| name != event.name()) {
            self.failures.push(format!("it answered {name} when {} happened; that is ignored", event.name()));
            return;
        }
        // Before a compaction text on standard output is the way to say something.
        if event != EventName::PreCompact {
            self.context = self.text(specific, "additionalContext").filter(|context| !context.is_empty());
        }
        match event {
            EventName::PreToolUse => self.read_permission(specific),
            EventName::PostToolUse => {
                self.updated_output = specific.get("updatedToolOutput").filter(|new| !new.is_null()).cloned();
            }
            EventName::SessionStart | EventName::UserPromptSubmit => {
                self.title = self.text(specific, "sessionTitle").filter(|title| !title.trim().is_empty());
            }
            _ => {}
        }
    }

    fn read_permission(&mut self, specific: &Map<String, Value>) {
        let reason = self.text(specific, "permissionDecisionReason").unwrap_or_default();
        let decision = self.text(specific, "permissionDecision");
        match decision.as_deref() {
            Some("allow") => self.permission = Some((Permission::Allow, reason)),
            Some("ask") => self.permission = Some((Permission::Ask, reason)),
            Some("deny") => self.permission = Some((Permission::Deny, reason)),
            None | Some("defer") => {}
            Some(other) => self.failures.push(format!("there is no permissionDecision {other:?}")),
        }
        match specific.get("updatedInput") {
            None | Some(Value::Null) => {}
            Some(input @ Value::Object(_)) => self.updated_input = Some(input.clone()),
            Some(_) => self.failures.push("updatedInput is no JSON object".to_owned()),
        }
    }

    /// A member that is a text; anything else in its place is told of.
    fn text(&mut self, table: &Map<String, Value>, name: &str) -> Option<String> {
        match table.get(name) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => {
                self.failures.push(format!("{name} is no text"));
                None
            }
        }
    }
}

/// What a hook printed to its second output, shortened.
fn told(errors: &Captured) -> String {
    let text = errors.text();
    let text = text.trim();
    text.char_indices().nth(TOLD_MOST).map_or(text.to_owned(), |(end, _)| format!("{}…", &text[..end]))
}

fn with_errors(what: String, said: &str) -> String {
    if said.is_empty() { what } else { format!("{what}: {said}") }
}
