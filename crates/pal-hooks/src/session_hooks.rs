//! Hooks of a session: selection and execution.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pal_process::{CancelToken, CaptureLimits, CommandInput, CommandSpec, Program, StreamMode, run_command};

use crate::event_name::HookEventName;
use crate::hook_answer::HookAnswer;
use crate::hook_config::{HookCommand, HookConfig, HookGroup};
use crate::hook_event::{HookContext, HookEvent, HookSession};
use crate::hook_outcome::HookOutcome;

/// Maximum bytes of output that are read.
const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// Candidate shells; the first existing one is used.
const SHELLS: [&str; 3] = ["/bin/bash", "/usr/bin/bash", "/bin/sh"];

/// Hooks of a session.
#[derive(Debug)]
pub struct SessionHooks {
    groups: Vec<HookGroup>,
    session: HookSession,
    shell: &'static str,
    /// Once-only hooks that have run.
    spent: Mutex<BTreeSet<(usize, usize)>>,
}

impl SessionHooks {
    /// Combines configurations in order.
    pub fn new(configs: Vec<HookConfig>, session: HookSession) -> SessionHooks {
        let groups = configs.into_iter().flat_map(|config| config.groups).collect();
        let shell = SHELLS.into_iter().find(|shell| Path::new(shell).exists()).unwrap_or("sh");
        SessionHooks { groups, session, shell, spent: Mutex::default() }
    }

    /// Returns whether any hook may run at an event, so that callers can skip building it.
    pub fn has_hooks_for(&self, event: HookEventName) -> bool {
        self.groups.iter().any(|group| group.event == event && !group.commands.is_empty())
    }

    /// Runs the hooks of an event in parallel and waits for them.
    pub fn run(
        &self,
        hook_event: &HookEvent<'_>,
        context: &HookContext<'_>,
        cancel: &CancelToken,
    ) -> HookOutcome {
        let mut outcome = HookOutcome::default();
        let chosen = self.select_hooks(hook_event, context);
        if chosen.is_empty() {
            return outcome;
        }
        let event = hook_event.event_name();
        let input = format!("{}\n", hook_event.input(&self.session, context));
        let answers: Vec<HookAnswer> = thread::scope(|scope| {
            let running: Vec<_> = chosen
                .iter()
                .map(|command| scope.spawn(|| self.answer(command, event, &input, context, cancel)))
                .collect();
            let lost = |_| HookAnswer::failed("waiting for it failed");
            running.into_iter().map(|running| running.join().unwrap_or_else(lost)).collect()
        });
        for (command, answer) in chosen.iter().zip(answers) {
            outcome.merge(&command.command, answer);
        }
        outcome.spill_long_contexts(event, &self.session.folder);
        outcome
    }

    /// Selects matching hooks, each command once.
    fn select_hooks(&self, hook_event: &HookEvent<'_>, context: &HookContext<'_>) -> Vec<&HookCommand> {
        let event = hook_event.event_name();
        let mut chosen: Vec<&HookCommand> = Vec::new();
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        for (group_at, group) in self.groups.iter().enumerate().filter(|(_, group)| group.event == event) {
            if hook_event.subject(context).is_some_and(|subject| !group.matcher.matches(subject)) {
                continue;
            }
            for (at, command) in group.commands.iter().enumerate() {
                let is_same = |other: &&HookCommand| {
                    (&other.command, &other.arguments) == (&command.command, &command.arguments)
                };
                let matches_condition = !hook_event.is_call() || command.matches_condition(context);
                if !matches_condition || chosen.iter().any(is_same) {
                    continue;
                }
                if command.once && !spent.insert((group_at, at)) {
                    continue;
                }
                chosen.push(command);
            }
        }
        chosen
    }

    /// Runs one hook and parses its answer.
    fn answer(
        &self,
        command: &HookCommand,
        event: HookEventName,
        input: &str,
        context: &HookContext<'_>,
        cancel: &CancelToken,
    ) -> HookAnswer {
        if let Some(why) = &command.unsupported {
            return HookAnswer::unsupported(event, why);
        }
        if let Some(callback) = &command.callback {
            return callback.answer(event, input, limit(command, event), cancel);
        }
        let spec = CommandSpec {
            program: self.program(command, context.directory),
            input: CommandInput::Bytes(input.as_bytes().to_vec()),
            streams: StreamMode::Separate,
            keep: CaptureLimits {
                whole_max: OUTPUT_BYTES_MAX,
                head: OUTPUT_BYTES_MAX,
                tail: 0,
                overflow: None,
            },
            limit: Some(limit(command, event)),
        };
        match run_command(spec, cancel, &|_| {}) {
            Ok(mut finished) => {
                // Reported to the user at the end of the session.
                pal_process::report_later(std::mem::take(&mut finished.ended));
                HookAnswer::read(event, &finished)
            }
            Err(error) => HookAnswer::failed(error.to_string()),
        }
    }

    fn program(&self, command: &HookCommand, directory: &Path) -> Program {
        let (path, arguments) = match &command.arguments {
            Some(arguments) => (command.command.as_str(), arguments.iter().map(OsString::from).collect()),
            None => (self.shell, vec!["-c".into(), OsString::from(&command.command)]),
        };
        let project = self.session.project.as_os_str();
        let variables = ["CLAUDE_PROJECT_DIR", "PAL_PROJECT_DIR"];
        Program {
            path: path.into(),
            arguments,
            directory: self.existing_directory(directory),
            environment: variables.map(|name| (name.into(), Some(project.to_owned()))).into(),
            thread_setup: None,
        }
    }

    /// Existing directory to run in: a missing working directory must not disable hooks.
    fn existing_directory(&self, directory: &Path) -> PathBuf {
        let places = [directory, &self.session.project, Path::new("/")];
        places.into_iter().find(|session| session.is_dir()).unwrap_or(directory).to_owned()
    }
}

impl HookCommand {
    /// Returns whether the current call matches the condition.
    fn matches_condition(&self, context: &HookContext<'_>) -> bool {
        match (&self.condition, context.matches_rule) {
            (Some(condition), Some(fits)) => fits(condition),
            _ => true,
        }
    }
}

/// Time limit of a hook. At the end of a session the default is the maximum.
fn limit(command: &HookCommand, event: HookEventName) -> Duration {
    let usual = event.time_limit();
    match command.timeout {
        Some(timeout) if event == HookEventName::SessionEnd => timeout.min(usual),
        Some(timeout) => timeout,
        None => usual,
    }
}
