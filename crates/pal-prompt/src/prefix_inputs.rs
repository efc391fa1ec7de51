//! Inputs of prefix assembly.

use pal_model::ModelCard;
use smol_str::SmolStr;

use crate::prefix_profile::PrefixProfile;
use crate::prompt_inputs::{
    GitState, HostEnvironment, InstructionFile, MemoryIndex, PromptMode, PromptOverrides, SessionFacts,
};
use crate::tools::{ToolCatalog, ToolSpec};

/// Everything that is known of a session before its first request.
#[derive(Clone, Debug)]
pub struct PrefixInputs<'a> {
    /// The model that will be asked.
    pub card: &'a ModelCard,
    /// The program and its version, in a few words; constant within a session.
    pub attribution: String,
    /// Interactive or headless.
    pub mode: PromptMode,
    /// Prompts that were given beside the default.
    pub prompts: PromptOverrides,
    /// The machine and the place.
    pub environment: HostEnvironment,
    /// Facts about this session.
    pub facts: SessionFacts,
    /// The repository.
    pub git: GitState,
    /// The instruction files, far to near.
    pub instructions: Vec<InstructionFile>,
    /// Memory indexes that the prompt includes.
    pub memory: Vec<MemoryIndex>,
    /// The date, as it is shown to the model.
    pub date: Option<String>,
    /// The tools, in any order.
    pub tools: Vec<ToolSpec>,
    /// MCP servers by name, whose tools come and go while the session runs.
    pub servers: Vec<SmolStr>,
    /// Window of the session in tokens, which chooses the profile.
    pub window: u64,
}

impl<'a> PrefixInputs<'a> {
    /// A session of which nothing is known but its model: no tools, no files, the default prompt.
    pub fn for_card(card: &'a ModelCard) -> PrefixInputs<'a> {
        PrefixInputs {
            card,
            attribution: String::new(),
            mode: PromptMode::Interactive,
            prompts: PromptOverrides::default(),
            environment: HostEnvironment::default(),
            facts: SessionFacts::default(),
            git: GitState::Absent(String::from("nobody looked")),
            instructions: Vec::new(),
            memory: Vec::new(),
            date: None,
            tools: Vec::new(),
            servers: Vec::new(),
            window: card.window,
        }
    }

    /// Profile of the prefix.
    pub(crate) fn profile(&self) -> PrefixProfile {
        PrefixProfile::for_window(self.window)
    }
}

/// Inputs of the sections.
pub(crate) struct SectionInputs<'a> {
    pub(crate) assembly: &'a PrefixInputs<'a>,
    pub(crate) catalog: &'a ToolCatalog,
}
