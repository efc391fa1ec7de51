//! Hooks that are functions of the program that drives this one.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pal_process::CancelToken;
use serde_json::Value;

use crate::event_name::HookEventName;
use crate::hook_answer::HookAnswer;

/// The program that drives this one and answers hook events itself.
pub trait HookHost: fmt::Debug + Send + Sync {
    /// Calls a function of the host with an event as JSON. Returns its answer as a JSON object; blocks until then, at
    /// most for `limit`.
    fn call(
        &self,
        callback: &str,
        input: &str,
        tool_use_id: Option<&str>,
        limit: Duration,
        cancel: &CancelToken,
    ) -> Result<String, String>;
}

/// A function of the host.
#[derive(Clone, Debug)]
pub struct HookCallback {
    /// Id that the host gave it.
    pub id: String,
    /// The host.
    pub host: Arc<dyn HookHost>,
    /// True to block the event if the function fails or does not answer in time.
    pub blocks_on_failure: bool,
}

impl PartialEq for HookCallback {
    fn eq(&self, other: &HookCallback) -> bool {
        (&self.id, self.blocks_on_failure) == (&other.id, other.blocks_on_failure)
    }
}

impl Eq for HookCallback {}

impl HookCallback {
    /// Calls the function and parses its answer.
    pub(crate) fn answer(
        &self,
        event: HookEventName,
        input: &str,
        limit: Duration,
        cancel: &CancelToken,
    ) -> HookAnswer {
        let fields: Value = serde_json::from_str(input).unwrap_or_default();
        let tool_use_id = fields.get("tool_use_id").and_then(Value::as_str);
        match self.host.call(&self.id, input, tool_use_id, limit, cancel) {
            Ok(text) => HookAnswer::of_json(event, &text),
            Err(why) if self.blocks_on_failure && event.can_block() => {
                HookAnswer::blocked(format!("a guard failed, and nothing passes without it: {why}"))
            }
            Err(why) => HookAnswer::failed(why),
        }
    }
}
