//! The thread of a session: its agent is opened here, works here, and ends here.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use agent_client_protocol::v1::schema::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, CloseSessionResponse, CompactionStatus,
    ContentBlock, CurrentModeUpdate, LoadSessionResponse, NewSessionResponse, ResumeSessionResponse,
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption, SessionId, SessionUpdate,
    SetSessionConfigOptionResponse, SetSessionModeResponse, StopReason, UnstructuredCommandInput,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Client, Error};
use pal_agent::{Agent, AgentError, End, Ended};
use pal_model::Content;
use pal_permissions::Mode;

use crate::content::{command, prompt};
use crate::host::{Command, Host, Refusal, Wanted, failed};
use crate::modes;
use crate::opening::{Opened, Opening, Outlet, opened, teller};
use crate::questions::Questions;
use crate::replay::replay;
use crate::server::Server;
use crate::session::{Session, Wish, gone};
use crate::teller::{Abilities, Teller};

/// The command that puts a summary in the place of what was said.
pub(crate) const COMPACT: &str = "compact";
/// The name of the option that chooses the model.
pub(crate) const MODEL: &str = "model";

/// Opens a session and works for it until it is to end.
pub(crate) fn live(server: &Arc<Server>, connection: ConnectionTo<Client>, wanted: Wanted, opening: Opening) {
    let (sender, wishes) = channel();
    let questions =
        Arc::new(Questions::new(connection.clone(), wanted.directory.clone(), server.abilities()));
    let session = Arc::new(Session::new(sender, questions));
    let host = Arc::clone(&server.host);
    let mut worker = match Worker::open(host, connection, server.abilities(), Arc::clone(&session), wanted) {
        Ok(worker) => worker,
        Err(refusal) => return opening.refuse(refusal.error()),
    };
    let id = worker.id.to_string();
    if !server.enter(&id, Arc::clone(&session)) {
        // The connection was closed meanwhile.
        return worker.finish();
    }
    worker.greet(opening);
    let left = worker.serve(&wishes);
    server.leave(&id, &session);
    worker.finish();
    session.end_all();
    if let Some(responder) = left {
        let _ = responder.respond(CloseSessionResponse::new());
    }
    refuse_the_rest(&wishes);
}

/// Nobody who came too late waits for ever.
fn refuse_the_rest(wishes: &Receiver<Wish>) {
    for wish in wishes.try_iter() {
        let _ = match wish {
            // Its turn was answered already.
            Wish::Prompt(_) | Wish::Heed | Wish::Leave(None) => Ok(()),
            Wish::Mode(_, responder) => responder.respond_with_error(gone()),
            Wish::Model(_, responder) => responder.respond_with_error(gone()),
            Wish::Leave(Some(responder)) => responder.respond(CloseSessionResponse::new()),
            Wish::Again(opening) => {
                opening.refuse(gone());
                Ok(())
            }
        };
    }
}

struct Worker {
    host: Arc<dyn Host>,
    wanted: Wanted,
    session: Arc<Session>,
    id: SessionId,
    agent: Option<Agent<'static>>,
    told: Rc<RefCell<(Teller, Outlet)>>,
    can: Abilities,
    commands: Vec<Command>,
    models: Vec<String>,
    model: String,
    /// The mode that the agent was opened in, which may be planning whatever is usual.
    mode: Mode,
}

impl Worker {
    fn open(
        host: Arc<dyn Host>,
        connection: ConnectionTo<Client>,
        can: Abilities,
        session: Arc<Session>,
        wanted: Wanted,
    ) -> Result<Worker, Refusal> {
        let outlet = Outlet::new(connection);
        let told = Rc::new(RefCell::new((teller(can, &wanted, 0), outlet)));
        let opened = opened(&*host, &session, &wanted, &told, can)?;
        let id = SessionId::new(opened.agent.id());
        session.questions.belong_to(id.clone());
        told.borrow_mut().1.session = Some(id.clone());
        let Opened { agent, teller, commands, models, model, mode } = opened;
        told.borrow_mut().0 = teller;
        let agent = Some(agent);
        Ok(Worker { host, wanted, session, id, agent, told, can, commands, models, model, mode })
    }

    /// Opens the agent anew with something else wanted; if that fails, it is as it was.
    fn reopen(&mut self, wanted: Wanted) -> Result<(), Error> {
        if let Some(agent) = self.agent.take() {
            *self.session.handle() = None;
            agent.finish("other");
        }
        let before = self.wanted.clone();
        let wanted = Wanted { session: Some(self.id.to_string()), ..wanted };
        let failure = match self.open_agent(wanted) {
            Ok(()) => return Ok(()),
            Err(refusal) => refusal,
        };
        let before = Wanted { session: Some(self.id.to_string()), ..before };
        self.open_agent(before).map_err(|refusal| refusal.error())?;
        Err(failure.error())
    }

    fn open_agent(&mut self, wanted: Wanted) -> Result<(), Refusal> {
        let opened = opened(&*self.host, &self.session, &wanted, &self.told, self.can)?;
        let Opened { agent, teller, commands, models, model, mode } = opened;
        let teller = self.told.borrow().0.followed_by(teller);
        self.told.borrow_mut().0 = teller;
        (self.agent, self.wanted, self.mode) = (Some(agent), wanted, mode);
        (self.commands, self.models, self.model) = (commands, models, model);
        self.tell_usage();
        Ok(())
    }

    fn send(&self, updates: impl IntoIterator<Item = SessionUpdate>) {
        self.told.borrow_mut().1.send(updates);
    }

    /// Answers whoever opened the session, and tells what there is to know of it.
    fn greet(&mut self, opening: Opening) {
        let (modes, options) = (modes::state(self.mode), self.config_options());
        // A client that is gone is noticed by the connection.
        let _ = match opening {
            Opening::New(responder) => responder
                .respond(NewSessionResponse::new(self.id.clone()).modes(modes).config_options(options)),
            Opening::Load(responder) => {
                self.told.borrow_mut().1.is_known = true;
                match self.replay() {
                    Ok(()) => {
                        responder.respond(LoadSessionResponse::new().modes(modes).config_options(options))
                    }
                    Err(error) => responder.respond_with_error(error),
                }
            }
            Opening::Resume(responder) => {
                responder.respond(ResumeSessionResponse::new().modes(modes).config_options(options))
            }
        };
        self.told.borrow_mut().1.release();
        let commands = AvailableCommandsUpdate::new(self.available_commands());
        self.send([SessionUpdate::AvailableCommandsUpdate(commands)]);
        self.tell_usage();
    }

    fn replay(&self) -> Result<(), Error> {
        let Some(agent) = &self.agent else { return Err(gone()) };
        let log = pal_store::log_path(agent.session().directory());
        let (teller, outlet) = &mut *self.told.borrow_mut();
        let updates = replay(&log, teller).map_err(|error| failed(error.to_string()))?;
        outlet.send(updates);
        Ok(())
    }

    fn tell_usage(&self) {
        let Some(agent) = &self.agent else { return };
        let view = agent.session().view();
        let usage = self.told.borrow_mut().0.stands_at(view.size().tokens, view.state().totals.cost);
        self.send([usage]);
    }

    fn available_commands(&self) -> Vec<AvailableCommand> {
        let hint = |hint: &str| {
            let input = UnstructuredCommandInput::new(hint);
            (!hint.is_empty()).then_some(AvailableCommandInput::Unstructured(input))
        };
        let compact = AvailableCommand::new(COMPACT, "put a summary in the place of what was said")
            .input(hint("what to dwell on"));
        let own = self.commands.iter().map(|command| {
            // Whether arguments have a place in it is the command's business: any may be given.
            let arguments = if command.arguments.is_empty() { "arguments" } else { &command.arguments };
            AvailableCommand::new(&command.name, &command.about).input(hint(arguments))
        });
        std::iter::once(compact).chain(own).collect()
    }

    fn config_options(&self) -> Vec<SessionConfigOption> {
        let mut names = self.models.clone();
        if !names.contains(&self.model) {
            names.insert(0, self.model.clone());
        }
        let option = |name: String| SessionConfigSelectOption::new(name.clone(), name);
        let options: Vec<SessionConfigSelectOption> = names.into_iter().map(option).collect();
        let select = SessionConfigOption::select(MODEL, "Model", self.model.clone(), options);
        vec![select.category(SessionConfigOptionCategory::Model)]
    }

    /// Fulfils wishes until it is to leave.
    fn serve(&mut self, wishes: &Receiver<Wish>) -> Option<Responder<CloseSessionResponse>> {
        for wish in wishes {
            match wish {
                Wish::Leave(responder) => return responder,
                Wish::Prompt(blocks) => self.turn(&blocks),
                Wish::Heed => self.heed(),
                Wish::Again(opening) => self.greet(opening),
                Wish::Mode(mode, responder) => {
                    let done = self.choose_mode(mode).map(|()| SetSessionModeResponse::new());
                    let _ = responder.respond_with_result(done);
                }
                Wish::Model(model, responder) => {
                    let done = self.choose_model(model);
                    let done = done.map(|()| SetSessionConfigOptionResponse::new(self.config_options()));
                    let _ = responder.respond_with_result(done);
                }
            }
        }
        None
    }

    fn choose_mode(&mut self, mode: Mode) -> Result<(), Error> {
        self.reopen(Wanted { mode: Some(mode), ..self.wanted.clone() })?;
        let mode = self.session.mode();
        self.send([SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(mode.name()))]);
        Ok(())
    }

    fn choose_model(&mut self, model: String) -> Result<(), Error> {
        let mode = Some(self.session.mode());
        self.reopen(Wanted { model: Some(model), mode, ..self.wanted.clone() })
    }

    /// Works on a prompt, and on whatever was said too late to go along with it.
    fn turn(&mut self, blocks: &[ContentBlock]) {
        let is_cancelled = self.session.begin_turn();
        let mut end = match command(blocks) {
            Some((COMPACT, instructions)) if !is_cancelled => self.compact(&instructions),
            Some((name, arguments)) => {
                let own = self.commands.iter().find(|command| command.name == name);
                let said = own.map(|command| Content::of_text(&(command.prompt)(&arguments)));
                said.map_or_else(|| prompt(blocks), Ok).and_then(|content| self.work(content))
            }
            None => prompt(blocks).and_then(|content| self.work(content)),
        };
        let turn = loop {
            let session = Arc::clone(&self.session);
            let Some(agent) = &mut self.agent else { return };
            if let Some(turn) = session.end_turn(|| agent.has_unheard()) {
                break turn;
            }
            let heard = if session.is_cancelled() { agent.give_up_unheard() } else { agent.heed() };
            match heard {
                Ok(Some(ended)) => end = stop_reason(&ended),
                Ok(None) => {}
                Err(error) => end = Err(in_words(&error)),
            }
        };
        if let Some(turn) = turn {
            turn.answer(end);
        }
    }

    /// Works on what other agents said while it rested. The client sees it between its own turns.
    fn heed(&mut self) {
        let Some(agent) = &mut self.agent else { return };
        if let Err(error) = agent.heed() {
            tracing::warn!(%error, "what another agent said was not worked on");
        }
    }

    fn work(&mut self, content: Content) -> Result<StopReason, Error> {
        let Some(agent) = &mut self.agent else { return Err(gone()) };
        let ended = match self.session.is_cancelled() {
            true => agent.prompt_given_up(content),
            false => agent.prompt(content),
        };
        ended.map_err(|error| in_words(&error)).and_then(|ended| stop_reason(&ended))
    }

    fn compact(&mut self, instructions: &str) -> Result<StopReason, Error> {
        let Some(agent) = &mut self.agent else { return Err(gone()) };
        let instructions = Some(instructions.to_owned()).filter(|text| !text.is_empty());
        let done = agent.compact(instructions);
        if let Err(error) = &done {
            let status = match self.session.is_cancelled() {
                true => CompactionStatus::Cancelled,
                false => CompactionStatus::Failed,
            };
            let (teller, outlet) = &mut *self.told.borrow_mut();
            outlet.send(teller.compaction_ended(status, Some(error.to_string())));
        }
        self.tell_usage();
        done.map(|()| StopReason::EndTurn).map_err(|error| in_words(&error))
    }

    fn finish(&mut self) {
        *self.session.handle() = None;
        if let Some(agent) = self.agent.take() {
            agent.finish("other");
        }
    }
}

fn in_words(error: &AgentError) -> Error {
    failed(error.to_string())
}

/// Why a turn ended, as the protocol calls it.
fn stop_reason(ended: &Ended) -> Result<StopReason, Error> {
    match &ended.end {
        End::Done => Ok(StopReason::EndTurn),
        End::Refused(_) => Ok(StopReason::Refusal),
        End::Interrupted => Ok(StopReason::Cancelled),
        // Of tokens and money there is one word in the protocol.
        End::Limit(which) if which.contains(" turns ") => Ok(StopReason::MaxTurnRequests),
        End::Limit(_) => Ok(StopReason::MaxTokens),
        End::Failed(why) => Err(failed(why.clone())),
    }
}
