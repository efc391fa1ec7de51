//! Connection to a client and its open sessions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use agent_client_protocol::v1::schema::{
    AuthenticateRequest, CancelNotification, CloseSessionRequest, InitializeRequest, ListSessionsRequest,
    LoadSessionRequest, NewSessionRequest, PromptRequest, ResumeSessionRequest, SessionId,
    SetSessionConfigOptionRequest, SetSessionModeRequest,
};
use agent_client_protocol::{Agent, ConnectTo, Error, on_receive_notification, on_receive_request};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::acp_session::{AcpSession, SessionCommand};
use crate::agent_host::AgentHost;
use crate::session_updates::ClientCapabilities;
use crate::stdio_lines::stdio;

/// Failure of [`serve`].
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The async runtime or the signal handlers could not be created.
    #[error("no runtime: {0}")]
    Runtime(#[from] std::io::Error),
    /// A second signal came before every session had ended.
    #[error("stopped before every session had ended")]
    Hurried,
}

/// Serves the client on standard input and output until it disconnects or a signal ends the program. Sessions are stored and
/// can be resumed.
pub fn serve(host: Arc<dyn AgentHost>) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let server = Arc::new(AcpServer::new(host));
    let served = runtime.block_on(async {
        let mut stop = ShutdownSignals::new()?;
        tokio::select! {
            ended = connect(Arc::clone(&server), stdio()) => {
                if let Err(error) = ended {
                    tracing::warn!(code = ?error.code, "the connection failed");
                }
            }
            () = stop.recv() => {}
        }
        let ending = Arc::clone(&server);
        let ended = tokio::task::spawn_blocking(move || ending.end());
        tokio::select! {
            _ = ended => Ok(()),
            () = stop.recv() => Err(ServeError::Hurried),
        }
    });
    // Do not wait for the thread that reads standard input.
    runtime.shutdown_background();
    served
}

/// Serves one client over a transport until it disconnects, then ends all its sessions. Fails if the connection fails.
pub async fn serve_transport(
    host: Arc<dyn AgentHost>,
    transport: impl ConnectTo<Agent>,
) -> Result<(), Error> {
    let server = Arc::new(AcpServer::new(host));
    let served = connect(Arc::clone(&server), transport).await;
    // A panicked session thread has already been reported.
    let _ = tokio::task::spawn_blocking(move || server.end()).await;
    served
}

/// Signals that end the program.
struct ShutdownSignals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl ShutdownSignals {
    fn new() -> std::io::Result<ShutdownSignals> {
        Ok(ShutdownSignals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn recv(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

/// Dispatches the client's messages; no handler blocks.
async fn connect(server: Arc<AcpServer>, transport: impl ConnectTo<Agent>) -> Result<(), Error> {
    macro_rules! to {
        ($method:ident, $request:ty) => {{
            let server = Arc::clone(&server);
            async move |request: $request, responder, connection| {
                AcpServer::$method(&server, request, responder, connection)
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
        .connect_to(transport)
        .await
}

/// State shared by all sessions of a connection.
pub(crate) struct AcpServer {
    pub(crate) host: Arc<dyn AgentHost>,
    capabilities: Mutex<ClientCapabilities>,
    /// Open sessions by id; `None` once the connection is closed.
    sessions: Mutex<Option<HashMap<String, Arc<AcpSession>>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AcpServer {
    fn new(host: Arc<dyn AgentHost>) -> AcpServer {
        let sessions = Mutex::new(Some(HashMap::new()));
        AcpServer { host, capabilities: Mutex::default(), sessions, threads: Mutex::default() }
    }

    pub(crate) fn capabilities(&self) -> ClientCapabilities {
        *lock(&self.capabilities)
    }

    pub(crate) fn set_capabilities(&self, capabilities: ClientCapabilities) {
        *lock(&self.capabilities) = capabilities;
    }

    /// Adds a session's thread, which is joined at the end.
    pub(crate) fn track_thread(&self, thread: JoinHandle<()>) {
        let mut threads = lock(&self.threads);
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
    }

    /// Registers an open session; returns `false` if the connection is closed.
    pub(crate) fn register_session(&self, id: &str, session: Arc<AcpSession>) -> bool {
        let mut sessions = lock(&self.sessions);
        sessions.as_mut().map(|sessions| sessions.insert(id.to_owned(), session)).is_some()
    }

    /// Removes a session unless another one has taken its id.
    pub(crate) fn unregister_session(&self, id: &str, session: &Arc<AcpSession>) {
        if let Some(sessions) = &mut *lock(&self.sessions)
            && sessions.get(id).is_some_and(|known| Arc::ptr_eq(known, session))
        {
            sessions.remove(id);
        }
    }

    /// Ends all sessions and joins their threads.
    fn end(&self) {
        let sessions = lock(&self.sessions).take().unwrap_or_default();
        for session in sessions.values() {
            session.cancel();
            session.questions.cancel_pending();
            let _ = session.send_command(SessionCommand::Close(None));
        }
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            // A panicked thread has already been reported.
            let _ = thread.join();
        }
    }

    /// Finds an open session.
    pub(crate) fn session(&self, id: &SessionId) -> Option<Arc<AcpSession>> {
        lock(&self.sessions).as_ref()?.get(&*id.0).cloned()
    }
}
