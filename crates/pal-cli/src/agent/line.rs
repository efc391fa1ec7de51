//! Lines of JSON: what they have in common, and how content goes into them as it stands in the log.

use std::io::Write;

use pal_agent::{Began, Denial, Ended};
use pal_model::{IdSource, Timestamp, Totals, escape_into};
use serde_json::{Value, json};

use super::error_of;
use crate::failure::Failure;

/// Writes objects of JSON, one a line, each with the session's id and an id of its own.
pub(crate) struct Lines<'a> {
    out: &'a mut dyn Write,
    ids: IdSource,
    now: fn() -> Timestamp,
    session: String,
    /// The most turns that were allowed: ending at them is told apart from other limits.
    turns_max: Option<u64>,
    /// What the user must know of the session, for results.
    warnings: Vec<String>,
}

impl<'a> Lines<'a> {
    /// Ids of lines that are no entries of the log follow from `seed` and the time.
    pub(crate) fn new(
        out: &'a mut dyn Write,
        seed: u64,
        now: fn() -> Timestamp,
        turns_max: Option<u64>,
    ) -> Lines<'a> {
        Lines {
            out,
            ids: IdSource::seeded(seed),
            now,
            session: String::new(),
            turns_max,
            warnings: Vec::new(),
        }
    }

    /// The lines that follow belong to this session.
    pub(super) fn belong_to(&mut self, began: &Began) {
        self.session.clone_from(&began.session_id);
    }

    /// Adds a warning to the results that follow.
    pub(super) fn warn(&mut self, text: &str) {
        self.warnings.push(text.to_owned());
    }

    /// An id for a line that is no entry of the log.
    pub(super) fn id(&mut self) -> String {
        self.ids.next_id((self.now)()).to_string()
    }

    /// Writes an object with the session's id and an id, and flushes: whoever reads it acts on it.
    pub(super) fn write(&mut self, mut object: Value) -> Result<(), Failure> {
        object["session_id"] = json!(self.session);
        object["uuid"] = json!(self.id());
        self.write_text(&object.to_string())
    }

    /// Writes a line that is spelled already.
    pub(super) fn write_text(&mut self, line: &str) -> Result<(), Failure> {
        writeln!(self.out, "{line}")?;
        Ok(self.out.flush()?)
    }

    /// The members that end a line: the session's id and the id of the entry.
    pub(super) fn tail(&self, entry: &pal_model::Entry) -> String {
        let parent = entry.parent.map_or(Value::Null, |parent| json!(parent));
        let mut session = String::new();
        escape_into(&mut session, &self.session);
        format!(
            r#""parent_tool_use_id":null,"parent_uuid":{parent},"session_id":{session},"uuid":"{}"}}"#,
            entry.id
        )
    }

    /// How a prompt ended.
    pub(super) fn result(&mut self, ended: &Ended) -> Result<(), Failure> {
        let object = json!({
            "type": "result",
            "subtype": subtype(ended, self.turns_max),
            "is_error": error_of(&ended.end).is_some(),
            "result": ended.text,
            "error": error_of(&ended.end),
            "num_turns": ended.turns,
            "duration_ms": milliseconds(ended.took),
            "duration_api_ms": milliseconds(ended.took_provider),
            "total_cost_usd": ended.spent.cost,
            "usage": usage(&ended.spent),
            "permission_denials": ended.denials.iter().map(denial).collect::<Vec<_>>(),
        });
        self.write(self.with_warnings(object))
    }

    /// A failure that came before or after all prompts, in the form of a result.
    pub(super) fn failure(&mut self, failure: &Failure) -> Result<(), Failure> {
        let what = failure.to_string();
        let object = json!({
            "type": "result", "subtype": "error_during_execution", "is_error": true, "result": "",
            "error": what.strip_prefix("pal: ").unwrap_or(&what), "num_turns": 0, "duration_ms": 0,
            "duration_api_ms": 0, "total_cost_usd": 0.0, "usage": usage(&Totals::default()),
            "permission_denials": [],
        });
        self.write(self.with_warnings(object))
    }

    fn with_warnings(&self, mut object: Value) -> Value {
        if !self.warnings.is_empty() {
            object["warnings"] = json!(self.warnings);
        }
        object
    }
}

/// How a prompt ended, in a word.
fn subtype(ended: &Ended, turns_max: Option<u64>) -> &'static str {
    use pal_agent::End;
    match &ended.end {
        End::Done => "success",
        End::Refused(_) => "error_refused",
        End::Limit(_) if turns_max.is_some_and(|most| ended.turns >= most) => "error_max_turns",
        End::Limit(_) => "error_limit",
        End::Interrupted => "error_interrupted",
        End::Failed(_) => "error_during_execution",
    }
}

fn usage(spent: &Totals) -> Value {
    json!({
        "input_tokens": spent.input_tokens,
        "cache_creation_input_tokens": spent.cache_creation_input_tokens,
        "cache_read_input_tokens": spent.cache_read_input_tokens,
        "output_tokens": spent.output_tokens,
    })
}

fn denial(denial: &Denial) -> Value {
    json!({
        "tool_name": denial.tool_name,
        "tool_use_id": denial.tool_use_id,
        "tool_input": read(&denial.tool_input),
        "reason": denial.reason,
        "rule": denial.rule,
    })
}

/// JSON that somebody else wrote; what is none stays a string.
pub(super) fn read(raw: &str) -> Value {
    serde_json::from_str(raw).unwrap_or_else(|_| json!(raw))
}

/// Whole milliseconds.
pub(super) fn milliseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
