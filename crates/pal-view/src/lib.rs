//! The mechanism of Palimpsest: from a log to what the model sees next.
//!
//! Entries go in, a request comes out: the branch is indexed, decisions are applied, the rest is normalised to
//! messages that the provider takes, counted, and rendered to a rope of byte slices. The crate is pure: no files,
//! clock, environment or randomness. It holds no policy: what to shorten, and when, is decided elsewhere and
//! arrives here as entries.

mod clean;
mod derived;
mod effects;
mod estimate;
mod head;
mod ledger;
mod lens;
mod mark;
mod media;
mod node;
mod render;
mod rope;
mod seen;
mod shown;
mod size;
mod state;
mod turn;
mod view;
mod window;
mod wire;

pub use clean::wire_id;
pub use estimate::*;
pub use head::is_deferred;
pub use ledger::{Category, Sums};
pub use lens::{Lens, Scope};
pub use mark::{CacheLifetime, CacheScope, Mark, Spot};
pub use render::{OUTSIDE_THE_KEY, RenderOptions, Request};
pub use shown::{Showing, Shown, ShownPart, ShownResult};
pub use size::{Anchor, Ledger, Size};
pub use view::{Pushed, View};
pub use window::{Fill, Limits, Threshold, WindowSettings, scale};
