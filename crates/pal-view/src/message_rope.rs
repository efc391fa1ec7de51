//! The messages of a request as a rope of blocks.
//!
//! Blocks are slices of shared text; a message is only a flag on the block that opens it. So merging messages
//! and moving breakpoints never touches a block, and a fork of the rope shares all of its blocks with the
//! original: it costs two pointers for any length. Each block carries a fingerprint of everything up to and
//! including itself, breakpoints excluded.

use std::sync::Arc;

use pal_model::{Role, SharedText};
use xxhash_rust::xxh3::xxh3_128;

use crate::token_category::{Category, CategoryTokens};

/// Blocks per shared chunk.
const CHUNK: usize = 64;

/// One block of a request.
#[derive(Clone, Debug)]
pub(crate) struct RopePiece {
    /// The block as sent, without a breakpoint.
    pub(crate) text: SharedText,
    /// Set if the block opens a message of this role.
    pub(crate) opens: Option<Role>,
    /// True if the provider accepts a breakpoint on it.
    pub(crate) markable: bool,
    /// Fingerprint of everything up to and including this block.
    pub(crate) chain: u128,
    /// Its estimated tokens, reminders inside included.
    pub(crate) tokens: f64,
}

/// A block to be pushed onto a rope.
#[derive(Clone, Debug)]
pub(crate) struct RopeBlock {
    pub(crate) text: SharedText,
    /// True if the provider accepts a breakpoint on it.
    pub(crate) markable: bool,
    /// Token category.
    pub(crate) category: Category,
    /// Its estimated tokens.
    pub(crate) tokens: f64,
    /// Estimated tokens of reminders that stand inside it.
    pub(crate) attached: f64,
}

/// The blocks of all messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct MessageRope {
    /// Full chunks.
    full: Arc<Vec<Arc<Vec<RopePiece>>>>,
    /// The chunk that grows, never full.
    last: Arc<Vec<RopePiece>>,
    /// Blocks that a fork added.
    own: Option<Vec<RopePiece>>,
    extent: RopeExtent,
}

/// Extent of a rope up to some point, for cutting back to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct RopeExtent {
    pub(crate) blocks: usize,
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
    pub(crate) chain: u128,
    pub(crate) last_role: Option<Role>,
    /// True if the final assistant message may stay last (the provider continues from it).
    pub(crate) may_end_here: bool,
    /// True if the model has answered a message.
    pub(crate) has_answer: bool,
    pub(crate) sums: CategoryTokens,
}

impl MessageRope {
    pub(crate) fn extent(&self) -> &RopeExtent {
        &self.extent
    }

    /// Appends a block; it joins the last message if that has the same role. A user message may not follow a
    /// system message, so a placeholder answer is inserted between.
    pub(crate) fn push(&mut self, role: Role, slab: RopeBlock) {
        if role == Role::User && self.extent.last_role == Some(Role::System) {
            self.add(Role::Assistant, no_answer());
        }
        self.add(role, slab);
    }

    fn add(&mut self, role: Role, slab: RopeBlock) {
        let opens = (self.extent.last_role != Some(role)).then_some(role);
        let extent = &mut self.extent;
        // The provider's summary has the assistant role, but comes first.
        extent.has_answer |= role == Role::Assistant && extent.blocks > 0;
        extent.chain = link(extent.chain, opens, &slab.text);
        extent.blocks += 1;
        extent.messages += usize::from(opens.is_some());
        extent.bytes += slab.text.len();
        extent.last_role = Some(role);
        extent.may_end_here = role != Role::Assistant;
        extent.sums.add(slab.category, slab.tokens);
        extent.sums.add(Category::Attachments, slab.attached);
        let RopeBlock { text, markable, tokens, attached, .. } = slab;
        let piece = RopePiece { text, opens, markable, chain: extent.chain, tokens: tokens + attached };
        if let Some(own) = &mut self.own {
            own.push(piece);
            return;
        }
        let last = Arc::make_mut(&mut self.last);
        last.push(piece);
        if last.len() == CHUNK {
            let full = std::mem::replace(&mut self.last, Arc::new(Vec::with_capacity(CHUNK)));
            Arc::make_mut(&mut self.full).push(full);
        }
    }

    /// Returns a rope that continues independently from here.
    pub(crate) fn fork(&self) -> MessageRope {
        MessageRope { own: Some(self.own.clone().unwrap_or_default()), ..self.clone() }
    }

    /// Allows the final assistant message to stay last.
    pub(crate) fn allow_end(&mut self) {
        self.extent.may_end_here = true;
    }

    /// Cuts the rope back to an earlier extent. Must not be called on forks.
    pub(crate) fn truncate(&mut self, extent: RopeExtent) {
        let chunks = extent.blocks / CHUNK;
        if chunks < self.full.len() {
            let full = Arc::make_mut(&mut self.full);
            self.last = Arc::clone(&full[chunks]);
            full.truncate(chunks);
        }
        let keep = extent.blocks - chunks * CHUNK;
        if self.last.len() > keep {
            Arc::make_mut(&mut self.last).truncate(keep);
        }
        self.extent = extent;
    }

    pub(crate) fn pieces(&self) -> impl DoubleEndedIterator<Item = &RopePiece> {
        let full = self.full.iter().flat_map(|chunk| chunk.iter());
        full.chain(self.last.iter()).chain(self.own.iter().flatten())
    }
}

/// Placeholder for an answer that never came, or has not come yet.
fn no_answer() -> RopeBlock {
    RopeBlock {
        text: SharedText::from(r#"{"type":"text","text":"[No answer yet.]"}"#),
        markable: true,
        category: Category::Attachments,
        tokens: 6.0,
        attached: 0.0,
    }
}

/// Fingerprint after one more block.
fn link(chain: u128, opens: Option<Role>, text: &str) -> u128 {
    let mut bytes = [0; 33];
    bytes[..16].copy_from_slice(&chain.to_le_bytes());
    bytes[16..32].copy_from_slice(&xxh3_128(text.as_bytes()).to_le_bytes());
    bytes[32] = match opens {
        None => 0,
        Some(Role::User) => 1,
        Some(Role::Assistant) => 2,
        Some(Role::System) => 3,
    };
    xxh3_128(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slab(text: &str) -> RopeBlock {
        RopeBlock {
            text: SharedText::from(text),
            markable: true,
            category: Category::UserText,
            tokens: 1.0,
            attached: 0.0,
        }
    }

    fn filled(blocks: usize) -> MessageRope {
        let mut rope = MessageRope::default();
        for at in 0..blocks {
            rope.push(if at % 3 == 0 { Role::Assistant } else { Role::User }, slab(&at.to_string()));
        }
        rope
    }

    #[test]
    fn truncating_equals_never_having_grown() {
        for (long, short) in [(1, 0), (100, 64), (200, 63), (200, 65), (128, 128), (129, 128), (128, 127)] {
            let mut rope = filled(long);
            let kept = rope.clone();
            rope.truncate(filled(short).extent().clone());
            rope.push(Role::User, slab("next"));
            let mut fresh = filled(short);
            fresh.push(Role::User, slab("next"));
            let show = |rope: &MessageRope| {
                rope.pieces().map(|p| (p.text.to_string(), p.opens, p.chain)).collect::<Vec<_>>()
            };
            assert_eq!(show(&rope), show(&fresh));
            assert_eq!(show(&kept), show(&filled(long)), "a copy is not touched");
            assert_eq!(rope.extent().messages, fresh.extent().messages);
            let mut fork = fresh.fork();
            fork.push(Role::Assistant, slab("apart"));
            fresh.push(Role::Assistant, slab("apart"));
            assert_eq!(show(&fork), show(&fresh), "a fork goes on like the rope itself");
        }
    }

    #[test]
    fn fingerprints_depend_on_bytes_order_and_message_ends() {
        let chain = |parts: &[(Role, &str)]| {
            let mut rope = MessageRope::default();
            for (role, text) in parts {
                rope.push(*role, slab(text));
            }
            rope.extent().chain
        };
        let base = chain(&[(Role::User, "a"), (Role::User, "b")]);
        assert_eq!(base, chain(&[(Role::User, "a"), (Role::User, "b")]));
        assert_ne!(base, chain(&[(Role::User, "b"), (Role::User, "a")]));
        assert_ne!(base, chain(&[(Role::User, "a"), (Role::Assistant, "b")]));
        assert_ne!(base, chain(&[(Role::User, "ab")]));
    }
}
