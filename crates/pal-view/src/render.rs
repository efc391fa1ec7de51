//! Rendering of a view to the body of a Messages request, as slices of shared text.
//!
//! The body is joined only by [`Request::body`]. Rendering twice gives the same bytes; only breakpoints may
//! differ between two renderings of one block.

use pal_model::{ChunkedText, EntryId, Role, SharedText, SystemBlockNote, TextChunk, escape_into};
use smol_str::SmolStr;
use xxhash_rust::xxh3::xxh3_128;

use crate::cache_breakpoint::{BreakpointPosition, CacheBreakpoint};
use crate::json_object::text_block;
use crate::message_rope::{MessageRope, RopeBlock};
use crate::request_head::RenderedHead;
use crate::token_category::Category;
use crate::view::View;

/// Request parameters besides the content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RenderOptions {
    /// Maximum output tokens.
    pub max_tokens: u64,
    /// Requests a streamed response.
    pub stream: bool,
    /// Replaces a prompt that the transcript does not hold by filler text of the same size, as a replay needs
    /// it; otherwise only a note stands there.
    pub spell_out_unseen: bool,
}

/// Members that are no part of the provider's cache key: requests that differ only in them share cache
/// entries.
pub const MEMBERS_OUTSIDE_CACHE_KEY: [&str; 5] =
    ["max_tokens", "stream", "diagnostics", "metadata", "stop_sequences"];

/// The body of a request. It is rendered without breakpoints; the cache plan adds them by
/// [`Request::with_breakpoints`].
#[derive(Clone, Debug)]
pub struct Request {
    /// Small members before tools, system and messages, in order.
    members: Vec<(SmolStr, SharedText)>,
    max_tokens: u64,
    /// Factor from raw to corrected tokens.
    scale: f64,
    prefix: RenderedHead,
    /// Fingerprint of the prefix without breakpoints.
    prefix_print: u128,
    rope: MessageRope,
    /// Number of blocks of the previous request.
    sent_blocks: usize,
    /// Number of blocks that the forks of one response share; 0 if there are none.
    shared_blocks: usize,
    /// Number of blocks before all messages, which no compaction removes.
    opening_blocks: usize,
    /// Sorted by position.
    breakpoints: Vec<CacheBreakpoint>,
}

impl View {
    /// Renders the request that would leave now, without breakpoints.
    pub fn render(&self, options: RenderOptions) -> Request {
        let (prefix, prefix_print) = self.derived().prefix(options.spell_out_unseen, &self.lens().estimator);
        Request {
            members: self.members(options),
            max_tokens: options.max_tokens,
            scale: self.lens().estimator.scale(),
            prefix,
            prefix_print,
            rope: self.derived().current_rope(self.lens()),
            sent_blocks: self.derived().closed_blocks(),
            shared_blocks: 0,
            opening_blocks: self.derived().opening().0,
            breakpoints: Vec::new(),
        }
    }

    /// Renders a fork: the request that would leave now, and a directive at its end.
    pub fn fork(&self, options: RenderOptions, directive: &str) -> Request {
        let mut request = self.render(options);
        let slab = RopeBlock {
            text: text_block(directive),
            markable: true,
            category: Category::Attachments,
            tokens: self.lens().estimator.text(directive),
            attached: 0.0,
        };
        request.rope.push(Role::User, slab);
        request
    }

    /// Returns the view as it was before an entry of the branch.
    pub fn before_entry(&self, entry: EntryId) -> Option<View> {
        let position = *self.positions().get(&entry)? as usize;
        Some(View::from_branch(self.lens().clone(), self.branch()[..position].iter().cloned()))
    }

    /// Members before tools, system and messages.
    fn members(&self, options: RenderOptions) -> Vec<(SmolStr, SharedText)> {
        let mut model = String::new();
        escape_into(&mut model, &self.lens().card.model);
        let member = |name: &'static str, value: &str| (SmolStr::new_static(name), SharedText::from(value));
        let mut members =
            vec![member("model", &model), member("max_tokens", &options.max_tokens.to_string())];
        if options.stream {
            members.push(member("stream", "true"));
        }
        if self.lens().card.thinking.adaptive {
            members.push(member("thinking", r#"{"type":"adaptive"}"#));
        }
        members
    }
}

impl Request {
    /// Adds a member at the top level; `value` is raw JSON.
    pub fn with_member(mut self, name: &str, value: &str) -> Request {
        self.members.push((SmolStr::new(name), SharedText::from(value)));
        self
    }

    /// Sets the number of blocks that this request shares with other forks of the same response.
    pub fn with_shared_blocks(mut self, blocks: usize) -> Request {
        self.shared_blocks = blocks;
        self
    }

    /// Replaces all breakpoints.
    pub fn with_breakpoints(mut self, mut breakpoints: Vec<CacheBreakpoint>) -> Request {
        breakpoints.sort_by_key(|mark| mark.position);
        self.breakpoints = breakpoints;
        self
    }

    /// The body as shared chunks, in order.
    pub fn parts(&self) -> ChunkedText {
        let mut parts = Vec::with_capacity(2 * self.rope.extent().blocks + 16);
        parts.push(TextChunk::Shared(SharedText::from(self.opening())));
        parts.extend(self.head_parts());
        parts.push(TextChunk::Fixed(r#""messages":["#));
        for (at, piece) in self.rope.pieces().enumerate() {
            let text = &piece.text;
            parts.push(TextChunk::Fixed(joint(at, piece.opens)));
            match self.breakpoints.iter().find(|mark| mark.position == BreakpointPosition::Block(at)) {
                // A block is an object, so a breakpoint goes before its last character.
                Some(mark) => {
                    parts.push(TextChunk::Shared(text.slice_of(&text[..text.len() - 1])));
                    parts.extend([TextChunk::Fixed(mark.json()), TextChunk::Fixed("}")]);
                }
                None => parts.push(TextChunk::Shared(text.clone())),
            }
        }
        parts.push(TextChunk::Fixed(if self.rope.extent().blocks == 0 { "]}" } else { "]}]}" }));
        parts.into()
    }

    /// Renders the members before tools and system, each with a trailing comma.
    fn opening(&self) -> String {
        let mut json = String::with_capacity(160);
        json.push('{');
        for (name, value) in &self.members {
            escape_into(&mut json, name);
            json.push(':');
            json.push_str(value);
            json.push(',');
        }
        json
    }

    /// Tools and system, with their breakpoints.
    fn head_parts(&self) -> Vec<TextChunk> {
        let text = &self.prefix.text;
        let mut parts = Vec::with_capacity(5);
        let mut from = 0;
        for mark in &self.breakpoints {
            let at = match mark.position {
                BreakpointPosition::Tool(tool) => self.prefix.tool_marks.get(tool),
                BreakpointPosition::System(block) => self.prefix.system_marks.get(block),
                BreakpointPosition::Block(_) => None,
            };
            let Some(&at) = at else { continue };
            parts.push(TextChunk::Shared(text.slice_of(&text[from..at])));
            parts.push(TextChunk::Fixed(mark.json()));
            from = at;
        }
        parts.push(TextChunk::Shared(text.slice_of(&text[from..])));
        parts
    }

    /// The breakpoints, sorted by position.
    pub fn breakpoints(&self) -> &[CacheBreakpoint] {
        &self.breakpoints
    }

    /// Index of the last block among the first `blocks` blocks that may carry a breakpoint.
    pub fn last_cacheable_block(&self, blocks: usize) -> Option<usize> {
        let behind = self.rope.extent().blocks.saturating_sub(blocks);
        let from_end = self.rope.pieces().rev().skip(behind).position(|piece| piece.markable)?;
        Some(self.rope.extent().blocks - behind - 1 - from_end)
    }

    /// Number of blocks of the previous request.
    pub fn sent_blocks(&self) -> usize {
        self.sent_blocks
    }

    /// Number of blocks that other forks of the same response send, too, if the previous request did not send them.
    pub fn shared_blocks(&self) -> Option<usize> {
        Some(self.shared_blocks).filter(|blocks| *blocks > self.sent_blocks)
    }

    /// Number of blocks before all messages, which no compaction removes.
    pub fn opening_blocks(&self) -> usize {
        self.opening_blocks
    }

    /// Number of blocks before the last message.
    pub fn blocks_before_last_message(&self) -> usize {
        let from_end = self.rope.pieces().rev().position(|piece| piece.opens.is_some());
        self.rope.extent().blocks - from_end.map_or(0, |from_end| from_end + 1)
    }

    /// Estimated tokens up to and including a position.
    pub fn tokens_up_to(&self, spot: BreakpointPosition) -> f64 {
        let of = |sums: &[f64], at: usize| sums.get(at).or(sums.last()).copied().unwrap_or_default();
        let prefix = &self.prefix;
        match spot {
            BreakpointPosition::Tool(at) => self.scale * of(&prefix.tool_tokens, at),
            BreakpointPosition::System(at) => {
                let is_last = at + 1 >= prefix.system_tokens.len();
                let unseen = if is_last { prefix.unseen_tokens } else { 0.0 };
                self.scale * of(&prefix.system_tokens, at) + unseen
            }
            // Counted from the end, where breakpoints usually stand.
            BreakpointPosition::Block(at) => {
                let behind = self.rope.pieces().rev().take(self.rope.extent().blocks - 1 - at);
                let behind: f64 = behind.map(|piece| piece.tokens).sum();
                let raw = prefix.tokens + self.rope.extent().sums.total() - behind;
                self.scale * raw + prefix.unseen_tokens
            }
        }
    }

    /// Small members in order, as raw JSON.
    pub fn members(&self) -> &[(SmolStr, SharedText)] {
        &self.members
    }

    /// The whole body in one buffer.
    pub fn body(&self) -> String {
        self.parts().to_joined_string()
    }

    /// Maximum output tokens.
    pub fn max_tokens(&self) -> u64 {
        self.max_tokens
    }

    /// Number of messages.
    pub fn message_count(&self) -> usize {
        self.rope.extent().messages
    }

    /// Number of blocks in all messages.
    pub fn block_count(&self) -> usize {
        self.rope.extent().blocks
    }

    /// Approximate size of the body in bytes: all blocks and the head, without the separators between them.
    pub fn approximate_bytes(&self) -> usize {
        let members: usize = self.members.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
        members
            + self.prefix.text.len()
            + self.rope.extent().bytes
            + 40 * self.rope.extent().messages
            + self.rope.extent().blocks
    }

    /// Fingerprint of everything but breakpoints.
    pub fn fingerprint(&self) -> String {
        let opening = xxh3_128(self.opening().as_bytes());
        let mut bytes = [0; 48];
        bytes[..16].copy_from_slice(&opening.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.prefix_print.to_le_bytes());
        bytes[32..].copy_from_slice(&self.rope.extent().chain.to_le_bytes());
        format!("{:032x}", xxh3_128(&bytes))
    }

    /// Fingerprint of the part that a request shares with the other forks of its conversation: tools and
    /// system, the members in the provider's cache key, and the messages of the conversation's last request; for a
    /// fork of a response, also what all of its forks send. Breakpoints and newer messages do not count. Requests with equal ones read one cache entry, so those
    /// that start together are sent one after the other until it is written (§5.7).
    pub fn shared_fingerprint(&self) -> u128 {
        let mut key = String::new();
        for (name, value) in &self.members {
            if !MEMBERS_OUTSIDE_CACHE_KEY.contains(&name.as_str()) {
                escape_into(&mut key, name);
                key.push_str(value);
            }
        }
        let shared = self.sent_blocks.max(self.shared_blocks);
        let sent = shared.checked_sub(1).and_then(|last| self.fingerprint_up_to(last)).unwrap_or_default();
        let mut bytes = [0; 48];
        bytes[..16].copy_from_slice(&xxh3_128(key.as_bytes()).to_le_bytes());
        bytes[16..32].copy_from_slice(&self.prefix_print.to_le_bytes());
        bytes[32..].copy_from_slice(&sent.to_le_bytes());
        xxh3_128(&bytes)
    }

    /// Fingerprints of the messages up to and including each block. Two requests share the provider's cache
    /// up to the first difference.
    pub fn block_fingerprints(&self) -> impl DoubleEndedIterator<Item = u128> {
        self.rope.pieces().map(|piece| piece.chain)
    }

    /// The tools, in order, without breakpoints.
    pub fn tools(&self) -> &[SharedText] {
        &self.prefix.tools
    }

    /// The system blocks, in order, without breakpoints.
    pub fn system_blocks(&self) -> &[SharedText] {
        &self.prefix.system
    }

    /// Notes on the system blocks, one each.
    pub fn system_notes(&self) -> &[SystemBlockNote] {
        &self.prefix.notes
    }

    /// Fingerprint of tools and system blocks.
    pub fn prefix_fingerprint(&self) -> u128 {
        self.prefix_print
    }

    /// The blocks of the messages: the role if it opens a message, the block, and true if it carries a
    /// breakpoint.
    pub fn pieces(&self) -> impl Iterator<Item = (Option<Role>, &SharedText, bool)> {
        let is_marked =
            |at| self.breakpoints.iter().any(|mark| mark.position == BreakpointPosition::Block(at));
        let pieces = self.rope.pieces().enumerate();
        pieces.map(move |(at, piece)| (piece.opens, &piece.text, is_marked(at)))
    }

    /// Fingerprint of the messages up to and including a block. A shorter request is a prefix of a longer one
    /// if its last fingerprint equals the longer one's at that block.
    pub fn fingerprint_up_to(&self, block: usize) -> Option<u128> {
        let behind = self.rope.extent().blocks.checked_sub(block + 1)?;
        self.rope.pieces().rev().nth(behind).map(|piece| piece.chain)
    }
}

/// JSON between two blocks: the end of one message and the beginning of the next, or a comma.
fn joint(at: usize, opens: Option<Role>) -> &'static str {
    match (at, opens) {
        (0, Some(Role::Assistant)) => r#"{"role":"assistant","content":["#,
        (0, _) => r#"{"role":"user","content":["#,
        (_, None) => ",",
        (_, Some(Role::User)) => r#"]},{"role":"user","content":["#,
        (_, Some(Role::Assistant)) => r#"]},{"role":"assistant","content":["#,
        (_, Some(Role::System)) => r#"]},{"role":"system","content":["#,
    }
}
