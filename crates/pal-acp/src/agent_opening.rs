//! Starts the agent of a session and routes its events to the client.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use agent_client_protocol::Client;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{SessionId, SessionNotification, SessionUpdate};
use pal_agent::Agent;
use pal_events::AgentEvent;
use pal_permissions::PermissionMode;

use crate::acp_session::AcpSession;
use crate::agent_host::{AgentHost, EditorCommands, HostError, SessionRequest, SessionSetup};
use crate::session_updates::{ClientCapabilities, UpdateContext, UpdateTranslator};

/// Sends updates to the client; holds them back until the client knows the session.
pub(crate) struct UpdateSender {
    connection: ConnectionTo<Client>,
    pub(crate) session: Option<SessionId>,
    held: Vec<SessionUpdate>,
    pub(crate) is_known: bool,
}

impl UpdateSender {
    pub(crate) fn new(connection: ConnectionTo<Client>) -> UpdateSender {
        UpdateSender { connection, session: None, held: Vec::new(), is_known: false }
    }

    pub(crate) fn send(&mut self, updates: impl IntoIterator<Item = SessionUpdate>) {
        match &self.session {
            Some(session) if self.is_known => {
                for update in updates {
                    // The connection notices a client that is gone.
                    let _ =
                        self.connection.send_notification(SessionNotification::new(session.clone(), update));
                }
            }
            _ => self.held.extend(updates),
        }
    }

    pub(crate) fn release(&mut self) {
        self.is_known = true;
        let held = std::mem::take(&mut self.held);
        self.send(held);
    }
}

/// A started agent with the parts of its session.
pub(crate) struct SessionAgent {
    pub(crate) agent: Agent<'static>,
    pub(crate) translator: UpdateTranslator,
    pub(crate) commands: Box<dyn EditorCommands>,
    pub(crate) models: Vec<String>,
    pub(crate) model: String,
    pub(crate) mode: PermissionMode,
}

/// Creates the translator of a session's events.
pub(crate) fn new_translator(
    capabilities: ClientCapabilities,
    request: &SessionRequest,
    window: u64,
) -> UpdateTranslator {
    let directory = request.directory.clone();
    UpdateTranslator::new(capabilities, UpdateContext { directory, window })
}

/// Starts an agent whose events go to the client.
pub(crate) fn start_agent(
    host: &dyn AgentHost,
    session: &Arc<AcpSession>,
    request: &SessionRequest,
    output: &Rc<RefCell<(UpdateTranslator, UpdateSender)>>,
    capabilities: ClientCapabilities,
) -> Result<SessionAgent, HostError> {
    let SessionSetup { mut options, commands, models, permissions_file: allowed, observer } =
        host.prepare(request)?;
    options.permissions.asker = Some(session.questions.asker(allowed));
    let (window, usual) = (options.model.limits.window, options.permissions.mode);
    let mode = Rc::new(Cell::new(usual));
    let began = Rc::clone(&mode);
    let model = options.model.lens.card.model.to_string();
    let observer = Rc::new(RefCell::new(observer));
    let (watching, output, shared) = (Rc::clone(&observer), Rc::clone(output), Arc::clone(session));
    let sink = Box::new(move |event: AgentEvent| {
        if let AgentEvent::SessionStarted(begun) = &event {
            began.set(begun.permission_mode.parse().unwrap_or(usual));
        }
        let more = watching.borrow_mut().event(&event);
        let (translator, update_sender) = &mut *output.borrow_mut();
        for event in more.map(AgentEvent::Notice).iter().chain([&event]) {
            update_sender.send(translator.translate(event));
        }
        shared.repeat_stop();
    });
    let agent = Agent::start(options, sink).map_err(|error| HostError::new(error.to_string()))?;
    observer.borrow_mut().opened(&agent);
    let called = Arc::downgrade(session);
    agent.handle().on_message(move || {
        if let Some(session) = called.upgrade() {
            // The session may be closing.
            let _ = session.send_command(crate::acp_session::SessionCommand::RunQueuedMessages);
        }
    });
    *session.handle() = Some(agent.handle());
    session.set_mode(usual);
    let translator = new_translator(capabilities, request, window);
    Ok(SessionAgent { agent, translator, commands, models, model, mode: mode.get() })
}
