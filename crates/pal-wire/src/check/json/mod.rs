//! A strict JSON reader for bodies that are mostly text: one pass over the bytes, no tree, no recursion.
//!
//! [`Document::parse`] checks the whole grammar, escapes and surrogate pairs included, and notes where each value
//! begins and ends. A [`Node`] is a place in those notes; strings stay where they are until somebody reads them.

mod node;
mod scan;
mod text;

pub(crate) use node::Document;
pub use node::{Node, Type};
pub use text::Text;
