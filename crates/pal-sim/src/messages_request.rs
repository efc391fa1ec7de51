//! Parses a validated Messages request into its prompt and options.

use std::borrow::Cow;

use pal_model::{ModelCard, Role};
use pal_wire::JsonNode;
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_128;

use crate::block_facts::{BlockFacts, BlockKind, BlockMemo};
use crate::block_identity::{canonical_block, hash_by_value, mix};
use crate::context_edits::ContextEdit;
use crate::parsed_prompt::{LayerHashes, MessagesCacheTtl, ParsedPrompt, PromptBlock, PromptLayer};

/// Options of a request besides its prompt.
#[derive(Clone, Debug)]
pub(crate) struct MessagesOptions<'a> {
    /// Maximum output tokens; `None` when tokens are only counted.
    pub(crate) max_tokens: Option<u64>,
    /// True if the answer is streamed.
    pub(crate) streams: bool,
    pub(crate) thinking: ThinkingMode,
    /// True if thinking text is returned.
    pub(crate) shows_thinking: bool,
    /// True if thinking that does not match its prefix is dropped instead of refused.
    pub(crate) drops_thinking: bool,
    /// Stop sequences.
    pub(crate) stop_sequences: Vec<Cow<'a, str>>,
    /// Compaction request with optional instructions.
    pub(crate) compaction: Option<Option<Cow<'a, str>>>,
    /// Context edits, if the request has `context_management`.
    pub(crate) edits: Option<Vec<ContextEdit<'a>>>,
    /// Response to compare with, if diagnostics are requested.
    pub(crate) previous: Option<Option<Cow<'a, str>>>,
    /// True in fast mode.
    pub(crate) is_fast: bool,
    /// Inference region.
    pub(crate) geo: Option<Cow<'a, str>>,
    /// Hash of the answer parameters that cached messages depend on; explicit defaults equal implicit ones.
    pub(crate) answer_params: u128,
    /// Hash of everything that makes two requests incomparable: answer parameters, betas and edits.
    pub(crate) parameters: u128,
}

/// Thinking mode of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThinkingMode {
    Never,
    /// The model decides.
    Adaptive,
    /// With a token budget.
    Budget(i64),
    /// Only after tool results.
    BetweenTools,
}

impl ThinkingMode {
    /// Requested mode; by default, models whose thinking cannot be disabled think.
    fn of(body: JsonNode<'_>, card: &ModelCard) -> ThinkingMode {
        let thinking = body.get("thinking");
        let kind = thinking.and_then(|thinking| thinking.get_text("type"));
        match kind.and_then(|kind| kind.one_of(&["adaptive", "enabled", "disabled", "between_tools"])) {
            Some("adaptive") => ThinkingMode::Adaptive,
            Some("enabled") => {
                let budget = thinking.and_then(|thinking| thinking.get("budget_tokens"));
                ThinkingMode::Budget(budget.and_then(JsonNode::integer).unwrap_or(0))
            }
            Some("between_tools") => ThinkingMode::BetweenTools,
            Some(_) => ThinkingMode::Never,
            None if card.thinking.adaptive && !card.thinking.disabled => ThinkingMode::Adaptive,
            None => ThinkingMode::Never,
        }
    }

    fn hash(self) -> u128 {
        match self {
            ThinkingMode::Never => 0,
            ThinkingMode::Adaptive => 1,
            ThinkingMode::BetweenTools => 2,
            ThinkingMode::Budget(budget) => mix(3, u128::from(budget.unsigned_abs())),
        }
    }
}

impl<'a> MessagesOptions<'a> {
    /// Parses the options. `betas` is a hash of the beta headers.
    pub(crate) fn read(body: JsonNode<'a>, card: &ModelCard, betas: u128) -> MessagesOptions<'a> {
        let text = |name: &str| body.get_text(name).map(|text| text.decoded());
        let thinking = body.get("thinking");
        let display = thinking.and_then(|thinking| thinking.get_text("display"));
        let binding = thinking.and_then(|thinking| thinking.get("block_binding"));
        let mismatch = binding.and_then(|binding| binding.get_text("prefix_mismatch_behavior"));
        let compaction = body.get("compaction");
        let instructions = |of: JsonNode<'a>| of.get_text("instructions").map(|text| text.decoded());
        let management = body.get("context_management");
        let edits =
            management.map(|management| management.get("edits").into_iter().flat_map(JsonNode::items));
        let diagnostics = body.get("diagnostics");
        let previous = |of: JsonNode<'a>| of.get_text("previous_message_id").map(|id| id.decoded());
        let max_tokens = body.get("max_tokens").and_then(JsonNode::integer);
        let mode = ThinkingMode::of(body, card);
        let manner = manner(body, card, mode);
        MessagesOptions {
            max_tokens: max_tokens.map(i64::unsigned_abs),
            streams: body.get("stream").is_some_and(JsonNode::is_true),
            thinking: mode,
            shows_thinking: match display {
                Some(display) => !display.is("omitted"),
                // From 4.7 on, models without a budget do not return their thinking.
                None => card.thinking.enabled,
            },
            drops_thinking: mismatch.is_some_and(|behavior| behavior.is("drop_block")),
            stop_sequences: {
                let sequences = body.get("stop_sequences").into_iter().flat_map(JsonNode::items);
                sequences.filter_map(JsonNode::text).map(|text| text.decoded()).collect()
            },
            compaction: compaction.map(instructions),
            edits: edits.map(|edits| edits.filter_map(ContextEdit::read).collect()),
            previous: diagnostics.map(previous),
            is_fast: body.get_text("speed").is_some_and(|speed| speed.is("fast")),
            geo: text("inference_geo"),
            answer_params: manner,
            parameters: mix(mix(betas, manner), management.map_or(0, |edits| hash_by_value(edits.raw()))),
        }
    }
}

/// Hash of tool choice, thinking, effort and output format.
fn manner(body: JsonNode<'_>, card: &ModelCard, thinking: ThinkingMode) -> u128 {
    let text = |text: &str| xxh3_128(text.as_bytes());
    let choice = body.get("tool_choice");
    let kind = choice.and_then(|choice| choice.get_text("type")).map(|kind| kind.decoded());
    let kind = kind.filter(|kind| kind != "auto").unwrap_or_default();
    let name =
        choice.and_then(|choice| choice.get_text("name")).map(|name| name.decoded()).unwrap_or_default();
    let serial =
        choice.and_then(|choice| choice.get("disable_parallel_tool_use")).is_some_and(JsonNode::is_true);
    let config = body.get("output_config");
    let effort = config.and_then(|config| config.get_text("effort")).map(|effort| effort.decoded());
    let effort = effort.filter(|effort| *effort != card.default_effort.as_str()).unwrap_or_default();
    let format = config.and_then(|config| config.get("format")).filter(|format| !format.is_null());
    let format = format.map_or(0, |format| text(&canonical_block(format)));
    let parts = [text(&kind), text(&name), u128::from(serial), thinking.hash(), text(&effort), format];
    parts.into_iter().fold(0, mix)
}

/// Parses the prompt; `scope` is the client's hash.
pub(crate) fn read_prompt<'a>(
    body: JsonNode<'a>,
    card: &ModelCard,
    wanted: &MessagesOptions<'_>,
    scope: u64,
    memo: &mut BlockMemo,
) -> ParsedPrompt<'a> {
    let mut reader =
        PromptReader { memo, pieces: Vec::new(), deferred: Vec::new(), by_name: FxHashMap::default() };
    reader.tools(body);
    reader.system(body);
    for (index, message) in body.get("messages").into_iter().flat_map(JsonNode::items).enumerate() {
        reader.message(index, message);
    }
    let PromptReader { pieces, deferred, .. } = reader;
    let levels = levels(card, wanted, scope, &pieces);
    let deferred = deferred.into_iter().map(|(raw, _)| raw).collect();
    ParsedPrompt { pieces, deferred, levels, automatic: lifetime(body) }
}

/// Parameter hashes by cache layer. On every card, thinking and effort affect only messages; the provider
/// leaves that to the model. Images are ordinary blocks: in recorded sessions the first image kept everything
/// before it cached, contrary to the documentation.
fn levels(
    card: &ModelCard,
    wanted: &MessagesOptions<'_>,
    scope: u64,
    pieces: &[PromptBlock<'_>],
) -> LayerHashes {
    let any = |is: fn(&BlockFacts) -> bool| u128::from(pieces.iter().any(|piece| is(&piece.facts)));
    LayerHashes {
        tools: mix(xxh3_128(card.model.as_bytes()), u128::from(scope)),
        system: mix(u128::from(wanted.is_fast), any(|facts| facts.cites)),
        messages: wanted.answer_params,
    }
}

/// TTL of the breakpoint on a block, if any.
fn lifetime(marked: JsonNode<'_>) -> Option<MessagesCacheTtl> {
    let mark = marked.get("cache_control")?;
    let is_long = mark.get_text("ttl").is_some_and(|ttl| ttl.is("1h"));
    Some(if is_long { MessagesCacheTtl::OneHour } else { MessagesCacheTtl::FiveMinutes })
}

struct PromptReader<'a, 'm> {
    memo: &'m mut BlockMemo,
    pieces: Vec<PromptBlock<'a>>,
    /// Tools rendered where they are referenced.
    deferred: Vec<(Cow<'a, str>, BlockFacts)>,
    by_name: FxHashMap<Cow<'a, str>, usize>,
}

/// Position of a block in the request.
#[derive(Clone, Copy)]
struct BlockPosition {
    layer: PromptLayer,
    role: Role,
    message: usize,
    index: usize,
    is_turn_scoped: bool,
}

impl<'a> PromptReader<'a, '_> {
    fn tools(&mut self, body: JsonNode<'a>) {
        let mut late = Vec::new();
        for (index, tool) in body.get("tools").into_iter().flat_map(JsonNode::items).enumerate() {
            let facts = self.memo.tool(tool.raw());
            let name = tool.get_text("name").map(|name| name.decoded()).unwrap_or_default();
            if tool.get("defer_loading").is_some_and(JsonNode::is_true) {
                self.by_name.insert(name, self.deferred.len());
                self.deferred.push((Cow::Borrowed(tool.raw()), facts));
                continue;
            }
            // Web search belongs to the system layer: the tools before it stay cached.
            let kind = tool.get_text("type").map(|kind| kind.decoded()).unwrap_or_default();
            let is_late = kind.starts_with("web_search_");
            let layer = if is_late { PromptLayer::System } else { PromptLayer::Tools };
            let place = BlockPosition { layer, role: Role::System, message: 0, index, is_turn_scoped: false };
            let piece = PromptBlock {
                breakpoint: lifetime(tool),
                name,
                ..piece(place, Cow::Borrowed(tool.raw()), facts)
            };
            if is_late { late.push(piece) } else { self.pieces.push(piece) }
        }
        self.pieces.append(&mut late);
    }

    fn system(&mut self, body: JsonNode<'a>) {
        let Some(system) = body.get("system") else { return };
        let place = |index| BlockPosition {
            layer: PromptLayer::System,
            role: Role::System,
            message: 0,
            index,
            is_turn_scoped: false,
        };
        if system.text().is_some_and(|text| !text.is_empty()) {
            self.push_text(system, place(0));
        }
        for (index, block) in system.items().enumerate() {
            self.block(block, place(index));
        }
    }

    fn message(&mut self, message: usize, node: JsonNode<'a>) {
        let role = match node.get_text("role") {
            Some(role) if role.is("user") => Role::User,
            Some(role) if role.is("assistant") => Role::Assistant,
            _ => Role::System,
        };
        let is_turn_scoped = node.get("clear_at").is_some();
        let place =
            |index| BlockPosition { layer: PromptLayer::Messages, role, message, index, is_turn_scoped };
        if let Some(config) = node.get("output_config") {
            let effort = config.get("effort").map_or("null", JsonNode::raw);
            let raw = format!(r#"{{"type":"effort","effort":{effort}}}"#);
            let facts = self.memo.block(&raw);
            self.pieces.push(piece(place(0), Cow::Owned(raw), facts));
        }
        let Some(content) = node.get("content") else { return };
        if content.text().is_some_and(|text| !text.is_empty()) {
            self.push_text(content, place(0));
        }
        for (index, block) in content.items().enumerate() {
            self.block(block, place(index));
        }
    }

    /// Adds string content as a text block.
    fn push_text(&mut self, text: JsonNode<'a>, place: BlockPosition) {
        let raw = format!(r#"{{"type":"text","text":{}}}"#, text.raw());
        let facts = self.memo.block(&raw);
        self.pieces.push(piece(place, Cow::Owned(raw), facts));
    }

    fn block(&mut self, block: JsonNode<'a>, place: BlockPosition) {
        let mut facts = self.memo.block(block.raw());
        let text = |name: &str| block.get_text(name).map(|text| text.decoded()).unwrap_or_default();
        let (id, name) = match facts.kind {
            BlockKind::ToolUse => (text("id"), text("name")),
            BlockKind::ToolResult => {
                if facts.refers {
                    let inner = block.get("content").into_iter().flat_map(JsonNode::items);
                    inner.filter_map(|inner| inner.get_text("tool_name")).for_each(|name| {
                        self.expand(&name.decoded(), &mut facts);
                    });
                }
                (text("tool_use_id"), text("cache_reference"))
            }
            BlockKind::Thinking => (text("signature"), text("thinking")),
            BlockKind::RedactedThinking => (text("data"), Cow::Borrowed("")),
            BlockKind::Compaction => {
                let carrier =
                    if block.get("signature").is_some() { "signature" } else { "encrypted_content" };
                (text(carrier), text("content"))
            }
            BlockKind::ToolAddition => {
                let name = block.get("tool").and_then(|tool| tool.get_text("name"));
                if let Some(name) = name {
                    self.expand(&name.decoded(), &mut facts);
                }
                Default::default()
            }
            _ => Default::default(),
        };
        let raw = Cow::Borrowed(block.raw());
        self.pieces.push(PromptBlock { breakpoint: lifetime(block), id, name, ..piece(place, raw, facts) });
    }

    /// Renders a deferred tool where it is referenced, each time.
    fn expand(&mut self, name: &str, facts: &mut BlockFacts) {
        if let Some((_, tool)) = self.by_name.get(name).and_then(|&at| self.deferred.get(at)) {
            facts.absorb(tool);
        }
    }
}

fn piece(place: BlockPosition, raw: Cow<'_, str>, facts: BlockFacts) -> PromptBlock<'_> {
    PromptBlock {
        layer: place.layer,
        role: place.role,
        message: place.message,
        index: place.index,
        raw,
        facts,
        breakpoint: None,
        id: Cow::Borrowed(""),
        name: Cow::Borrowed(""),
        is_turn_scoped: place.is_turn_scoped,
        is_rendered: true,
    }
}
