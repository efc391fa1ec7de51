//! What is true of a block wherever it stands: its identity, its size, what it is.
//!
//! Facts are computed once for each sequence of bytes and then remembered, so that a history which is sent again costs
//! a hash and no more.

use std::borrow::Cow;

use pal_model::TokenGeneration;
use pal_wire::{Node, Reading};
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_128;

use crate::identity::{canonical, canonical_free, for_binding, for_cache, mix};
use crate::media;
use crate::seal;
use crate::tokens;

/// The facts about a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Identity for the cache.
    pub(crate) cache: u128,
    /// Identity for bound thinking.
    pub(crate) binding: u128,
    /// What it is.
    pub(crate) kind: Kind,
    /// Whether it asks for citations.
    pub(crate) cites: bool,
    /// Whether it is a result that refers to tools.
    pub(crate) refers: bool,
    words: u32,
    fixed: u32,
}

impl Facts {
    /// Its tokens, as a generation counts them.
    pub(crate) fn tokens(&self, generation: TokenGeneration) -> u64 {
        tokens::scaled(u64::from(self.words), generation) + u64::from(self.fixed)
    }

    /// Takes in another block that is rendered within this one.
    pub(crate) fn absorb(&mut self, other: &Facts) {
        self.cache = mix(self.cache, other.cache);
        self.binding = mix(self.binding, other.binding);
        self.words = self.words.saturating_add(other.words);
        self.fixed = self.fixed.saturating_add(other.fixed);
    }

    /// Takes the tokens away and leaves the identity: deleted in the cache, in place.
    pub(crate) fn hollow(&mut self) {
        self.words = 0;
        self.fixed = 0;
    }
}

/// What a block is, as far as the simulator treats it differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Thinking,
    RedactedThinking,
    ToolUse,
    ToolResult,
    Compaction,
    CacheEdits,
    ToolAddition,
    ToolRemoval,
    /// A definition of a tool.
    Tool,
    /// A system message that does nothing but set the effort.
    Effort,
    /// Anything else.
    Other,
}

impl Kind {
    fn of(block: Node<'_>) -> Kind {
        const KINDS: &[(&str, Kind)] = &[
            ("text", Kind::Text),
            ("tool_use", Kind::ToolUse),
            ("tool_result", Kind::ToolResult),
            ("thinking", Kind::Thinking),
            ("redacted_thinking", Kind::RedactedThinking),
            ("compaction", Kind::Compaction),
            ("cache_edits", Kind::CacheEdits),
            ("tool_addition", Kind::ToolAddition),
            ("tool_removal", Kind::ToolRemoval),
            ("effort", Kind::Effort),
        ];
        let word = block.get_text("type");
        let known = KINDS.iter().find(|(name, _)| word.is_some_and(|word| word.is(name)));
        known.map_or(Kind::Other, |&(_, kind)| kind)
    }

    /// Whether it is thinking of either kind.
    pub(crate) fn is_thinking(self) -> bool {
        matches!(self, Kind::Thinking | Kind::RedactedThinking)
    }

    /// Whether a mark can stand on it, apart from the rule about empty text.
    pub(crate) fn can_be_marked(self) -> bool {
        !matches!(
            self,
            Kind::Thinking
                | Kind::RedactedThinking
                | Kind::CacheEdits
                | Kind::ToolAddition
                | Kind::ToolRemoval
                | Kind::Effort
        )
    }
}

/// Blocks that were seen lately. Bounded: the older half goes when the newer half is full.
#[derive(Default)]
pub(crate) struct Memo {
    newer: FxHashMap<u128, Facts>,
    older: FxHashMap<u128, Facts>,
}

/// Blocks in each half of a [`Memo`]; one takes about a hundred bytes.
const HALF: usize = 1 << 16;

impl Memo {
    /// The facts about a content block.
    pub(crate) fn block(&mut self, raw: &str) -> Facts {
        self.get(raw, xxh3_128(raw.as_bytes()), block_facts)
    }

    /// The facts about a definition of a tool.
    pub(crate) fn tool(&mut self, raw: &str) -> Facts {
        self.get(raw, !xxh3_128(raw.as_bytes()), tool_facts)
    }

    fn get(&mut self, raw: &str, key: u128, compute: fn(&str) -> Facts) -> Facts {
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

fn block_facts(raw: &str) -> Facts {
    let Ok(reading) = Reading::new(raw.as_bytes(), usize::MAX) else { return unreadable(raw) };
    let block = reading.root();
    let kind = Kind::of(block);
    let size = block_size(block, kind);
    let content = || block.get("content").into_iter().flat_map(Node::items);
    let is = |node: Node<'_>, name: &str| node.get_text("type").is_some_and(|kind| kind.is(name));
    let asks = |node: Node<'_>| {
        node.get("citations").and_then(|config| config.get("enabled")).is_some_and(Node::is_true)
    };
    Facts {
        cache: for_cache(block),
        binding: for_binding(block),
        kind,
        cites: asks(block) || content().any(asks),
        refers: kind == Kind::ToolResult && content().any(|inner| is(inner, "tool_reference")),
        words: size.words,
        fixed: size.fixed,
    }
}

fn tool_facts(raw: &str) -> Facts {
    let Ok(reading) = Reading::new(raw.as_bytes(), usize::MAX) else { return unreadable(raw) };
    let tool = reading.root();
    Facts {
        cache: for_cache(tool),
        binding: for_binding(tool),
        kind: Kind::Tool,
        cites: false,
        refers: false,
        words: narrow(tokens::words(&canonical(tool))),
        fixed: tokens::TOOL_TOKENS,
    }
}

/// Only what passed the validator comes here, so this is for callers that made a block themselves, wrongly.
fn unreadable(raw: &str) -> Facts {
    let hash = xxh3_128(raw.as_bytes());
    let words = narrow(tokens::words(raw));
    Facts { cache: hash, binding: hash, kind: Kind::Other, cites: false, refers: false, words, fixed: 0 }
}

fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Tokens: those that scale with the generation, and those that do not.
#[derive(Clone, Copy, Default)]
struct Size {
    words: u32,
    fixed: u32,
}

impl Size {
    fn words(words: u64) -> Size {
        Size { words: narrow(words), fixed: 0 }
    }

    fn fixed(fixed: u32) -> Size {
        Size { words: 0, fixed }
    }

    fn plus(self, other: Size) -> Size {
        Size { words: self.words.saturating_add(other.words), fixed: self.fixed.saturating_add(other.fixed) }
    }
}

fn block_size(block: Node<'_>, kind: Kind) -> Size {
    let text =
        |name: &str| Size::words(block.get_text(name).map_or(0, |text| tokens::words(&text.decoded())));
    let free =
        |name: &str| Size::words(block.get(name).map_or(0, |value| tokens::words(&canonical_free(value))));
    match kind {
        Kind::Text => text("text"),
        Kind::ToolUse => text("name").plus(free("input")).plus(Size::fixed(tokens::TOOL_BLOCK_TOKENS)),
        Kind::ToolResult => content_size(block).plus(Size::fixed(tokens::TOOL_BLOCK_TOKENS)),
        Kind::Compaction => text("content"),
        Kind::Thinking => thinking_size(block),
        Kind::RedactedThinking => Size::fixed(hidden_tokens(block, "data")),
        Kind::CacheEdits => Size::default(),
        Kind::Effort => Size::fixed(8),
        Kind::ToolAddition | Kind::ToolRemoval | Kind::Tool => json_size(block),
        Kind::Other => other_size(block),
    }
}

/// What a result holds: a string or blocks.
fn content_size(holder: Node<'_>) -> Size {
    let Some(content) = holder.get("content") else { return Size::default() };
    match content.text() {
        Some(text) => Size::words(tokens::words(&text.decoded())),
        None => content
            .items()
            .map(|block| block_size(block, Kind::of(block)))
            .fold(Size::default(), |sum, size| sum.plus(size)),
    }
}

/// Images and documents by their data, everything else by its JSON.
fn other_size(block: Node<'_>) -> Size {
    let source = block.get("source");
    let data = source.and_then(|source| source.get_text("data"));
    let is = |name: &str| block.get_text("type").is_some_and(|kind| kind.is(name));
    if is("image") {
        return Size::fixed(match data {
            Some(data) => media::image_tokens(&data.decoded()),
            None => media::distant_image_tokens(),
        });
    }
    if is("document") {
        let about = ["title", "context"].into_iter().filter_map(|name| block.get_text(name));
        let about = Size::words(about.map(|text| tokens::words(&text.decoded())).sum());
        let is_text = source.and_then(|source| source.get_text("type")).is_some_and(|kind| kind.is("text"));
        return about.plus(match (data, source) {
            (Some(data), _) if is_text => Size::words(tokens::words(&data.decoded())),
            (Some(data), _) => Size::fixed(media::document_tokens(data.decoded().len())),
            (None, Some(source)) if source.get("content").is_some() => content_size(source),
            _ => Size::fixed(media::document_tokens(0)),
        });
    }
    json_size(block)
}

/// What is rendered as JSON: neither a mark nor white space between its parts counts.
fn json_size(block: Node<'_>) -> Size {
    Size::words(tokens::words(&canonical(block)))
}

/// Thinking that is not shown takes its tokens all the same: the signature says how many.
fn thinking_size(block: Node<'_>) -> Size {
    let shown = block.get_text("thinking").map_or(Cow::Borrowed(""), |text| text.decoded());
    let signature = block.get_text("signature").map_or(Cow::Borrowed(""), |text| text.decoded());
    match seal::thought_tokens(&signature) {
        Some(tokens) => Size::fixed(tokens),
        None if shown.is_empty() => Size::fixed(hidden_tokens(block, "signature")),
        None => Size::words(tokens::words(&shown)),
    }
}

/// Tokens behind something encrypted: three bytes for four digits, about five bytes a token.
fn hidden_tokens(block: Node<'_>, field: &str) -> u32 {
    block.get_text(field).map_or(0, |text| narrow(text.decoded().len() as u64 * 3 / 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remembered_block_has_the_same_facts_and_memory_is_bounded() {
        let mut memo = Memo::default();
        let raw = r#"{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"found it"}]}"#;
        let first = memo.block(raw);
        assert_eq!(first, memo.block(raw));
        assert_eq!(first.kind, Kind::ToolResult);
        assert!(first.tokens(TokenGeneration::O200k) >= 18);
        for number in 0..3 * HALF {
            memo.block(&format!(r#"{{"type":"text","text":"{number}"}}"#));
        }
        assert!(memo.newer.len() + memo.older.len() <= 2 * HALF);
        assert_eq!(first, memo.block(raw));
    }
}
