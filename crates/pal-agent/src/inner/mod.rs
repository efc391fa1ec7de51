//! Tools that look into the session itself: what was said, how full the window is, which tools there are.

pub(crate) mod context;
pub(crate) mod recall;

use pal_engine::{Engine, Session};
use pal_model::{Block, Body, DecisionKind, ToolUseId};
use pal_prompt::{CALL_TOOL, TOOL_SEARCH};
use pal_session::{Call, Returned};
use pal_view::View;

use crate::desk::Desk;

/// The tools that are carried out here.
const RECALL: &str = "Recall";
const CONTEXT: &str = "Context";

/// Whether a tool looks into the session itself.
pub(crate) fn is_inner(name: &str) -> bool {
    matches!(name, RECALL | CONTEXT | TOOL_SEARCH | CALL_TOOL)
}

impl Desk<'_> {
    /// Carries such a call out.
    pub(crate) fn look_inside(&mut self, session: &mut Session, engine: &Engine, call: &Call) -> Returned {
        let done = match call.name.as_str() {
            RECALL => recall::recall(&self.log, &call.input, self.clock.now(), &self.handle.cancel())
                .map(|text| vec![Block::text(&text)]),
            CONTEXT => self.tell_context(session, engine, call).map(|text| vec![Block::text(&text)]),
            TOOL_SEARCH => self.search_tools(session, call),
            _ => Err(String::from(
                "CallTool calls tools that ToolSearch found. There are none here that cannot be called by their own name.",
            )),
        };
        let is_error = done.is_err();
        let content = done.unwrap_or_else(|why| vec![Block::text(&why)]);
        Returned::plain(&call.id, content, is_error)
    }

    fn tell_context(&mut self, session: &Session, engine: &Engine, call: &Call) -> Result<String, String> {
        let wanted: context::Wanted =
            serde_json::from_str(&call.input).map_err(|error| format!("the input does not fit: {error}"))?;
        let text = context::told(session.view(), &engine.limits, &wanted);
        if wanted.compact {
            self.wishes_compaction = Some(wanted.instructions);
        }
        Ok(text)
    }

    fn search_tools(&mut self, session: &Session, call: &Call) -> Result<Vec<Block>, String> {
        let input = pal_tools::Input(call.input.clone());
        let query = input.text("query").ok_or("give a `query`: what the tool shall do")?;
        self.look_at_servers(session);
        // Who names tools wants all of them; otherwise one that fits is enough.
        let wanted = query.trim().strip_prefix("select:").map_or(1, |names| names.split(',').count());
        while self.catalogue.search(&query).len() < wanted && self.served.await_one(&self.handle.cancel()) {
            self.look_at_servers(session);
        }
        let found = self.catalogue.search(&query);
        let mut blocks = self.catalogue.found(&self.card, &found).blocks().to_vec();
        if found.is_empty() {
            blocks.extend(self.served.missing().map(|text| Block::text(&text)));
        }
        Ok(blocks)
    }
}

/// Whether the model still sees the result of a call as it came.
pub(crate) fn is_in_sight(view: &View, call: &ToolUseId) -> bool {
    let Some(shown) = view.result(call) else { return false };
    let is_whole = !shown.is_cleared && !shown.is_deleted && shown.spilled_to.is_none();
    is_whole && !is_cleared_by_provider(view, call)
}

/// Whether the provider has cleared something since: it does not say what, only that it begins with the oldest.
fn is_cleared_by_provider(view: &View, call: &ToolUseId) -> bool {
    let since = view.branch().iter().rev().take_while(|entry| match &entry.body {
        Body::User(user) => !user.content.blocks().iter().any(|block| block.tool_use_id() == Some(call)),
        _ => true,
    });
    let mut since = since;
    since.any(|entry| matches!(entry.decision(), Some(DecisionKind::ProviderClear { .. })))
}
