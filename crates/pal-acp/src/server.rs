//! The connection with a client, and the sessions behind it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, AuthenticateRequest, AuthenticateResponse, CancelNotification, CloseSessionRequest,
    CloseSessionResponse, CurrentModeUpdate, Implementation, InitializeRequest, InitializeResponse,
    ListSessionsRequest, ListSessionsResponse, LoadSessionRequest, McpCapabilities, McpServer,
    NewSessionRequest, PromptCapabilities, PromptRequest, PromptResponse, ResumeSessionRequest,
    SessionAdditionalDirectoriesCapabilities, SessionCapabilities, SessionCloseCapabilities, SessionId,
    SessionInfo, SessionListCapabilities, SessionNotification, SessionResumeCapabilities, SessionUpdate,
    SetSessionConfigOptionRequest, SetSessionConfigOptionResponse, SetSessionModeRequest,
    SetSessionModeResponse,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Agent, Client, Error, on_receive_notification, on_receive_request};
use pal_permissions::Mode;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::content::{command, prompt};
use crate::host::{Host, Wanted, failed, wrong};
use crate::lines::stdio;
use crate::servers::servers;
use crate::session::{Session, Wish, gone};
use crate::teller::Abilities;
use crate::worker::{MODEL, Opening, directory, live};

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
}

impl Stop {
    fn new() -> std::io::Result<Stop> {
        Ok(Stop { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn wanted(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
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

    fn session(&self, id: &SessionId) -> Option<Arc<Session>> {
        lock(&self.sessions).as_ref()?.get(&*id.0).cloned()
    }

    /// Opens a session on a thread of its own.
    fn open(server: &Arc<Server>, connection: ConnectionTo<Client>, wanted: Wanted, opening: Opening) {
        let own = Arc::clone(server);
        let thread = std::thread::spawn(move || live(&own, connection, wanted, opening));
        let mut threads = lock(&server.threads);
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
    }

    /// Goes on with a session: with the one that is open, or with one that is kept.
    fn go_on(
        server: &Arc<Server>,
        connection: ConnectionTo<Client>,
        (id, wanted): (SessionId, Wanted),
        opening: Opening,
    ) {
        let opening = match server.session(&id) {
            None => opening,
            Some(session) => match session.wish(Wish::Again(opening)) {
                Ok(()) => return,
                Err(unsent) => match *unsent {
                    Wish::Again(opening) => opening,
                    _ => return,
                },
            },
        };
        Server::open(server, connection, Wanted { session: Some(id.to_string()), ..wanted }, opening);
    }

    fn initialize(
        server: &Arc<Server>,
        request: InitializeRequest,
        responder: Responder<InitializeResponse>,
        _: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let session = request.client_capabilities.session.unwrap_or_default();
        *lock(&server.abilities) =
            Abilities { compaction: session.compaction.is_some(), notices: session.notices.is_some() };
        let sessions = SessionCapabilities::new()
            .list(SessionListCapabilities::new())
            .resume(SessionResumeCapabilities::new())
            .close(SessionCloseCapabilities::new())
            .additional_directories(SessionAdditionalDirectoriesCapabilities::new());
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .prompt_capabilities(PromptCapabilities::new().image(true).embedded_context(true))
            .mcp_capabilities(McpCapabilities::new().http(true))
            .session_capabilities(sessions);
        let program = Implementation::new("pal", server.host.version()).title(String::from("Palimpsest"));
        let response = InitializeResponse::new(ProtocolVersion::V1);
        responder.respond(response.agent_capabilities(capabilities).agent_info(program))
    }

    fn authenticate(
        _: &Arc<Server>,
        _: AuthenticateRequest,
        responder: Responder<AuthenticateResponse>,
        _: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        responder.respond(AuthenticateResponse::new())
    }

    fn new_session(
        server: &Arc<Server>,
        request: NewSessionRequest,
        responder: Responder<agent_client_protocol::v1::schema::NewSessionResponse>,
        connection: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        match wanted(request.cwd, request.additional_directories, request.mcp_servers) {
            Ok(wanted) => Server::open(server, connection, wanted, Opening::New(responder)),
            Err(error) => return responder.respond_with_error(error),
        }
        Ok(())
    }

    fn load_session(
        server: &Arc<Server>,
        request: LoadSessionRequest,
        responder: Responder<agent_client_protocol::v1::schema::LoadSessionResponse>,
        connection: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        match wanted(request.cwd, request.additional_directories, request.mcp_servers) {
            Ok(wanted) => {
                Server::go_on(server, connection, (request.session_id, wanted), Opening::Load(responder));
            }
            Err(error) => return responder.respond_with_error(error),
        }
        Ok(())
    }

    fn resume_session(
        server: &Arc<Server>,
        request: ResumeSessionRequest,
        responder: Responder<agent_client_protocol::v1::schema::ResumeSessionResponse>,
        connection: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        match wanted(request.cwd, request.additional_directories, request.mcp_servers) {
            Ok(wanted) => {
                Server::go_on(server, connection, (request.session_id, wanted), Opening::Resume(responder));
            }
            Err(error) => return responder.respond_with_error(error),
        }
        Ok(())
    }

    fn list_sessions(
        server: &Arc<Server>,
        request: ListSessionsRequest,
        responder: Responder<ListSessionsResponse>,
        _: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let host = Arc::clone(&server.host);
        // Many logs may have to be read.
        std::thread::spawn(move || {
            let listed = host.kept(request.cwd.as_deref()).map_err(|refusal| refusal.error());
            let info = |kept: crate::host::KeptSession| {
                SessionInfo::new(kept.id, kept.directory).title(kept.title).updated_at(kept.active)
            };
            let listed = listed.map(|kept| ListSessionsResponse::new(kept.into_iter().map(info).collect()));
            let _ = responder.respond_with_result(listed);
        });
        Ok(())
    }

    fn close_session(
        server: &Arc<Server>,
        request: CloseSessionRequest,
        responder: Responder<CloseSessionResponse>,
        _: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let Some(session) = server.session(&request.session_id) else {
            return responder.respond_with_error(unknown(&request.session_id));
        };
        session.cancel();
        match session.wish(Wish::Leave(Some(responder))) {
            Err(unsent) => match *unsent {
                Wish::Leave(Some(responder)) => responder.respond(CloseSessionResponse::new()),
                _ => Ok(()),
            },
            Ok(()) => Ok(()),
        }
    }

    fn prompt(
        server: &Arc<Server>,
        request: PromptRequest,
        responder: Responder<PromptResponse>,
        _: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let Some(session) = server.session(&request.session_id) else {
            return responder.respond_with_error(unknown(&request.session_id));
        };
        let content = match prompt(&request.prompt) {
            Ok(content) => content,
            Err(error) => return responder.respond_with_error(error),
        };
        // Commands take their turn.
        let steering = command(&request.prompt).is_none().then_some(content);
        session.prompt(request.prompt, steering, responder)
    }

    fn set_mode(
        server: &Arc<Server>,
        request: SetSessionModeRequest,
        responder: Responder<SetSessionModeResponse>,
        connection: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let Some(session) = server.session(&request.session_id) else {
            return responder.respond_with_error(unknown(&request.session_id));
        };
        let mode: Mode = match request.mode_id.0.parse() {
            Ok(mode) => mode,
            Err(error) => return responder.respond_with_error(wrong(format!("{error}"))),
        };
        // Whether commands are fenced in hangs on this mode, and it is decided when a session is opened.
        if [mode, session.mode()].contains(&Mode::Bypass) && mode != session.mode() {
            if session.is_working() {
                return responder.respond_with_error(failed(
                    "the mode bypass can be entered and left between prompts only. What to do: stop the prompt, or wait \
                     for its end",
                ));
            }
            return match session.wish(Wish::Mode(mode, responder)) {
                Err(unsent) => match *unsent {
                    Wish::Mode(_, responder) => responder.respond_with_error(gone()),
                    _ => Ok(()),
                },
                Ok(()) => Ok(()),
            };
        }
        if let Some(handle) = &*session.handle() {
            handle.choose_mode(mode);
        }
        session.set_mode(mode);
        responder.respond(SetSessionModeResponse::new())?;
        let update = SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(mode.name()));
        connection.send_notification(SessionNotification::new(request.session_id, update))
    }

    fn set_option(
        server: &Arc<Server>,
        request: SetSessionConfigOptionRequest,
        responder: Responder<SetSessionConfigOptionResponse>,
        _: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let Some(session) = server.session(&request.session_id) else {
            return responder.respond_with_error(unknown(&request.session_id));
        };
        let model = request.value.as_value_id().filter(|_| &*request.config_id.0 == MODEL);
        let Some(model) = model else {
            return responder
                .respond_with_error(wrong(format!("there is no such option: {}", request.config_id)));
        };
        match session.wish(Wish::Model(model.to_string(), responder)) {
            Err(unsent) => match *unsent {
                Wish::Model(_, responder) => responder.respond_with_error(gone()),
                _ => Ok(()),
            },
            Ok(()) => Ok(()),
        }
    }
}

/// What a client wants of a session, if it makes sense.
fn wanted(cwd: PathBuf, added: Vec<PathBuf>, given: Vec<McpServer>) -> Result<Wanted, Error> {
    let (directory, servers) = (directory(cwd)?, servers(given)?);
    Ok(Wanted { directory, added, servers, session: None, model: None, mode: None })
}

fn unknown(id: &SessionId) -> Error {
    wrong(format!("there is no open session {id}. What to do: load it with session/load, or begin a new one"))
}
