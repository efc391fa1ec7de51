//! Tests of rendered conversations and of the bytes that reach the terminal.

// A panic fails the test.
#![allow(clippy::unwrap_used)]

mod conversations;
mod frames;
mod golden_pages;
mod stream_pieces;
