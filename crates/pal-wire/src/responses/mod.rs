//! OpenAI's Responses: items go in and come out.
//!
//! One output item is one block of the log. The block says in the log's own form what the item says, and carries the
//! raw item beside it in a field `item`, which is what goes back to the provider. A `message` of several parts is one
//! text block with the words of all of them.

mod encode;
mod item;
mod stream;
mod whole;

pub(crate) use encode::{closing, head, message};
pub(crate) use stream::Stream;
pub(crate) use whole::read_whole;
