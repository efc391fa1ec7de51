//! What a call of a tool may do: rules, modes, and shell commands taken apart.
//!
//! The crate is pure: paths come in with their links followed, and whoever asks says where things are.

mod need;
mod verdict;

pub use need::{Need, Target};
pub use verdict::Verdict;
