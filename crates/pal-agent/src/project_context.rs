//! Everything around a session that may change while it runs: instruction files, skills, agents and servers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pal_engine::PendingAnnouncement;
use pal_model::SourceNote;
use pal_project::{IncludeQuestion, InstructionNotice, InstructionSet, take_project_snapshot};
use pal_prompt::{Capability, CapabilityOffer, InstructionFile, McpInstructions, ToolCatalog, announce};
use pal_settings::{IncludeAnswers, KillSwitch};
use pal_tools::Workspace;
use smol_str::SmolStr;

use crate::session_open::PromptBuilder;
use crate::session_switches::SessionSwitches;

/// Project context of a session.
pub(crate) struct ProjectContext {
    pub(crate) instructions: InstructionSet,
    pub(crate) skills: Vec<Capability>,
    pub(crate) agents: Vec<Capability>,
    /// Stamp of the definitions of skills and agents ([`pal_tools::definition_stamp`]).
    pub(crate) definitions: u64,
    /// Instructions of MCP servers.
    pub(crate) servers: Vec<McpInstructions>,
    /// Whether changes are announced to the model.
    pub(crate) announces: bool,
    /// Search paths of instruction files and git queries.
    pub(crate) sources: pal_project::ProjectQuery,
    pub(crate) prompt: PromptBuilder,
    /// Log of the session.
    pub(crate) log: PathBuf,
    /// Whether files that a prompt mentions with `@` are attached.
    pub(crate) attaches_mentions: bool,
    /// The user's answers about includes outside of the project.
    pub(crate) answers: IncludeAnswers,
    /// Includes that the user was asked about or that were reported, each once a session.
    pub(crate) asked_includes: BTreeSet<String>,
}

impl ProjectContext {
    /// Includes outside of the project that this session has not dealt with.
    pub(crate) fn open_includes(&mut self) -> Vec<IncludeQuestion> {
        let mut questions = self.instructions.take_questions();
        questions.retain(|question| !self.asked_includes.contains(&question.path));
        questions
    }

    /// Records the answer about an include and returns notices about the files that join for it, and why the answer
    /// could not be stored.
    pub(crate) fn answer_include(&mut self, path: &str, is_allowed: bool) -> (Vec<String>, Option<String>) {
        let stored = self.answers.record(path.as_ref(), is_allowed);
        let problem = stored.err().map(|error| format!("your answer about {path} is not stored: {error}"));
        let joined = if is_allowed { texts(self.instructions.allow_path(path.as_ref())) } else { Vec::new() };
        (joined, problem)
    }

    /// Instruction files that apply once a file is touched.
    pub(crate) fn touched(&mut self, path: &Path) -> Vec<InstructionFile> {
        self.instructions.join_for_path(path)
    }

    /// Notices after a change of directory.
    pub(crate) fn moved(&mut self, directory: &Path) -> Vec<String> {
        texts(self.instructions.change_directory(directory))
    }

    /// Reads the instruction files again after a rewind to where only the prefix, of the noted files, counts as read. Returns
    /// notices of what changed since.
    pub(crate) fn restart_instructions(&mut self, noted: &[SourceNote]) -> Vec<String> {
        self.instructions = take_project_snapshot(&self.sources).instructions;
        texts(self.instructions.resume_from(noted, "since this conversation began"))
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
            profile: catalog.profile(),
        };
        let announcement = announce(announced, &offer)?;
        let pal_prompt::Announcement { text, descriptions, decisions, .. } = announcement;
        Some(PendingAnnouncement { text, descriptions, decisions })
    }
}

/// Skills that the model may use; none if they are switched off.
pub(crate) fn available_skills(switches: &SessionSwitches, workspace: &Workspace) -> Vec<Capability> {
    if switches.is_off(KillSwitch::Skills) {
        return Vec::new();
    }
    let offered =
        |skill: pal_tools::SkillInfo| Capability { name: SmolStr::new(skill.name), about: skill.description };
    pal_tools::available_skills(workspace).into_iter().map(offered).collect()
}

fn texts(notices: Vec<InstructionNotice>) -> Vec<String> {
    notices.into_iter().map(|notice| notice.text).collect()
}
