//! Access of background runs: read the project and memories, change memories.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pal_permissions::{
    PermissionMode, RuleSet, SandboxLimits, SandboxState, TargetPath, ToolAccess, Verdict,
};
use pal_tools::{
    BashTool, SandboxConfig, SessionSandbox, Shell, ToolContext, ToolHandler, ToolInput, ToolOutput,
    Workspace, judge_access, sandbox_limits,
};

use super::memory_editor::slug_of;
use crate::fork_tools::AccessCheck;

/// Timeout of read-only commands, in milliseconds.
const COMMAND_MS_MAX: u64 = 30_000;

/// Maximum characters of command output.
const PRINTED_MAX: usize = 20_000;

/// Access bounds of a run.
#[derive(Clone)]
pub(crate) struct AccessBounds {
    /// Real path of the memory directory.
    pub(crate) memory: PathBuf,
    /// Home directory of the program.
    pub(crate) own: PathBuf,
    /// Deny and ask rules of the user; a run cannot ask.
    pub(crate) rules: RuleSet,
    /// Whether read-only commands and session search are allowed.
    pub(crate) runs_commands: bool,
    /// State of the sandbox; without one, no command runs.
    pub(crate) sandbox: SandboxState,
}

impl AccessBounds {
    /// Keeps deny and ask rules only: allow rules are for the conversation.
    pub(crate) fn new(memory: PathBuf, own: PathBuf, rules: &RuleSet, runs_commands: bool) -> AccessBounds {
        let mut strict = RuleSet::default();
        strict.ask.clone_from(&rules.ask);
        strict.deny.clone_from(&rules.deny);
        AccessBounds { memory, own, rules: strict, runs_commands, sandbox: SandboxState::Unavailable }
    }

    /// Returns the access check for these bounds.
    pub(crate) fn reach(self) -> AccessCheck {
        Box::new(move |need, workspace| match need {
            ToolAccess::Write(target) => self.writable(target),
            ToolAccess::Read(_) => self.looks("Read", need, workspace),
            ToolAccess::Run(_) if self.runs_commands => self.looks("Bash", need, workspace),
            // The session search declares this access.
            ToolAccess::Use if self.runs_commands => Ok(()),
            ToolAccess::Run(_) | ToolAccess::Use | ToolAccess::Named(_) | ToolAccess::Fetch(_) => Err(
                String::from("this run reads files of the project and writes memories, and nothing else."),
            ),
        })
    }

    fn writable(&self, target: &TargetPath) -> Result<(), String> {
        let is_here = target.real.parent() == Some(self.memory.as_path());
        match slug_of(&target.real) {
            Some(_) if is_here => Ok(()),
            None if is_here => Err(String::from(
                "only memories can be written, files whose name ends in `.md`; the index MEMORY.md is made from them.",
            )),
            _ => Err(format!("only memories in {} can be written.", self.memory.display())),
        }
    }

    /// Allows what plan mode allows without asking.
    fn looks(&self, tool: &str, need: &ToolAccess, workspace: &Workspace) -> Result<(), String> {
        let needs = std::slice::from_ref(need);
        let sandbox = SandboxLimits { state: self.sandbox, ..SandboxLimits::default() };
        match judge_access(
            tool,
            needs,
            PermissionMode::Plan,
            &self.rules,
            (Some(self.own.clone()), sandbox),
            workspace,
        ) {
            Verdict::Allow => Ok(()),
            Verdict::Ask { why, .. } | Verdict::Deny { why } => Err(format!("{why}.")),
        }
    }
}

/// `BashTool` for commands that only look: none is left in the background, and none prints without end.
pub(crate) struct ReadOnlyBash(BashTool);

impl ReadOnlyBash {
    pub(crate) fn new(
        folder: &Path,
        sandbox: Option<SandboxConfig>,
        secret_variables: Vec<String>,
    ) -> ReadOnlyBash {
        let mut shell = Shell::new(folder, sandbox.map(SessionSandbox::from), secret_variables);
        shell.allows_background = false;
        ReadOnlyBash(BashTool(Arc::new(shell)))
    }

    /// Whether its commands can be put into a sandbox.
    pub(crate) fn sandbox(&self) -> SandboxState {
        sandbox_limits(&self.0.0, true).state
    }
}

impl ToolHandler for ReadOnlyBash {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        true
    }

    fn required_access(&self, input: &ToolInput, workspace: &Workspace) -> Result<Vec<ToolAccess>, String> {
        self.0.required_access(input, workspace)
    }

    fn run(&self, input: &ToolInput, running: &ToolContext<'_>) -> ToolOutput {
        let Some(command) = input.text("command") else { return ToolOutput::error("`command` is missing.") };
        let limited = serde_json::json!({"command": command, "timeout": COMMAND_MS_MAX}).to_string();
        let mut output = self.0.run(&ToolInput(limited.as_str().into()), running);
        let texts = output.content.iter().filter_map(|block| block.string("text"));
        let text = texts.collect::<Vec<_>>().join("\n");
        if text.chars().count() > PRINTED_MAX {
            let shown: String = text.chars().take(PRINTED_MAX).collect();
            output.content =
                ToolOutput::text(&format!("{shown}\n[more was printed: look for something narrower]"))
                    .content;
        }
        output
    }
}
