//! A teammate as its lead sees it: a process of our own program with a session of its own.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pal_model::Content;

use super::team::Team;
use super::wire::{Assignment, Down, Up, exchanged, line};
use crate::gate::Answer;
use crate::handle::Signal;

/// How long one has to end when its lead ends.
const END_TIME: Duration = Duration::from_secs(5);

/// Where what it says on standard error is kept, in its folder: one that has it is a teammate's.
pub(super) const ERRORS: &str = "errors.txt";

/// How often its end is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A teammate that runs.
pub(crate) struct Teammate {
    process: Mutex<Child>,
    /// None once it is to end: it ends when nobody writes to it any more.
    input: Mutex<Option<ChildStdin>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Whether it had nothing to do when it was last heard of, or waits for an answer of its lead.
    rests: bool,
    /// Messages to it that it has not heard.
    unheard: HashSet<String>,
}

impl Teammate {
    /// Starts one.
    pub(crate) fn start(
        mut command: Command,
        assignment: &Assignment,
    ) -> Result<(Teammate, ChildStdout), String> {
        let folder = assignment.lead.join("agents").join(&assignment.name);
        let failed = |error: std::io::Error| format!("The teammate could not be started: {error}.");
        pal_store::create_private_directory(&folder).map_err(|error| error.to_string())?;
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let errors = options.open(folder.join(ERRORS)).map_err(failed)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors);
        // Whoever interrupts the lead does not mean the teammate.
        command.process_group(0);
        let mut process = command.spawn().map_err(failed)?;
        let (Some(mut input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(String::from("The teammate could not be started: its pipes are missing."));
        };
        input.write_all(line(assignment).as_bytes()).map_err(failed)?;
        let state = Mutex::default();
        Ok((Teammate { process: Mutex::new(process), input: Mutex::new(Some(input)), state }, output))
    }

    /// Listens to it until it ends; how it ended, if not well.
    pub(crate) fn hear(&self, output: ChildStdout, name: &str, team: &Team) -> Option<String> {
        for said in BufReader::new(output).lines().map_while(Result::ok) {
            // What is none of ours was printed by something else.
            if let Ok(up) = serde_json::from_str(&said) {
                self.take_in(up, name, team);
            }
        }
        self.close();
        let status = self.process().wait();
        match status {
            Ok(status) if status.success() => None,
            Ok(status) => Some(format!("it ended with {status}")),
            Err(error) => Some(format!("its end is not known: {error}")),
        }
    }

    fn take_in(&self, up: Up, name: &str, team: &Team) {
        match up {
            Up::Spent { got, provider, took_ms } => {
                team.took(name, Some(&got.usage), got.cost);
                let exchanged = exchanged(name, *got, &provider, took_ms);
                team.sender.send(Signal::Exchanged(Box::new(exchanged)));
            }
            Up::Does(what) => team.does(name, &what),
            Up::Asks { id, mut asked } => {
                asked.agent.get_or_insert_with(|| name.to_owned());
                let answer = team.template.asking.as_ref().map_or(Answer::Nobody, |asking| asking(&asked));
                self.say(&Down::Answers { id, answer });
            }
            Up::Rests { heard } => {
                // What it has to say is in the mailbox, and is to be heard before anybody thinks that nothing more comes.
                team.look_at_mail();
                let mut state = self.state();
                state.rests = true;
                state.unheard.retain(|id| !heard.contains(id));
            }
            Up::Works => self.state().rests = false,
        }
    }

    /// Says something to the program of the teammate. One that is gone hears nothing, and its end is told elsewhere.
    pub(crate) fn say(&self, down: &Down) {
        if let Some(input) = &mut *self.input.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = input.write_all(line(down).as_bytes());
        }
    }

    /// A message for it is in its mailbox.
    pub(crate) fn is_written_to(&self, id: String) {
        self.state().unheard.insert(id);
    }

    /// It could not be put there.
    pub(crate) fn is_not_written_to(&self, id: &str) {
        self.state().unheard.remove(id);
    }

    /// Whether it works, or will when it reads what was written to it.
    pub(crate) fn is_at_work(&self) -> bool {
        let state = self.state();
        !state.rests || !state.unheard.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn process(&self) -> MutexGuard<'_, Child> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody writes to it any more, and so it ends.
    pub(crate) fn close(&self) {
        self.input.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Waits for its end, and ends it by force if it takes too long.
    pub(crate) fn end(&self) {
        self.close();
        let until = Instant::now() + END_TIME;
        while Instant::now() < until {
            // Whoever listens to it may have seen its end already.
            match self.process.try_lock().map(|mut process| process.try_wait()) {
                Ok(Ok(None)) | Err(_) => std::thread::sleep(LOOK_EVERY),
                Ok(Ok(Some(_)) | Err(_)) => return,
            }
        }
        if let Ok(mut process) = self.process.try_lock() {
            let _ = process.kill();
        }
    }
}

/// Listens to a teammate on a thread of its own, and tells its lead when it has ended otherwise than it should.
pub(crate) fn listen(
    teammate: Arc<Teammate>,
    output: ChildStdout,
    name: String,
    team: Arc<Team>,
) -> Result<(), String> {
    let listening = move || {
        let wrong = teammate.hear(output, &name, &team);
        if let Some(wrong) = wrong.filter(|_| !team.is_ending()) {
            team.sender.message(Content::of_text(&format!(
                "[The teammate `{name}` is gone: {wrong}. What it printed last stands in {}. Sent again under the same name, it \
                 goes on where it was.]",
                team.folder.join(&name).join(ERRORS).display()
            )));
        }
        // Whoever waits for it has been told by now.
        team.left(&name);
    };
    let spawned = std::thread::Builder::new().name("pal-teammate".into()).spawn(listening);
    spawned.map(|_| ()).map_err(|error| format!("The teammate could not be listened to: {error}."))
}
