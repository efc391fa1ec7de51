//! A prompt in render order (tools, system, messages) and its cacheable prefixes.
//!
//! Independent of the dialect: each endpoint parses its requests into a [`ParsedPrompt`], and edits change
//! what is rendered.

use std::borrow::Cow;

use pal_model::{ModelCard, Role, TokenGeneration};

use crate::block_facts::{BlockFacts, BlockKind};
use crate::block_identity::mix;
use crate::cache_entries::EntryLifetime;
use crate::token_counts;
use crate::{ModelPrompt, PromptMessage};

/// Cache TTLs of the Messages dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MessagesCacheTtl {
    FiveMinutes,
    OneHour,
}

impl EntryLifetime for MessagesCacheTtl {
    fn milliseconds(self) -> i64 {
        match self {
            MessagesCacheTtl::FiveMinutes => 5 * 60 * 1_000,
            MessagesCacheTtl::OneHour => 60 * 60 * 1_000,
        }
    }
}

/// Prompt layer of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PromptLayer {
    Tools,
    System,
    Messages,
}

/// One block of a prompt.
#[derive(Clone, Debug)]
pub(crate) struct PromptBlock<'a> {
    /// Layer it is rendered in.
    pub(crate) layer: PromptLayer,
    /// Role of its message; meaningless outside messages.
    pub(crate) role: Role,
    /// Message number.
    pub(crate) message: usize,
    /// Index in the message; outside messages, index in the layer.
    pub(crate) index: usize,
    /// Raw JSON.
    pub(crate) raw: Cow<'a, str>,
    pub(crate) facts: BlockFacts,
    /// Cache breakpoint.
    pub(crate) breakpoint: Option<MessagesCacheTtl>,
    /// Id of a call or of the call a result answers; signature of thinking.
    pub(crate) id: Cow<'a, str>,
    /// Tool name, cache reference or text, depending on the kind.
    pub(crate) name: Cow<'a, str>,
    /// True if its message lasts only until the next user message.
    pub(crate) is_turn_scoped: bool,
    /// False if edits removed it.
    pub(crate) is_rendered: bool,
}

impl PromptBlock<'_> {
    /// Path of the block in error messages.
    pub(crate) fn path(&self) -> String {
        format!("messages.{}.content.{}", self.message, self.index)
    }
}

/// Parameter hashes mixed into the prefix hash where each layer begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LayerHashes {
    /// Client and model.
    pub(crate) tools: u128,
    /// Speed and citations.
    pub(crate) system: u128,
    /// Tool choice, thinking and effort.
    pub(crate) messages: u128,
}

/// A prompt, in render order.
#[derive(Clone, Debug)]
pub(crate) struct ParsedPrompt<'a> {
    /// Blocks, in render order.
    pub(crate) pieces: Vec<PromptBlock<'a>>,
    /// Deferred tools, which are not part of the prefix.
    pub(crate) deferred: Vec<Cow<'a, str>>,
    /// Parameters the cache depends on.
    pub(crate) levels: LayerHashes,
    /// Automatic breakpoint on the last block that allows one.
    pub(crate) automatic: Option<MessagesCacheTtl>,
}

/// End of a rendered block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockEnd {
    /// Hash of the prefix up to here.
    pub(crate) chain: u128,
    /// Tokens up to here.
    pub(crate) tokens: u64,
    /// Position for the look-back; a run of calls or of results shares one.
    pub(crate) position: u64,
}

/// An effective cache breakpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PromptBreakpoint {
    /// Index of the block end.
    pub(crate) block_end: usize,
    /// TTL of the entry written there.
    pub(crate) ttl: MessagesCacheTtl,
}

/// A prompt as the cache sees it.
#[derive(Clone, Debug)]
pub(crate) struct CacheablePrompt {
    /// Block ends, in order.
    pub(crate) block_ends: Vec<BlockEnd>,
    /// Breakpoints in order, without those below the minimum cacheable size.
    pub(crate) breakpoints: Vec<PromptBreakpoint>,
    /// Tokens of the whole prompt.
    pub(crate) tokens: u64,
}

impl<'a> ParsedPrompt<'a> {
    /// Rendered blocks.
    pub(crate) fn rendered_blocks(&self) -> impl Iterator<Item = &PromptBlock<'a>> {
        self.pieces.iter().filter(|piece| piece.is_rendered)
    }

    /// Tokens of the whole prompt.
    pub(crate) fn tokens(&self, generation: TokenGeneration) -> u64 {
        let mut widths = BlockTokenCounter::new(generation);
        self.rendered_blocks().map(|piece| widths.of(piece)).sum::<u64>() + token_counts::ANSWER_TOKENS
    }

    /// Renders the prompt for this model's cache.
    pub(crate) fn render(&self, card: &ModelCard) -> CacheablePrompt {
        let mut widths = BlockTokenCounter::new(card.generation);
        let mut spots: Vec<BlockEnd> = Vec::with_capacity(self.pieces.len());
        let mut marks = Vec::new();
        let mut last_markable = None;
        let (mut chain, mut tokens, mut position) = (mix(self.levels.tools, 1), 0, 0);
        let mut previous: Option<&PromptBlock<'a>> = None;
        for piece in self.rendered_blocks() {
            let layer = previous.map_or(PromptLayer::Tools, |previous| previous.layer);
            chain = self.enter(chain, layer, piece.layer);
            chain = mix(chain, mix(piece.facts.cache, role_of(piece)));
            tokens += widths.of(piece);
            if !previous.is_some_and(|previous| is_one_run(previous, piece)) {
                position += 1;
            }
            if let Some(lifetime) = piece.breakpoint {
                marks.push(PromptBreakpoint { block_end: spots.len(), ttl: lifetime });
            }
            if piece.facts.kind.allows_breakpoint() && !piece.is_turn_scoped {
                last_markable = Some(spots.len());
            }
            spots.push(BlockEnd { chain, tokens, position });
            previous = Some(piece);
        }
        if let (Some(lifetime), Some(spot)) = (self.automatic, last_markable)
            && !marks.iter().any(|mark| mark.block_end == spot)
        {
            marks.push(PromptBreakpoint { block_end: spot, ttl: lifetime });
            marks.sort_by_key(|mark| mark.block_end);
        }
        marks.retain(|mark| spots.get(mark.block_end).is_some_and(|spot| spot.tokens >= card.min_cacheable));
        CacheablePrompt {
            block_ends: spots,
            breakpoints: marks,
            tokens: tokens + token_counts::ANSWER_TOKENS,
        }
    }

    /// Mixes in the parameters of layers that begin between two blocks.
    fn enter(&self, chain: u128, from: PromptLayer, to: PromptLayer) -> u128 {
        let mut chain = chain;
        if from < PromptLayer::System && to >= PromptLayer::System {
            chain = mix(chain, self.levels.system);
        }
        if from < PromptLayer::Messages && to >= PromptLayer::Messages {
            chain = mix(chain, self.levels.messages);
        }
        chain
    }

    /// The request as the model sees it.
    pub(crate) fn to_model_prompt<'b>(&'b self, model: &'b str) -> ModelPrompt<'b> {
        let is_tool = |piece: &&PromptBlock<'_>| piece.facts.kind == BlockKind::Tool;
        let is_system = |piece: &&PromptBlock<'_>| piece.layer == PromptLayer::System && !is_tool(piece);
        let tools = self.rendered_blocks().filter(is_tool).map(|piece| Cow::Borrowed(&*piece.raw));
        let deferred = self.deferred.iter().map(|raw| Cow::Borrowed(&**raw));
        let mut messages: Vec<PromptMessage<'_>> = Vec::new();
        let mut last = None;
        let spoken = |piece: &&PromptBlock<'_>| {
            piece.layer == PromptLayer::Messages
                && !matches!(piece.facts.kind, BlockKind::Effort | BlockKind::CacheEdits)
        };
        for piece in self.rendered_blocks().filter(spoken) {
            if last != Some(piece.message) {
                messages.push(PromptMessage { role: piece.role, blocks: Vec::new() });
                last = Some(piece.message);
            }
            if let Some(message) = messages.last_mut() {
                message.blocks.push(Cow::Borrowed(&*piece.raw));
            }
        }
        ModelPrompt {
            model,
            system: self
                .rendered_blocks()
                .filter(is_system)
                .map(|piece| Cow::Borrowed(&*piece.raw))
                .collect(),
            tools: tools.chain(deferred).collect(),
            messages,
            max_tokens: 0,
            thinks: false,
            compaction: None,
        }
    }
}

fn role_of(piece: &PromptBlock<'_>) -> u128 {
    match (piece.layer, piece.role) {
        (PromptLayer::Tools, _) => 10,
        (PromptLayer::System, _) => 11,
        (PromptLayer::Messages, Role::User) => 12,
        (PromptLayer::Messages, Role::Assistant) => 13,
        (PromptLayer::Messages, Role::System) => 14,
    }
}

/// A run of calls, or of results, is one position.
fn is_one_run(previous: &PromptBlock<'_>, piece: &PromptBlock<'_>) -> bool {
    let is_tool_block = matches!(piece.facts.kind, BlockKind::ToolUse | BlockKind::ToolResult);
    is_tool_block && previous.facts.kind == piece.facts.kind
}

/// Counts block tokens including message overhead and the tool preamble.
struct BlockTokenCounter {
    generation: TokenGeneration,
    has_tools: bool,
    message: Option<usize>,
}

impl BlockTokenCounter {
    fn new(generation: TokenGeneration) -> BlockTokenCounter {
        BlockTokenCounter { generation, has_tools: false, message: None }
    }

    fn of(&mut self, piece: &PromptBlock<'_>) -> u64 {
        let mut tokens = piece.facts.tokens(self.generation);
        if piece.facts.kind == BlockKind::Tool && !self.has_tools {
            self.has_tools = true;
            tokens += token_counts::TOOLS_TOKENS;
        }
        if piece.layer == PromptLayer::Messages && self.message != Some(piece.message) {
            self.message = Some(piece.message);
            tokens += token_counts::MESSAGE_TOKENS;
        }
        tokens
    }
}
