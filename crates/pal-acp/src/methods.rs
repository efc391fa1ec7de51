//! What a client may ask for, one function a method. Each answers at once or passes the answer on to a session's thread.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, AuthenticateRequest, AuthenticateResponse, CloseSessionRequest, CloseSessionResponse,
    CurrentModeUpdate, Implementation, InitializeRequest, InitializeResponse, ListSessionsRequest,
    ListSessionsResponse, LoadSessionRequest, LoadSessionResponse, McpCapabilities, McpServer,
    NewSessionRequest, NewSessionResponse, PromptCapabilities, PromptRequest, PromptResponse,
    ResumeSessionRequest, ResumeSessionResponse, SessionAdditionalDirectoriesCapabilities,
    SessionCapabilities, SessionCloseCapabilities, SessionId, SessionInfo, SessionListCapabilities,
    SessionNotification, SessionResumeCapabilities, SessionUpdate, SetSessionConfigOptionRequest,
    SetSessionConfigOptionResponse, SetSessionModeRequest, SetSessionModeResponse,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Client, Error};
use pal_permissions::Mode;

use crate::content::{command, prompt};
use crate::host::{KeptSession, Wanted, failed, wrong};
use crate::opening::Opening;
use crate::server::Server;
use crate::servers::servers;
use crate::session::{Wish, gone};
use crate::teller::Abilities;
use crate::worker::{MODEL, live};

#[allow(clippy::needless_pass_by_value, reason = "all methods have one shape, which the connection calls")]
impl Server {
    /// Opens a session on a thread of its own.
    fn open(server: &Arc<Server>, connection: ConnectionTo<Client>, wanted: Wanted, opening: Opening) {
        let own = Arc::clone(server);
        server.keep(std::thread::spawn(move || live(&own, connection, wanted, opening)));
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

    pub(crate) fn initialize(
        server: &Arc<Server>,
        request: InitializeRequest,
        responder: Responder<InitializeResponse>,
        _: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let session = request.client_capabilities.session.unwrap_or_default();
        server.set_abilities(Abilities {
            compaction: session.compaction.is_some(),
            notices: session.notices.is_some(),
        });
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

    pub(crate) fn authenticate(
        _: &Arc<Server>,
        _: AuthenticateRequest,
        responder: Responder<AuthenticateResponse>,
        _: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        responder.respond(AuthenticateResponse::new())
    }

    pub(crate) fn new_session(
        server: &Arc<Server>,
        request: NewSessionRequest,
        responder: Responder<NewSessionResponse>,
        connection: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        match wanted(&request.cwd, request.additional_directories, request.mcp_servers) {
            Ok(wanted) => Server::open(server, connection, wanted, Opening::New(responder)),
            Err(error) => return responder.respond_with_error(error),
        }
        Ok(())
    }

    pub(crate) fn load_session(
        server: &Arc<Server>,
        request: LoadSessionRequest,
        responder: Responder<LoadSessionResponse>,
        connection: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        match wanted(&request.cwd, request.additional_directories, request.mcp_servers) {
            Ok(wanted) => {
                Server::go_on(server, connection, (request.session_id, wanted), Opening::Load(responder));
            }
            Err(error) => return responder.respond_with_error(error),
        }
        Ok(())
    }

    pub(crate) fn resume_session(
        server: &Arc<Server>,
        request: ResumeSessionRequest,
        responder: Responder<ResumeSessionResponse>,
        connection: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        match wanted(&request.cwd, request.additional_directories, request.mcp_servers) {
            Ok(wanted) => {
                Server::go_on(server, connection, (request.session_id, wanted), Opening::Resume(responder));
            }
            Err(error) => return responder.respond_with_error(error),
        }
        Ok(())
    }

    pub(crate) fn list_sessions(
        server: &Arc<Server>,
        request: ListSessionsRequest,
        responder: Responder<ListSessionsResponse>,
        _: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let host = Arc::clone(&server.host);
        // Many logs may have to be read.
        std::thread::spawn(move || {
            let listed = host.kept(request.cwd.as_deref()).map_err(|refusal| refusal.error());
            let info = |kept: KeptSession| {
                SessionInfo::new(kept.id, kept.directory).title(kept.title).updated_at(kept.active)
            };
            let listed = listed.map(|kept| ListSessionsResponse::new(kept.into_iter().map(info).collect()));
            let _ = responder.respond_with_result(listed);
        });
        Ok(())
    }

    pub(crate) fn close_session(
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

    pub(crate) fn prompt(
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

    pub(crate) fn set_mode(
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

    pub(crate) fn set_option(
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
fn wanted(cwd: &Path, added: Vec<PathBuf>, given: Vec<McpServer>) -> Result<Wanted, Error> {
    let (directory, servers) = (directory(cwd)?, servers(given)?);
    Ok(Wanted { directory, added, servers, session: None, model: None, mode: None })
}

fn unknown(id: &SessionId) -> Error {
    wrong(format!("there is no open session {id}. What to do: load it with session/load, or begin a new one"))
}

/// What a directory of a client must be.
fn directory(given: &Path) -> Result<PathBuf, Error> {
    if !given.is_absolute() {
        return Err(wrong(format!("cwd is not an absolute path: {}", given.display())));
    }
    let real = given
        .canonicalize()
        .map_err(|error| wrong(format!("cwd cannot be worked in: {}: {error}", given.display())))?;
    match real.is_dir() {
        true => Ok(real),
        false => Err(wrong(format!("cwd is no directory: {}", real.display()))),
    }
}
