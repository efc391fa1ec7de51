//! The layers, in their order: cheapest first.

mod auto_compact;
mod bytes;
mod fold;
mod microcompact;
mod snip;
mod spill;

use crate::thrifty::{Ping, judged_ping};
use crate::{Layer, Situation, When};
use auto_compact::AutoCompact;
use bytes::Bytes;
use fold::Fold;
use microcompact::Microcompact;
use snip::Snip;
use spill::Spill;

pub use fold::{FoldQuestion, extractive_fold, fold_decision, fold_question};

/// All layers in the order in which they act, before every request.
pub const LAYERS: [&dyn Layer; 6] = [&Spill, &Bytes, &Snip, &Microcompact, &Fold, &AutoCompact];

/// Whether a request that only keeps the cache warm is worth its price now (§10.5), seen with what would be cleared if the
/// cache were lost.
pub fn ping(situation: &Situation<'_>) -> Ping {
    let foreseen = Microcompact.foresee(situation);
    let lost = foreseen.iter().find(|foreseen| matches!(foreseen.when, When::Idle(_)));
    judged_ping(situation, lost.map_or(0.0, |foreseen| foreseen.tokens as f64))
}
