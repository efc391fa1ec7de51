//! The agent's thread: opens sessions, works on prompts, carries out commands that need the session.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender};

use pal_agent::{Agent, AgentError, Event, Post};
use pal_model::{Body, Content, Entry, Origin};
use pal_tui::{Facts, Told, Wish};

use super::asking::asking;
use super::running::Running;
use super::{listing, prompts};
use crate::agent::options;
use crate::arguments::Print;
use crate::aside;
use crate::commands;
use crate::failure::Failure;
use crate::settings::{Settings, allowed_file};
use crate::stored::find;
use crate::telemetry::Export;

/// How many of the last messages are shown of a session that goes on.
const EARLIER: usize = 12;

/// Lines of a summary that a look ahead shows.
const PREVIEW_LINES: usize = 16;

/// Fulfils wishes until nobody has any. Where a session is chosen first, none is opened before the first wish.
pub(super) fn work(
    print: Print,
    settings: &Settings,
    running: &Running,
    wishes: &Receiver<Wish>,
    told: &Sender<Told>,
    is_chosen: bool,
) {
    let export = Rc::new(RefCell::new(Export::begin(settings)));
    let export_too = Rc::clone(&export);
    let mut worker =
        Worker { print, settings, running, told, export: export_too, agent: None, post: None, shown: None };
    let left = if is_chosen { Ok(()) } else { worker.open() };
    let left = left.and_then(|()| worker.serve(wishes));
    if let Some(agent) = worker.agent.take() {
        agent.finish("prompt_input_exit");
    }
    drop(worker);
    if let Ok(export) = Rc::try_unwrap(export) {
        let ((), lines) = aside::kept(|| export.into_inner().finish());
        lines.into_iter().for_each(|line| drop(told.send(Told::Event(Event::Notice(line)))));
    }
    // The terminal is there until it hears this.
    let _ = told.send(Told::Left(left.err().map(|failure| failure.words())));
}

struct Worker<'a> {
    print: Print,
    settings: &'a Settings,
    running: &'a Running,
    told: &'a Sender<Told>,
    export: Rc<RefCell<Export>>,
    agent: Option<Agent<'static>>,
    /// How others reach the session.
    post: Option<Post>,
    /// The session whose messages are in sight.
    shown: Option<PathBuf>,
}

impl Worker<'_> {
    fn serve(&mut self, wishes: &Receiver<Wish>) -> Result<(), Failure> {
        for wish in wishes {
            match wish {
                Wish::Leave => return Ok(()),
                Wish::Prompt(content) => self.prompt(Some(content))?,
                Wish::Heed => self.prompt(None)?,
                Wish::Command { name, arguments } => self.command(&name, &arguments)?,
            }
            self.tell(Told::Rests);
        }
        Ok(())
    }

    fn tell(&self, told: Told) {
        // A terminal that is gone wants to know nothing.
        let _ = self.told.send(told);
    }

    /// Opens the session that was asked for, or begins one.
    fn open(&mut self) -> Result<(), Failure> {
        if let Some(agent) = self.agent.take() {
            agent.finish("other");
        }
        let kept = self.settings.home.as_deref().zip(std::env::current_dir().ok());
        let kept = kept.map(|(home, directory)| allowed_file(home, &directory));
        let (options, lines) = aside::kept(|| options(&self.print, self.settings));
        lines.into_iter().for_each(|line| self.tell(Told::Event(Event::Notice(line))));
        let mut options = options?;
        options.asking = Some(asking(self.told.clone(), kept));
        let limits = options.limits;
        let (home, directory) = (options.home.clone(), options.sources.search.directory.clone());
        self.post = None;
        let (told, export) = (self.told.clone(), Rc::clone(&self.export));
        let sink = Box::new(move |event: Event| {
            export.borrow_mut().event(&event);
            if let Some(trouble) = export.borrow_mut().trouble() {
                let _ = told.send(Told::Event(Event::Notice(trouble)));
            }
            let _ = told.send(Told::Event(event));
        });
        let agent = Agent::start(options, sink).map_err(|error| Failure::new(error.to_string()))?;
        self.post = Post::open(&home, &agent, &directory);
        let called = self.told.clone();
        agent.handle().on_message(move || {
            let _ = called.send(Told::Called);
        });
        self.running.set(&agent);
        let view = agent.session().view();
        let (shell, dream) = (agent.shell(), agent.dream());
        let log = pal_store::log_path(agent.session().directory());
        let is_shown = self.shown.as_ref() == Some(&log);
        self.tell(Told::Ready(Box::new(Facts {
            handle: agent.handle(),
            log: log.clone(),
            tokens: view.size().tokens,
            goal: limits.auto_compact.unwrap_or(limits.effective),
            cost: view.state().totals.cost,
            earlier: if is_shown { Vec::new() } else { earlier(view.branch()) },
            background: Box::new(move || {
                let dream = dream().filter(|dream| dream.state().is_running());
                shell.running().into_iter().chain(dream.map(|dream| dream.line())).collect()
            }),
        })));
        self.agent = Some(agent);
        self.shown = Some(log);
        Ok(())
    }

    fn agent(&mut self) -> Result<&mut Agent<'static>, Failure> {
        if self.agent.is_none() {
            self.open()?;
        }
        self.agent.as_mut().ok_or_else(|| Failure::new("there is no session"))
    }

    /// Works on a prompt, and on whatever was said too late to go along with it.
    fn prompt(&mut self, content: Option<Content>) -> Result<(), Failure> {
        let agent = self.agent()?;
        if let Some(content) = content {
            agent.prompt(content).map_err(|error| failed(&error))?;
        }
        agent.heed().map_err(|error| failed(&error))?;
        Ok(())
    }

    /// Carries a command out. What goes wrong is told; only a session that does not open ends the program.
    fn command(&mut self, name: &str, arguments: &str) -> Result<(), Failure> {
        if let Some(content) = self.prompt_of_server(name, arguments) {
            match content {
                Ok(content) => return self.prompt(Some(content)),
                Err(failure) => self.tell(Told::Failed(failure.words())),
            }
            return Ok(());
        }
        let done = match name {
            "clear" => self.reopen(None, None),
            "resume" => self.resume(arguments),
            "model" => self.model(arguments),
            _ => self.session_command(name, arguments),
        };
        match done {
            Ok(text) if text.is_empty() => {}
            Ok(text) => self.tell(Told::Printed(text)),
            Err(failure) => self.tell(Told::Failed(failure.words())),
        }
        Ok(())
    }

    /// What a prompt of an MCP server says, if the command names one.
    fn prompt_of_server(&mut self, name: &str, arguments: &str) -> Option<Result<Content, Failure>> {
        let prompt = prompts::find(&self.running.get()?.servers, name)?;
        let arguments = prompts::arguments(&prompt, arguments).map_err(Failure::new);
        let asked = arguments.and_then(|arguments| {
            let said = self.agent()?.prompt_of_server(&prompt.server, &prompt.name, &arguments);
            said.map_err(|error| failed(&error))
        });
        Some(asked)
    }

    fn resume(&mut self, name: &str) -> Result<String, Failure> {
        let log = find(name, self.settings)?;
        self.reopen(Some(log), self.print.model.clone())
    }

    fn model(&mut self, name: &str) -> Result<String, Failure> {
        let log = self.agent.as_ref().map(|agent| pal_store::log_path(agent.session().directory()));
        self.reopen(log, Some(name.to_owned()))
    }

    /// Goes on with another session or another model. If that fails, what was there is there again.
    fn reopen(&mut self, log: Option<PathBuf>, model: Option<String>) -> Result<String, Failure> {
        let before = self.print.clone();
        let held = self.agent.as_ref().map(|agent| pal_store::log_path(agent.session().directory()));
        self.print = Print {
            resume: log.map(|log| log.display().to_string()),
            is_continued: false,
            fork_session: false,
            session_id: None,
            model: model.or_else(|| before.model.clone()),
            ..before.clone()
        };
        let Err(failure) = self.open() else { return Ok(String::new()) };
        self.print = Print { resume: held.map(|log| log.display().to_string()), ..before };
        self.open()?;
        Err(failure)
    }

    fn session_command(&mut self, name: &str, arguments: &str) -> Result<String, Failure> {
        let told = self.told.clone();
        let agent = self.agent()?;
        match name {
            "compact" if arguments.split_whitespace().next() == Some("--preview") => {
                preview(agent, arguments)
            }
            "memory" => Ok(listing::memory(agent)),
            "compact" => {
                let instructions = Some(arguments.to_owned()).filter(|text| !text.is_empty());
                agent.compact(instructions).map_err(|error| failed(&error))?;
                Ok(String::new())
            }
            "uncompact" => {
                agent.uncompact().map_err(|error| failed(&error))?;
                Ok(String::from("The compaction is taken back."))
            }
            "pin" => {
                agent.pin(arguments).map_err(|error| failed(&error))?;
                Ok(pins(agent))
            }
            "unpin" => {
                let number = arguments.parse().unwrap_or(0);
                agent.unpin(number).map_err(|error| failed(&error))?;
                Ok(pins(agent))
            }
            "pins" => Ok(pins(agent)),
            "rewind" => {
                let prompt = agent.rewind(arguments).map_err(|error| failed(&error))?;
                let _ = told.send(Told::Fill(prompt));
                Ok(String::from("The conversation goes on from before this prompt. Files stay as they are."))
            }
            _ => Err(Failure::new(format!("there is no command /{name}"))),
        }
    }
}

/// What a compaction would come to.
fn preview(agent: &mut Agent<'_>, arguments: &str) -> Result<String, Failure> {
    let is_all = arguments.split_whitespace().any(|word| word == "--all");
    let preview = agent.preview_compaction().map_err(|error| failed(&error))?;
    let mut out = Vec::new();
    commands::preview(&preview, if is_all { usize::MAX } else { PREVIEW_LINES }, &mut out)?;
    let mut text = String::from_utf8_lossy(&out).into_owned();
    text.push_str("The summary here is drawn from the log. /compact asks the model for one first, so its size will differ.\n");
    if !is_all {
        text.push_str("/compact --preview --all shows all of it.\n");
    }
    Ok(text)
}

fn pins(agent: &Agent<'_>) -> String {
    let pins = agent.pins();
    if pins.is_empty() {
        return String::from("Nothing is pinned; /pin TEXT pins it.");
    }
    let line = |(at, text): (usize, &String)| format!("{:>3}  {}", at + 1, crate::colour::clipped(text, 72));
    pins.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

/// The last messages of a branch.
fn earlier(branch: &[Entry]) -> Vec<Entry> {
    let is_shown = |entry: &&Entry| match &entry.body {
        Body::User(user) => user.origin == Origin::Person,
        Body::Assistant(_) => true,
        _ => false,
    };
    let mut entries: Vec<Entry> = branch.iter().rev().filter(is_shown).take(EARLIER).cloned().collect();
    entries.reverse();
    entries
}

fn failed(error: &AgentError) -> Failure {
    Failure::new(error.to_string())
}
