//! Lines of JSON output: their common members, and results.

use std::io::Write;

use pal_events::{ExchangeReport, NO_STRUCTURED_OUTPUT, PromptResult, SessionInfo, ToolDenial};
use pal_model::{IdSource, ModelCatalog, Timestamp, UsageTotals, escape_into};
use serde_json::{Value, json};

use super::model_usage::ModelUsage;
use super::output_format::error_of;
use crate::failure::Failure;

/// Writes one JSON object per line, each with the session id and an id of its own.
pub(crate) struct JsonLines<'a> {
    out: &'a mut dyn Write,
    ids: IdSource,
    now: fn() -> Timestamp,
    session: String,
    /// Turn limit of the run, which has a result subtype of its own.
    turns_max: Option<u64>,
    /// Warnings for results.
    warnings: Vec<String>,
    /// Usage by model, for results.
    models: ModelUsage,
}

impl<'a> JsonLines<'a> {
    /// Ids of lines that are not log entries derive from `seed` and the time.
    pub(crate) fn new(
        out: &'a mut dyn Write,
        seed: u64,
        now: fn() -> Timestamp,
        turns_max: Option<u64>,
        cards: ModelCatalog,
    ) -> JsonLines<'a> {
        JsonLines {
            out,
            ids: IdSource::seeded(seed),
            now,
            session: String::new(),
            turns_max,
            warnings: Vec::new(),
            models: ModelUsage::new(cards),
        }
    }

    /// Sets the session of the lines that follow.
    pub(super) fn set_session(&mut self, began: &SessionInfo) {
        self.session.clone_from(&began.session_id);
    }

    /// Adds an exchange to the usage of later results.
    pub(super) fn count(&mut self, report: &ExchangeReport) {
        self.models.add(report);
    }

    /// Adds a warning to later results.
    pub(super) fn warn(&mut self, text: &str) {
        self.warnings.push(text.to_owned());
    }

    /// New id for a line that is not a log entry.
    pub(super) fn id(&mut self) -> String {
        self.ids.next_id((self.now)()).to_string()
    }

    /// Adds the session id and a line id to an object, writes it and flushes.
    pub(super) fn write(&mut self, mut object: Value) -> Result<(), Failure> {
        object["session_id"] = json!(self.session);
        object["uuid"] = json!(self.id());
        self.write_text(&object.to_string())
    }

    /// Writes a finished line and flushes.
    pub(super) fn write_text(&mut self, line: &str) -> Result<(), Failure> {
        // One write, so that lines of other threads do not mix with it.
        self.out.write_all(format!("{line}\n").as_bytes())?;
        Ok(self.out.flush()?)
    }

    /// Last members of a line: the session id and the entry id.
    pub(super) fn tail(&self, entry: &pal_model::LogEntry) -> String {
        let parent = entry.parent.map_or(Value::Null, |parent| json!(parent));
        let mut session = String::new();
        escape_into(&mut session, &self.session);
        format!(
            r#""parent_tool_use_id":null,"parent_uuid":{parent},"session_id":{session},"uuid":"{}"}}"#,
            entry.id
        )
    }

    /// Writes the result of a prompt.
    pub(super) fn result(&mut self, ended: &PromptResult) -> Result<(), Failure> {
        let mut object = json!({
            "type": "result",
            "subtype": subtype(ended, self.turns_max),
            "is_error": error_of(&ended.end).is_some(),
            "result": ended.text,
            "error": error_of(&ended.end),
            "errors": error_of(&ended.end).into_iter().collect::<Vec<_>>(),
            "num_turns": ended.turns,
            "duration_ms": milliseconds(ended.took),
            "duration_api_ms": milliseconds(ended.took_provider),
            "total_cost_usd": ended.spent.is_reported().then_some(ended.spent.cost),
            "usage": usage(&ended.spent),
            "modelUsage": self.models.to_json(),
            "permission_denials": ended.denials.iter().map(denial).collect::<Vec<_>>(),
        });
        if let Some(output) = &ended.structured_output {
            object["structured_output"] = json_or_string(output);
        }
        self.write(self.with_warnings(object))
    }

    /// Writes a failure outside of a prompt as a result.
    pub(super) fn failure(&mut self, failure: &Failure) -> Result<(), Failure> {
        let what = failure.to_string();
        let what = what.strip_prefix("pal: ").unwrap_or(&what);
        let object = json!({
            "type": "result", "subtype": "error_during_execution", "is_error": true, "result": "",
            "error": what, "errors": [what], "num_turns": 0, "duration_ms": 0, "modelUsage": self.models.to_json(),
            "duration_api_ms": 0, "total_cost_usd": 0.0, "usage": usage(&UsageTotals::default()),
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

/// Result subtype by the end of a prompt.
fn subtype(ended: &PromptResult, turns_max: Option<u64>) -> &'static str {
    use pal_events::PromptEnd;
    match &ended.end {
        PromptEnd::Done => "success",
        PromptEnd::Refused(_) => "error_refused",
        PromptEnd::Limit(_) if turns_max.is_some_and(|most| ended.turns >= most) => "error_max_turns",
        PromptEnd::Limit(_) => "error_limit",
        PromptEnd::Interrupted => "error_interrupted",
        PromptEnd::Failed(why) if why == NO_STRUCTURED_OUTPUT => "error_max_structured_output_retries",
        PromptEnd::Failed(_) => "error_during_execution",
    }
}

/// Sums of the usage; null if the server reports none.
pub(super) fn usage(spent: &UsageTotals) -> Value {
    if !spent.is_reported() {
        return Value::Null;
    }
    json!({
        "input_tokens": spent.input_tokens,
        "cache_creation_input_tokens": spent.cache_creation_input_tokens,
        "cache_read_input_tokens": spent.cache_read_input_tokens,
        "output_tokens": spent.output_tokens,
    })
}

fn denial(denial: &ToolDenial) -> Value {
    json!({
        "tool_name": denial.tool_name,
        "tool_use_id": denial.tool_use_id,
        "tool_input": json_or_string(&denial.tool_input),
        "reason": denial.reason,
        "rule": denial.rule,
    })
}

/// Parses JSON; a text that is not JSON stays a string.
pub(super) fn json_or_string(raw: &str) -> Value {
    serde_json::from_str(raw).unwrap_or_else(|_| json!(raw))
}

/// Duration in whole milliseconds.
pub(super) fn milliseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
