//! OpenAI's Responses dialect.
//!
//! Each output item becomes one log block. The block has the log's own form and the raw item in its field `item`, which is
//! sent back to the provider. A `message` of several parts becomes one text block.

mod encode;
mod response_object;
mod responses_item;
mod stream;

pub(crate) use encode::{closing, head, message};
pub(crate) use response_object::read_complete;
pub(crate) use stream::ResponsesStream;
