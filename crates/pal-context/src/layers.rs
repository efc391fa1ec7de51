//! The layers, in their order: cheapest first.

mod auto_compact;
mod microcompact;
mod spill;

use crate::Layer;
use auto_compact::AutoCompact;
use microcompact::Microcompact;
use spill::Spill;

/// All layers in the order in which they act, before every request.
pub const LAYERS: [&dyn Layer; 3] = [&Spill, &Microcompact, &AutoCompact];
