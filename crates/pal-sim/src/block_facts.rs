//! Facts about a block that do not depend on its position: identity, size, kind.
//!
//! They are computed once per byte sequence and memoised, so resending a history costs one hash per block.

use std::borrow::Cow;

use pal_model::TokenGeneration;
use pal_wire::{JsonNode, RequestDocument};
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_128;

use crate::block_identity::{binding_identity, cache_identity, canonical_block, canonical_json, mix};
use crate::block_signatures;
use crate::media_tokens;
use crate::token_counts;

/// Identity, kind and size of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockFacts {
    /// Identity for the cache.
    pub(crate) cache: u128,
    /// Identity for bound thinking.
    pub(crate) binding: u128,
    pub(crate) kind: BlockKind,
    /// True if it asks for citations.
    pub(crate) cites: bool,
    /// True if it is a tool result with tool references.
    pub(crate) refers: bool,
    words: u32,
    fixed: u32,
}

impl BlockFacts {
    /// Tokens, as counted by a model generation.
    pub(crate) fn tokens(&self, generation: TokenGeneration) -> u64 {
        token_counts::scaled(u64::from(self.words), generation) + u64::from(self.fixed)
    }

    /// Adds another block that is rendered inside this one.
    pub(crate) fn absorb(&mut self, other: &BlockFacts) {
        self.cache = mix(self.cache, other.cache);
        self.binding = mix(self.binding, other.binding);
        self.words = self.words.saturating_add(other.words);
        self.fixed = self.fixed.saturating_add(other.fixed);
    }

    /// Removes the tokens and keeps the identity: deleted in the cache, in place.
    pub(crate) fn clear_tokens(&mut self) {
        self.words = 0;
        self.fixed = 0;
    }
}

/// Block kinds that the simulator distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Text,
    Thinking,
    RedactedThinking,
    ToolUse,
    ToolResult,
    Compaction,
    CacheEdits,
    ToolAddition,
    ToolRemoval,
    /// A tool definition.
    Tool,
    /// A system message that only sets the effort.
    Effort,
    /// Anything else.
    Other,
}

impl BlockKind {
    fn of(block: JsonNode<'_>) -> BlockKind {
        const KINDS: &[(&str, BlockKind)] = &[
            ("text", BlockKind::Text),
            ("tool_use", BlockKind::ToolUse),
            ("tool_result", BlockKind::ToolResult),
            ("thinking", BlockKind::Thinking),
            ("redacted_thinking", BlockKind::RedactedThinking),
            ("compaction", BlockKind::Compaction),
            ("cache_edits", BlockKind::CacheEdits),
            ("tool_addition", BlockKind::ToolAddition),
            ("tool_removal", BlockKind::ToolRemoval),
            ("effort", BlockKind::Effort),
        ];
        let word = block.get_text("type");
        let known = KINDS.iter().find(|(name, _)| word.is_some_and(|word| word.is(name)));
        known.map_or(BlockKind::Other, |&(_, kind)| kind)
    }

    /// True for thinking and redacted thinking.
    pub(crate) fn is_thinking(self) -> bool {
        matches!(self, BlockKind::Thinking | BlockKind::RedactedThinking)
    }

    /// True if a cache breakpoint is allowed on it (empty text aside).
    pub(crate) fn allows_breakpoint(self) -> bool {
        !matches!(
            self,
            BlockKind::Thinking
                | BlockKind::RedactedThinking
                | BlockKind::CacheEdits
                | BlockKind::ToolAddition
                | BlockKind::ToolRemoval
                | BlockKind::Effort
        )
    }
}

/// Recently seen blocks. Bounded: the older half is dropped when the newer half is full.
#[derive(Default)]
pub(crate) struct BlockMemo {
    newer: FxHashMap<u128, BlockFacts>,
    older: FxHashMap<u128, BlockFacts>,
}

/// Blocks in each half of a [`BlockMemo`]; one takes about a hundred bytes.
const HALF: usize = 1 << 16;

impl BlockMemo {
    /// Facts about a content block.
    pub(crate) fn block(&mut self, raw: &str) -> BlockFacts {
        self.get(raw, xxh3_128(raw.as_bytes()), block_facts)
    }

    /// Facts about a tool definition.
    pub(crate) fn tool(&mut self, raw: &str) -> BlockFacts {
        self.get(raw, !xxh3_128(raw.as_bytes()), tool_facts)
    }

    fn get(&mut self, raw: &str, key: u128, compute: fn(&str) -> BlockFacts) -> BlockFacts {
        if let Some(facts) = self.newer.get(&key) {
            return *facts;
        }
        let facts = self.older.get(&key).copied().unwrap_or_else(|| compute(raw));
        if self.newer.len() >= HALF {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(key, facts);
        facts
    }
}

fn block_facts(raw: &str) -> BlockFacts {
    let Ok(reading) = RequestDocument::new(raw.as_bytes(), usize::MAX) else { return unreadable(raw) };
    let block = reading.root();
    let kind = BlockKind::of(block);
    let size = block_size(block, kind);
    let content = || block.get("content").into_iter().flat_map(JsonNode::items);
    let is = |node: JsonNode<'_>, name: &str| node.get_text("type").is_some_and(|kind| kind.is(name));
    let asks = |node: JsonNode<'_>| {
        node.get("citations").and_then(|config| config.get("enabled")).is_some_and(JsonNode::is_true)
    };
    BlockFacts {
        cache: cache_identity(block),
        binding: binding_identity(block),
        kind,
        cites: asks(block) || content().any(asks),
        refers: kind == BlockKind::ToolResult && content().any(|inner| is(inner, "tool_reference")),
        words: size.words,
        fixed: size.fixed,
    }
}

fn tool_facts(raw: &str) -> BlockFacts {
    let Ok(reading) = RequestDocument::new(raw.as_bytes(), usize::MAX) else { return unreadable(raw) };
    let tool = reading.root();
    BlockFacts {
        cache: cache_identity(tool),
        binding: binding_identity(tool),
        kind: BlockKind::Tool,
        cites: false,
        refers: false,
        words: narrow(token_counts::count_word_tokens(&canonical_block(tool))),
        fixed: token_counts::TOOL_TOKENS,
    }
}

/// Validated blocks never get here; only callers that build a block wrongly do.
fn unreadable(raw: &str) -> BlockFacts {
    let hash = xxh3_128(raw.as_bytes());
    let words = narrow(token_counts::count_word_tokens(raw));
    BlockFacts {
        cache: hash,
        binding: hash,
        kind: BlockKind::Other,
        cites: false,
        refers: false,
        words,
        fixed: 0,
    }
}

fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Tokens that scale with the model generation, and those that do not.
#[derive(Clone, Copy, Default)]
struct TokenSize {
    words: u32,
    fixed: u32,
}

impl TokenSize {
    fn of_words(words: u64) -> TokenSize {
        TokenSize { words: narrow(words), fixed: 0 }
    }

    fn fixed(fixed: u32) -> TokenSize {
        TokenSize { words: 0, fixed }
    }

    fn plus(self, other: TokenSize) -> TokenSize {
        TokenSize {
            words: self.words.saturating_add(other.words),
            fixed: self.fixed.saturating_add(other.fixed),
        }
    }
}

fn block_size(block: JsonNode<'_>, kind: BlockKind) -> TokenSize {
    let text = |name: &str| {
        TokenSize::of_words(
            block.get_text(name).map_or(0, |text| token_counts::count_word_tokens(&text.decoded())),
        )
    };
    let free = |name: &str| {
        TokenSize::of_words(
            block.get(name).map_or(0, |value| token_counts::count_word_tokens(&canonical_json(value))),
        )
    };
    match kind {
        BlockKind::Text => text("text"),
        BlockKind::ToolUse => {
            text("name").plus(free("input")).plus(TokenSize::fixed(token_counts::TOOL_BLOCK_TOKENS))
        }
        BlockKind::ToolResult => content_size(block).plus(TokenSize::fixed(token_counts::TOOL_BLOCK_TOKENS)),
        BlockKind::Compaction => text("content"),
        BlockKind::Thinking => thinking_size(block),
        BlockKind::RedactedThinking => TokenSize::fixed(hidden_tokens(block, "data")),
        BlockKind::CacheEdits => TokenSize::default(),
        BlockKind::Effort => TokenSize::fixed(8),
        BlockKind::ToolAddition | BlockKind::ToolRemoval | BlockKind::Tool => json_size(block),
        BlockKind::Other => other_size(block),
    }
}

/// Size of string or block content.
fn content_size(holder: JsonNode<'_>) -> TokenSize {
    let Some(content) = holder.get("content") else { return TokenSize::default() };
    match content.text() {
        Some(text) => TokenSize::of_words(token_counts::count_word_tokens(&text.decoded())),
        None => content
            .items()
            .map(|block| block_size(block, BlockKind::of(block)))
            .fold(TokenSize::default(), |sum, size| sum.plus(size)),
    }
}

/// Sizes images and documents by their data, everything else by its JSON.
fn other_size(block: JsonNode<'_>) -> TokenSize {
    let source = block.get("source");
    let data = source.and_then(|source| source.get_text("data"));
    let is = |name: &str| block.get_text("type").is_some_and(|kind| kind.is(name));
    if is("image") {
        return TokenSize::fixed(match data {
            Some(data) => media_tokens::image_tokens(&data.decoded()),
            None => media_tokens::distant_image_tokens(),
        });
    }
    if is("document") {
        let about = ["title", "context"].into_iter().filter_map(|name| block.get_text(name));
        let about =
            TokenSize::of_words(about.map(|text| token_counts::count_word_tokens(&text.decoded())).sum());
        let is_text = source.and_then(|source| source.get_text("type")).is_some_and(|kind| kind.is("text"));
        return about.plus(match (data, source) {
            (Some(data), _) if is_text => {
                TokenSize::of_words(token_counts::count_word_tokens(&data.decoded()))
            }
            (Some(data), _) => TokenSize::fixed(media_tokens::document_tokens(data.decoded().len())),
            (None, Some(source)) if source.get("content").is_some() => content_size(source),
            _ => TokenSize::fixed(media_tokens::document_tokens(0)),
        });
    }
    json_size(block)
}

/// Size of a block rendered as JSON, without breakpoint and white space.
fn json_size(block: JsonNode<'_>) -> TokenSize {
    TokenSize::of_words(token_counts::count_word_tokens(&canonical_block(block)))
}

/// Hidden thinking counts its tokens too: the signature states them.
fn thinking_size(block: JsonNode<'_>) -> TokenSize {
    let shown = block.get_text("thinking").map_or(Cow::Borrowed(""), |text| text.decoded());
    let signature = block.get_text("signature").map_or(Cow::Borrowed(""), |text| text.decoded());
    match block_signatures::signed_tokens(&signature) {
        Some(tokens) => TokenSize::fixed(tokens),
        None if shown.is_empty() => TokenSize::fixed(hidden_tokens(block, "signature")),
        None => TokenSize::of_words(token_counts::count_word_tokens(&shown)),
    }
}

/// Estimated tokens of encrypted content: three bytes per four digits, about five bytes a token.
fn hidden_tokens(block: JsonNode<'_>, field: &str) -> u32 {
    block.get_text(field).map_or(0, |text| narrow(text.decoded().len() as u64 * 3 / 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memo_is_consistent_and_bounded() {
        let mut memo = BlockMemo::default();
        let raw = r#"{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"found it"}]}"#;
        let first = memo.block(raw);
        assert_eq!(first, memo.block(raw));
        assert_eq!(first.kind, BlockKind::ToolResult);
        assert!(first.tokens(TokenGeneration::O200k) >= 18);
        for number in 0..3 * HALF {
            memo.block(&format!(r#"{{"type":"text","text":"{number}"}}"#));
        }
        assert!(memo.newer.len() + memo.older.len() <= 2 * HALF);
        assert_eq!(first, memo.block(raw));
    }
}
