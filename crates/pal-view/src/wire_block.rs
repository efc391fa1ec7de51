//! Cleaning of one block of the log for the wire.
//!
//! A block that the provider accepts goes out unchanged, byte for byte. Any other is rebuilt from the fields
//! that the provider knows, or becomes text, so that no content is lost; only thinking that cannot be sent
//! back, and empty text, are dropped. The result depends on the block, the card and the session's tools
//! alone, so it is computed once, when the block's entry is appended.
//!
//! The source of a text decides what it may contain (§6.4). Only the program speaks for the system, by its
//! attachments and by the prefix. Text typed by people and text of the model goes verbatim: neither can be
//! mistaken for the system. Everything else is content, in which guarded tags are escaped; so are tool
//! results, documents and search results from any source. So a reminder is always an attachment, never a text
//! that looks like one. Results of tools that the provider runs are the provider's own and go back unchanged.

use std::borrow::Cow;

use pal_model::{
    BlockType, ContentBlock, ModelCard, Role, SharedText, ToolUseId, escape_reminder_tags, escape_tags,
    escape_tags_in_json, has_lone_surrogate, object_fields, replace_lone_surrogates, unescape,
    unwrap_reminder, wrap_reminder,
};
use smol_str::SmolStr;
use xxhash_rust::xxh3::xxh3_64;

use crate::estimate::Estimator;
use crate::json_object::{JsonObject, as_text, text_block};
use crate::media_blocks;

/// A block cleaned for the wire.
#[derive(Clone, Debug)]
pub(crate) struct WireBlock {
    pub(crate) part: WireBlockKind,
    pub(crate) text: SharedText,
    pub(crate) tokens: f64,
}

/// Kind of a cleaned block, for the order and pairing of blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum WireBlockKind {
    Text,
    /// Text of the program, inside reminder tags.
    Reminder,
    /// Image, document or search result, by its type.
    Media(BlockType),
    Thinking,
    Call(ToolUseId),
    Result(ToolUseId),
    /// Call of a tool that the provider runs, and the type of the block that answers it.
    ServerCall(ToolUseId, BlockType),
    /// The answer to such a call, and its type.
    ServerResult(ToolUseId, BlockType),
    /// Results to be deleted from the provider's cache.
    Edits,
}

/// Authority of a block's text: decides what it may contain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TextAuthority {
    /// The program, speaking for the system: its text becomes a reminder.
    System,
    /// A person or the model: their text is kept verbatim. Other blocks that a person adds are content.
    Own(Role),
    /// Tools, files, other agents, and summaries of those: content.
    Content,
}

/// Cleans blocks for one model and one set of tools.
#[derive(Clone, Copy)]
pub(crate) struct BlockCleaner<'a> {
    pub(crate) card: &'a ModelCard,
    pub(crate) estimator: &'a Estimator,
    /// Tools that a result may refer to.
    pub(crate) tools: &'a [ReferableTool],
}

/// A tool in the session's prefix, which the provider expands where a result refers to it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ReferableTool {
    pub(crate) name: SmolStr,
    /// Tokens of its definition; 0 if the prefix already holds it.
    pub(crate) tokens: f64,
}

/// Deeper JSON than this is sent as a string: readers with a depth limit refuse it.
const DEPTH_MAX: usize = 100;

impl BlockCleaner<'_> {
    /// Cleans a block under the rules of its authority; `None` if nothing is left to send.
    pub(crate) fn encode_block(self, block: &ContentBlock, authority: TextAuthority) -> Option<WireBlock> {
        match authority {
            TextAuthority::Own(Role::Assistant) => self.clean(block, Role::Assistant),
            TextAuthority::Own(role) if block.kind() == BlockType::Text => self.clean(block, role),
            TextAuthority::System if block.kind() == BlockType::Text => {
                Some(self.reminding(self.clean(block, Role::User)?))
            }
            TextAuthority::System => Some(self.reminding(self.content(block)?)),
            // A person types text; any other block is a file or a result that was handed over.
            TextAuthority::Own(_) | TextAuthority::Content => self.content(block),
        }
    }

    /// Cleans a content block and escapes its guarded tags.
    fn content(self, block: &ContentBlock) -> Option<WireBlock> {
        // A block that the provider sealed and accepts back is opaque.
        let is_opaque = block.kind() == BlockType::Compaction && self.takes_extra(Some("compaction"));
        // Results escape their content themselves: their ids must stay unchanged.
        if is_opaque || block.kind() == BlockType::ToolResult {
            return self.clean(block, Role::User);
        }
        match escape_tags_in_json(block.raw()) {
            Cow::Borrowed(_) => self.clean(block, Role::User),
            Cow::Owned(defused) => self.clean(&ContentBlock::parse(SharedText::from(defused)), Role::User),
        }
    }

    /// Wraps text of the program in exactly one pair of reminder tags.
    fn reminding(self, clean: WireBlock) -> WireBlock {
        let said = (clean.part == WireBlockKind::Text).then(|| visible_text(&clean)).flatten();
        let Some(said) = said else { return clean };
        let inside = unwrap_reminder(&said);
        match (inside, escape_reminder_tags(inside.unwrap_or(&said))) {
            (Some(_), Cow::Borrowed(_)) => WireBlock { part: WireBlockKind::Reminder, ..clean },
            (_, inside) => {
                let text = wrap_reminder(&inside);
                let tokens = self.estimator.text(&text);
                WireBlock { part: WireBlockKind::Reminder, text: text_block(&text), tokens }
            }
        }
    }

    /// Removes the tags of a reminder, for a message of the system.
    pub(crate) fn unwrapped(self, reminder: &WireBlock) -> WireBlock {
        let said = visible_text(reminder).unwrap_or_default();
        match unwrap_reminder(&said).filter(|inside| !inside.trim().is_empty()) {
            Some(inside) => {
                let (text, tokens) = (text_block(inside), self.estimator.text(inside));
                WireBlock { part: WireBlockKind::Reminder, text, tokens }
            }
            None => reminder.clone(),
        }
    }

    /// Cleans a block for a message of `role`, its text unchanged; `None` if nothing is left to send.
    pub(crate) fn clean(self, block: &ContentBlock, role: Role) -> Option<WireBlock> {
        let Some(known) = block.fields().map(JsonObject) else { return Some(self.plain(block)) };
        if role == Role::Assistant { self.model_block(block, &known) } else { self.user_block(block, &known) }
    }

    fn model_block(self, block: &ContentBlock, known: &JsonObject<'_>) -> Option<WireBlock> {
        match block.kind() {
            BlockType::Text => self.text(block, known, Role::Assistant),
            BlockType::Thinking | BlockType::RedactedThinking => self.thinking(block, known),
            BlockType::Reasoning => self.reasoning(block),
            BlockType::ToolUse => Some(self.call(block, known)),
            // The adviser is an internal matter of the provider's client.
            BlockType::ServerToolUse if known.string("name").as_deref() == Some("advisor") => None,
            BlockType::ServerToolUse => Some(self.server_call(block, known)),
            BlockType::WebSearchToolResult
            | BlockType::WebFetchToolResult
            | BlockType::CodeExecutionToolResult
            | BlockType::BashCodeExecutionToolResult
            | BlockType::TextEditorCodeExecutionToolResult
            | BlockType::ToolSearchToolResult => Some(self.server_result(block, known)),
            BlockType::AdvisorToolResult => None,
            BlockType::Compaction => self.summary_as_text(block, known),
            _ => Some(self.plain(block)),
        }
    }

    fn user_block(self, block: &ContentBlock, known: &JsonObject<'_>) -> Option<WireBlock> {
        match block.kind() {
            BlockType::Text => self.text(block, known, Role::User),
            BlockType::ToolResult => Some(self.result(block, known)),
            BlockType::Image | BlockType::Document | BlockType::SearchResult => {
                Some(self.media(block, known))
            }
            BlockType::Compaction => self.summary_as_text(block, known),
            _ => Some(self.plain(block)),
        }
    }

    /// Cleans the provider's own summary block to open the messages; `None` if this provider cannot read it.
    pub(crate) fn opening_summary(self, block: &ContentBlock) -> Option<WireBlock> {
        const FIELDS: [&str; 4] = ["type", "content", "signature", "tool_changes"];
        let known = block.fields().map(JsonObject).filter(|_| block.kind() == BlockType::Compaction)?;
        let content = known.string("content").filter(|text| !text.trim().is_empty())?;
        let is_signed = known.string("signature").is_some_and(|signature| !signature.is_empty());
        // Signed blocks are sent back unchanged.
        let is_whole = is_signed
            && known.is_exact(|name| FIELDS.contains(&name))
            && known.get("tool_changes").is_none_or(is_list_of_objects)
            && is_shallow(block.raw())
            && !has_lone_surrogate(block.raw());
        (is_whole && self.card.can.provider_compaction).then(|| WireBlock {
            part: WireBlockKind::Text,
            text: block.raw().clone(),
            tokens: self.estimator.text(&content),
        })
    }

    /// Converts the provider's own summary to text, where the block itself is not allowed. An empty one was a
    /// failure.
    fn summary_as_text(self, block: &ContentBlock, known: &JsonObject<'_>) -> Option<WireBlock> {
        if self.takes_extra(Some("compaction")) {
            return Some(self.plain(block));
        }
        match known.string("content") {
            Some(content) if content.trim().is_empty() => None,
            Some(content) => {
                let text = format!("# Summary\n\n{}", content.trim());
                Some(WireBlock {
                    part: WireBlockKind::Text,
                    tokens: self.estimator.text(&text),
                    text: text_block(&text),
                })
            }
            None if known.get("content") == Some("null") => None,
            None => Some(self.plain(block)),
        }
    }

    fn text(self, block: &ContentBlock, known: &JsonObject<'_>, role: Role) -> Option<WireBlock> {
        let Some(text) = known.string("text") else { return Some(self.plain(block)) };
        if text.trim().is_empty() {
            return None;
        }
        let cited = role == Role::Assistant && known.get("citations").is_some_and(is_citations);
        let allowed: &[&str] = if cited { &["type", "text", "citations"] } else { &["type", "text"] };
        let tokens = self.estimator.text(&text);
        Some(WireBlock {
            part: WireBlockKind::Text,
            text: self.keep_members(block.raw(), known, allowed),
            tokens,
        })
    }

    /// Thinking goes back as it came or not at all.
    fn thinking(self, block: &ContentBlock, known: &JsonObject<'_>) -> Option<WireBlock> {
        let filled = |name| known.string(name).is_some_and(|text| !text.is_empty());
        let (allowed, whole): (&[&str], bool) = match block.kind() {
            BlockType::Thinking => (
                &["type", "thinking", "signature"],
                known.string("thinking").is_some() && filled("signature"),
            ),
            _ => (&["type", "data"], filled("data")),
        };
        let raw = block.raw();
        if !self.card.thinking.is_supported()
            || !whole
            || !self.is_exact(known, allowed)
            || has_lone_surrogate(raw)
        {
            return None;
        }
        Some(WireBlock {
            part: WireBlockKind::Thinking,
            text: raw.clone(),
            tokens: self.thinking_tokens(known),
        })
    }

    /// Reasoning of another dialect goes back as it came, or not at all.
    fn reasoning(self, block: &ContentBlock) -> Option<WireBlock> {
        let raw = block.raw();
        if !self.takes_extra(Some("reasoning")) || !is_shallow(raw) || has_lone_surrogate(raw) {
            return None;
        }
        Some(WireBlock { part: WireBlockKind::Thinking, text: raw.clone(), tokens: self.estimator.json(raw) })
    }

    /// Hidden thinking shows only as a signature, whose length grows with what it hides.
    fn thinking_tokens(self, known: &JsonObject<'_>) -> f64 {
        match known.string("thinking") {
            Some(thinking) if !thinking.is_empty() => self.estimator.text(&thinking),
            _ => {
                let hidden = known.get("signature").or(known.get("data")).map_or(0, str::len);
                hidden as f64 * 3.0 / 16.0
            }
        }
    }

    fn call(self, block: &ContentBlock, known: &JsonObject<'_>) -> WireBlock {
        let Some(id) = block.tool_use_id().filter(|id| !id.as_str().is_empty()) else {
            return self.plain(block);
        };
        let name = known.string("name").unwrap_or_default();
        let input = known.get("input").unwrap_or("{}");
        let tokens = self.estimator.call(&name, input);
        let (wire_id, wire_name, wire_input) = (wire_id(id), wire_name(&name), wire_input(input));
        let exact = wire_id == id.as_str() && wire_name == name && known.get("input") == Some(&wire_input);
        let text = if exact {
            let in_toolset = known.string("toolset_name").is_some();
            let allowed: &[&str] = &["type", "id", "name", "input", "toolset_name"];
            self.keep_members(block.raw(), known, if in_toolset { allowed } else { &allowed[..4] })
        } else {
            let mut object = crate::json_object::BlockBuilder::of_type("tool_use");
            object.string("id", &wire_id);
            object.string("name", &wire_name);
            object.raw("input", &replace_lone_surrogates(&wire_input));
            object.finish()
        };
        WireBlock { part: WireBlockKind::Call(id.clone()), text, tokens }
    }

    fn server_call(self, block: &ContentBlock, known: &JsonObject<'_>) -> WireBlock {
        let input = known.get("input").unwrap_or_default();
        let name = known.string("name").unwrap_or_default();
        match (block.tool_use_id(), answer_to(&name)) {
            (Some(id), Some(answer)) if is_server_id(id.as_str()) && is_shallow_object(input) => {
                let text = self.keep_members(block.raw(), known, &["type", "id", "name", "input"]);
                let tokens = self.estimator.call(&name, input);
                WireBlock { part: WireBlockKind::ServerCall(id.clone(), answer), text, tokens }
            }
            _ => self.plain(block),
        }
    }

    fn server_result(self, block: &ContentBlock, known: &JsonObject<'_>) -> WireBlock {
        match (block.tool_use_id(), known.get("content")) {
            (Some(id), Some(content))
                if is_server_id(id.as_str()) && is_shallow(content) && content.starts_with(['{', '[']) =>
            {
                let text = self.keep_members(block.raw(), known, &["type", "tool_use_id", "content"]);
                let tokens = self.estimator.json(content);
                WireBlock { part: WireBlockKind::ServerResult(id.clone(), block.kind()), text, tokens }
            }
            _ => self.plain(block),
        }
    }

    fn result(self, block: &ContentBlock, known: &JsonObject<'_>) -> WireBlock {
        let Some(id) = block.tool_use_id().filter(|id| !id.as_str().is_empty()) else {
            return self.plain(block);
        };
        let content = known.get("content").filter(|raw| *raw != "null");
        let is_null = known.get("content") != content;
        let defused = content.map(escape_tags_in_json).and_then(|content| match content {
            Cow::Owned(defused) => Some(SharedText::from(defused)),
            Cow::Borrowed(_) => None,
        });
        let (whole, content) = match &defused {
            Some(defused) => (defused, Some(defused.as_str())),
            None => (block.raw(), content),
        };
        let failed = known.get("is_error") == Some("true");
        let (wire_content, inner_tokens) =
            self.result_content(whole, content).unwrap_or_else(|| self.empty_result_text(failed));
        let wire_id = wire_id(id);
        let error = known.get("is_error").is_none_or(|raw| matches!(raw, "true" | "false"));
        let exact =
            wire_id == id.as_str() && wire_content.is_none() && error && !is_null && defused.is_none();
        let text = if exact {
            self.keep_members(block.raw(), known, &["type", "tool_use_id", "content", "is_error"])
        } else {
            let mut object = crate::json_object::BlockBuilder::of_type("tool_result");
            object.string("tool_use_id", &wire_id);
            if let Some(content) = wire_content.as_deref().or(content) {
                object.raw("content", &replace_lone_surrogates(content));
            }
            if failed {
                object.raw("is_error", "true");
            }
            object.finish()
        };
        let text = if self.card.can.cache_edits { with_reference(&text, &wire_id) } else { text };
        WireBlock {
            part: WireBlockKind::Result(id.clone()),
            text,
            tokens: inner_tokens + self.estimator.result_frame(),
        }
    }

    /// The block that deletes results from the provider's cache.
    pub(crate) fn edits(self, ids: &[ToolUseId]) -> WireBlock {
        let mut deletes = Vec::with_capacity(ids.len());
        for id in ids {
            let mut delete = crate::json_object::BlockBuilder::of_type("delete");
            delete.string("cache_reference", &wire_id(id));
            deletes.push(delete.finish());
        }
        let mut block = crate::json_object::BlockBuilder::of_type("cache_edits");
        block.raw("edits", &crate::json_object::array(&deletes));
        WireBlock { part: WireBlockKind::Edits, text: block.finish(), tokens: 0.0 }
    }

    /// The content of a result: rebuilt if it must be, none if it may stay as it is; and its tokens. Nothing at all if
    /// it says nothing.
    fn result_content(self, whole: &SharedText, content: Option<&str>) -> Option<(Option<String>, f64)> {
        let content = content?;
        match content.as_bytes().first() {
            Some(b'"') => {
                let text = unescape(content).filter(|text| !text.trim().is_empty())?;
                Some((None, self.estimator.text(&text)))
            }
            Some(b'[') => {
                let inner = pal_model::Content::parse(&whole.slice_of(content));
                let mut same = true;
                let mut tokens = 0.0;
                let mut parts = Vec::with_capacity(inner.blocks().len());
                for block in inner.blocks() {
                    match self.inside_result(block) {
                        Some(clean) => {
                            same &= clean.text == *block.raw();
                            tokens += clean.tokens;
                            parts.push(clean.text);
                        }
                        None => same = false,
                    }
                }
                let rebuilt = (!same).then(|| crate::json_object::array(&parts));
                (!parts.is_empty()).then_some((rebuilt, tokens))
            }
            // A number or an object in place of content is kept as text.
            _ => {
                let mut text = String::new();
                pal_model::escape_into(&mut text, content);
                Some((Some(text), self.estimator.json(content)))
            }
        }
    }

    /// In place of a result that says nothing, which a model may take for a result that is missing.
    fn empty_result_text(self, failed: bool) -> (Option<String>, f64) {
        let text = if failed { "[failed with no output]" } else { "[completed with no output]" };
        (Some(format!("\"{text}\"")), self.estimator.text(text))
    }

    /// A block inside a tool result.
    pub(crate) fn inside_result(self, block: &ContentBlock) -> Option<WireBlock> {
        let Some(known) = block.fields().map(JsonObject) else { return Some(self.plain(block)) };
        match block.kind() {
            BlockType::Text => self.text(block, &known, Role::User),
            BlockType::Image | BlockType::Document | BlockType::SearchResult => {
                Some(self.media(block, &known))
            }
            BlockType::ToolReference => self.reference(block, &known),
            _ => Some(self.plain(block)),
        }
    }

    /// Cleans a tool reference: the provider expands it if it knows the tool; otherwise it becomes text.
    fn reference(self, block: &ContentBlock, known: &JsonObject<'_>) -> Option<WireBlock> {
        let name = known.string("tool_name")?;
        let Some(tool) = self.tools.iter().find(|tool| *tool.name == *name) else {
            let text = reference_as_text(block)?;
            return Some(WireBlock {
                part: WireBlockKind::Text,
                tokens: self.estimator.text(&text),
                text: text_block(&text),
            });
        };
        let text = self.keep_members(block.raw(), known, &["type", "tool_name"]);
        Some(WireBlock { part: WireBlockKind::Text, tokens: self.estimator.json(&text) + tool.tokens, text })
    }

    fn media(self, block: &ContentBlock, known: &JsonObject<'_>) -> WireBlock {
        let able = match block.kind() {
            BlockType::Image => self.card.can.images,
            BlockType::Document => self.card.can.documents,
            _ => true,
        };
        if !able {
            let text =
                format!("[{} left out: this model does not take it]", block.kind().name().unwrap_or("block"));
            return WireBlock {
                part: WireBlockKind::Text,
                tokens: self.estimator.text(&text),
                text: text_block(&text),
            };
        }
        let Some(allowed) = media_blocks::allowed_fields(block.kind(), known) else {
            return if media_blocks::is_bulky(block.raw()) {
                self.unreadable_media(block)
            } else {
                self.plain(block)
            };
        };
        let text = self.keep_members(block.raw(), known, allowed);
        let tokens = match block.kind() {
            BlockType::SearchResult => self.estimator.json(block.raw()),
            _ => self.estimator.media(),
        };
        WireBlock { part: WireBlockKind::Media(block.kind()), text, tokens }
    }

    /// Names an image that no provider accepts instead of spelling it out.
    fn unreadable_media(self, block: &ContentBlock) -> WireBlock {
        let name = block.kind().name().unwrap_or("block");
        let text = format!(
            "[{name} left out: {} bytes that are not in a form the provider takes]",
            block.raw().len()
        );
        WireBlock { part: WireBlockKind::Text, tokens: self.estimator.text(&text), text: text_block(&text) }
    }

    /// Renders the JSON of a block that cannot be sent as its own type as text.
    fn plain(self, block: &ContentBlock) -> WireBlock {
        if is_shallow(block.raw())
            && let Some(known) = block.fields()
            && known.iter().any(|(key, value)| key == "type" && self.takes_extra(unescape(value).as_deref()))
        {
            return WireBlock {
                part: WireBlockKind::Text,
                text: block.raw().clone(),
                tokens: self.estimator.json(block.raw()),
            };
        }
        // The JSON may come from any source: text of a person or a model is in known block types.
        let text = as_text(block.kind(), block.raw());
        let text = escape_tags(&text);
        WireBlock { part: WireBlockKind::Text, tokens: self.estimator.text(&text), text: text_block(&text) }
    }

    /// Returns the raw block if it holds only allowed fields, each once; else the block rebuilt from these.
    fn keep_members(self, raw: &SharedText, known: &JsonObject<'_>, allowed: &[&str]) -> SharedText {
        let text = if self.is_exact(known, allowed) { raw.clone() } else { known.rebuilt(allowed) };
        match mend_surrogates_cheaply(&text) {
            Some(mended) => SharedText::from(mended),
            None => text,
        }
    }

    fn is_exact(self, known: &JsonObject<'_>, allowed: &[&str]) -> bool {
        known.is_exact(|name| allowed.contains(&name) || self.takes_extra(Some(name)))
    }

    fn takes_extra(self, name: Option<&str>) -> bool {
        name.is_some_and(|name| self.card.extra.iter().any(|extra| extra == name))
    }
}

/// Describes a tool reference as text.
pub(crate) fn reference_as_text(block: &ContentBlock) -> Option<String> {
    let name = block.string("tool_name").filter(|_| block.kind() == BlockType::ToolReference)?;
    Some(format!("Tool found: {name}"))
}

fn is_list_of_objects(raw: &str) -> bool {
    pal_model::array_items(raw).is_ok_and(|items| items.iter().all(|item| item.starts_with('{')))
}

/// Adds the name by which a result can be deleted from the cache. It is set from the beginning, because
/// adding it later would change sent content.
fn with_reference(result: &SharedText, reference: &str) -> SharedText {
    let mut json = String::with_capacity(result.len() + reference.len() + 24);
    json.push_str(result.strip_suffix('}').unwrap_or(result));
    json.push_str(r#","cache_reference":"#);
    pal_model::escape_into(&mut json, reference);
    json.push('}');
    SharedText::from(json)
}

/// Text of a cleaned text block.
fn visible_text(clean: &WireBlock) -> Option<String> {
    object_fields(&clean.text).ok().map(JsonObject)?.string("text").map(Cow::into_owned)
}

/// Converts an id to the provider's alphabet: letters, digits, `_` and `-`. A changed id ends in a hash of
/// the original, so that different ids stay different.
pub fn wire_id(id: &ToolUseId) -> Cow<'_, str> {
    let id = id.as_str();
    if is_wire_id(id) {
        return Cow::Borrowed(id);
    }
    Cow::Owned(format!("{}_{:08x}", plain_characters(id, 48), xxh3_64(id.as_bytes()) as u32))
}

fn is_wire_id(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(is_plain)
}

/// Ids of calls that the provider runs have a form of their own, and no other is taken back.
fn is_server_id(id: &str) -> bool {
    id.strip_prefix("srvtoolu_").is_some_and(|rest| is_wire_id(rest) && !rest.contains('-'))
}

/// The type of the block that answers a call of this tool, if the provider runs such a tool.
fn answer_to(name: &str) -> Option<BlockType> {
    Some(match name {
        "web_search" => BlockType::WebSearchToolResult,
        "web_fetch" => BlockType::WebFetchToolResult,
        "code_execution" => BlockType::CodeExecutionToolResult,
        "bash_code_execution" => BlockType::BashCodeExecutionToolResult,
        "text_editor_code_execution" => BlockType::TextEditorCodeExecutionToolResult,
        "tool_search_tool_regex" | "tool_search_tool_bm25" => BlockType::ToolSearchToolResult,
        _ => return None,
    })
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn plain_characters(text: &str, most: usize) -> String {
    text.chars().take(most).map(|c| if c.is_ascii() && is_plain(c as u8) { c } else { '_' }).collect()
}

/// Converts a tool name to the provider's alphabet.
pub(crate) fn wire_name(name: &str) -> Cow<'_, str> {
    if name.is_empty() {
        Cow::Borrowed("unknown_tool")
    } else if name.len() <= 128 && name.bytes().all(is_plain) {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(plain_characters(name, 128))
    }
}

/// Converts the input of a call to an accepted form: an object that is not too deep.
fn wire_input(input: &str) -> Cow<'_, str> {
    if !is_shallow(input) {
        let mut wrapped = String::from(r#"{"input":"#);
        pal_model::escape_into(&mut wrapped, input);
        wrapped.push('}');
        return Cow::Owned(wrapped);
    }
    if input.starts_with('{') { Cow::Borrowed(input) } else { Cow::Owned(format!(r#"{{"input":{input}}}"#)) }
}

fn is_shallow_object(json: &str) -> bool {
    json.starts_with('{') && is_shallow(json)
}

/// Returns true for a non-empty list of objects.
fn is_citations(json: &str) -> bool {
    is_shallow(json)
        && pal_model::array_items(json)
            .is_ok_and(|items| !items.is_empty() && items.iter().all(|item| item.starts_with('{')))
}

/// Returns true if the JSON nests no deeper than `DEPTH_MAX`. Counting brackets is enough nearly always.
pub(crate) fn is_shallow(json: &str) -> bool {
    let bytes = json.as_bytes();
    memchr::memchr2_iter(b'{', b'[', bytes).nth(DEPTH_MAX).is_none() || depth(bytes) <= DEPTH_MAX
}

fn depth(json: &[u8]) -> usize {
    let (mut deepest, mut depth, mut in_string, mut at) = (0usize, 0usize, false, 0);
    while at < json.len() {
        match (in_string, json[at]) {
            (true, b'\\') => at += 1,
            (_, b'"') => in_string = !in_string,
            (false, b'{' | b'[') => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            (false, b'}' | b']') => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    deepest
}

/// Replaces lone surrogates; `None` if there are none. Most text has no `\u` at all.
fn mend_surrogates_cheaply(text: &str) -> Option<String> {
    memchr::memmem::find(text.as_bytes(), b"\\u")?;
    match replace_lone_surrogates(text) {
        Cow::Owned(mended) => Some(mended),
        Cow::Borrowed(_) => None,
    }
}
