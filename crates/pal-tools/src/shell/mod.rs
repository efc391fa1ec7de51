//! Shell tools: Bash, BashOutput, KillBash.

mod bash_output_tool;
mod bash_tool;
mod command_report;
mod command_script;
mod environment;
mod kill_bash_tool;
mod placeholders;
mod session_sandbox;

#[cfg(test)]
mod sandbox_tests;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pal_permissions::{Confinement, SandboxLevel};
use pal_process::sandbox::{Sandbox, SandboxError, ThreadSandbox};
use pal_process::{BackgroundCommands, ProcessSession, Program, SESSION_VARIABLE};

use crate::ToolHandler;
use placeholders::PlaceholderGuard;
use session_sandbox::CommandPolicy;

pub use bash_output_tool::BashOutputTool;
pub use bash_tool::BashTool;
pub use environment::visible_variables;
pub use kill_bash_tool::KillBashTool;
pub use session_sandbox::{SandboxConfig, SessionSandbox};

/// Session folder for outputs of background commands.
const BACKGROUND: &str = "background";

/// Session folder for temporary files of read-only commands.
const SCRATCH: &str = "scratch";

/// Default for [`Shell::limit_outputs`].
const OUTPUT_BYTES_MAX: u64 = 256 << 20;

/// Shell of a session: sandbox, environment and background commands. Dropping it ends background commands; a
/// program that exits without dropping it calls [`Shell::shut_down`] first.
#[derive(Debug)]
pub struct Shell {
    /// Sandbox of commands; `None` if the user switched it off.
    pub sandbox: Option<SessionSandbox>,
    /// Hidden variables besides those that look like secrets: names with `*` as a wildcard; a leading `!`
    /// makes an exception.
    pub hidden_variables: Vec<String>,
    /// Background commands of the session.
    pub background: BackgroundCommands,
    /// True if background commands are allowed.
    pub allows_background: bool,
    /// Mark of all processes that the session starts.
    processes: ProcessSession,
    program: PathBuf,
    placeholders: placeholders::Placeholders,
    has_shown_landlock_notice: AtomicBool,
    /// Folder that read-only commands may write to.
    scratch: PathBuf,
    output_bytes_max: u64,
}

impl Shell {
    /// Creates the shell of the session with this folder.
    pub fn new(session: &Path, sandbox: Option<SessionSandbox>, hidden_variables: Vec<String>) -> Shell {
        let background = BackgroundCommands::new(session.join(BACKGROUND), OUTPUT_BYTES_MAX);
        Shell {
            sandbox,
            hidden_variables,
            background,
            allows_background: true,
            processes: ProcessSession::default(),
            program: command_script::shell(),
            placeholders: placeholders::Placeholders::default(),
            has_shown_landlock_notice: AtomicBool::new(false),
            scratch: session.join(SCRATCH),
            output_bytes_max: OUTPUT_BYTES_MAX,
        }
    }

    /// Limits the output of one command on disk: further output is dropped, and a background command is
    /// killed.
    pub fn limit_outputs(&mut self, bytes_max: u64) {
        self.output_bytes_max = bytes_max;
        self.background.limit_outputs(bytes_max);
    }

    /// Returns a sentence for each background command that ended unnoticed since the last call.
    pub fn take_finished(&self) -> Vec<String> {
        let finished = self.background.take_finished();
        self.remove_placeholders();
        finished.iter().map(|task| format!("Background {}", command_report::describe_command(task))).collect()
    }

    /// Returns whether bubblewrap runs commands in namespaces of their own.
    fn is_bubblewrapped(&self, confinement: &Confinement) -> bool {
        let has_processes =
            matches!(confinement.level, SandboxLevel::ReadOnly | SandboxLevel::WorkspaceWrite);
        let is_bubblewrap = |sandbox: &SessionSandbox| {
            thread_sandbox(sandbox, confinement).is_none()
                && matches!(sandbox.effective_sandbox(), Sandbox::Bubblewrap { .. })
        };
        has_processes && self.sandbox.as_ref().is_some_and(is_bubblewrap)
    }

    /// Returns a line for each running background command.
    pub fn running_commands(&self) -> Vec<String> {
        self.background
            .list()
            .iter()
            .filter(|task| is_running(task))
            .map(command_report::describe_command)
            .collect()
    }

    fn is_anything_running(&self) -> bool {
        self.background.list().iter().any(is_running)
    }

    /// Builds the program for a command line in its sandbox, which holds while the returned guard lives or a
    /// background command runs. `frame` wraps the command line.
    fn build_program(
        &self,
        command: &str,
        frame: impl Fn(&str) -> String,
        directory: PathBuf,
        confinement: &Confinement,
    ) -> Result<(Program, Option<PlaceholderGuard<'_>>), SandboxError> {
        let line = self.wrap_confined_parts(command, confinement)?;
        let mut environment = environment::changes(std::env::vars_os(), &self.hidden_variables);
        environment.push((SESSION_VARIABLE.into(), Some(self.processes.tag().into())));
        if confinement.level == SandboxLevel::ReadOnly {
            environment.extend(environment::read_only_changes());
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
            (None, _) => return Err(SandboxError { why: "the sandbox is switched off".to_owned() }),
            (Some(sandbox), _) => sandbox,
        };
        let CommandPolicy { mut policy, never, repositories } =
            sandbox.command_policy(confinement.level, &confinement.readable);
        if let Some(by_thread) = thread_sandbox(sandbox, confinement) {
            // Temporary files of heredocs and `sort` go to a session folder.
            if let Some(scratch) = self.make_scratch() {
                program.environment.push(("TMPDIR".into(), Some(scratch.clone().into())));
                policy.writable.push(scratch);
            }
            return Ok((by_thread.confine(program, &policy), None));
        }
        match (sandbox.effective_sandbox(), confinement.level) {
            // A rule allows it: it runs without a sandbox if there is none.
            (Sandbox::None { .. }, SandboxLevel::Guarded) => Ok((program, None)),
            (mechanism, SandboxLevel::WorkspaceWrite | SandboxLevel::Guarded) => {
                // Placeholders must exist before they can be mounted.
                let guard = PlaceholderGuard::start(
                    self,
                    sandbox.effective_sandbox(),
                    &policy,
                    (never, repositories),
                );
                Ok((mechanism.wrap(program, &policy, &sandbox.config().helper)?, Some(guard)))
            }
            (mechanism, _) => Ok((mechanism.wrap(program, &policy, &sandbox.config().helper)?, None)),
        }
    }

    /// Creates the session folder that read-only commands may write to.
    fn make_scratch(&self) -> Option<PathBuf> {
        use std::os::unix::fs::DirBuilderExt;
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.scratch);
        made.ok().and_then(|()| self.scratch.canonicalize().ok())
    }

    /// Puts the sandbox prefix before each part with a stricter sandbox of its own.
    fn wrap_confined_parts(&self, command: &str, confinement: &Confinement) -> Result<String, SandboxError> {
        let mut line = command.to_owned();
        // From the end, so that earlier offsets stay valid.
        for part in confinement.parts.iter().rev() {
            let Some(sandbox) = &self.sandbox else {
                return match part.level {
                    SandboxLevel::Guarded | SandboxLevel::Full => continue,
                    _ => Err(SandboxError { why: "the sandbox is switched off".to_owned() }),
                };
            };
            let is_missing = matches!(sandbox.effective_sandbox(), Sandbox::None { .. });
            if part.level == SandboxLevel::Guarded && is_missing {
                continue;
            }
            let CommandPolicy { policy, .. } = sandbox.command_policy(part.level, &confinement.readable);
            let mut words = sandbox.effective_sandbox().prefix(&policy, &sandbox.config().helper)?;
            if part.level == SandboxLevel::ReadOnly {
                words.push("env".into());
                let set = |(name, value): (OsString, Option<OsString>)| {
                    let mut word = name;
                    word.push("=");
                    word.push(value?);
                    Some(word)
                };
                words.extend(environment::read_only_changes().into_iter().filter_map(set));
            }
            let quoted: Vec<String> =
                words.iter().map(|word| command_script::quoted(&word.to_string_lossy())).collect();
            line.insert_str(part.start, &format!("{} ", quoted.join(" ")));
        }
        Ok(line)
    }

    /// Returns the notice about limits of Landlock, once.
    fn landlock_notice(&self) -> Option<String> {
        let sandbox = self.sandbox.as_ref()?;
        let is_weak = matches!(sandbox.effective_sandbox(), Sandbox::Landlock { .. })
            && !sandbox.config().guarded.is_empty();
        let is_news = is_weak && !self.has_shown_landlock_notice.swap(true, Ordering::Relaxed);
        is_news.then(|| command_report::LANDLOCK.to_owned())
    }
}

/// Kernel-only sandbox of a read-only command, if supported.
fn thread_sandbox(sandbox: &SessionSandbox, confinement: &Confinement) -> Option<ThreadSandbox> {
    let is_read_only = confinement.level == SandboxLevel::ReadOnly;
    sandbox.config().probe.thread_sandbox().filter(|_| is_read_only)
}

fn is_running(task: &pal_process::BackgroundCommand) -> bool {
    matches!(task.state, pal_process::BackgroundState::Running)
}

/// Shell tools, sorted by name.
pub fn shell_tools(shell: &Arc<Shell>) -> Vec<Box<dyn ToolHandler>> {
    vec![
        Box::new(BashTool(Arc::clone(shell))),
        Box::new(BashOutputTool(Arc::clone(shell))),
        Box::new(KillBashTool(Arc::clone(shell))),
    ]
}

type EnvironmentChange = (OsString, Option<OsString>);
