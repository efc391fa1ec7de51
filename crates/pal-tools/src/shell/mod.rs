//! Commands of the shell: Bash, BashOutput, KillBash.

mod bash;
mod bash_output;
mod environment;
mod kill_bash;
mod places;
mod sandbox;
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

use pal_permissions::{Confinement, SandboxLevel};
use pal_process::{Background, ProcessSession, Program, SESSION_VARIABLE};
use pal_sandbox::{Fence, NoFence, ThreadSandbox};

use crate::Tool;
use places::Holding;
use sandbox::CommandPolicy;

pub use bash::Bash;
pub use bash_output::BashOutput;
pub use environment::open_variables;
pub use kill_bash::KillBash;
pub use sandbox::{Sandbox, SandboxConfig};

/// The folder of the session with the outputs of commands in the background.
const BACKGROUND: &str = "background";

/// The folder of the session with temporary files of read-only commands.
const SCRATCH: &str = "scratch";

/// Default for [`Shell::limit_outputs`].
const OUTPUT_BYTES_MAX: u64 = 256 << 20;

/// The shell of a session: what its commands run in, and those that run beside it. Commands in the background end with
/// this value; a program that exits without dropping it calls [`Shell::end`] first.
#[derive(Debug)]
pub struct Shell {
    /// The sandbox of commands; none if a person switched it off.
    pub sandbox: Option<Sandbox>,
    /// Variables that no command gets to see, besides those that look like secrets: names, with a `*` for anything. A `!`
    /// before one lets it through.
    pub hidden_variables: Vec<String>,
    /// Commands that run beside the session.
    pub background: Background,
    /// Whether commands may be left in the background.
    pub allows_background: bool,
    /// The mark of all processes that the session starts.
    processes: ProcessSession,
    program: PathBuf,
    places: places::Places,
    told_of_landlock: AtomicBool,
    /// The folder that read-only commands may write to.
    scratch: PathBuf,
    output_bytes_max: u64,
}

impl Shell {
    /// The shell of the session that has this folder.
    pub fn new(session: &Path, sandbox: Option<Sandbox>, hidden_variables: Vec<String>) -> Shell {
        let background = Background::new(session.join(BACKGROUND), OUTPUT_BYTES_MAX);
        Shell {
            sandbox,
            hidden_variables,
            background,
            allows_background: true,
            processes: ProcessSession::default(),
            program: script::shell(),
            places: places::Places::default(),
            told_of_landlock: AtomicBool::new(false),
            scratch: session.join(SCRATCH),
            output_bytes_max: OUTPUT_BYTES_MAX,
        }
    }

    /// Limits the output of one command on disk: what a command prints beyond it is dropped, and one in the background is
    /// ended.
    pub fn limit_outputs(&mut self, bytes_max: u64) {
        self.output_bytes_max = bytes_max;
        self.background.limit_outputs(bytes_max);
    }

    /// Commands in the background that ended since this was last asked and whose end nobody saw, a sentence for each.
    pub fn finished_since_last_asked(&self) -> Vec<String> {
        let finished = self.background.finished_since_last_asked();
        self.tidy();
        finished.iter().map(|task| format!("Background {}", told::task(task))).collect()
    }

    /// Whether commands run in namespaces of their own.
    fn is_bubblewrapped(&self, confinement: &Confinement) -> bool {
        let has_processes =
            matches!(confinement.level, SandboxLevel::ReadOnly | SandboxLevel::WorkspaceWrite);
        let is_bubblewrap = |sandbox: &Sandbox| {
            thread_sandbox(sandbox, confinement).is_none()
                && matches!(sandbox.fence(), Fence::Bubblewrap { .. })
        };
        has_processes && self.sandbox.as_ref().is_some_and(is_bubblewrap)
    }

    /// Commands in the background that still run, a line for each.
    pub fn running(&self) -> Vec<String> {
        self.background.list().iter().filter(|task| is_running(task)).map(told::task).collect()
    }

    fn is_anything_running(&self) -> bool {
        self.background.list().iter().any(is_running)
    }

    /// A command line as a program, in the sandbox that its confinement says, which stands as long as the second value
    /// lives or a command runs in the background. `frame` makes the whole line of a command.
    fn command(
        &self,
        command: &str,
        frame: impl Fn(&str) -> String,
        directory: PathBuf,
        confinement: &Confinement,
    ) -> Result<(Program, Option<Holding<'_>>), NoFence> {
        let line = self.confined_parts(command, confinement)?;
        let mut environment = environment::changes(std::env::vars_os(), &self.hidden_variables);
        environment.push((SESSION_VARIABLE.into(), Some(self.processes.mark().into())));
        if confinement.level == SandboxLevel::ReadOnly {
            environment.extend(environment::neutral());
        }
        let arguments = vec!["-c".into(), frame(&line).into()];
        let mut program = Program {
            path: self.program.clone().into(),
            arguments,
            directory,
            environment,
            thread_setup: None,
        };
        let sandbox = match (&self.sandbox, confinement.level) {
            (_, SandboxLevel::Full) | (None, SandboxLevel::Guarded) => return Ok((program, None)),
            (None, _) => return Err(NoFence { why: "the sandbox is switched off".to_owned() }),
            (Some(sandbox), _) => sandbox,
        };
        let CommandPolicy { mut policy, never, repositories } =
            sandbox.policy(confinement.level, &confinement.readable);
        if let Some(by_thread) = thread_sandbox(sandbox, confinement) {
            // Texts that are too long for a pipe, and what is sorted, go to a folder of the session.
            if let Some(scratch) = self.make_scratch() {
                program.environment.push(("TMPDIR".into(), Some(scratch.clone().into())));
                policy.writable.push(scratch);
            }
            return Ok((by_thread.confine(program, &policy), None));
        }
        match (sandbox.fence(), confinement.level) {
            // A rule allows it: without a sandbox it runs as it would have anyway.
            (Fence::None { .. }, SandboxLevel::Guarded) => Ok((program, None)),
            (fence, SandboxLevel::WorkspaceWrite | SandboxLevel::Guarded) => {
                // What is held can be closed only once it is there.
                let holding = Holding::start(self, sandbox.fence(), &policy, (never, repositories));
                Ok((fence.wrap(program, &policy, &sandbox.config().helper)?, Some(holding)))
            }
            (fence, _) => Ok((fence.wrap(program, &policy, &sandbox.config().helper)?, None)),
        }
    }

    /// The folder of the session that read-only commands may write to.
    fn make_scratch(&self) -> Option<PathBuf> {
        use std::os::unix::fs::DirBuilderExt;
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.scratch);
        made.ok().and_then(|()| self.scratch.canonicalize().ok())
    }

    /// A line whose stricter parts run in sandboxes of their own: the words that put a program there stand before them.
    fn confined_parts(&self, command: &str, confinement: &Confinement) -> Result<String, NoFence> {
        let mut line = command.to_owned();
        // From the end, so that what is before stays where it is.
        for part in confinement.parts.iter().rev() {
            let Some(sandbox) = &self.sandbox else {
                return match part.level {
                    SandboxLevel::Guarded | SandboxLevel::Full => continue,
                    _ => Err(NoFence { why: "the sandbox is switched off".to_owned() }),
                };
            };
            let is_missing = matches!(sandbox.fence(), Fence::None { .. });
            if part.level == SandboxLevel::Guarded && is_missing {
                continue;
            }
            let CommandPolicy { policy, .. } = sandbox.policy(part.level, &confinement.readable);
            let mut words = sandbox.fence().prefix(&policy, &sandbox.config().helper)?;
            if part.level == SandboxLevel::ReadOnly {
                words.push("env".into());
                let set = |(name, value): (OsString, Option<OsString>)| {
                    let mut word = name;
                    word.push("=");
                    word.push(value?);
                    Some(word)
                };
                words.extend(environment::neutral().into_iter().filter_map(set));
            }
            let quoted: Vec<String> =
                words.iter().map(|word| script::quoted(&word.to_string_lossy())).collect();
            line.insert_str(part.start, &format!("{} ", quoted.join(" ")));
        }
        Ok(line)
    }

    /// What the fence of this session cannot do, once.
    fn weakness(&self) -> Option<String> {
        let sandbox = self.sandbox.as_ref()?;
        let is_weak =
            matches!(sandbox.fence(), Fence::Landlock { .. }) && !sandbox.config().guarded.is_empty();
        let is_news = is_weak && !self.told_of_landlock.swap(true, Ordering::Relaxed);
        is_news.then(|| told::LANDLOCK.to_owned())
    }
}

/// The sandbox that the kernel alone puts around a read-only command, if it can.
fn thread_sandbox(sandbox: &Sandbox, confinement: &Confinement) -> Option<ThreadSandbox> {
    let is_read_only = confinement.level == SandboxLevel::ReadOnly;
    sandbox.config().probe.thread_sandbox().filter(|_| is_read_only)
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
