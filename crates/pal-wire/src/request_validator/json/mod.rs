//! Strict JSON reader for bodies that are mostly text: one pass over the bytes, no tree, no recursion.
//!
//! [`JsonDocument::parse`] checks the whole syntax, including escapes and surrogate pairs, and records the span of each
//! value. A [`JsonNode`] is a handle to such a span; strings are decoded only on access.

mod json_node;
mod json_scanner;
mod node_text;

pub(crate) use json_node::JsonDocument;
pub use json_node::{JsonNode, NodeType};
pub use node_text::NodeText;
