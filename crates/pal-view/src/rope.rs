//! The messages of a request as a rope of blocks.
//!
//! Blocks are slices of shared text; messages are only where a block opens one. So merging messages and moving
//! marks never touches a block, and a copy of the rope shares all of its blocks with the original: taking one
//! costs a pointer for every [`CHUNK`] blocks. Each block carries a fingerprint of everything up to and
//! including itself, marks excluded.

use std::sync::Arc;

use pal_model::{Role, Text};
use xxhash_rust::xxh3::xxh3_128;

use crate::ledger::{Category, Sums};

/// Blocks shared as one.
const CHUNK: usize = 256;

/// One block of a request.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// The block as it will be sent, without a mark.
    pub(crate) text: Text,
    /// Set if the block opens a message of this role.
    pub(crate) opens: Option<Role>,
    /// Whether the provider takes a mark on it.
    pub(crate) markable: bool,
    /// Fingerprint of everything up to and including this block.
    pub(crate) chain: u128,
}

/// A block on its way into a rope.
#[derive(Clone, Debug)]
pub(crate) struct Slab {
    pub(crate) text: Text,
    /// Whether the provider takes a mark on it.
    pub(crate) markable: bool,
    /// What the block counts as.
    pub(crate) category: Category,
    /// Its estimated tokens.
    pub(crate) tokens: f64,
    /// Estimated tokens of reminders that stand inside it.
    pub(crate) attached: f64,
}

/// The blocks of all messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rope {
    chunks: Vec<Arc<Vec<Piece>>>,
    extent: Extent,
}

/// What a rope holds up to some point, so that it can be cut back to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extent {
    pub(crate) blocks: usize,
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
    pub(crate) chain: u128,
    pub(crate) last_role: Option<Role>,
    /// Whether the last message, the model's, may stay last: the provider goes on from it.
    pub(crate) may_end_here: bool,
    pub(crate) sums: Sums,
}

impl Rope {
    pub(crate) fn extent(&self) -> &Extent {
        &self.extent
    }

    /// Adds a block; it joins the last message if that has the same role.
    pub(crate) fn push(&mut self, role: Role, slab: Slab) {
        let opens = (self.extent.last_role != Some(role)).then_some(role);
        let extent = &mut self.extent;
        extent.chain = link(extent.chain, opens, &slab.text);
        extent.blocks += 1;
        extent.messages += usize::from(opens.is_some());
        extent.bytes += slab.text.len();
        extent.last_role = Some(role);
        extent.may_end_here = role != Role::Assistant;
        extent.sums.add(slab.category, slab.tokens);
        extent.sums.add(Category::Attachments, slab.attached);
        let Slab { text, markable, .. } = slab;
        let piece = Piece { text, opens, markable, chain: extent.chain };
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < CHUNK => Arc::make_mut(chunk).push(piece),
            _ => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(piece);
                self.chunks.push(Arc::new(chunk));
            }
        }
    }

    /// The model's message at the end may stay last.
    pub(crate) fn allow_end(&mut self) {
        self.extent.may_end_here = true;
    }

    /// Cuts the rope back to an extent that it had before.
    pub(crate) fn truncate(&mut self, extent: Extent) {
        self.chunks.truncate(extent.blocks.div_ceil(CHUNK));
        if let Some(chunk) = self.chunks.last_mut() {
            let keep = extent.blocks - (extent.blocks - 1) / CHUNK * CHUNK;
            if chunk.len() > keep {
                Arc::make_mut(chunk).truncate(keep);
            }
        }
        self.extent = extent;
    }

    pub(crate) fn pieces(&self) -> impl DoubleEndedIterator<Item = &Piece> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }
}

/// The fingerprint after one more block.
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

    fn slab(text: &str) -> Slab {
        Slab {
            text: Text::from(text),
            markable: true,
            category: Category::UserText,
            tokens: 1.0,
            attached: 0.0,
        }
    }

    fn filled(blocks: usize) -> Rope {
        let mut rope = Rope::default();
        for at in 0..blocks {
            rope.push(if at % 3 == 0 { Role::Assistant } else { Role::User }, slab(&at.to_string()));
        }
        rope
    }

    #[test]
    fn cutting_back_equals_never_having_grown() {
        for (long, short) in [(1, 0), (300, 256), (600, 255), (600, 257), (512, 512), (513, 512)] {
            let mut rope = filled(long);
            let kept = rope.clone();
            rope.truncate(filled(short).extent().clone());
            rope.push(Role::User, slab("next"));
            let mut fresh = filled(short);
            fresh.push(Role::User, slab("next"));
            let show = |rope: &Rope| {
                rope.pieces().map(|p| (p.text.to_string(), p.opens, p.chain)).collect::<Vec<_>>()
            };
            assert_eq!(show(&rope), show(&fresh));
            assert_eq!(show(&kept), show(&filled(long)), "a copy is not touched");
            assert_eq!(rope.extent().messages, fresh.extent().messages);
        }
    }

    #[test]
    fn the_chain_sees_bytes_order_and_message_ends() {
        let chain = |parts: &[(Role, &str)]| {
            let mut rope = Rope::default();
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
