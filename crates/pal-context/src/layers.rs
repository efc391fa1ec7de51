//! The layers, in their order: cheapest first.

mod auto_compact;
mod bytes;
mod fold;
mod microcompact;
mod snip;
mod spill;

use crate::Layer;
use auto_compact::AutoCompact;
use bytes::Bytes;
use fold::Fold;
use microcompact::Microcompact;
use snip::Snip;
use spill::Spill;

pub use fold::{FoldQuestion, extractive_fold, fold_decision, fold_question};

/// All layers in the order in which they act, before every request.
pub const LAYERS: [&dyn Layer; 6] = [&Spill, &Bytes, &Snip, &Microcompact, &Fold, &AutoCompact];
