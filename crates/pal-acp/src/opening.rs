//! How the agent of a session is opened, and whom its events reach.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    LoadSessionResponse, NewSessionResponse, ResumeSessionResponse, SessionId, SessionNotification,
    SessionUpdate,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Client, Error};
use pal_agent::{Agent, Event};
use pal_permissions::Mode;

use crate::host::{Command, Host, Prepared, Refusal, Wanted};
use crate::session::Session;
use crate::teller::{Abilities, Standing, Teller};

/// How a client came by a session, and how it is answered.
pub(crate) enum Opening {
    New(Responder<NewSessionResponse>),
    Load(Responder<LoadSessionResponse>),
    Resume(Responder<ResumeSessionResponse>),
}

impl Opening {
    pub(crate) fn refuse(self, error: Error) {
        // A client that is gone wants to know nothing.
        let _ = match self {
            Opening::New(responder) => responder.respond_with_error(error),
            Opening::Load(responder) => responder.respond_with_error(error),
            Opening::Resume(responder) => responder.respond_with_error(error),
        };
    }
}

/// Passes updates on; they are held back until the client knows of the session.
pub(crate) struct Outlet {
    connection: ConnectionTo<Client>,
    pub(crate) session: Option<SessionId>,
    held: Vec<SessionUpdate>,
    pub(crate) is_known: bool,
}

impl Outlet {
    pub(crate) fn new(connection: ConnectionTo<Client>) -> Outlet {
        Outlet { connection, session: None, held: Vec::new(), is_known: false }
    }

    pub(crate) fn send(&mut self, updates: impl IntoIterator<Item = SessionUpdate>) {
        match &self.session {
            Some(session) if self.is_known => {
                for update in updates {
                    // A client that is gone is noticed by the connection.
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

/// An agent, and what came with it.
pub(crate) struct Opened {
    pub(crate) agent: Agent<'static>,
    pub(crate) teller: Teller,
    pub(crate) commands: Vec<Command>,
    pub(crate) models: Vec<String>,
    pub(crate) model: String,
    pub(crate) mode: Mode,
}

/// Who tells of a session.
pub(crate) fn teller(can: Abilities, wanted: &Wanted, window: u64) -> Teller {
    let directory = wanted.directory.clone();
    Teller::new(can, Standing { directory, window })
}

/// Opens an agent whose events go to the client.
pub(crate) fn opened(
    host: &dyn Host,
    session: &Arc<Session>,
    wanted: &Wanted,
    told: &Rc<RefCell<(Teller, Outlet)>>,
    can: Abilities,
) -> Result<Opened, Refusal> {
    let Prepared { mut options, commands, models, allowed, observer } = host.prepare(wanted)?;
    options.asking = Some(session.questions.asking(allowed));
    let (window, usual) = (options.limits.window, options.mode);
    let mode = Rc::new(Cell::new(usual));
    let began = Rc::clone(&mode);
    let model = options.lens.card.model.to_string();
    let observer = Rc::new(RefCell::new(observer));
    let (watching, told, shared) = (Rc::clone(&observer), Rc::clone(told), Arc::clone(session));
    let sink = Box::new(move |event: Event| {
        if let Event::Began(begun) = &event {
            began.set(begun.permission_mode.parse().unwrap_or(usual));
        }
        let more = watching.borrow_mut().event(&event);
        let (teller, outlet) = &mut *told.borrow_mut();
        for event in more.map(Event::Notice).iter().chain([&event]) {
            outlet.send(teller.told(event));
        }
        shared.repeat_stop();
    });
    let agent = Agent::start(options, sink).map_err(|error| Refusal::new(error.to_string()))?;
    observer.borrow_mut().opened(&agent);
    let called = Arc::downgrade(session);
    agent.handle().on_message(move || {
        if let Some(session) = called.upgrade() {
            // A session that ends hears nothing.
            let _ = session.wish(crate::session::Wish::Heed);
        }
    });
    *session.handle() = Some(agent.handle());
    session.set_mode(usual);
    let teller = teller(can, wanted, window);
    Ok(Opened { agent, teller, commands, models, model, mode: mode.get() })
}
