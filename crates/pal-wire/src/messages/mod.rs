//! Anthropic's Messages dialect: calls, streamed and complete responses.

mod complete_message;
mod message_metadata;
mod messages_api;
mod stream;
mod streamed_block;
mod string_delta;

pub(crate) use complete_message::read_complete;
pub(crate) use message_metadata::without_line_breaks;
pub(crate) use messages_api::messages_version;
pub use messages_api::{TASK_BUDGET_BETA, beta_headers, count_tokens_call, messages_call};
pub(crate) use stream::MessagesStream;
pub use streamed_block::unparsed_input;
