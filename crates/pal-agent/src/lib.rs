//! The agent: a session that is worked on by a model with tools, under permissions and hooks.
//!
//! [`Agent`] joins the engine with a provider, tools, permissions and hooks, and tells everything that happens as plain
//! [`Event`]s. It runs on the thread that calls it; a [`Handle`] steers and interrupts it from any other.

mod event;
mod handle;
mod inner;
mod line;
mod restoring;
mod voice;

pub use event::{Began, Denial, End, Ended, Event};
pub use handle::Handle;
pub use line::{Exchange, ExchangeEnd, Line, Step};
pub use restoring::{directory_around, text_inside};
pub use voice::Voice;
