//! Rendering: a view to the body of a Messages request, as slices of shared text.
//!
//! The body is never put together unless somebody asks for it whole. Rendering twice gives the same bytes; a
//! mark is the only thing that may differ between two renderings of one block.

use pal_model::{Part, Parts, Role, Text, escape_into};
use xxhash_rust::xxh3::xxh3_128;

use crate::head::Joined;
use crate::rope::Rope;
use crate::view::View;
use crate::wire::CacheLifetime;

/// What a request asks for besides its content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RenderOptions {
    /// Most tokens that the answer may have.
    pub max_tokens: u64,
    /// Whether the answer is streamed.
    pub stream: bool,
    /// Whether to mark the end of the system blocks and the end of the conversation for the cache.
    pub marks: bool,
    /// Whether a prompt that a transcript does not hold is stood in for by as many tokens of text, as a replay needs
    /// it, or only noted.
    pub spell_out_unseen: bool,
}

/// The body of a request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The body up to the first block of the first message: the small members, and what is the same for all.
    opening: Text,
    prefix: Joined,
    marks_head: bool,
    /// Fingerprint of all of that, marks left out.
    head_print: u128,
    rope: Rope,
    /// The blocks of the messages that carry a mark, in order.
    marks: Vec<usize>,
    lifetime: CacheLifetime,
}

impl View {
    /// The request that would leave now.
    pub fn render(&self, options: RenderOptions) -> Request {
        let rope = self.derived().rope_now(self.lens());
        let sums = &self.derived().head.sums;
        let least = self.lens().card.min_cacheable as f64;
        let marks_head = options.marks && sums.total() >= least;
        let marks_tail = options.marks && sums.total() + rope.extent().sums.total() >= least;
        let mark = marks_tail.then(|| rope.pieces().rev().position(|piece| piece.markable)).flatten();
        let opening = self.opening(options);
        let (prefix, prefix_print) = self.derived().prefix(options.spell_out_unseen, &self.lens().estimator);
        Request {
            head_print: xxh3_128(format!("{opening}{prefix_print:032x}").as_bytes()),
            opening: Text::from(opening),
            prefix,
            marks_head,
            marks: mark.map(|from_end| rope.extent().blocks - 1 - from_end).into_iter().collect(),
            lifetime: CacheLifetime::default(),
            rope,
        }
    }

    /// The members that stand before tools, system and messages.
    fn opening(&self, options: RenderOptions) -> String {
        let mut json = String::with_capacity(160);
        json.push_str(r#"{"model":"#);
        escape_into(&mut json, &self.lens().card.model);
        json.push_str(&format!(r#","max_tokens":{},"#, options.max_tokens));
        if options.stream {
            json.push_str(r#""stream":true,"#);
        }
        if self.lens().card.thinking.adaptive {
            json.push_str(r#""thinking":{"type":"adaptive"},"#);
        }
        json
    }
}

impl Request {
    /// The body as shared parts, in order.
    pub fn parts(&self) -> Parts {
        let blocks = self.rope.pieces().enumerate().flat_map(move |(at, piece)| {
            let text = &piece.text;
            let (open, mark, close) = if self.marks.contains(&at) {
                // A block is an object, so a mark goes before its last character.
                (text.slice_of(&text[..text.len() - 1]), self.lifetime.mark(), "}")
            } else {
                (text.clone(), "", "")
            };
            [Part::Fixed(joint(at, piece.opens)), Part::Shared(open), Part::Fixed(mark), Part::Fixed(close)]
        });
        let end = if self.rope.extent().blocks == 0 { "]}" } else { "]}]}" };
        let prefix = &self.prefix.text;
        let (before, mark, after) = match self.prefix.mark_at.filter(|_| self.marks_head) {
            Some(at) => {
                (prefix.slice_of(&prefix[..at]), self.lifetime.mark(), prefix.slice_of(&prefix[at..]))
            }
            None => (prefix.clone(), "", Text::from("")),
        };
        let head = [
            Part::Shared(self.opening.clone()),
            Part::Shared(before),
            Part::Fixed(mark),
            Part::Shared(after),
            Part::Fixed(r#""messages":["#),
        ];
        head.into_iter().chain(blocks).chain(std::iter::once(Part::Fixed(end))).collect()
    }

    /// The same request with its marks as another client sets them: at the end of each of the last `messages`
    /// messages, all for this lifetime. A request that carries no mark gets none.
    pub fn marked(mut self, messages: usize, lifetime: CacheLifetime) -> Request {
        self.lifetime = lifetime;
        if !self.marks.is_empty() {
            self.marks = self.last_markable(messages);
        }
        self
    }

    /// The last block that may carry a mark in each of the last messages.
    fn last_markable(&self, messages: usize) -> Vec<usize> {
        let mut found = Vec::new();
        let (mut seen, mut is_found) = (0, false);
        for (from_end, piece) in self.rope.pieces().rev().enumerate() {
            if seen == messages {
                break;
            }
            if piece.markable && !is_found {
                found.push(self.rope.extent().blocks - 1 - from_end);
                is_found = true;
            }
            if piece.opens.is_some() {
                seen += 1;
                is_found = false;
            }
        }
        found.reverse();
        found
    }

    /// The whole body in one buffer.
    pub fn body(&self) -> String {
        self.parts().joined()
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
        self.opening.len()
            + self.prefix.text.len()
            + self.rope.extent().bytes
            + 40 * self.rope.extent().messages
            + self.rope.extent().blocks
    }

    /// A fingerprint of everything but marks: equal requests have equal ones.
    pub fn fingerprint(&self) -> String {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&self.head_print.to_le_bytes());
        bytes[16..].copy_from_slice(&self.rope.extent().chain.to_le_bytes());
        format!("{:032x}", xxh3_128(&bytes))
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

    /// The blocks of the messages: the role if it opens a message, the block, and whether it carries a mark.
    pub fn pieces(&self) -> impl Iterator<Item = (Option<Role>, &Text, bool)> {
        self.rope.pieces().enumerate().map(|(at, piece)| (piece.opens, &piece.text, self.marks.contains(&at)))
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
