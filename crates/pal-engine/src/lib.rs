//! The driver: a session on disk, its view, and the carrying out of what the layers decide.
//!
//! [`Session`] holds a log and its view together: whatever is appended to the one is pushed to the other. It runs the
//! layers before every request, writes spilled texts before the decision that refers to them, carries compactions
//! through, and recovers from a provider that finds a request too long. Models, files and clocks are behind
//! [`Errands`]: the driver decides nothing and knows no network.

mod announcing;
mod aside;
mod compacting;
mod driving;
mod editing;
mod errands;
mod error;
mod files;
mod folding;
mod pinging;
mod pinning;
mod preparing;
mod refused;
mod sending;
mod session;
mod standing;
mod watching;

pub use announcing::Announced;
pub use aside::Aside;
pub use compacting::Compacted;
pub use driving::{Hands, Heard, drive};
pub use editing::{edited, summary_text};
pub use errands::{AfterCompaction, Answered, Asked, BeforeCompaction, Broke, Errands, Outcome, Outgoing};
pub use error::EngineError;
pub use pinging::Pinging;
pub use pinning::pin_tokens;
pub use preparing::Prepared;
pub use sending::Sent;
pub use session::{CacheSettings, Engine, Inputs, Session};
pub use watching::Seen;
