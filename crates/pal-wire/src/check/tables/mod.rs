//! The provider's schema, as tables: the body, the content blocks, the tools, the media.

mod blocks;
mod body;
mod media;
mod tools;

pub(crate) use body::BODY;
