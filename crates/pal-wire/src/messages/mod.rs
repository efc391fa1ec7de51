//! The Messages dialect: its calls, its streamed and whole answers, what it says about its models.

mod call;
mod growing;
mod models;
mod plain;
mod stream;
mod summary;
mod whole;

pub use call::{betas, count_tokens_call, messages_call, messages_call_with, messages_headers};
pub use growing::unparsed_input;
pub use models::{model_path, refresh};
pub(crate) use stream::Stream;
pub(crate) use summary::on_one_line;
pub(crate) use whole::read_whole;
