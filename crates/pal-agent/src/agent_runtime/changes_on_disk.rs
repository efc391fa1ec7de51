//! Changes on disk that the model hears about before its next request: files that it has seen, skills and agents.

use pal_prompt::Capability;
use pal_settings::KillSwitch;
use pal_tools::{ChangedFile, take_changed_files};

use crate::agent_runtime::AgentRuntime;
use crate::project_context::available_skills;
use crate::subagents::AGENT;

/// Attachment kind for changed files.
const CHANGED_FILES: &str = "changed_files";

/// Maximum number of files that a notice names.
const NAMED_MAX: usize = 20;

impl AgentRuntime<'_> {
    /// Announces files that changed on disk since the model saw them (§6.5). Instruction files have notices of their own.
    pub(crate) fn note_changed_files(&mut self) {
        let mut changed = take_changed_files(&self.tools.workspace);
        if self.switches.is_off(KillSwitch::Reminders) {
            return;
        }
        let instructions = &self.project.instructions.files;
        changed.retain(|changed| {
            !instructions.iter().any(|file| changed.path.as_os_str() == file.path.as_str())
        });
        self.pending.attachments.extend(notice(&changed).map(|text| (CHANGED_FILES, text)));
    }

    /// Reads the definitions of skills and agents again if they changed on disk; the next request announces them.
    pub(crate) fn refresh_definitions(&mut self) {
        let stamp = pal_tools::definition_stamp(&self.tools.workspace);
        if std::mem::replace(&mut self.project.definitions, stamp) == stamp {
            return;
        }
        let skills: Vec<Capability> = available_skills(&self.switches, &self.tools.workspace);
        self.project.skills = skills;
        if self.tools.catalog.find_tool(AGENT).is_some() {
            self.subagents.set_known(pal_tools::agent_definitions(&self.tools.workspace));
            self.project.agents = self.subagents.offered();
        }
    }
}

/// Text of the notice; none if nothing changed. Text for the model.
fn notice(changed: &[ChangedFile]) -> Option<String> {
    let list = |is_gone: bool| {
        let files: Vec<&ChangedFile> = changed.iter().filter(|file| file.is_gone == is_gone).collect();
        let mut lines: Vec<String> =
            files.iter().take(NAMED_MAX).map(|file| format!("- {}", file.path.display())).collect();
        if files.len() > NAMED_MAX {
            lines.push(format!("- and {} more", files.len() - NAMED_MAX));
        }
        lines.join("\n")
    };
    let mut texts = Vec::new();
    if changed.iter().any(|file| !file.is_gone) {
        texts.push(format!(
            "These files have changed on disk since you last saw them, by the user or by a program:\n{}\nRead them again before \
             you rely on them or change them. The changes are meant: do not undo them unless you are asked to.",
            list(false)
        ));
    }
    if changed.iter().any(|file| file.is_gone) {
        texts.push(format!("These files, which you have seen, no longer exist:\n{}", list(true)));
    }
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}
