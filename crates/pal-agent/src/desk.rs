//! The agent's hands: what is outside of the session, joined in one place.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use pal_engine::{Engine, EngineError, Hands, Heard, Session};
use pal_model::{Block, BlockType, Card, Content, Draft, ResponseGot, Text, Timestamp, ToolUseId};
use pal_permissions::{Confinement, Mode, Need, SandboxLevel, is_read_only};
use pal_prompt::{CALL_TOOL, Catalogue};
use pal_session::{Call, Input, Ruling};
use pal_settings::Switch;
use pal_tools::{Shell, Tool, Workspace};
use smol_str::SmolStr;

use crate::agents::{AGENT, Team};
use crate::around::Around;
use crate::background::{Dreaming, Extraction};
use crate::clock::Clock;
use crate::event::{Denial, Event};
use crate::gate::Gate;
use crate::handle::{Handle, Signal};
use crate::inner;
use crate::line::Line;
use crate::listening::Listening;
use crate::note_keeping::{NOTES, NoteKeeping};
use crate::opening::Prefixing;
use crate::output_limit::OutputLimit;
use crate::remembering::Remembering;
use crate::reminding::{REMINDER, Reminding};
use crate::servers::Served;
use crate::switched::Switched;
use crate::voice::Voice;
use crate::warming::{Pinged, Warming};
use crate::workers::Job;

/// What the agent works with.
pub(crate) struct Desk<'a> {
    pub(crate) line: Arc<Line>,
    pub(crate) voice: Voice,
    pub(crate) card: Card,
    pub(crate) clock: Clock,
    pub(crate) handle: Handle,
    pub(crate) signals: Receiver<Signal>,
    pub(crate) sink: Box<dyn FnMut(Event) + 'a>,
    pub(crate) tools: Arc<Vec<Box<dyn Tool>>>,
    pub(crate) catalogue: Catalogue,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) shell: Arc<Shell>,
    pub(crate) gate: Gate,
    pub(crate) hooks: Arc<Listening>,
    pub(crate) around: Around,
    pub(crate) reminding: Reminding,
    /// Who keeps notes of the session; none if nobody does.
    pub(crate) note_keeping: Option<NoteKeeping>,
    /// What is remembered from session to session; none if nothing is.
    pub(crate) remembering: Option<Remembering>,
    /// Who draws memories from the conversation, and who puts them in order; none if nobody does.
    pub(crate) extraction: Option<Extraction>,
    pub(crate) dreaming: Option<Dreaming>,
    /// Who keeps the cache warm in pauses; none if nobody does.
    pub(crate) warming: Option<Warming>,
    /// The agents that it sent, and what they took that is not in the books yet.
    pub(crate) team: Arc<Team>,
    pub(crate) spent: Vec<ResponseGot>,
    pub(crate) served: Served,
    pub(crate) switched: Switched,
    /// Where what is around the session is looked for, and what becomes of it.
    pub(crate) sources: pal_sources::Request,
    pub(crate) prefixing: Prefixing,
    /// The limit on outputs; none for an agent that another sent, whose outputs are counted with those of the other.
    pub(crate) output_limit: Option<OutputLimit>,
    /// The session's log, for looking back.
    pub(crate) log: PathBuf,
    /// What the model is to be told with the next request, and of which sort it is.
    pub(crate) notes: Vec<(&'static str, String)>,
    /// The permission mode that the model knows of.
    pub(crate) told_mode: Mode,
    /// A compaction that the model asked for, with what it is to dwell on.
    pub(crate) wishes_compaction: Option<Option<String>>,
    /// Results that came about at once.
    pub(crate) done: Vec<Input>,
    /// Calls that were refused since the prompt.
    pub(crate) denials: Vec<Denial>,
    /// Calls that are under way: the tool and when they began.
    pub(crate) running: Vec<(ToolUseId, SmolStr, Instant)>,
    /// What calls that were judged and not started yet may do.
    pub(crate) granted: BTreeMap<ToolUseId, (Vec<Need>, Confinement)>,
    /// How long the provider was waited for since the prompt.
    pub(crate) took_provider: Duration,
}

impl Desk<'_> {
    fn tool(&self, name: &str) -> Option<&dyn Tool> {
        pal_tools::find(&self.tools, name)
    }

    /// A call as it stands in an answer.
    fn call(&self, block: &Block) -> Option<Call> {
        let id = block.tool_use_id()?.clone();
        let mut name = SmolStr::new(block.string("name").unwrap_or_default());
        let mut input = Text::from(block.field("input").unwrap_or("{}"));
        let problem = if block.field("unparsed_input").is_some() {
            Some(String::from(
                "The input of this call is no JSON object, so it was not carried out. Make the call again.",
            ))
        } else if name == CALL_TOOL {
            // Whatever is asked of a call is asked of the tool that is really called.
            self.dispatched(&input).map(|meant| (name, input) = meant).err()
        } else {
            self.unknown(&name)
        };
        let only_looks = problem.is_none() && self.only_looks(&name, &input);
        Some(Call { id, name, input, only_looks, problem })
    }

    /// What is said of a tool that there is not.
    fn unknown(&self, name: &str) -> Option<String> {
        if inner::is_inner(name) || self.catalogue.named(name).is_some() {
            return None;
        }
        let names: Vec<&str> = self.catalogue.tools().iter().map(|tool| tool.wire_name.as_str()).collect();
        Some(format!("There is no tool of the name `{name}`. There are: {}.", names.join(", ")))
    }

    fn only_looks(&self, name: &str, input: &Text) -> bool {
        let input = pal_tools::Input(input.clone());
        match self.tool(name) {
            // What a command does is known to whoever takes it apart.
            Some(_) if name == "Bash" => input.text("command").is_some_and(|command| is_read_only(&command)),
            Some(tool) => tool.only_looks(&input),
            None => inner::is_inner(name),
        }
    }

    /// Tells the workspace whether the model still sees what an earlier call showed of a file.
    fn note_visibility(&self, session: &Session, call: &Call) {
        let input = pal_tools::Input(call.input.clone());
        let Some(path) = input.text("file_path") else { return };
        let seen = self.workspace.seen(&self.workspace.resolve(&path).real);
        let Some(earlier) = seen.and_then(|seen| seen.call) else { return };
        if inner::is_in_sight(session.view(), &ToolUseId::from(earlier.as_str())) {
            self.workspace.note_shown(&earlier);
        } else {
            self.workspace.note_hidden(&earlier);
        }
    }

    /// Turns what happened elsewhere into what the run understands; none if it only concerns whoever watches.
    pub(crate) fn taken_in(&mut self, signal: Signal) -> Option<Input> {
        match signal {
            Signal::Said(input) => Some(input),
            Signal::Printed(call, text) => {
                (self.sink)(Event::ToolPrinted { call, text });
                None
            }
            Signal::AgentLeft => None,
            Signal::Doing { agent, doing } => {
                (self.sink)(Event::Doing { agent, doing });
                None
            }
            Signal::Exchanged(exchanged) => {
                self.spent.extend(exchanged.got());
                (self.sink)(Event::Exchanged(exchanged));
                None
            }
            Signal::Returned(mut returned, touched) => {
                self.tell_notices();
                self.take_in_notes(Some((&returned.call, returned.is_error)));
                for path in &touched {
                    for file in self.around.touched(path) {
                        self.tell_instruction(&file, "nested_traversal");
                        returned.notes.push(("instructions", pal_sources::joining_text(&file)));
                    }
                }
                self.tell_refused_includes();
                self.ended(&returned.call, returned.is_error, &returned.content);
                if let Some(directory) = &returned.aftermath.directory {
                    let moved = self.around.moved(directory.as_ref());
                    returned.notes.extend(moved.into_iter().map(|text| ("instructions", text)));
                }
                if let Some(mode) = &returned.aftermath.mode {
                    self.gate.set_mode(mode);
                    // The result says so.
                    self.told_mode = self.gate.mode;
                    (self.sink)(Event::Mode(SmolStr::new_static(self.gate.mode.name())));
                }
                Some(Input::Returned(*returned))
            }
        }
    }

    /// Keeps outputs on disk within their limit.
    fn limit_outputs(&mut self, now: Timestamp) {
        let Some(limit) = &mut self.output_limit else { return };
        let running = self.shell.background.list().into_iter();
        let running = running.filter(|task| task.state == pal_process::State::Running).map(|task| task.file);
        if let Some(notice) = limit.enforce(&running.collect::<Vec<_>>(), now) {
            (self.sink)(Event::Notice(notice));
        }
    }

    /// Tells what hooks want the user to know.
    pub(crate) fn tell_notices(&mut self) {
        for notice in self.hooks.take_notices() {
            (self.sink)(Event::Notice(notice));
        }
    }

    /// Has notes written, if they are due.
    pub(crate) fn keep_notes(&mut self, session: &Session, engine: &Engine, now: Timestamp) {
        let Some(keeping) = self.note_keeping.as_mut().filter(|_| !self.switched.is_off(Switch::Notes))
        else {
            return;
        };
        if let Some(failed) = keeping.look(session, engine, now) {
            (self.sink)(Event::Notice(failed));
        }
    }

    /// Takes in what the agent wrote of notes itself: with this call, or with calls that nobody waits for any more.
    fn take_in_notes(&mut self, call: Option<(&ToolUseId, bool)>) {
        let returned = self.note_keeping.as_mut().and_then(|keeping| keeping.returned(call));
        match (returned, &self.gate.notes) {
            (Some(Err(why)), _) => (self.sink)(Event::Notice(why)),
            // It can go on editing although somebody else has touched the file.
            (Some(Ok(true)), Some(file)) => {
                if let Some(seen) = pal_tools::file_seen(file) {
                    self.workspace.note_seen(file, seen);
                }
            }
            _ => {}
        }
    }

    /// Tells the agent that notes are due, if it writes them itself.
    fn remind_of_notes(&mut self, session: &Session) {
        self.take_in_notes(None);
        let Some(keeping) = self.note_keeping.as_mut().filter(|_| !self.switched.is_off(Switch::Notes))
        else {
            return;
        };
        match keeping.reminder(session) {
            None => {}
            Some(Err(why)) => (self.sink)(Event::Notice(why)),
            Some(Ok(reminder)) => {
                // The file is there only now.
                self.gate.notes = keeping.own_file();
                if let Some((file, seen)) = reminder.seen {
                    self.workspace.note_seen(&file, seen);
                }
                self.notes.push((NOTES, reminder.text));
            }
        }
    }

    /// The conversation has come to rest: what is worth knowing in the next session is written down in the background.
    pub(crate) fn remember(&mut self, session: &Session, engine: &Engine, now: Timestamp) {
        if self.switched.is_off(Switch::Memory) {
            return;
        }
        if let Some(extraction) = &self.extraction {
            extraction.rested(session, engine, now);
        }
        if let Some(dreaming) = self.dreaming.as_mut().filter(|_| !self.switched.is_off(Switch::Dreaming)) {
            for told in dreaming.rested(now) {
                (self.sink)(Event::Notice(told));
            }
        }
    }

    /// Tells what was written down meanwhile.
    pub(crate) fn tell_remembered(&mut self) {
        let written = self.extraction.as_ref().map_or(Vec::new(), Extraction::take_written);
        if !written.is_empty() {
            (self.sink)(Event::Notice(format!("remembered: {}", written.join(", "))));
        }
    }

    /// What comes next may take a while.
    pub(crate) fn pause(&mut self, session: &Session, engine: &Engine, now: Timestamp) {
        if let Some(warming) = &mut self.warming {
            warming.pause(session, engine, now);
        }
    }

    /// The conversation goes on, or is changed: what was sent in the pause to keep the cache warm is put into the log.
    pub(crate) fn go_on(&mut self, session: &mut Session) -> Result<(), EngineError> {
        let sent = self.warming.as_mut().map_or(Vec::new(), Warming::go_on);
        for Pinged { at, exchanged } in sent {
            if let Some(got) = exchanged.got() {
                session.append_ping(at, &got)?;
            }
            (self.sink)(Event::Exchanged(exchanged));
        }
        Ok(())
    }

    /// Puts into the log what agents took that were sent.
    pub(crate) fn book(&mut self, session: &mut Session, now: Timestamp) -> Result<(), EngineError> {
        for spent in std::mem::take(&mut self.spent) {
            session.append(Draft::response(&spent), now)?;
        }
        Ok(())
    }

    /// Tells that a call has ended.
    fn ended(&mut self, call: &ToolUseId, is_error: bool, content: &[Block]) {
        let Some(at) = self.running.iter().position(|(id, ..)| id == call) else { return };
        let (call, name, begun) = self.running.swap_remove(at);
        let bytes = content.iter().map(|block| block.raw().len() as u64).sum();
        (self.sink)(Event::ToolEnded { call, name, is_error, took: begun.elapsed(), bytes });
    }
}

impl Hands for Desk<'_> {
    fn check_prompt(&mut self, session: &mut Session, prompt: &Content) -> Result<(), String> {
        let said = self.hooks.prompt_submitted(session, prompt, &self.gate, &self.handle.cancel());
        self.tell_notices();
        let said = said?;
        self.notes.extend(said.into_iter().map(|text| ("hook", text)));
        Ok(())
    }

    fn before_request(&mut self, session: &mut Session, now: Timestamp) -> Result<(), EngineError> {
        let finished = self.shell.finished_since_last_asked();
        self.notes.extend(finished.into_iter().map(|text| ("background", text)));
        self.limit_outputs(now);
        self.tell_mode();
        self.book(session, now)?;
        self.go_on(session)?;
        self.look_at_servers(session);
        let changes = self.around.changes();
        self.notes.extend(changes.into_iter().map(|text| ("instructions", text)));
        self.remind_of_notes(session);
        if !self.switched.is_off(Switch::Reminders) {
            self.notes.extend(self.reminding.due().map(|text| (REMINDER, text)));
        }
        for (what, text) in std::mem::take(&mut self.notes) {
            session.attach(what, &text, now)?;
        }
        let is_off = self.switched.is_off(Switch::Prefetch);
        if let Some(remembering) = self.remembering.as_mut() {
            for file in self.handle.take_remembered() {
                remembering.hand_over_new(session, &file, now)?;
            }
            match is_off {
                true => remembering.give_up(),
                false => remembering.before_request(session, &self.workspace, now)?,
            }
        }
        if let Some(announced) = self.around.announcement(&session.view().state().announced, &self.catalogue)
        {
            session.announce(&announced, now)?;
        }
        Ok(())
    }

    fn wants_compaction(&mut self) -> Option<Option<String>> {
        self.wishes_compaction.take()
    }

    fn adjust(&mut self, engine: &mut Engine) {
        self.switched.apply(engine);
        for notice in self.switched.take_notices() {
            (self.sink)(Event::Notice(notice));
        }
    }

    fn calls(&mut self, blocks: &[Block]) -> Vec<Call> {
        let calls = blocks.iter().filter(|block| block.kind() == BlockType::ToolUse);
        calls.filter_map(|block| self.call(block)).collect()
    }

    fn judge(&mut self, _session: &mut Session, call: &Call) -> Ruling {
        self.heed_mode();
        let judged = self.gate.judge(call, &self.tools, &self.workspace, &self.hooks, &self.handle.cancel());
        self.tell_notices();
        self.notes.extend(judged.notes.into_iter().map(|text| ("hook", text)));
        if let Some(denial) = judged.denial {
            self.denials.push(denial);
        }
        self.granted.insert(call.id.clone(), (judged.needs, judged.confinement));
        judged.ruling
    }

    fn carry(&mut self, session: &mut Session, engine: &Engine, call: Call) {
        // Now everything but the last answer is in the provider's cache.
        self.keep_notes(session, engine, self.clock.now());
        self.pause(session, engine, self.clock.now());
        (self.sink)(Event::ToolBegan {
            call: call.id.clone(),
            name: call.name.clone(),
            input: call.input.to_string(),
        });
        self.reminding.called(&call);
        if call.name == AGENT {
            self.team.set_may(self.gate.mode, &self.gate.rules);
        }
        self.running.push((call.id.clone(), call.name.clone(), Instant::now()));
        if call.name == "Read" {
            self.note_visibility(session, &call);
        }
        if inner::is_inner(&call.name) {
            let span = tracing::info_span!("execute_tool", tool = %call.name, call = call.id.as_str());
            let _within = span.entered();
            let begun = Instant::now();
            let mut returned = self.look_inside(session, engine, &call);
            let common = self.hooks.common(self.workspace.directory(), &self.gate);
            self.hooks.tool_used(&call, &mut returned, begun.elapsed(), &common, &self.handle.cancel());
            self.tell_notices();
            self.ended(&returned.call, returned.is_error, &returned.content);
            self.done.push(Input::Returned(returned));
            return;
        }
        let (granted, confinement) = self
            .granted
            .remove(&call.id)
            .unwrap_or_else(|| (Vec::new(), Confinement::whole(SandboxLevel::ReadOnly)));
        if let (Some(keeping), [Need::Write(target)]) = (self.note_keeping.as_mut(), granted.as_slice()) {
            keeping.calling(&call.id, &target.real, session);
        }
        let job = Job {
            granted,
            confinement,
            call,
            tools: Arc::clone(&self.tools),
            workspace: Arc::clone(&self.workspace),
            hooks: Arc::clone(&self.hooks),
            common: self.hooks.common(self.workspace.directory(), &self.gate),
            cancel: self.handle.cancel(),
            handle: self.handle.clone(),
        };
        job.start();
    }

    fn wait(&mut self) -> Input {
        loop {
            if let Some(input) = self.done.pop() {
                return input;
            }
            // The desk holds a handle itself, so the channel does not close.
            let Ok(signal) = self.signals.recv() else { return Input::Interrupt };
            if let Some(input) = self.taken_in(signal) {
                return input;
            }
        }
    }

    fn back_off(&mut self, wait: Duration) -> Option<Input> {
        let until = Instant::now() + wait;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(signal) = self.signals.recv_timeout(left) else { return None };
            if let Some(input) = self.taken_in(signal) {
                return Some(input);
            }
        }
    }

    fn meanwhile(&mut self) -> Option<Input> {
        while let Ok(signal) = self.signals.try_recv() {
            if let Some(input) = self.taken_in(signal) {
                return Some(input);
            }
        }
        None
    }

    fn cancel(&mut self) {
        if let Some(remembering) = &mut self.remembering {
            remembering.give_up();
        }
        self.handle.cancel().cancel();
    }

    fn check_stop(&mut self, _session: &mut Session, last: &str, is_repeated: bool) -> Result<(), String> {
        let stopping = self.hooks.stopping(last, is_repeated, &self.gate, &self.handle.cancel());
        self.tell_notices();
        stopping
    }

    fn hear(&mut self, heard: Heard<'_>) {
        let event = match heard {
            Heard::Message(entry) => {
                if let Some(mail) = self.team.mail() {
                    mail.recorded(entry);
                }
                if let Some(remembering) = &mut self.remembering {
                    remembering.heard(entry);
                }
                Event::Message { entry: Box::new(entry.clone()), usage: None, cost: None }
            }
            Heard::Answer(entry, usage, cost) => {
                self.reminding.answered();
                if let Some(remembering) = &self.remembering {
                    remembering.answered(entry);
                }
                let usage = Some(Box::new(usage.clone()));
                Event::Message { entry: Box::new(entry.clone()), usage, cost }
            }
            Heard::Void => {
                Event::Void { why: String::from("it was longer than asked for; a longer one is on its way") }
            }
            Heard::CacheBroke(found) => Event::CacheBroke(Box::new(found.clone())),
        };
        (self.sink)(event);
    }
}
