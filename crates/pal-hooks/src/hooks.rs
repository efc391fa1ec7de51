//! The hooks of a session: which run at an event, and their running.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pal_process::{Cancel, Input, Keep, Program, Spec, Streams, run};

use crate::answer::Answer;
use crate::config::{Command, Config, Group};
use crate::event::EventName;
use crate::happening::{Happening, Moment};
use crate::said::Said;

/// Bytes of an output that count.
const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// The shells that command lines are for; the first that is there is taken.
const SHELLS: [&str; 3] = ["/bin/bash", "/usr/bin/bash", "/bin/sh"];

/// The hooks of a session.
#[derive(Debug)]
pub struct Hooks {
    groups: Vec<Group>,
    place: Place,
    shell: &'static str,
    /// Hooks for a single time that had theirs.
    spent: Mutex<BTreeSet<(usize, usize)>>,
}

/// Where hooks run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The session.
    pub session_id: String,
    /// Its log.
    pub transcript_path: PathBuf,
    /// The top of the project.
    pub project: PathBuf,
    /// The session's folder, where long contexts go.
    pub folder: PathBuf,
}

impl Hooks {
    /// The hooks of all places, in their order.
    pub fn new(configs: Vec<Config>, place: Place) -> Hooks {
        let groups = configs.into_iter().flat_map(|config| config.groups).collect();
        let shell = SHELLS.into_iter().find(|shell| Path::new(shell).exists()).unwrap_or("sh");
        Hooks { groups, place, shell, spent: Mutex::default() }
    }

    /// Whether any hook might run at an event; if none does, nobody needs to say what happens.
    pub fn listen_to(&self, event: EventName) -> bool {
        self.groups.iter().any(|group| group.event == event && !group.commands.is_empty())
    }

    /// Runs the hooks of what happens, all at once, and waits for them.
    pub fn run(&self, happening: &Happening<'_>, moment: &Moment<'_>, cancel: &Cancel) -> Said {
        let mut said = Said::default();
        let chosen = self.chosen(happening, moment);
        if chosen.is_empty() {
            return said;
        }
        let event = happening.event();
        let input = format!("{}\n", happening.input(&self.place, moment));
        let answers: Vec<Answer> = thread::scope(|scope| {
            let running: Vec<_> = chosen
                .iter()
                .map(|command| scope.spawn(|| self.answer(command, event, &input, moment, cancel)))
                .collect();
            let lost = |_| Answer::failed("it could not be waited for");
            running.into_iter().map(|running| running.join().unwrap_or_else(lost)).collect()
        });
        for (command, answer) in chosen.iter().zip(answers) {
            said.take(&command.command, answer);
        }
        said.shorten(event, &self.place.folder);
        said
    }

    /// The hooks that run: those that are meant, each command once.
    fn chosen(&self, happening: &Happening<'_>, moment: &Moment<'_>) -> Vec<&Command> {
        let event = happening.event();
        let mut chosen: Vec<&Command> = Vec::new();
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        for (group_at, group) in self.groups.iter().enumerate().filter(|(_, group)| group.event == event) {
            if happening.subject(moment).is_some_and(|subject| !group.matcher.fits(subject)) {
                continue;
            }
            for (at, command) in group.commands.iter().enumerate() {
                let is_same = |other: &&Command| {
                    (&other.command, &other.arguments) == (&command.command, &command.arguments)
                };
                let is_meant = !happening.is_call() || command.is_meant(moment);
                if !is_meant || chosen.iter().any(is_same) {
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

    /// Runs one hook.
    fn answer(
        &self,
        command: &Command,
        event: EventName,
        input: &str,
        moment: &Moment<'_>,
        cancel: &Cancel,
    ) -> Answer {
        let spec = Spec {
            program: self.program(command, moment.directory),
            input: Input::Bytes(input.as_bytes().to_vec()),
            streams: Streams::Separate,
            keep: Keep { whole_max: OUTPUT_BYTES_MAX, head: OUTPUT_BYTES_MAX, tail: 0, overflow: None },
            limit: Some(limit(command, event)),
        };
        match run(spec, cancel, &|_| {}) {
            Ok(mut finished) => {
                // The user is told at the end of the session.
                pal_process::tell_later(std::mem::take(&mut finished.ended));
                Answer::read(event, &finished)
            }
            Err(error) => Answer::failed(error.to_string()),
        }
    }

    fn program(&self, command: &Command, directory: &Path) -> Program {
        let (path, arguments) = match &command.arguments {
            Some(arguments) => (command.command.as_str(), arguments.iter().map(OsString::from).collect()),
            None => (self.shell, vec!["-c".into(), OsString::from(&command.command)]),
        };
        let project = self.place.project.as_os_str();
        let variables = ["CLAUDE_PROJECT_DIR", "PAL_PROJECT_DIR"];
        Program {
            path: path.into(),
            arguments,
            directory: self.existing(directory),
            environment: variables.map(|name| (name.into(), Some(project.to_owned()))).into(),
            thread_setup: None,
        }
    }

    /// A directory to run in. A session whose directory is gone must not run without its hooks.
    fn existing(&self, directory: &Path) -> PathBuf {
        let places = [directory, &self.place.project, Path::new("/")];
        places.into_iter().find(|place| place.is_dir()).unwrap_or(directory).to_owned()
    }
}

impl Command {
    /// Whether the call of the moment fits the condition.
    fn is_meant(&self, moment: &Moment<'_>) -> bool {
        match (&self.condition, moment.fits) {
            (Some(condition), Some(fits)) => fits(condition),
            _ => true,
        }
    }
}

/// How long a hook may take. At the end of a session nobody waits for longer than all hooks share.
fn limit(command: &Command, event: EventName) -> Duration {
    let usual = event.time_limit();
    match command.timeout {
        Some(timeout) if event == EventName::SessionEnd => timeout.min(usual),
        Some(timeout) => timeout,
        None => usual,
    }
}
