//! Commands of the shell: Bash, BashOutput, KillBash.

mod bash;
mod bash_output;
mod environment;
mod kill_bash;
mod script;
mod told;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pal_process::{Background, Program};
use pal_sandbox::{Fence, NoFence, Policy};

use crate::Tool;

pub use bash::Bash;
pub use bash_output::BashOutput;
pub use kill_bash::KillBash;

/// The folder of the session with the outputs of commands in the background.
const BACKGROUND: &str = "background";

/// No command in the background may print more.
const BACKGROUND_BYTES_MAX: u64 = 1 << 30;

/// The shell of a session: what its commands run in, and those that run beside it. Commands in the background end with
/// this value; a program that exits without dropping it calls [`Background::end_all`] first.
#[derive(Debug)]
pub struct Shell {
    /// The fence that every command runs behind; none if they run free.
    pub sandbox: Option<Sandbox>,
    /// Variables that no command gets to see, besides the keys of providers: names, or beginnings of names with a `*`.
    pub hidden_variables: Vec<String>,
    /// Commands that run beside the session.
    pub background: Background,
    program: PathBuf,
}

/// A fence, and what it lets through.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sandbox {
    /// Which fence.
    pub fence: Fence,
    /// What commands may do behind it.
    pub policy: Policy,
    /// The program that closes it from inside: our own ([`pal_sandbox::enter_and_exec`]).
    pub helper: PathBuf,
}

impl Shell {
    /// The shell of the session that has this folder.
    pub fn new(session: &Path, sandbox: Option<Sandbox>, hidden_variables: Vec<String>) -> Shell {
        let background = Background::new(session.join(BACKGROUND), BACKGROUND_BYTES_MAX);
        Shell { sandbox, hidden_variables, background, program: script::shell() }
    }

    /// Commands in the background that ended since this was last asked and whose end nobody saw, a sentence for each.
    pub fn finished_since_last_asked(&self) -> Vec<String> {
        let finished = self.background.finished_since_last_asked();
        finished.iter().map(|task| format!("Background {}", told::task(task))).collect()
    }

    /// Commands in the background that still run, a line for each.
    pub fn running(&self) -> Vec<String> {
        let is_running = |task: &pal_process::Task| matches!(task.state, pal_process::State::Running);
        self.background.list().iter().filter(|task| is_running(task)).map(told::task).collect()
    }

    /// A command line as a program, behind the fence if there is one.
    fn command(&self, line: String, directory: PathBuf) -> Result<Program, NoFence> {
        let program = Program {
            path: self.program.clone().into(),
            arguments: vec!["-c".into(), line.into()],
            directory,
            environment: environment::changes(
                std::env::vars_os().map(|(name, _)| name),
                &self.hidden_variables,
            ),
        };
        match &self.sandbox {
            None => Ok(program),
            Some(sandbox) => sandbox.fence.wrap(program, &sandbox.policy, &sandbox.helper),
        }
    }
}

/// The tools of the shell, by name.
pub fn shell_tools(shell: &Arc<Shell>) -> Vec<Box<dyn Tool>> {
    vec![
        Box::new(Bash(Arc::clone(shell))),
        Box::new(BashOutput(Arc::clone(shell))),
        Box::new(KillBash(Arc::clone(shell))),
    ]
}

type Variable = (OsString, Option<OsString>);
