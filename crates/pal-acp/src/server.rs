//! The connection with a client, and the sessions behind it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use agent_client_protocol::v1::schema::{
    AuthenticateRequest, CancelNotification, CloseSessionRequest, InitializeRequest, ListSessionsRequest,
    LoadSessionRequest, NewSessionRequest, PromptRequest, ResumeSessionRequest, SessionId,
    SetSessionConfigOptionRequest, SetSessionModeRequest,
};
use agent_client_protocol::{Agent, Error, on_receive_notification, on_receive_request};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::host::Host;
use crate::lines::stdio;
use crate::session::{Session, Wish};
use crate::teller::Abilities;

/// Why a client could not be served to the end.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// There is nothing that carries the connection.
    #[error("no runtime: {0}")]
    Runtime(#[from] std::io::Error),
    /// Somebody wanted everything to end at once, and not everything had ended.
    #[error("ended before every session had")]
    Hurried,
}

/// Speaks with the client on standard input and output until it leaves or the system wants the program to end. Sessions are
/// kept and can be gone on with.
pub fn serve(host: Arc<dyn Host>) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let server = Arc::new(Server::new(host));
    let served = runtime.block_on(async {
        let mut stop = Stop::new()?;
        tokio::select! {
            ended = connect(Arc::clone(&server)) => {
                if let Err(error) = ended {
                    tracing::warn!(code = ?error.code, "the connection broke");
                }
            }
            () = stop.wanted() => {}
        }
        let ending = Arc::clone(&server);
        let ended = tokio::task::spawn_blocking(move || ending.end());
        tokio::select! {
            _ = ended => Ok(()),
            () = stop.wanted() => Err(ServeError::Hurried),
        }
    });
    // A thread that reads standard input is not waited for.
    runtime.shutdown_background();
    served
}

/// Wishes of the system that the program ends.
struct Stop {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Stop {
    fn new() -> std::io::Result<Stop> {
        Ok(Stop {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn wanted(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

/// Passes on what the client sends. Nothing here waits for anything.
async fn connect(server: Arc<Server>) -> Result<(), Error> {
    macro_rules! to {
        ($method:ident, $request:ty) => {{
            let server = Arc::clone(&server);
            async move |request: $request, responder, connection| {
                Server::$method(&server, request, responder, connection)
            }
        }};
    }
    let cancelling = Arc::clone(&server);
    Agent
        .v1()
        .name("pal")
        .on_receive_request(to!(initialize, InitializeRequest), on_receive_request!())
        .on_receive_request(to!(authenticate, AuthenticateRequest), on_receive_request!())
        .on_receive_request(to!(new_session, NewSessionRequest), on_receive_request!())
        .on_receive_request(to!(load_session, LoadSessionRequest), on_receive_request!())
        .on_receive_request(to!(resume_session, ResumeSessionRequest), on_receive_request!())
        .on_receive_request(to!(list_sessions, ListSessionsRequest), on_receive_request!())
        .on_receive_request(to!(close_session, CloseSessionRequest), on_receive_request!())
        .on_receive_request(to!(prompt, PromptRequest), on_receive_request!())
        .on_receive_request(to!(set_mode, SetSessionModeRequest), on_receive_request!())
        .on_receive_request(to!(set_option, SetSessionConfigOptionRequest), on_receive_request!())
        .on_receive_notification(
            async move |cancel: CancelNotification, _connection| {
                if let Some(session) = cancelling.session(&cancel.session_id) {
                    session.cancel();
                }
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_to(stdio())
        .await
}

/// What all sessions of a connection share.
pub(crate) struct Server {
    pub(crate) host: Arc<dyn Host>,
    abilities: Mutex<Abilities>,
    /// The sessions that are open, by id; none once the connection is closed.
    sessions: Mutex<Option<HashMap<String, Arc<Session>>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    fn new(host: Arc<dyn Host>) -> Server {
        let sessions = Mutex::new(Some(HashMap::new()));
        Server { host, abilities: Mutex::default(), sessions, threads: Mutex::default() }
    }

    /// What the client can show.
    pub(crate) fn abilities(&self) -> Abilities {
        *lock(&self.abilities)
    }

    /// The client has said what it can show.
    pub(crate) fn set_abilities(&self, abilities: Abilities) {
        *lock(&self.abilities) = abilities;
    }

    /// A thread works for a session; it is waited for at the end.
    pub(crate) fn keep(&self, thread: JoinHandle<()>) {
        let mut threads = lock(&self.threads);
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
    }

    /// A session is open; whether there is still somebody who wants it.
    pub(crate) fn enter(&self, id: &str, session: Arc<Session>) -> bool {
        let mut sessions = lock(&self.sessions);
        sessions.as_mut().map(|sessions| sessions.insert(id.to_owned(), session)).is_some()
    }

    /// A session ends.
    pub(crate) fn leave(&self, id: &str, session: &Arc<Session>) {
        if let Some(sessions) = &mut *lock(&self.sessions)
            && sessions.get(id).is_some_and(|known| Arc::ptr_eq(known, session))
        {
            sessions.remove(id);
        }
    }

    /// Ends all sessions, and waits for them.
    fn end(&self) {
        let sessions = lock(&self.sessions).take().unwrap_or_default();
        for session in sessions.values() {
            session.cancel();
            session.questions.give_up();
            let _ = session.wish(Wish::Leave(None));
        }
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            // A session that broke down has said so.
            let _ = thread.join();
        }
    }

    /// An open session.
    pub(crate) fn session(&self, id: &SessionId) -> Option<Arc<Session>> {
        lock(&self.sessions).as_ref()?.get(&*id.0).cloned()
    }
}
