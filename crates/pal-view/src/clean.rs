//! One block of the log made fit for the wire.
//!
//! A block that the provider would take goes as it stands, byte for byte. Any other is rebuilt from the fields
//! that the provider knows, or becomes text, so that nothing that was said is lost; only thinking that cannot be
//! sent back, and empty text, are dropped. What happens to a block depends on the block, the card and the tools of the
//! session alone, so it is done once, when the block's entry is appended.
//!
//! Whose words they are decides what they may hold (§6.4). Only the program speaks for the system, by its attachments
//! and by what stands before the messages. What people typed and what the model said goes verbatim: neither can be
//! mistaken for the system, and both are taken at their word. Everything else is content, in which guarded tags are
//! defused; so are tool results, documents and search results, whoever hands them over. So a reminder is what an attachment says, never what a text
//! looks like. Results of tools that the provider runs are the provider's own and go back as they came.

use std::borrow::Cow;

use pal_model::{
    Block, BlockType, Card, Role, Text, ToolUseId, defuse, defuse_json, fields, has_lone_surrogate,
    mend_surrogates, reminded, reminder, unescape, without_nested,
};
use smol_str::SmolStr;
use xxhash_rust::xxh3::xxh3_64;

use crate::estimate::Estimator;
use crate::media;
use crate::wire::{Object, as_text, text_block};

/// A block fit for the wire.
#[derive(Clone, Debug)]
pub(crate) struct Clean {
    pub(crate) part: Part,
    pub(crate) text: Text,
    pub(crate) tokens: f64,
}

/// What a clean block is, as far as the order and pairing of blocks go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    Text,
    /// What the system says, in a reminder.
    Reminder,
    Media,
    Thinking,
    Call(ToolUseId),
    Result(ToolUseId),
    /// A call of a tool that the provider runs, and the type of the block that answers it.
    ServerCall(ToolUseId, BlockType),
    /// The answer to such a call, and its type.
    ServerResult(ToolUseId, BlockType),
    /// Results to be deleted from the provider's cache.
    Edits,
}

/// Whose words a block holds, as far as it decides what they may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Voice {
    /// The program, for the system: what it says becomes a reminder.
    System,
    /// A person, or the model: their own words, kept verbatim. What a person hands over beside them is content.
    Own(Role),
    /// Tools, files, other agents, summaries of all that: content.
    Content,
}

/// What cleaning needs to know.
#[derive(Clone, Copy)]
pub(crate) struct Cleaner<'a> {
    pub(crate) card: &'a Card,
    pub(crate) estimator: &'a Estimator,
    /// The tools that a result may refer to.
    pub(crate) tools: &'a [Referable],
}

/// A tool that the provider knows by the session's prefix and puts in where a result refers to it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Referable {
    pub(crate) name: SmolStr,
    /// Tokens of its definition, if it does not stand before the messages already.
    pub(crate) tokens: f64,
}

/// Deeper JSON than this is sent as a string: readers with a depth limit refuse it.
const DEPTH_MAX: usize = 100;

impl Cleaner<'_> {
    /// The block in somebody's words; none if there is nothing to send.
    pub(crate) fn heard(self, block: &Block, voice: Voice) -> Option<Clean> {
        match voice {
            Voice::Own(Role::Assistant) => self.clean(block, Role::Assistant),
            Voice::Own(role) if block.kind() == BlockType::Text => self.clean(block, role),
            Voice::System if block.kind() == BlockType::Text => {
                Some(self.reminding(self.clean(block, Role::User)?))
            }
            Voice::System => Some(self.reminding(self.content(block)?)),
            // A person types text; any other block is a file or a result that was handed over.
            Voice::Own(_) | Voice::Content => self.content(block),
        }
    }

    /// A block of content, guarded tags defused.
    fn content(self, block: &Block) -> Option<Clean> {
        // What a provider wrapped and takes back is opaque.
        let is_opaque = block.kind() == BlockType::Compaction && self.takes_extra(Some("compaction"));
        // Results defuse their content themselves: their ids must stay as they are.
        if is_opaque || block.kind() == BlockType::ToolResult {
            return self.clean(block, Role::User);
        }
        match defuse_json(block.raw()) {
            Cow::Borrowed(_) => self.clean(block, Role::User),
            Cow::Owned(defused) => self.clean(&Block::parse(Text::from(defused)), Role::User),
        }
    }

    /// What the system says, in a reminder: exactly one pair of tags, around all of it.
    fn reminding(self, clean: Clean) -> Clean {
        let said = (clean.part == Part::Text).then(|| said(&clean)).flatten();
        let Some(said) = said else { return clean };
        let inside = reminded(&said);
        match (inside, without_nested(inside.unwrap_or(&said))) {
            (Some(_), Cow::Borrowed(_)) => Clean { part: Part::Reminder, ..clean },
            (_, inside) => {
                let text = reminder(&inside);
                let tokens = self.estimator.text(&text);
                Clean { part: Part::Reminder, text: text_block(&text), tokens }
            }
        }
    }

    /// What a reminder says, without its tags, for a message of the system.
    pub(crate) fn unwrapped(self, reminder: &Clean) -> Clean {
        let said = said(reminder).unwrap_or_default();
        match reminded(&said).filter(|inside| !inside.trim().is_empty()) {
            Some(inside) => {
                let (text, tokens) = (text_block(inside), self.estimator.text(inside));
                Clean { part: Part::Reminder, text, tokens }
            }
            None => reminder.clone(),
        }
    }

    /// The block as a part of a message of `role`, its words kept; none if there is nothing to send.
    pub(crate) fn clean(self, block: &Block, role: Role) -> Option<Clean> {
        let Some(known) = block.fields().map(Object) else { return Some(self.plain(block)) };
        if role == Role::Assistant { self.model_block(block, &known) } else { self.user_block(block, &known) }
    }

    fn model_block(self, block: &Block, known: &Object<'_>) -> Option<Clean> {
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
            BlockType::Compaction => self.told_summary(block, known),
            _ => Some(self.plain(block)),
        }
    }

    fn user_block(self, block: &Block, known: &Object<'_>) -> Option<Clean> {
        match block.kind() {
            BlockType::Text => self.text(block, known, Role::User),
            BlockType::ToolResult => Some(self.result(block, known)),
            BlockType::Image | BlockType::Document | BlockType::SearchResult => {
                Some(self.media(block, known))
            }
            BlockType::Compaction => self.told_summary(block, known),
            _ => Some(self.plain(block)),
        }
    }

    /// The provider's own summary as what it is, to open the messages; none if this provider could not read it.
    pub(crate) fn opening_summary(self, block: &Block) -> Option<Clean> {
        const FIELDS: [&str; 4] = ["type", "content", "signature", "tool_changes"];
        let known = block.fields().map(Object).filter(|_| block.kind() == BlockType::Compaction)?;
        let content = known.string("content").filter(|text| !text.trim().is_empty())?;
        let is_signed = known.string("signature").is_some_and(|signature| !signature.is_empty());
        // What was signed is sent back as it came.
        let is_whole = is_signed
            && known.is_exact(|name| FIELDS.contains(&name))
            && known.get("tool_changes").is_none_or(is_list_of_objects)
            && is_shallow(block.raw())
            && !has_lone_surrogate(block.raw());
        (is_whole && self.card.can.provider_compaction).then(|| Clean {
            part: Part::Text,
            text: block.raw().clone(),
            tokens: self.estimator.text(&content),
        })
    }

    /// What the provider's own summary says, where the block itself cannot stand. One without words was a failure.
    fn told_summary(self, block: &Block, known: &Object<'_>) -> Option<Clean> {
        if self.takes_extra(Some("compaction")) {
            return Some(self.plain(block));
        }
        match known.string("content") {
            Some(content) if content.trim().is_empty() => None,
            Some(content) => {
                let text = format!("# Summary\n\n{}", content.trim());
                Some(Clean { part: Part::Text, tokens: self.estimator.text(&text), text: text_block(&text) })
            }
            None if known.get("content") == Some("null") => None,
            None => Some(self.plain(block)),
        }
    }

    fn text(self, block: &Block, known: &Object<'_>, role: Role) -> Option<Clean> {
        let Some(text) = known.string("text") else { return Some(self.plain(block)) };
        if text.trim().is_empty() {
            return None;
        }
        let cited = role == Role::Assistant && known.get("citations").is_some_and(is_citations);
        let allowed: &[&str] = if cited { &["type", "text", "citations"] } else { &["type", "text"] };
        let tokens = self.estimator.text(&text);
        Some(Clean { part: Part::Text, text: self.kept(block.raw(), known, allowed), tokens })
    }

    /// Thinking goes back as it came or not at all.
    fn thinking(self, block: &Block, known: &Object<'_>) -> Option<Clean> {
        let filled = |name| known.string(name).is_some_and(|text| !text.is_empty());
        let (allowed, whole): (&[&str], bool) = match block.kind() {
            BlockType::Thinking => (
                &["type", "thinking", "signature"],
                known.string("thinking").is_some() && filled("signature"),
            ),
            _ => (&["type", "data"], filled("data")),
        };
        let raw = block.raw();
        if !self.card.thinking.any() || !whole || !self.is_exact(known, allowed) || has_lone_surrogate(raw) {
            return None;
        }
        Some(Clean { part: Part::Thinking, text: raw.clone(), tokens: self.thinking_tokens(known) })
    }

    /// Reasoning of another dialect goes back as it came, or not at all.
    fn reasoning(self, block: &Block) -> Option<Clean> {
        let raw = block.raw();
        if !self.takes_extra(Some("reasoning")) || !is_shallow(raw) || has_lone_surrogate(raw) {
            return None;
        }
        Some(Clean { part: Part::Thinking, text: raw.clone(), tokens: self.estimator.json(raw) })
    }

    /// Hidden thinking shows only as a signature, whose length grows with what it hides.
    fn thinking_tokens(self, known: &Object<'_>) -> f64 {
        match known.string("thinking") {
            Some(thinking) if !thinking.is_empty() => self.estimator.text(&thinking),
            _ => {
                let hidden = known.get("signature").or(known.get("data")).map_or(0, str::len);
                hidden as f64 * 3.0 / 16.0
            }
        }
    }

    fn call(self, block: &Block, known: &Object<'_>) -> Clean {
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
            self.kept(block.raw(), known, if in_toolset { allowed } else { &allowed[..4] })
        } else {
            let mut object = crate::wire::Builder::of_type("tool_use");
            object.string("id", &wire_id);
            object.string("name", &wire_name);
            object.raw("input", &mend_surrogates(&wire_input));
            object.finish()
        };
        Clean { part: Part::Call(id.clone()), text, tokens }
    }

    fn server_call(self, block: &Block, known: &Object<'_>) -> Clean {
        let input = known.get("input").unwrap_or_default();
        let name = known.string("name").unwrap_or_default();
        match (block.tool_use_id(), answer_to(&name)) {
            (Some(id), Some(answer)) if is_server_id(id.as_str()) && is_shallow_object(input) => {
                let text = self.kept(block.raw(), known, &["type", "id", "name", "input"]);
                let tokens = self.estimator.call(&name, input);
                Clean { part: Part::ServerCall(id.clone(), answer), text, tokens }
            }
            _ => self.plain(block),
        }
    }

    fn server_result(self, block: &Block, known: &Object<'_>) -> Clean {
        match (block.tool_use_id(), known.get("content")) {
            (Some(id), Some(content))
                if is_server_id(id.as_str()) && is_shallow(content) && content.starts_with(['{', '[']) =>
            {
                let text = self.kept(block.raw(), known, &["type", "tool_use_id", "content"]);
                let tokens = self.estimator.json(content);
                Clean { part: Part::ServerResult(id.clone(), block.kind()), text, tokens }
            }
            _ => self.plain(block),
        }
    }

    fn result(self, block: &Block, known: &Object<'_>) -> Clean {
        let Some(id) = block.tool_use_id().filter(|id| !id.as_str().is_empty()) else {
            return self.plain(block);
        };
        let content = known.get("content").filter(|raw| *raw != "null");
        let is_null = known.get("content") != content;
        let defused = content.map(defuse_json).and_then(|content| match content {
            Cow::Owned(defused) => Some(Text::from(defused)),
            Cow::Borrowed(_) => None,
        });
        let (whole, content) = match &defused {
            Some(defused) => (defused, Some(defused.as_str())),
            None => (block.raw(), content),
        };
        let failed = known.get("is_error") == Some("true");
        let (wire_content, inner_tokens) =
            self.result_content(whole, content).unwrap_or_else(|| self.said_nothing(failed));
        let wire_id = wire_id(id);
        let error = known.get("is_error").is_none_or(|raw| matches!(raw, "true" | "false"));
        let exact =
            wire_id == id.as_str() && wire_content.is_none() && error && !is_null && defused.is_none();
        let text = if exact {
            self.kept(block.raw(), known, &["type", "tool_use_id", "content", "is_error"])
        } else {
            let mut object = crate::wire::Builder::of_type("tool_result");
            object.string("tool_use_id", &wire_id);
            if let Some(content) = wire_content.as_deref().or(content) {
                object.raw("content", &mend_surrogates(content));
            }
            if failed {
                object.raw("is_error", "true");
            }
            object.finish()
        };
        let text = if self.card.can.cache_edits { with_reference(&text, &wire_id) } else { text };
        Clean { part: Part::Result(id.clone()), text, tokens: inner_tokens + self.estimator.result_frame() }
    }

    /// The block that deletes results from the provider's cache.
    pub(crate) fn edits(self, ids: &[ToolUseId]) -> Clean {
        let mut deletes = Vec::with_capacity(ids.len());
        for id in ids {
            let mut delete = crate::wire::Builder::of_type("delete");
            delete.string("cache_reference", &wire_id(id));
            deletes.push(delete.finish());
        }
        let mut block = crate::wire::Builder::of_type("cache_edits");
        block.raw("edits", &crate::wire::array(&deletes));
        Clean { part: Part::Edits, text: block.finish(), tokens: 0.0 }
    }

    /// The content of a result: rebuilt if it must be, none if it may stay as it is; and its tokens. Nothing at all if
    /// it says nothing.
    fn result_content(self, whole: &Text, content: Option<&str>) -> Option<(Option<String>, f64)> {
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
                let rebuilt = (!same).then(|| crate::wire::array(&parts));
                (!parts.is_empty()).then_some((rebuilt, tokens))
            }
            // A number or an object where content belongs: what it says is kept as text.
            _ => {
                let mut text = String::new();
                pal_model::escape_into(&mut text, content);
                Some((Some(text), self.estimator.json(content)))
            }
        }
    }

    /// In place of a result that says nothing, which a model may take for a result that is missing.
    fn said_nothing(self, failed: bool) -> (Option<String>, f64) {
        let text = if failed { "[failed with no output]" } else { "[completed with no output]" };
        (Some(format!("\"{text}\"")), self.estimator.text(text))
    }

    /// A block inside a tool result.
    pub(crate) fn inside_result(self, block: &Block) -> Option<Clean> {
        let Some(known) = block.fields().map(Object) else { return Some(self.plain(block)) };
        match block.kind() {
            BlockType::Text => self.text(block, &known, Role::User),
            BlockType::Image | BlockType::Document | BlockType::SearchResult => {
                Some(self.media(block, &known))
            }
            BlockType::ToolReference => self.reference(block, &known),
            _ => Some(self.plain(block)),
        }
    }

    /// A reference to a tool: the provider puts the definition in its place, if it knows the tool. To any other it is
    /// told in words.
    fn reference(self, block: &Block, known: &Object<'_>) -> Option<Clean> {
        let name = known.string("tool_name")?;
        let Some(tool) = self.tools.iter().find(|tool| *tool.name == *name) else {
            let text = told_reference(block)?;
            return Some(Clean {
                part: Part::Text,
                tokens: self.estimator.text(&text),
                text: text_block(&text),
            });
        };
        let text = self.kept(block.raw(), known, &["type", "tool_name"]);
        Some(Clean { part: Part::Text, tokens: self.estimator.json(&text) + tool.tokens, text })
    }

    fn media(self, block: &Block, known: &Object<'_>) -> Clean {
        let able = match block.kind() {
            BlockType::Image => self.card.can.images,
            BlockType::Document => self.card.can.documents,
            _ => true,
        };
        if !able {
            let text =
                format!("[{} left out: this model does not take it]", block.kind().name().unwrap_or("block"));
            return Clean { part: Part::Text, tokens: self.estimator.text(&text), text: text_block(&text) };
        }
        let Some(allowed) = media::allowed_fields(block.kind(), known) else {
            return if media::is_bulky(block.raw()) {
                self.unreadable_media(block)
            } else {
                self.plain(block)
            };
        };
        let text = self.kept(block.raw(), known, allowed);
        let tokens = match block.kind() {
            BlockType::SearchResult => self.estimator.json(block.raw()),
            _ => self.estimator.media(),
        };
        Clean { part: Part::Media, text, tokens }
    }

    /// A picture that no provider would take is named, not spelled out.
    fn unreadable_media(self, block: &Block) -> Clean {
        let name = block.kind().name().unwrap_or("block");
        let text = format!(
            "[{name} left out: {} bytes that are not in a form the provider takes]",
            block.raw().len()
        );
        Clean { part: Part::Text, tokens: self.estimator.text(&text), text: text_block(&text) }
    }

    /// A block that cannot be sent as what it is: its JSON as text.
    fn plain(self, block: &Block) -> Clean {
        if is_shallow(block.raw())
            && let Some(known) = block.fields()
            && known.iter().any(|(key, value)| key == "type" && self.takes_extra(unescape(value).as_deref()))
        {
            return Clean {
                part: Part::Text,
                text: block.raw().clone(),
                tokens: self.estimator.json(block.raw()),
            };
        }
        // JSON of any origin: a person's or a model's words are in blocks that are known.
        let text = as_text(block.kind(), block.raw());
        let text = defuse(&text);
        Clean { part: Part::Text, tokens: self.estimator.text(&text), text: text_block(&text) }
    }

    /// The raw block if it holds nothing but allowed fields, each once; else the block rebuilt from these.
    fn kept(self, raw: &Text, known: &Object<'_>, allowed: &[&str]) -> Text {
        let text = if self.is_exact(known, allowed) { raw.clone() } else { known.rebuilt(allowed) };
        match mend_surrogates_cheaply(&text) {
            Some(mended) => Text::from(mended),
            None => text,
        }
    }

    fn is_exact(self, known: &Object<'_>, allowed: &[&str]) -> bool {
        known.is_exact(|name| allowed.contains(&name) || self.takes_extra(Some(name)))
    }

    fn takes_extra(self, name: Option<&str>) -> bool {
        name.is_some_and(|name| self.card.extra.iter().any(|extra| extra == name))
    }
}

/// A reference to a tool in words.
pub(crate) fn told_reference(block: &Block) -> Option<String> {
    let name = block.string("tool_name").filter(|_| block.kind() == BlockType::ToolReference)?;
    Some(format!("Tool found: {name}"))
}

fn is_list_of_objects(raw: &str) -> bool {
    pal_model::array_items(raw).is_ok_and(|items| items.iter().all(|item| item.starts_with('{')))
}

/// A result with the name by which it can be deleted from the cache. It has one from the beginning, because a name that
/// came later would change what was sent.
fn with_reference(result: &Text, reference: &str) -> Text {
    let mut json = String::with_capacity(result.len() + reference.len() + 24);
    json.push_str(result.strip_suffix('}').unwrap_or(result));
    json.push_str(r#","cache_reference":"#);
    pal_model::escape_into(&mut json, reference);
    json.push('}');
    Text::from(json)
}

/// The words of a text block that is fit for the wire.
fn said(clean: &Clean) -> Option<String> {
    fields(&clean.text).ok().map(Object)?.string("text").map(Cow::into_owned)
}

/// The id as the provider takes it: letters, digits, `_` and `-`. A changed id ends in a hash of the original,
/// so that different ids stay different.
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

/// The name of a tool as the provider takes it.
pub(crate) fn wire_name(name: &str) -> Cow<'_, str> {
    if name.is_empty() {
        Cow::Borrowed("unknown_tool")
    } else if name.len() <= 128 && name.bytes().all(is_plain) {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(plain_characters(name, 128))
    }
}

/// The input of a call as the provider takes it: an object that is not too deep.
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

/// Whether this is a list of objects, one at least.
fn is_citations(json: &str) -> bool {
    is_shallow(json)
        && pal_model::array_items(json)
            .is_ok_and(|items| !items.is_empty() && items.iter().all(|item| item.starts_with('{')))
}

/// Whether JSON nests no deeper than readers follow. Counting brackets is enough nearly always.
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

/// The text with lone surrogates mended, if it has any. Most text has no `\u` at all.
fn mend_surrogates_cheaply(text: &str) -> Option<String> {
    memchr::memmem::find(text.as_bytes(), b"\\u")?;
    match mend_surrogates(text) {
        Cow::Owned(mended) => Some(mended),
        Cow::Borrowed(_) => None,
    }
}
