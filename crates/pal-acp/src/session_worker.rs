//! The thread of a session, which owns its agent.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use agent_client_protocol::v1::schema::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, CloseSessionResponse, CompactionStatus,
    ContentBlock, ContentChunk, CurrentModeUpdate, LoadSessionResponse, NewSessionResponse,
    ResumeSessionResponse, SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption,
    SessionId, SessionUpdate, SetSessionConfigOptionResponse, SetSessionModeResponse, StopReason,
    UnstructuredCommandInput,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Client, Error};
use pal_agent::{Agent, AgentError, IdleOutcome};
use pal_events::{PromptEnd, PromptResult};
use pal_model::Content;
use pal_permissions::PermissionMode;

use crate::acp_server::AcpServer;
use crate::acp_session::{AcpSession, SessionCommand, session_ended};
use crate::agent_host::{
    AgentHost, CommandReply, EditorCommand, EditorCommands, HostError, SessionRequest, internal_error,
};
use crate::agent_opening::{SessionAgent, UpdateSender, new_translator, start_agent};
use crate::mode_list;
use crate::open_responder::OpenResponder;
use crate::permission_requests::PermissionRequests;
use crate::prompt_content::{command, prompt};
use crate::replay::replay;
use crate::session_updates::{ClientCapabilities, UpdateTranslator};

/// Id of the config option that selects the model.
pub(crate) const MODEL: &str = "model";

/// Opens a session and serves it until it ends.
pub(crate) fn run_session(
    server: &Arc<AcpServer>,
    connection: ConnectionTo<Client>,
    request: SessionRequest,
    opening: OpenResponder,
) {
    let (sender, session_commands) = channel();
    let questions = Arc::new(PermissionRequests::new(
        connection.clone(),
        request.directory.clone(),
        server.capabilities(),
    ));
    let session = Arc::new(AcpSession::new(sender, questions));
    let host = Arc::clone(&server.host);
    let mut worker =
        match SessionWorker::open(host, connection, server.capabilities(), Arc::clone(&session), request) {
            Ok(worker) => worker,
            Err(error) => return opening.refuse(error.to_protocol()),
        };
    let id = worker.id.to_string();
    if !server.register_session(&id, Arc::clone(&session)) {
        // The connection was closed in the meantime.
        return worker.finish();
    }
    worker.greet(opening);
    let left = worker.serve(&session_commands);
    server.unregister_session(&id, &session);
    worker.finish();
    session.end_all();
    if let Some(responder) = left {
        let _ = responder.respond(CloseSessionResponse::new());
    }
    refuse_remaining(&session_commands);
}

/// Answers commands that arrived after the end.
fn refuse_remaining(session_commands: &Receiver<SessionCommand>) {
    for session_command in session_commands.try_iter() {
        let _ = match session_command {
            // The turn has already been answered.
            SessionCommand::Prompt(_) | SessionCommand::RunQueuedMessages | SessionCommand::Close(None) => {
                Ok(())
            }
            SessionCommand::Mode(_, responder) => responder.respond_with_error(session_ended()),
            SessionCommand::Model(_, responder) => responder.respond_with_error(session_ended()),
            SessionCommand::Close(Some(responder)) => responder.respond(CloseSessionResponse::new()),
            SessionCommand::Reopen(opening) => {
                opening.refuse(session_ended());
                Ok(())
            }
        };
    }
}

struct SessionWorker {
    host: Arc<dyn AgentHost>,
    request: SessionRequest,
    session: Arc<AcpSession>,
    id: SessionId,
    agent: Option<Agent<'static>>,
    output: Rc<RefCell<(UpdateTranslator, UpdateSender)>>,
    capabilities: ClientCapabilities,
    commands: Box<dyn EditorCommands>,
    models: Vec<String>,
    model: String,
    /// Mode in which the agent started; may be plan mode whatever the settings say.
    mode: PermissionMode,
}

impl SessionWorker {
    fn open(
        host: Arc<dyn AgentHost>,
        connection: ConnectionTo<Client>,
        capabilities: ClientCapabilities,
        session: Arc<AcpSession>,
        request: SessionRequest,
    ) -> Result<SessionWorker, HostError> {
        let update_sender = UpdateSender::new(connection);
        let output = Rc::new(RefCell::new((new_translator(capabilities, &request, 0), update_sender)));
        let opened = start_agent(&*host, &session, &request, &output, capabilities)?;
        let id = SessionId::new(opened.agent.id());
        session.questions.set_session(id.clone());
        output.borrow_mut().1.session = Some(id.clone());
        let SessionAgent { agent, translator, commands, models, model, mode } = opened;
        output.borrow_mut().0 = translator;
        let agent = Some(agent);
        Ok(SessionWorker {
            host,
            request,
            session,
            id,
            agent,
            output,
            capabilities,
            commands,
            models,
            model,
            mode,
        })
    }

    /// Restarts the agent with another request; restores the previous one if that fails.
    fn reopen(&mut self, request: SessionRequest) -> Result<(), Error> {
        if let Some(agent) = self.agent.take() {
            *self.session.handle() = None;
            agent.finish("other");
        }
        let before = self.request.clone();
        let request = SessionRequest { session: Some(self.id.to_string()), ..request };
        let failure = match self.open_agent(request) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let before = SessionRequest { session: Some(self.id.to_string()), ..before };
        self.open_agent(before).map_err(|error| error.to_protocol())?;
        Err(failure.to_protocol())
    }

    fn open_agent(&mut self, request: SessionRequest) -> Result<(), HostError> {
        let opened = start_agent(&*self.host, &self.session, &request, &self.output, self.capabilities)?;
        let SessionAgent { agent, translator, commands, models, model, mode } = opened;
        let translator = self.output.borrow().0.hand_over_to(translator);
        self.output.borrow_mut().0 = translator;
        (self.agent, self.request, self.mode) = (Some(agent), request, mode);
        (self.commands, self.models, self.model) = (commands, models, model);
        self.send_usage();
        Ok(())
    }

    fn send(&self, updates: impl IntoIterator<Item = SessionUpdate>) {
        self.output.borrow_mut().1.send(updates);
    }

    /// Answers the opening request and sends the session's state.
    fn greet(&mut self, opening: OpenResponder) {
        let (modes, options) = (mode_list::state(self.mode), self.config_options());
        // The connection notices a client that is gone.
        let _ = match opening {
            OpenResponder::New(responder) => responder
                .respond(NewSessionResponse::new(self.id.clone()).modes(modes).config_options(options)),
            OpenResponder::Load(responder) => {
                self.output.borrow_mut().1.is_known = true;
                match self.replay() {
                    Ok(()) => {
                        responder.respond(LoadSessionResponse::new().modes(modes).config_options(options))
                    }
                    Err(error) => responder.respond_with_error(error),
                }
            }
            OpenResponder::Resume(responder) => {
                responder.respond(ResumeSessionResponse::new().modes(modes).config_options(options))
            }
        };
        self.output.borrow_mut().1.release();
        let commands = AvailableCommandsUpdate::new(self.available_commands());
        self.send([SessionUpdate::AvailableCommandsUpdate(commands)]);
        self.send_usage();
    }

    fn replay(&self) -> Result<(), Error> {
        let Some(agent) = &self.agent else { return Err(session_ended()) };
        let log = pal_store::log_path(agent.session().directory());
        let (translator, update_sender) = &mut *self.output.borrow_mut();
        let updates = replay(&log, translator).map_err(|error| internal_error(error.to_string()))?;
        update_sender.send(updates);
        Ok(())
    }

    fn send_usage(&self) {
        let Some(agent) = &self.agent else { return };
        let view = agent.session().view();
        let usage = self.output.borrow_mut().0.set_usage(view.size().tokens, view.state().totals.cost);
        self.send([usage]);
    }

    fn available_commands(&self) -> Vec<AvailableCommand> {
        let hint = |hint: &str| {
            let input = UnstructuredCommandInput::new(hint);
            (!hint.is_empty()).then_some(AvailableCommandInput::Unstructured(input))
        };
        let available = |command: EditorCommand| {
            AvailableCommand::new(command.name, command.about).input(hint(&command.arguments))
        };
        self.commands.list().into_iter().map(available).collect()
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

    /// Executes commands until the session closes.
    fn serve(
        &mut self,
        session_commands: &Receiver<SessionCommand>,
    ) -> Option<Responder<CloseSessionResponse>> {
        while let Some(session_command) = self.next_command(session_commands) {
            match session_command {
                SessionCommand::Close(responder) => return responder,
                SessionCommand::Prompt(blocks) => self.turn(&blocks),
                SessionCommand::RunQueuedMessages => self.run_queued_messages(),
                SessionCommand::Reopen(opening) => self.greet(opening),
                SessionCommand::Mode(mode, responder) => {
                    let done = self.choose_mode(mode).map(|()| SetSessionModeResponse::new());
                    let _ = responder.respond_with_result(done);
                }
                SessionCommand::Model(model, responder) => {
                    let done = self.choose_model(model);
                    let done = done.map(|()| SetSessionConfigOptionResponse::new(self.config_options()));
                    let _ = responder.respond_with_result(done);
                }
            }
        }
        None
    }

    /// Waits for the next command; none once the connection has gone. In a long pause, the conversation may be compacted
    /// meanwhile.
    fn next_command(&mut self, session_commands: &Receiver<SessionCommand>) -> Option<SessionCommand> {
        loop {
            let Some(time) = self.agent.as_ref().and_then(Agent::until_idle_compaction) else {
                return session_commands.recv().ok();
            };
            match session_commands.recv_timeout(time) {
                Ok(session_command) => return Some(session_command),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
            match self.agent.as_mut().map(Agent::compact_if_idle) {
                Some(Ok(IdleOutcome::Nothing)) | None => {}
                Some(Ok(IdleOutcome::Compacted | IdleOutcome::Cancelled)) => self.send_usage(),
                Some(Err(error)) => tracing::warn!(%error, "a compaction in the pause failed"),
            }
        }
    }

    fn choose_mode(&mut self, mode: PermissionMode) -> Result<(), Error> {
        self.reopen(SessionRequest { mode: Some(mode), ..self.request.clone() })?;
        let mode = self.session.mode();
        self.send([SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(mode.name()))]);
        Ok(())
    }

    fn choose_model(&mut self, model: String) -> Result<(), Error> {
        let mode = Some(self.session.mode());
        self.reopen(SessionRequest { model: Some(model), mode, ..self.request.clone() })
    }

    /// Runs a prompt and messages that arrived too late to steer it.
    fn turn(&mut self, blocks: &[ContentBlock]) {
        let is_cancelled = self.session.begin_turn();
        let mut end = match command(blocks) {
            Some((name, arguments)) if !is_cancelled => self.run_command(name, &arguments, blocks),
            _ => prompt(blocks).and_then(|content| self.work(content)),
        };
        let turn = loop {
            let session = Arc::clone(&self.session);
            let Some(agent) = &mut self.agent else { return };
            if let Some(turn) = session.end_turn(|| agent.has_queued_messages()) {
                break turn;
            }
            let result = if session.is_cancelled() {
                agent.record_queued_messages()
            } else {
                agent.run_queued_messages()
            };
            match result {
                Ok(Some(ended)) => end = stop_reason(&ended),
                Ok(None) => {}
                Err(error) => end = Err(agent_error(&error)),
            }
        };
        if let Some(turn) = turn {
            turn.answer(end);
        }
    }

    /// Runs messages that other agents sent while the session was idle. The client sees them between its turns.
    fn run_queued_messages(&mut self) {
        let Some(agent) = &mut self.agent else { return };
        if let Err(error) = agent.run_queued_messages() {
            tracing::warn!(%error, "messages of another agent failed");
        }
    }

    fn work(&mut self, content: Content) -> Result<StopReason, Error> {
        let Some(agent) = &mut self.agent else { return Err(session_ended()) };
        let ended = match self.session.is_cancelled() {
            true => agent.record_cancelled_prompt(content),
            false => agent.prompt(content),
        };
        ended.map_err(|error| agent_error(&error)).and_then(|ended| stop_reason(&ended))
    }

    /// Runs a slash command; a line that names no command is a prompt.
    fn run_command(
        &mut self,
        name: &str,
        arguments: &str,
        blocks: &[ContentBlock],
    ) -> Result<StopReason, Error> {
        let Some(agent) = &mut self.agent else { return Err(session_ended()) };
        let reply = self.commands.run(name, arguments, agent);
        match reply {
            CommandReply::Unknown => prompt(blocks).and_then(|content| self.work(content)),
            CommandReply::Prompt(content) => self.work(content),
            CommandReply::Text(text) => {
                if !text.is_empty() {
                    let chunk = ContentChunk::new(ContentBlock::from(text));
                    self.send([SessionUpdate::AgentMessageChunk(chunk)]);
                }
                self.send_usage();
                Ok(StopReason::EndTurn)
            }
            CommandReply::Failed(why) => {
                let status = match self.session.is_cancelled() {
                    true => CompactionStatus::Cancelled,
                    false => CompactionStatus::Failed,
                };
                {
                    let (translator, update_sender) = &mut *self.output.borrow_mut();
                    // Ends a compaction that the command may have started.
                    update_sender.send(translator.compaction_ended(status, Some(why.clone())));
                }
                self.send_usage();
                Err(internal_error(why))
            }
        }
    }

    fn finish(&mut self) {
        *self.session.handle() = None;
        if let Some(agent) = self.agent.take() {
            agent.finish("other");
        }
    }
}

fn agent_error(error: &AgentError) -> Error {
    internal_error(error.to_string())
}

/// Converts the end of a prompt to the protocol's stop reason.
fn stop_reason(ended: &PromptResult) -> Result<StopReason, Error> {
    match &ended.end {
        PromptEnd::Done => Ok(StopReason::EndTurn),
        PromptEnd::Refused(_) => Ok(StopReason::Refusal),
        PromptEnd::Interrupted => Ok(StopReason::Cancelled),
        // The protocol has one reason for token and cost limits.
        PromptEnd::Limit(which) if which.contains(" turns ") => Ok(StopReason::MaxTurnRequests),
        PromptEnd::Limit(_) => Ok(StopReason::MaxTokens),
        PromptEnd::Failed(why) => Err(internal_error(why.clone())),
    }
}
