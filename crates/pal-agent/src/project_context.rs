//! Everything around a session that may change while it runs: instruction files, skills, agents and servers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pal_engine::PendingAnnouncement;
use pal_project::{InstructionNotice, InstructionSet};
use pal_prompt::{Capability, CapabilityOffer, InstructionFile, McpInstructions, ToolCatalog, announce};
use smol_str::SmolStr;

use crate::session_open::PromptBuilder;

/// Project context of a session.
pub(crate) struct ProjectContext {
    pub(crate) instructions: InstructionSet,
    pub(crate) skills: Vec<Capability>,
    pub(crate) agents: Vec<Capability>,
    /// Instructions of MCP servers.
    pub(crate) servers: Vec<McpInstructions>,
    /// Whether changes are announced to the model.
    pub(crate) announces: bool,
    /// Search paths of instruction files and git queries.
    pub(crate) sources: pal_project::ProjectQuery,
    pub(crate) prompt: PromptBuilder,
    /// Log of the session.
    pub(crate) log: PathBuf,
}

impl ProjectContext {
    /// Instruction files that apply once a file is touched.
    pub(crate) fn touched(&mut self, path: &Path) -> Vec<InstructionFile> {
        self.instructions.join_for_path(path)
    }

    /// Notices after a change of directory.
    pub(crate) fn moved(&mut self, directory: &Path) -> Vec<String> {
        texts(self.instructions.change_directory(directory))
    }

    /// Notices of changed files.
    pub(crate) fn changes(&mut self) -> Vec<String> {
        texts(self.instructions.take_changes())
    }

    /// Announcement of tools, skills and agents that are new to the model.
    pub(crate) fn announcement(
        &self,
        announced: &BTreeMap<SmolStr, BTreeSet<SmolStr>>,
        catalog: &ToolCatalog,
    ) -> Option<PendingAnnouncement> {
        if !self.announces {
            return None;
        }
        let offer = CapabilityOffer {
            tools: catalog.list_capabilities(),
            skills: self.skills.clone(),
            agents: self.agents.clone(),
            servers: self.servers.clone(),
        };
        let announcement = announce(announced, &offer)?;
        let pal_prompt::Announcement { text, descriptions, decisions, .. } = announcement;
        Some(PendingAnnouncement { text, descriptions, decisions })
    }
}

fn texts(notices: Vec<InstructionNotice>) -> Vec<String> {
    notices.into_iter().map(|notice| notice.text).collect()
}
