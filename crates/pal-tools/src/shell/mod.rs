//! Commands of the shell: Bash, BashOutput, KillBash.

mod bash;
mod bash_output;
mod environment;
mod kill_bash;
mod places;
mod script;
mod told;

#[cfg(test)]
mod fence_tests;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pal_process::{Background, Program};
use pal_sandbox::{Fence, NoFence, Policy};

use crate::Tool;
use places::Holding;

pub use bash::Bash;
pub use bash_output::BashOutput;
pub use environment::open_variables;
pub use kill_bash::KillBash;

/// The folder of the session with the outputs of commands in the background.
const BACKGROUND: &str = "background";

/// No command in the background may print more.
const BACKGROUND_BYTES_MAX: u64 = 1 << 30;

/// The shell of a session: what its commands run in, and those that run beside it. Commands in the background end with
/// this value; a program that exits without dropping it calls [`Shell::end`] first.
#[derive(Debug)]
pub struct Shell {
    /// The fence that every command runs behind; none if they run free.
    pub sandbox: Option<Sandbox>,
    /// Variables that no command gets to see, besides those that look like secrets: names, with a `*` for anything. A `!`
    /// before one lets it through.
    pub hidden_variables: Vec<String>,
    /// Commands that run beside the session.
    pub background: Background,
    /// Whether commands may be left in the background.
    pub allows_background: bool,
    program: PathBuf,
    places: places::Places,
    told_of_landlock: AtomicBool,
}

/// A fence, and what it lets through.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sandbox {
    /// Which fence.
    pub fence: Fence,
    /// What commands may do behind it.
    pub policy: Policy,
    /// Roots in which they may plant nothing that runs later without a fence ([`pal_sandbox::Planted`]).
    pub guarded: Vec<PathBuf>,
    /// The program that closes it from inside: our own ([`pal_sandbox::enter_and_exec`]).
    pub helper: PathBuf,
}

impl Shell {
    /// The shell of the session that has this folder.
    pub fn new(session: &Path, sandbox: Option<Sandbox>, hidden_variables: Vec<String>) -> Shell {
        let background = Background::new(session.join(BACKGROUND), BACKGROUND_BYTES_MAX);
        Shell {
            sandbox,
            hidden_variables,
            background,
            allows_background: true,
            program: script::shell(),
            places: places::Places::default(),
            told_of_landlock: AtomicBool::new(false),
        }
    }

    /// Commands in the background that ended since this was last asked and whose end nobody saw, a sentence for each.
    pub fn finished_since_last_asked(&self) -> Vec<String> {
        let finished = self.background.finished_since_last_asked();
        self.tidy();
        finished.iter().map(|task| format!("Background {}", told::task(task))).collect()
    }

    /// Whether commands run in namespaces of their own.
    fn is_bubblewrapped(&self) -> bool {
        self.sandbox.as_ref().is_some_and(|sandbox| matches!(sandbox.fence, Fence::Bubblewrap { .. }))
    }

    /// Commands in the background that still run, a line for each.
    pub fn running(&self) -> Vec<String> {
        self.background.list().iter().filter(|task| is_running(task)).map(told::task).collect()
    }

    fn is_anything_running(&self) -> bool {
        self.background.list().iter().any(is_running)
    }

    /// A command line as a program, behind the fence if there is one, which stands as long as the second value lives or a
    /// command runs in the background.
    fn command(&self, line: String, directory: PathBuf) -> Result<(Program, Option<Holding<'_>>), NoFence> {
        let program = Program {
            path: self.program.clone().into(),
            arguments: vec!["-c".into(), line.into()],
            directory,
            environment: environment::changes(std::env::vars_os(), &self.hidden_variables),
        };
        let Some(sandbox) = &self.sandbox else { return Ok((program, None)) };
        let (holding, policy) = Holding::start(self, sandbox);
        Ok((sandbox.fence.wrap(program, &policy, &sandbox.helper)?, Some(holding)))
    }

    /// What the fence of this session cannot do, once.
    fn weakness(&self) -> Option<String> {
        let sandbox = self.sandbox.as_ref()?;
        let is_weak = matches!(sandbox.fence, Fence::Landlock { .. }) && !sandbox.guarded.is_empty();
        let is_news = is_weak && !self.told_of_landlock.swap(true, Ordering::Relaxed);
        is_news.then(|| told::LANDLOCK.to_owned())
    }
}

fn is_running(task: &pal_process::Task) -> bool {
    matches!(task.state, pal_process::State::Running)
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
