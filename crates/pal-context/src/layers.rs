//! The layers, in their order: cheapest first.

mod auto_compact;

use crate::Layer;
use auto_compact::AutoCompact;

/// All layers in the order in which they act, before every request.
pub const LAYERS: [&dyn Layer; 1] = [&AutoCompact];
