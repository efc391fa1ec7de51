//! Chat Completions: OpenAI's older dialect, which most local servers speak, too.
//!
//! It has no way to send reasoning back, and calls stand in one list beside the words, so an answer is kept as plain
//! blocks of the log.

mod answer;
mod calls;
mod encode;
mod stream;

pub use encode::ChatServer;
pub(crate) use encode::{closing, head, message};
pub(crate) use stream::{Stream, read_whole};
