//! Handlers of the protocol's methods. Each responds at once or hands its responder to a session's thread.

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
use pal_permissions::PermissionMode;

use crate::acp_server::AcpServer;
use crate::acp_session::{SessionCommand, session_ended};
use crate::agent_host::{ListedSession, SessionRequest, internal_error, invalid_params};
use crate::client_mcp_servers::servers;
use crate::open_responder::OpenResponder;
use crate::prompt_content::{command, prompt};
use crate::session_updates::ClientCapabilities;
use crate::session_worker::{MODEL, run_session};

#[allow(clippy::needless_pass_by_value, reason = "all methods have one shape, which the connection calls")]
impl AcpServer {
    /// Opens a session on a new thread.
    fn open(
        server: &Arc<AcpServer>,
        connection: ConnectionTo<Client>,
        session_request: SessionRequest,
        opening: OpenResponder,
    ) {
        let own = Arc::clone(server);
        server.track_thread(std::thread::spawn(move || {
            run_session(&own, connection, session_request, opening)
        }));
    }

    /// Resumes a session: greets again if it is open, else opens the stored one.
    fn resume_or_open(
        server: &Arc<AcpServer>,
        connection: ConnectionTo<Client>,
        (id, session_request): (SessionId, SessionRequest),
        opening: OpenResponder,
    ) {
        let opening = match server.session(&id) {
            None => opening,
            Some(session) => match session.send_command(SessionCommand::Reopen(opening)) {
                Ok(()) => return,
                Err(unsent) => match *unsent {
                    SessionCommand::Reopen(opening) => opening,
                    _ => return,
                },
            },
        };
        AcpServer::open(
            server,
            connection,
            SessionRequest { session: Some(id.to_string()), ..session_request },
            opening,
        );
    }

    pub(crate) fn initialize(
        server: &Arc<AcpServer>,
        request: InitializeRequest,
        responder: Responder<InitializeResponse>,
        _: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let elicitation = request.client_capabilities.elicitation.unwrap_or_default();
        let session = request.client_capabilities.session.unwrap_or_default();
        server.set_capabilities(ClientCapabilities {
            compaction: session.compaction.is_some(),
            notices: session.notices.is_some(),
            forms: elicitation.supports_form(),
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
        _: &Arc<AcpServer>,
        _: AuthenticateRequest,
        responder: Responder<AuthenticateResponse>,
        _: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        responder.respond(AuthenticateResponse::new())
    }

    pub(crate) fn new_session(
        server: &Arc<AcpServer>,
        request: NewSessionRequest,
        responder: Responder<NewSessionResponse>,
        connection: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        match session_request(&request.cwd, request.additional_directories, request.mcp_servers) {
            Ok(session_request) => {
                AcpServer::open(server, connection, session_request, OpenResponder::New(responder))
            }
            Err(error) => return responder.respond_with_error(error),
        }
        Ok(())
    }

    pub(crate) fn load_session(
        server: &Arc<AcpServer>,
        request: LoadSessionRequest,
        responder: Responder<LoadSessionResponse>,
        connection: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        match session_request(&request.cwd, request.additional_directories, request.mcp_servers) {
            Ok(session_request) => {
                AcpServer::resume_or_open(
                    server,
                    connection,
                    (request.session_id, session_request),
                    OpenResponder::Load(responder),
                );
            }
            Err(error) => return responder.respond_with_error(error),
        }
        Ok(())
    }

    pub(crate) fn resume_session(
        server: &Arc<AcpServer>,
        request: ResumeSessionRequest,
        responder: Responder<ResumeSessionResponse>,
        connection: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        match session_request(&request.cwd, request.additional_directories, request.mcp_servers) {
            Ok(session_request) => {
                AcpServer::resume_or_open(
                    server,
                    connection,
                    (request.session_id, session_request),
                    OpenResponder::Resume(responder),
                );
            }
            Err(error) => return responder.respond_with_error(error),
        }
        Ok(())
    }

    pub(crate) fn list_sessions(
        server: &Arc<AcpServer>,
        request: ListSessionsRequest,
        responder: Responder<ListSessionsResponse>,
        _: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let host = Arc::clone(&server.host);
        // Reading many logs takes time.
        std::thread::spawn(move || {
            let listed = host.list_sessions(request.cwd.as_deref()).map_err(|error| error.to_protocol());
            let info = |kept: ListedSession| {
                SessionInfo::new(kept.id, kept.directory).title(kept.title).updated_at(kept.updated_at)
            };
            let listed = listed.map(|kept| ListSessionsResponse::new(kept.into_iter().map(info).collect()));
            let _ = responder.respond_with_result(listed);
        });
        Ok(())
    }

    pub(crate) fn close_session(
        server: &Arc<AcpServer>,
        request: CloseSessionRequest,
        responder: Responder<CloseSessionResponse>,
        _: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let Some(session) = server.session(&request.session_id) else {
            return responder.respond_with_error(unknown_session(&request.session_id));
        };
        session.cancel();
        match session.send_command(SessionCommand::Close(Some(responder))) {
            Err(unsent) => match *unsent {
                SessionCommand::Close(Some(responder)) => responder.respond(CloseSessionResponse::new()),
                _ => Ok(()),
            },
            Ok(()) => Ok(()),
        }
    }

    pub(crate) fn prompt(
        server: &Arc<AcpServer>,
        request: PromptRequest,
        responder: Responder<PromptResponse>,
        _: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let Some(session) = server.session(&request.session_id) else {
            return responder.respond_with_error(unknown_session(&request.session_id));
        };
        let content = match prompt(&request.prompt) {
            Ok(content) => content,
            Err(error) => return responder.respond_with_error(error),
        };
        // Commands do not steer a running prompt: they wait for their turn.
        let steering = command(&request.prompt).is_none().then_some(content);
        session.prompt(request.prompt, steering, responder)
    }

    pub(crate) fn set_mode(
        server: &Arc<AcpServer>,
        request: SetSessionModeRequest,
        responder: Responder<SetSessionModeResponse>,
        connection: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let Some(session) = server.session(&request.session_id) else {
            return responder.respond_with_error(unknown_session(&request.session_id));
        };
        let mode: PermissionMode = match request.mode_id.0.parse() {
            Ok(mode) => mode,
            Err(error) => return responder.respond_with_error(invalid_params(format!("{error}"))),
        };
        // Sandboxing depends on this mode and is decided when a session opens.
        if [mode, session.mode()].contains(&PermissionMode::Bypass) && mode != session.mode() {
            if session.is_working() {
                return responder.respond_with_error(internal_error(
                    "bypass mode can be entered and left only between prompts; stop the prompt or wait for its end",
                ));
            }
            return match session.send_command(SessionCommand::Mode(mode, responder)) {
                Err(unsent) => match *unsent {
                    SessionCommand::Mode(_, responder) => responder.respond_with_error(session_ended()),
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
        server: &Arc<AcpServer>,
        request: SetSessionConfigOptionRequest,
        responder: Responder<SetSessionConfigOptionResponse>,
        _: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let Some(session) = server.session(&request.session_id) else {
            return responder.respond_with_error(unknown_session(&request.session_id));
        };
        let model = request.value.as_value_id().filter(|_| &*request.config_id.0 == MODEL);
        let Some(model) = model else {
            return responder
                .respond_with_error(invalid_params(format!("unknown option: {}", request.config_id)));
        };
        match session.send_command(SessionCommand::Model(model.to_string(), responder)) {
            Err(unsent) => match *unsent {
                SessionCommand::Model(_, responder) => responder.respond_with_error(session_ended()),
                _ => Ok(()),
            },
            Ok(()) => Ok(()),
        }
    }
}

/// Validates the parameters of a session.
fn session_request(cwd: &Path, added: Vec<PathBuf>, given: Vec<McpServer>) -> Result<SessionRequest, Error> {
    let (directory, servers) = (directory(cwd)?, servers(given)?);
    Ok(SessionRequest {
        directory,
        additional_directories: added,
        servers,
        session: None,
        model: None,
        mode: None,
    })
}

fn unknown_session(id: &SessionId) -> Error {
    invalid_params(format!("no open session {id}; load it with session/load or start a new one"))
}

/// Canonicalizes the working directory; it must be absolute and exist.
fn directory(given: &Path) -> Result<PathBuf, Error> {
    if !given.is_absolute() {
        return Err(invalid_params(format!("cwd is not an absolute path: {}", given.display())));
    }
    let real = given
        .canonicalize()
        .map_err(|error| invalid_params(format!("cannot use cwd: {}: {error}", given.display())))?;
    match real.is_dir() {
        true => Ok(real),
        false => Err(invalid_params(format!("cwd is not a directory: {}", real.display()))),
    }
}
