//! Rendering: a view to the body of a Messages request, as slices of shared text.
//!
//! The body is never put together unless somebody asks for it whole. Rendering twice gives the same bytes; a
//! mark is the only thing that may differ between two renderings of one block.

use pal_model::{EntryId, Part, Parts, Role, SystemNote, Text, escape_into};
use smol_str::SmolStr;
use xxhash_rust::xxh3::xxh3_128;

use crate::head::Joined;
use crate::ledger::Category;
use crate::mark::{Mark, Spot};
use crate::rope::{Rope, Slab};
use crate::view::View;
use crate::wire::text_block;

/// What a request asks for besides its content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RenderOptions {
    /// Most tokens that the answer may have.
    pub max_tokens: u64,
    /// Whether the answer is streamed.
    pub stream: bool,
    /// Whether a prompt that a transcript does not hold is stood in for by as many tokens of text, as a replay needs
    /// it, or only noted.
    pub spell_out_unseen: bool,
}

/// Members that have no part in the key of the provider's cache: requests that differ in them share what they begin with.
pub const OUTSIDE_THE_KEY: [&str; 5] = ["max_tokens", "stream", "diagnostics", "metadata", "stop_sequences"];

/// The body of a request. It is rendered without marks; whoever plans the cache puts them in.
#[derive(Clone, Debug)]
pub struct Request {
    /// The small members, which stand before what is the same for all requests, in order.
    members: Vec<(SmolStr, Text)>,
    max_tokens: u64,
    /// What raw tokens are multiplied with.
    scale: f64,
    prefix: Joined,
    /// Fingerprint of the prefix, marks left out.
    prefix_print: u128,
    rope: Rope,
    /// How many blocks the request before it held.
    sent_blocks: usize,
    /// How many blocks stand before all messages, whatever is compacted.
    opening_blocks: usize,
    /// In the order in which they stand.
    marks: Vec<Mark>,
}

impl View {
    /// The request that would leave now, without marks.
    pub fn render(&self, options: RenderOptions) -> Request {
        let (prefix, prefix_print) = self.derived().prefix(options.spell_out_unseen, &self.lens().estimator);
        Request {
            members: self.members(options),
            max_tokens: options.max_tokens,
            scale: self.lens().estimator.scale(),
            prefix,
            prefix_print,
            rope: self.derived().rope_now(self.lens()),
            sent_blocks: self.derived().closed_blocks(),
            opening_blocks: self.derived().opening().0,
            marks: Vec::new(),
        }
    }

    /// A fork: the request that would leave now, and a directive at its end.
    pub fn fork(&self, options: RenderOptions, directive: &str) -> Request {
        let mut request = self.render(options);
        let slab = Slab {
            text: text_block(directive),
            markable: true,
            category: Category::Attachments,
            tokens: self.lens().estimator.text(directive),
            attached: 0.0,
        };
        request.rope.push(Role::User, slab);
        request
    }

    /// The view as it was before an entry of the branch.
    pub fn until(&self, entry: EntryId) -> Option<View> {
        let position = *self.positions().get(&entry)? as usize;
        Some(View::of(self.lens().clone(), self.branch()[..position].iter().cloned()))
    }

    /// The members that stand before tools, system and messages.
    fn members(&self, options: RenderOptions) -> Vec<(SmolStr, Text)> {
        let mut model = String::new();
        escape_into(&mut model, &self.lens().card.model);
        let member = |name: &'static str, value: &str| (SmolStr::new_static(name), Text::from(value));
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
    /// The same request with a member more at its top level; `value` is raw JSON.
    pub fn with_member(mut self, name: &str, value: &str) -> Request {
        self.members.push((SmolStr::new(name), Text::from(value)));
        self
    }

    /// The same request with these marks and no others.
    pub fn with_marks(mut self, mut marks: Vec<Mark>) -> Request {
        marks.sort_by_key(|mark| mark.spot);
        self.marks = marks;
        self
    }

    /// The body as shared parts, in order.
    pub fn parts(&self) -> Parts {
        let mut parts = Vec::with_capacity(2 * self.rope.extent().blocks + 16);
        parts.push(Part::Shared(Text::from(self.opening())));
        parts.extend(self.head_parts());
        parts.push(Part::Fixed(r#""messages":["#));
        for (at, piece) in self.rope.pieces().enumerate() {
            let text = &piece.text;
            parts.push(Part::Fixed(joint(at, piece.opens)));
            match self.marks.iter().find(|mark| mark.spot == Spot::Block(at)) {
                // A block is an object, so a mark goes before its last character.
                Some(mark) => {
                    parts.push(Part::Shared(text.slice_of(&text[..text.len() - 1])));
                    parts.extend([Part::Fixed(mark.json()), Part::Fixed("}")]);
                }
                None => parts.push(Part::Shared(text.clone())),
            }
        }
        parts.push(Part::Fixed(if self.rope.extent().blocks == 0 { "]}" } else { "]}]}" }));
        parts.into()
    }

    /// The members before tools and system, each with a comma behind it.
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

    /// Tools and system, with their marks.
    fn head_parts(&self) -> Vec<Part> {
        let text = &self.prefix.text;
        let mut parts = Vec::with_capacity(5);
        let mut from = 0;
        for mark in &self.marks {
            let at = match mark.spot {
                Spot::Tool(tool) => self.prefix.tool_marks.get(tool),
                Spot::System(block) => self.prefix.system_marks.get(block),
                Spot::Block(_) => None,
            };
            let Some(&at) = at else { continue };
            parts.push(Part::Shared(text.slice_of(&text[from..at])));
            parts.push(Part::Fixed(mark.json()));
            from = at;
        }
        parts.push(Part::Shared(text.slice_of(&text[from..])));
        parts
    }

    /// The marks, in the order in which they stand.
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// The newest block that may carry a mark, of so many blocks from the start.
    pub fn last_markable(&self, blocks: usize) -> Option<usize> {
        let behind = self.rope.extent().blocks.saturating_sub(blocks);
        let from_end = self.rope.pieces().rev().skip(behind).position(|piece| piece.markable)?;
        Some(self.rope.extent().blocks - behind - 1 - from_end)
    }

    /// How many blocks the request before it held.
    pub fn sent_blocks(&self) -> usize {
        self.sent_blocks
    }

    /// How many blocks stand before all messages, whatever is compacted.
    pub fn opening_blocks(&self) -> usize {
        self.opening_blocks
    }

    /// How many blocks stand before the last message.
    pub fn blocks_before_last_message(&self) -> usize {
        let from_end = self.rope.pieces().rev().position(|piece| piece.opens.is_some());
        self.rope.extent().blocks - from_end.map_or(0, |from_end| from_end + 1)
    }

    /// About how many tokens it has up to and including a spot.
    pub fn tokens_until(&self, spot: Spot) -> f64 {
        let of = |sums: &[f64], at: usize| sums.get(at).or(sums.last()).copied().unwrap_or_default();
        let prefix = &self.prefix;
        match spot {
            Spot::Tool(at) => self.scale * of(&prefix.tool_tokens, at),
            Spot::System(at) => {
                let is_last = at + 1 >= prefix.system_tokens.len();
                let unseen = if is_last { prefix.unseen_tokens } else { 0.0 };
                self.scale * of(&prefix.system_tokens, at) + unseen
            }
            // Counted from the end, where marks stand.
            Spot::Block(at) => {
                let behind = self.rope.pieces().rev().take(self.rope.extent().blocks - 1 - at);
                let behind: f64 = behind.map(|piece| piece.tokens).sum();
                let raw = prefix.tokens + self.rope.extent().sums.total() - behind;
                self.scale * raw + prefix.unseen_tokens
            }
        }
    }

    /// The small members, in order: what is asked besides the content, as raw JSON.
    pub fn members(&self) -> &[(SmolStr, Text)] {
        &self.members
    }

    /// The whole body in one buffer.
    pub fn body(&self) -> String {
        self.parts().joined()
    }

    /// Most tokens that the answer may have.
    pub fn max_tokens(&self) -> u64 {
        self.max_tokens
    }

    /// How many messages it has.
    pub fn messages(&self) -> usize {
        self.rope.extent().messages
    }

    /// How many blocks its messages have.
    pub fn blocks(&self) -> usize {
        self.rope.extent().blocks
    }

    /// About how many bytes the body has: all blocks and the head, less the joints between them.
    pub fn bytes(&self) -> usize {
        let members: usize = self.members.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
        members
            + self.prefix.text.len()
            + self.rope.extent().bytes
            + 40 * self.rope.extent().messages
            + self.rope.extent().blocks
    }

    /// A fingerprint of everything but marks: equal requests have equal ones.
    pub fn fingerprint(&self) -> String {
        let opening = xxh3_128(self.opening().as_bytes());
        let mut bytes = [0; 48];
        bytes[..16].copy_from_slice(&opening.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.prefix_print.to_le_bytes());
        bytes[32..].copy_from_slice(&self.rope.extent().chain.to_le_bytes());
        format!("{:032x}", xxh3_128(&bytes))
    }

    /// A fingerprint of what a request shares with the other forks of its conversation: tools and system, the members
    /// that are in the key of the provider's cache, and the messages up to where the conversation's last request ended.
    /// Marks and whatever was said since have no part in it. Requests with equal ones read one entry of the cache, so
    /// those that start together are sent one behind the other until it is written (§5.7).
    pub fn shared_print(&self) -> u128 {
        let mut key = String::new();
        for (name, value) in &self.members {
            if !OUTSIDE_THE_KEY.contains(&name.as_str()) {
                escape_into(&mut key, name);
                key.push_str(value);
            }
        }
        let sent = self.sent_blocks.checked_sub(1).and_then(|last| self.chain_at(last)).unwrap_or_default();
        let mut bytes = [0; 48];
        bytes[..16].copy_from_slice(&xxh3_128(key.as_bytes()).to_le_bytes());
        bytes[16..32].copy_from_slice(&self.prefix_print.to_le_bytes());
        bytes[32..].copy_from_slice(&sent.to_le_bytes());
        xxh3_128(&bytes)
    }

    /// The fingerprint of the messages up to and including each block. Two requests share the provider's cache up
    /// to where these differ.
    pub fn chain(&self) -> impl DoubleEndedIterator<Item = u128> {
        self.rope.pieces().map(|piece| piece.chain)
    }

    /// The tools, in order, without marks.
    pub fn tools(&self) -> &[Text] {
        &self.prefix.tools
    }

    /// The system blocks, in order, without marks.
    pub fn system(&self) -> &[Text] {
        &self.prefix.system
    }

    /// What the system blocks are made of, one note each.
    pub fn system_notes(&self) -> &[SystemNote] {
        &self.prefix.notes
    }

    /// A fingerprint of tools and system blocks.
    pub fn prefix_print(&self) -> u128 {
        self.prefix_print
    }

    /// The blocks of the messages: the role if it opens a message, the block, and whether it carries a mark.
    pub fn pieces(&self) -> impl Iterator<Item = (Option<Role>, &Text, bool)> {
        let is_marked = |at| self.marks.iter().any(|mark| mark.spot == Spot::Block(at));
        let pieces = self.rope.pieces().enumerate();
        pieces.map(move |(at, piece)| (piece.opens, &piece.text, is_marked(at)))
    }

    /// The fingerprint of the messages up to a block, and that of the whole: two requests share what they begin with
    /// if the shorter one's whole is the longer one's chain there.
    pub fn chain_at(&self, block: usize) -> Option<u128> {
        let behind = self.rope.extent().blocks.checked_sub(block + 1)?;
        self.rope.pieces().rev().nth(behind).map(|piece| piece.chain)
    }
}

/// What stands before a block: the end of one message and the beginning of the next, or a comma.
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
