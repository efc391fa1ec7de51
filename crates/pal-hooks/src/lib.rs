//! Hooks: commands of the user that run at events of a session, and what they say.
//!
//! The contract is the one that existing hook scripts are written for: an event as JSON on standard input, an answer by
//! exit code, as text or as JSON on standard output.

mod config;
mod event;
mod matcher;

pub use config::{Command, Config, Group};
pub use event::EventName;
pub use matcher::Matcher;
