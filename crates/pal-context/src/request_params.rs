//! Request parameters that a conversation repeats, and forks: the conversation's own request with a directive
//! at its end (§4.7, §8.2).
//!
//! A fork repeats the request byte for byte, so it reads the conversation's cache entries, and it writes
//! none: its breakpoint stands where the conversation's last one stood.

use pal_model::SharedText;
use pal_view::{CacheTtl, RenderOptions, Request, View};
use smol_str::SmolStr;

use crate::cache::{BreakpointOptions, plan_breakpoints};

/// Parameters that every request of a conversation repeats; a fork without them would miss the cache.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RequestParams {
    /// Top-level members as raw JSON, such as `context_management`.
    pub members: Vec<(SmolStr, SharedText)>,
    /// TTL of the breakpoints.
    pub ttl: CacheTtl,
    /// Sends no breakpoints.
    pub without_breakpoints: bool,
    /// Number of blocks that all forks of the response share from which this conversation branches; 0 if it does not.
    pub shared_blocks: usize,
}

/// Members that may be restored from a log. Thinking is set by the view.
const CARRIED: [&str; 3] = ["output_config", "context_management", "speed"];

/// Validates a member restored from a log, or returns the reason for rejecting it. A log is an untrusted file
/// and must not inject members of its own.
pub fn validate_logged_member(name: &str, value: &str) -> Result<(SmolStr, SharedText), &'static str> {
    if !CARRIED.contains(&name) {
        return Err("this member is not restored from a log");
    }
    match serde_json::from_str::<serde::de::IgnoredAny>(value) {
        Ok(_) => Ok((SmolStr::new(name), SharedText::from(value))),
        Err(_) => Err("it is not complete JSON"),
    }
}

impl RequestParams {
    /// Removes the rest of a task budget, which the provider refuses beside a request for a summary.
    pub(crate) fn drop_remaining_budget(&mut self) {
        for (name, value) in &mut self.members {
            let Ok(mut config) = serde_json::from_str::<serde_json::Value>(value) else { continue };
            let budget = config.get_mut("task_budget").and_then(serde_json::Value::as_object_mut);
            if name == "output_config"
                && budget.is_some_and(|budget| budget.shift_remove("remaining").is_some())
            {
                *value = SharedText::from(config.to_string());
            }
        }
    }

    /// Builds a request of the conversation with its parameters and breakpoints.
    pub fn request(&self, view: &View, options: RenderOptions) -> Request {
        self.finished(view.render(options), view, false)
    }

    /// Builds a fork of the conversation.
    pub fn fork(&self, view: &View, options: RenderOptions, directive: &str) -> Request {
        self.finished(view.fork(options, directive), view, true)
    }

    /// Builds the conversation's last request once more, without a directive.
    pub fn repeated(&self, view: &View, options: RenderOptions) -> Request {
        self.finished(view.render(options), view, true)
    }

    fn finished(&self, request: Request, view: &View, is_fork: bool) -> Request {
        let request =
            self.members.iter().fold(request, |request, (name, value)| request.with_member(name, value));
        let request = if is_fork { request } else { request.with_shared_blocks(self.shared_blocks) };
        if self.without_breakpoints {
            return request;
        }
        let marks =
            plan_breakpoints(&request, &view.lens().card, BreakpointOptions { ttl: self.ttl, is_fork });
        request.with_breakpoints(marks)
    }
}
