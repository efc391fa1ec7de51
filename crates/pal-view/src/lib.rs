//! The mechanism of Palimpsest: derives the next model request from a log.
//!
//! Entries go in, a request comes out: the branch is indexed, decisions are applied, the rest is normalized
//! to messages that the provider accepts, counted, and rendered to a rope of byte slices. The crate is pure:
//! no files, clock, environment or randomness. It holds no policy: other crates decide what to shorten and
//! when, and their decisions arrive here as entries.

mod cache_breakpoint;
mod context_size;
mod decision_effects;
mod derived_view;
mod estimate;
mod json_object;
mod lens;
mod media_blocks;
mod message_rope;
mod render;
mod request_head;
mod snapshot_update;
mod token_category;
mod turn_normalizer;
mod view;
mod view_node;
mod visible_blocks;
mod visible_entry;
mod visible_media;
mod window_limits;
mod wire_block;

pub use cache_breakpoint::{BreakpointPosition, CacheBreakpoint, CacheScope, CacheTtl};
pub use context_size::{ContextBreakdown, ContextSize, UsageAnchor};
pub use estimate::*;
pub use lens::{Lens, ViewScope};
pub use render::{MEMBERS_OUTSIDE_CACHE_KEY, RenderOptions, Request};
pub use request_head::is_deferred;
pub use token_category::Category;
pub use view::{PushOutcome, View};
pub use visible_entry::{Visibility, VisibleEntry, VisiblePart, VisibleResult};
pub use visible_media::VisibleMedia;
pub use window_limits::{CompactionThreshold, WindowFill, WindowLimits, WindowSettings, window_scale};
pub use wire_block::wire_id;
