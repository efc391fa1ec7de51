//! What a person sees: conversations as lines, and the very bytes that reach a terminal.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used)]

mod frames;
mod growing;
mod pages;
mod talks;
