//! Prompt assembly: what stands before the messages of a session, put together once and never touched again.
//!
//! Plain data goes in — a model card, what was found on disk, the tools — and a [`pal_model::Prefix`] comes out, with
//! what was left out and why. Assembly does not fail. The crate is pure.
//!
//! The system prompt is a list of [`Section`]s in three blocks: what names the program and its mode, what is the same
//! for every user, machine, date and session, and what is true of this session. All words of others that go into it
//! (paths, branch names, commits, files, servers' instructions) are defused first.

mod announce;
mod assemble;
mod chain;
mod context;
mod dynamic;
mod git;
mod registry;
mod section;
mod sources;
mod tools;
mod words;

pub use announce::{Announcement, Offer, Offered, announce};
pub use assemble::{
    Assembled, Assembly, McpInstructions, MemoryIndex, Mode, OutputStyle, PartCategory, PartNote,
    SessionFacts, assemble,
};
pub use chain::{AgentPrompt, Prompts};
pub use context::{memory_note, source_print};
pub use registry::{DEFAULT_SECTIONS, DefaultSection};
pub use section::{Lifetime, Place, Section};
pub use sources::{Environment, Git, GitSnapshot, Instruction, InstructionScope, LeftOut};
pub use tools::{CALL_TOOL, Catalogue, TOOL_SEARCH, Tool, ToolOrigin, ToolSpec, built_in_tools};
