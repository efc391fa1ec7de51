//! What a message costs.
#![allow(missing_docs)]
fn main() {}
