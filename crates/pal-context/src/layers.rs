//! The layers, in their order: cheapest first.

mod auto_compact;
mod bytes;
mod microcompact;
mod snip;
mod spill;

use crate::Layer;
use auto_compact::AutoCompact;
use bytes::Bytes;
use microcompact::Microcompact;
use snip::Snip;
use spill::Spill;

/// All layers in the order in which they act, before every request.
pub const LAYERS: [&dyn Layer; 5] = [&Spill, &Bytes, &Snip, &Microcompact, &AutoCompact];
