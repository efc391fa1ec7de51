//! What a person sees: conversations as lines, and the very bytes that reach a terminal.

mod frames;
mod growing;
mod pages;
mod talks;
