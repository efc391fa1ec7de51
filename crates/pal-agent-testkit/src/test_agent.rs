//! An agent inside of the test, with everything that it reported.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use pal_agent::{Agent, AgentHandle, AgentOptions};
use pal_events::{AgentEvent, PromptResult};
use pal_model::Content;
use serde_json::Value;

use crate::log_lines::{log_lines, log_of};

/// Reaction to an event, on the agent's thread while it works.
type EventReaction = Box<dyn FnMut(&AgentEvent, &AgentHandle)>;

/// State shared with the event sink.
#[derive(Default)]
struct EventRecord {
    events: RefCell<Vec<AgentEvent>>,
    handle: RefCell<Option<AgentHandle>>,
    reaction: RefCell<Option<EventReaction>>,
}

/// An agent that records its events.
pub struct TestAgent {
    /// The agent.
    pub agent: Agent<'static>,
    record: Rc<EventRecord>,
}

impl TestAgent {
    /// Starts an agent. Panics if its session cannot be opened.
    pub fn start(options: AgentOptions) -> TestAgent {
        let record = Rc::new(EventRecord::default());
        let recording = Rc::clone(&record);
        let sink = move |event: AgentEvent| {
            let handle = recording.handle.borrow().clone();
            if let (Some(react), Some(handle)) = (&mut *recording.reaction.borrow_mut(), handle) {
                react(&event, &handle);
            }
            recording.events.borrow_mut().push(event);
        };
        let agent = Agent::start(options, Box::new(sink)).unwrap_or_else(|error| panic!("{error}"));
        *record.handle.borrow_mut() = Some(agent.handle());
        TestAgent { agent, record }
    }

    /// Runs a prompt to its end.
    pub fn prompt(&mut self, text: &str) -> PromptResult {
        self.agent.prompt(Content::from_text(text)).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Calls `react` for each further event, on the agent's thread.
    pub fn on_event(&self, react: impl FnMut(&AgentEvent, &AgentHandle) + 'static) {
        *self.record.reaction.borrow_mut() = Some(Box::new(react));
    }

    /// All events so far that `select` accepts.
    pub fn events<T>(&self, select: impl Fn(&AgentEvent) -> Option<T>) -> Vec<T> {
        self.record.events.borrow().iter().filter_map(select).collect()
    }

    /// All notices and warnings so far, one a line.
    pub fn notices(&self) -> String {
        let lines = self.events(|event| match event {
            AgentEvent::Notice(line) | AgentEvent::Warning(line) => Some(format!("{line}\n")),
            _ => None,
        });
        lines.concat()
    }

    /// Path of the session's log.
    pub fn log_path(&self) -> PathBuf {
        log_of(&self.agent)
    }

    /// Entries of the session's log.
    pub fn log(&self) -> Vec<Value> {
        log_lines(&self.log_path())
    }

    /// Entries of the session's log of one kind.
    pub fn log_of_kind(&self, kind: &str) -> Vec<Value> {
        self.log().into_iter().filter(|line| line["kind"] == kind).collect()
    }

    /// Ends the agent as a program does; returns its log.
    pub fn finish(self) -> PathBuf {
        let log = self.log_path();
        self.agent.finish("exit");
        log
    }
}
