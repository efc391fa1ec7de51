//! Prompt assembly: builds the prefix of a session (tools, system prompt, contexts) once; it never changes afterwards.
//!
//! Plain data goes in (a model card, project files, the tools), and a [`pal_model::PromptPrefix`] comes out, with a list of what was left
//! out and why. Assembly cannot fail. The crate is pure.
//!
//! The system prompt is a list of [`SystemSection`]s in three blocks: the identity and mode of the program, text that is the same for
//! every user, machine, date and session, and text about this session. Untrusted text in it (paths, branch names, commits, files,
//! instructions of servers) is defused first.

mod announcements;
mod defused_text;
mod dynamic_sections;
mod git_context;
mod prefix_assembly;
mod prefix_inputs;
mod prefix_parts;
mod prefix_profile;
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
pub use prefix_profile::PrefixProfile;
pub use prompt_inputs::{
    AgentPrompt, COORDINATOR_PROMPT, GitSnapshot, GitState, HostEnvironment, InstructionFile,
    InstructionScope, McpInstructions, MemoryIndex, OutputStyle, PromptMode, PromptOverrides, SessionFacts,
};
pub use section_registry::{DEFAULT_SECTIONS, DefaultSection, LEAN_SECTIONS};
pub use system_section::{SectionPlacement, SectionStability, SystemSection};
pub use tools::{CALL_TOOL, CatalogTool, TOOL_SEARCH, ToolCatalog, ToolOrigin, ToolSpec, built_in_tools};
pub use user_context::{fingerprint_source, render_memory_note};
