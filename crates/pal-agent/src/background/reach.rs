//! What a run in the background may do: look at the project and at memories, change memories, and nothing else.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pal_permissions::{Mode, Need, Rules, SandboxPolicy, SandboxState, Target, Verdict};
use pal_tools::{Bash, Input, Output, Running, Sandbox, SandboxConfig, Shell, Tool, Workspace};

use super::tools::slug_of;
use crate::aside::Reach;
use crate::gate::judged;

/// How long a command may take that only looks.
const COMMAND_MS_MOST: u64 = 30_000;

/// Most characters of what a command printed that a run gets to see.
const PRINTED_MOST: usize = 20_000;

/// What a run is held to.
#[derive(Clone)]
pub(crate) struct Bounds {
    /// The memory directory, links followed.
    pub(crate) memory: PathBuf,
    /// The program's own folder.
    pub(crate) own: PathBuf,
    /// What the user denies, and wants to be asked about: nobody is there to be asked.
    pub(crate) rules: Rules,
    /// Whether commands that only look may be run, and sessions may be searched.
    pub(crate) runs_commands: bool,
    /// Whether this machine has a sandbox for commands: without one, none is run.
    pub(crate) sandbox: SandboxState,
}

impl Bounds {
    /// Rules that allow are for the conversation; those that deny or ask hold for everybody.
    pub(crate) fn new(memory: PathBuf, own: PathBuf, rules: &Rules, runs_commands: bool) -> Bounds {
        let mut strict = Rules::default();
        strict.ask.clone_from(&rules.ask);
        strict.deny.clone_from(&rules.deny);
        Bounds { memory, own, rules: strict, runs_commands, sandbox: SandboxState::Unavailable }
    }

    /// Whether something that a call would do is within these bounds.
    pub(crate) fn reach(self) -> Reach {
        Box::new(move |need, workspace| match need {
            Need::Write(target) => self.writable(target),
            Need::Read(_) => self.looks("Read", need, workspace),
            Need::Run(_) if self.runs_commands => self.looks("Bash", need, workspace),
            // The one tool of a run that has no better word for what it does searches sessions.
            Need::Use if self.runs_commands => Ok(()),
            Need::Run(_) | Need::Use | Need::Fetch(_) => Err(String::from(
                "this run reads files of the project and writes memories, and nothing else.",
            )),
        })
    }

    fn writable(&self, target: &Target) -> Result<(), String> {
        let is_here = target.real.parent() == Some(self.memory.as_path());
        match slug_of(&target.real) {
            Some(_) if is_here => Ok(()),
            None if is_here => Err(String::from(
                "only memories can be written, files whose name ends in `.md`; the index MEMORY.md is made from them.",
            )),
            _ => Err(format!("only memories in {} can be written.", self.memory.display())),
        }
    }

    /// What may be looked at without asking anybody, in the mode in which nothing is changed.
    fn looks(&self, tool: &str, need: &Need, workspace: &Workspace) -> Result<(), String> {
        let needs = std::slice::from_ref(need);
        let sandbox = SandboxPolicy { state: self.sandbox, ..SandboxPolicy::default() };
        match judged(tool, needs, Mode::Plan, &self.rules, (Some(self.own.clone()), sandbox), workspace) {
            Verdict::Allow => Ok(()),
            Verdict::Ask { why, .. } | Verdict::Deny { why } => Err(format!("{why}.")),
        }
    }
}

/// `Bash` for commands that only look: none is left in the background, and none prints without end.
pub(crate) struct Look(Bash);

impl Look {
    pub(crate) fn new(folder: &Path, sandbox: Option<SandboxConfig>, secret_variables: Vec<String>) -> Look {
        let mut shell = Shell::new(folder, sandbox.map(Sandbox::from), secret_variables);
        shell.allows_background = false;
        Look(Bash(Arc::new(shell)))
    }

    /// Whether its commands can be put into a sandbox.
    pub(crate) fn sandbox(&self) -> SandboxState {
        crate::fencing::sandbox_policy(&self.0.0, true).state
    }
}

impl Tool for Look {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn only_looks(&self, _: &Input) -> bool {
        true
    }

    fn needs(&self, input: &Input, workspace: &Workspace) -> Result<Vec<Need>, String> {
        self.0.needs(input, workspace)
    }

    fn run(&self, input: &Input, running: &Running<'_>) -> Output {
        let Some(command) = input.text("command") else { return Output::error("`command` is missing.") };
        let limited = serde_json::json!({"command": command, "timeout": COMMAND_MS_MOST}).to_string();
        let mut output = self.0.run(&Input(limited.as_str().into()), running);
        let texts = output.content.iter().filter_map(|block| block.string("text"));
        let text = texts.collect::<Vec<_>>().join("\n");
        if text.chars().count() > PRINTED_MOST {
            let shown: String = text.chars().take(PRINTED_MOST).collect();
            output.content =
                Output::text(&format!("{shown}\n[more was printed: look for something narrower]")).content;
        }
        output
    }
}
