//! OpenAI's Chat Completions, also used by most local servers.
//!
//! The dialect cannot send reasoning back and lists tool calls beside the text, so a response is kept as plain log blocks.

mod chat_response;
mod chat_tool_calls;
mod encode;
mod stream;

pub use encode::ChatServer;
pub(crate) use encode::{closing, head, message};
pub(crate) use stream::{ChatStream, read_complete};
