//! Pairing of tool calls and results: client tools are answered in the next message, the provider's own tools in the same
//! turn.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::api_error::ApiError;
use super::json_path::JsonPath;
use super::request_view::{BlockTag, CheckedBlock, CheckedMessage, CheckedRole, RequestView};

pub(crate) fn check_pairs(request: &RequestView<'_>) -> Result<(), ApiError> {
    let mut pairs =
        ToolPairs { request, seen: BTreeSet::new(), asked: BTreeMap::new(), open: BTreeMap::new() };
    for message in &request.messages {
        match message.role {
            CheckedRole::User => pairs.user(message)?,
            CheckedRole::Assistant => pairs.assistant(message)?,
            CheckedRole::System => pairs.all_answered(None)?,
        }
    }
    pairs.all_answered(None)
}

/// Returns a decoded string field of a block; empty if it is missing.
fn field<'t>(block: &CheckedBlock<'t>, name: &str) -> Cow<'t, str> {
    block.node.get_text(name).map(|text| text.decoded()).unwrap_or_default()
}

struct ToolPairs<'r, 't> {
    request: &'r RequestView<'t>,
    /// Ids of all calls so far.
    seen: BTreeSet<Cow<'t, str>>,
    /// Positions of the client tool calls in the previous assistant message, by id.
    asked: BTreeMap<Cow<'t, str>, ToolCallPosition>,
    /// Provider tool calls of this turn without a result, by id.
    open: BTreeMap<Cow<'t, str>, OpenServerCall<'t>>,
}

/// Index of a message, and of a block in it.
type ToolCallPosition = (usize, usize);

struct OpenServerCall<'t> {
    place: ToolCallPosition,
    name: Cow<'t, str>,
    result: Cow<'static, str>,
}

impl<'t> ToolPairs<'_, 't> {
    fn assistant(&mut self, message: &CheckedMessage<'t>) -> Result<(), ApiError> {
        self.all_answered(None)?;
        for (index, block) in self.request.blocks(message).iter().enumerate() {
            match block.tag {
                BlockTag::ToolUse => {
                    let id = self.new_id(message, block)?;
                    self.asked.insert(id, (message.index, index));
                }
                BlockTag::ServerToolUse | BlockTag::McpToolUse => {
                    let id = self.new_id(message, block)?;
                    let name = field(block, "name");
                    let result = result_of(block.tag, &name);
                    self.open.insert(id, OpenServerCall { place: (message.index, index), name, result });
                }
                BlockTag::ServerToolResult | BlockTag::McpToolResult => {
                    self.server_result(message, block, index)?
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn new_id(
        &mut self,
        message: &CheckedMessage<'t>,
        block: &CheckedBlock<'t>,
    ) -> Result<Cow<'t, str>, ApiError> {
        let id = field(block, "id");
        if self.seen.insert(id.clone()) {
            return Ok(id);
        }
        let messages = JsonPath::ROOT.key("messages");
        Err(messages.index(message.index).invalid("`tool_use` ids must be unique"))
    }

    fn server_result(
        &mut self,
        message: &CheckedMessage<'t>,
        block: &CheckedBlock<'t>,
        index: usize,
    ) -> Result<(), ApiError> {
        let (id, kind) = (field(block, "tool_use_id"), field(block, "type"));
        if self.open.get(&id).is_some_and(|open| open.result == kind) {
            self.open.remove(&id);
            return Ok(());
        }
        let call = if block.tag == BlockTag::McpToolResult { "mcp_tool_use" } else { "server_tool_use" };
        let messages = JsonPath::ROOT.key("messages");
        let at = messages.index(message.index);
        let at = at.key("content");
        Err(at.index(index).invalid(format_args!(
            "unexpected `tool_use_id` found in `{kind}` blocks: {id}. \
             Each `{kind}` block must have a corresponding `{call}` block before it."
        )))
    }

    fn user(&mut self, message: &CheckedMessage<'t>) -> Result<(), ApiError> {
        let messages = JsonPath::ROOT.key("messages");
        let at = messages.index(message.index);
        let at = at.key("content");
        let request = self.request;
        let knows_calls = !(message.index == 0 && request.continues_thread());
        let mut answered: BTreeSet<Cow<'t, str>> = BTreeSet::new();
        let mut other = false;
        for (index, block) in request.blocks(message).iter().enumerate() {
            match block.tag {
                BlockTag::ToolResult => {}
                BlockTag::CacheEdits => continue,
                _ => {
                    other = true;
                    continue;
                }
            }
            let id = field(block, "tool_use_id");
            if knows_calls && !self.asked.contains_key(&id) {
                return Err(at.index(index).invalid(format_args!(
                    "unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block \
                     must have a corresponding `tool_use` block in the previous message."
                )));
            }
            if other {
                return Err(at
                    .index(index)
                    .invalid("`tool_result` blocks must come before all other content of a `user` message"));
            }
            if !answered.insert(id.clone()) {
                return Err(at.index(index).invalid(format_args!(
                    "each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}"
                )));
            }
        }
        let only_results = message.text.is_none() && !other && !answered.is_empty();
        self.all_answered(Some(&answered))?;
        if only_results { Ok(()) } else { self.none_open() }
    }

    /// Checks that every call of the previous message has a result.
    fn all_answered(&mut self, answered: Option<&BTreeSet<Cow<'t, str>>>) -> Result<(), ApiError> {
        let asked = std::mem::take(&mut self.asked);
        let is_missing = |id: &Cow<'_, str>| answered.is_none_or(|answered| !answered.contains(id));
        let mut missing: Vec<(ToolCallPosition, Cow<'_, str>)> =
            asked.into_iter().filter(|(id, _)| is_missing(id)).map(|(id, place)| (place, id)).collect();
        missing.sort();
        let Some(&((message, _), _)) = missing.first() else { return Ok(()) };
        let ids: Vec<&str> = missing.iter().map(|(_, id)| &**id).collect();
        let error = JsonPath::ROOT.key("messages").index(message).invalid(format_args!(
            "`tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` \
             block must have a corresponding `tool_result` block in the next message.",
            ids.join(", ")
        ));
        let is_summarized = self.request.body.get("compaction").is_some();
        Err(if is_summarized { error.with_code("compaction_incomplete_turn") } else { error })
    }

    /// Checks at the end of a turn that all provider tool calls have a result.
    fn none_open(&self) -> Result<(), ApiError> {
        let Some((id, open)) = self.open.iter().min_by_key(|(_, open)| open.place) else { return Ok(()) };
        let OpenServerCall { place: (message, _), name, result } = open;
        Err(JsonPath::ROOT.key("messages").index(*message).invalid(format_args!(
            "`{name}` tool use with id `{id}` was found without a corresponding `{result}` block"
        )))
    }
}

/// Returns the block type of the result of a provider tool call.
fn result_of(tag: BlockTag, name: &str) -> Cow<'static, str> {
    match name {
        _ if tag == BlockTag::McpToolUse => "mcp_tool_result".into(),
        "tool_search_tool_regex" | "tool_search_tool_bm25" => "tool_search_tool_result".into(),
        name => format!("{name}_tool_result").into(),
    }
}
