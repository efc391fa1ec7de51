//! Prompt assembly: what stands before the messages of a session, put together once and never touched again.
//!
//! Plain data goes in — a model card, what was found on disk, the tools — and a [`pal_model::Prefix`] comes out, with
//! what was left out and why. Assembly does not fail. The crate is pure.

mod sources;

pub use sources::{Environment, Git, GitSnapshot, Instruction, InstructionScope, LeftOut};
