//! The provider's request schema as tables.

mod block_schema;
mod body_schema;
mod media_schema;
mod tool_schema;

pub(crate) use body_schema::BODY;
