//! Prompt assembly: what stands before the messages of a session, put together once and never touched again.
//!
//! Plain data goes in — a model card, what was found on disk, the tools — and a [`pal_model::PromptPrefix`] comes out, with
//! what was left out and why. Assembly does not fail. The crate is pure.
//!
//! The system prompt is a list of [`SystemSection`]s in three blocks: what names the program and its mode, what is the same
//! for every user, machine, date and session, and what is true of this session. All words of others that go into it
//! (paths, branch names, commits, files, servers' instructions) are defused first.

mod announcements;
mod defused_text;
mod dynamic_sections;
mod git_context;
mod prefix_assembly;
mod prefix_inputs;
mod prefix_parts;
mod prompt_inputs;
mod section_registry;
mod system_prompt_chain;
mod system_section;
mod tools;
mod user_context;

pub use announcements::{Announcement, Capability, CapabilityOffer, announce};
pub use prefix_assembly::{AssembledPrefix, assemble};
pub use prefix_inputs::PrefixInputs;
pub use prefix_parts::{PrefixOmission, PrefixPart, PrefixPartKind};
pub use prompt_inputs::{
    AgentPrompt, GitSnapshot, GitState, HostEnvironment, InstructionFile, InstructionScope, McpInstructions,
    MemoryIndex, OutputStyle, PromptMode, PromptOverrides, SessionFacts,
};
pub use section_registry::{DEFAULT_SECTIONS, DefaultSection};
pub use system_section::{SectionPlacement, SectionStability, SystemSection};
pub use tools::{CALL_TOOL, CatalogueTool, TOOL_SEARCH, ToolCatalogue, ToolOrigin, ToolSpec, built_in_tools};
pub use user_context::{fingerprint_source, render_memory_note};
