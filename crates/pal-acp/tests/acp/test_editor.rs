//! An editor that is connected to the server in memory.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    CancelNotification, ClientCapabilities, ClientSessionCapabilities, CompactionCapabilities, ContentBlock,
    CreateElicitationRequest, CreateElicitationResponse, ElicitationAcceptAction, ElicitationAction,
    ElicitationCapabilities, ElicitationContentValue, ElicitationFormCapabilities, InitializeRequest,
    InitializeResponse, LoadSessionRequest, NewSessionRequest, NoticeCapabilities, PermissionOptionKind,
    PromptRequest, RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
    SelectedPermissionOutcome, SessionId, SessionNotification, SessionUpdate, StopReason, ToolCall,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Agent, Channel, Client, Error, on_receive_notification, on_receive_request};
use pal_acp::serve_transport;
use pal_agent_testkit::{AgentWorld, PATIENCE};
use tokio::sync::Notify;

use crate::test_host::TestHost;

/// Answer of the editor's user to permission requests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UserConsent {
    Once,
    Always,
    Reject,
    /// The question stays open.
    Silence,
    /// Forms are completed with this content, in JSON; other requests are rejected.
    Form(&'static str),
}

/// Everything that came from the server.
#[derive(Default)]
struct ServerTraffic {
    updates: Mutex<Vec<SessionNotification>>,
    questions: Mutex<Vec<RequestPermissionRequest>>,
    forms: Mutex<Vec<CreateElicitationRequest>>,
    unanswered: Mutex<Vec<Responder<RequestPermissionResponse>>>,
    news: Notify,
}

/// A connected editor.
pub(crate) struct TestEditor {
    pub(crate) connection: ConnectionTo<Agent>,
    /// The server's response to `initialize`.
    pub(crate) initialized: InitializeResponse,
    received: Arc<ServerTraffic>,
    directory: PathBuf,
}

/// Connects an editor to a server of the world's agents and runs `body`. The server has to end after that.
pub(crate) fn edit(
    world: &Arc<AgentWorld>,
    settings: &'static str,
    consent: UserConsent,
    body: impl AsyncFnOnce(TestEditor),
) {
    let (server_side, client_side) = Channel::duplex();
    let host = Arc::new(TestHost { world: Arc::clone(world), settings });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let serving = tokio::spawn(serve_transport(host, server_side));
        let editing = connect(client_side, consent, world.project(), body);
        tokio::time::timeout(PATIENCE, editing).await.expect("it takes too long").unwrap();
        tokio::time::timeout(PATIENCE, serving).await.expect("the server stays").unwrap().unwrap();
    });
}

async fn connect(
    transport: Channel,
    consent: UserConsent,
    directory: PathBuf,
    body: impl AsyncFnOnce(TestEditor),
) -> Result<(), Error> {
    let received: Arc<ServerTraffic> = Arc::default();
    let (updated, asked, formed) = (Arc::clone(&received), Arc::clone(&received), Arc::clone(&received));
    Client
        .v1()
        .on_receive_notification(
            async move |notification: SessionNotification, _connection| {
                updated.updates.lock().unwrap().push(notification);
                updated.news.notify_waiters();
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _connection| {
                let chosen = choose_option(&request, consent);
                asked.questions.lock().unwrap().push(request);
                asked.news.notify_waiters();
                match chosen {
                    Some(outcome) => responder.respond(RequestPermissionResponse::new(outcome)),
                    None => {
                        asked.unanswered.lock().unwrap().push(responder);
                        Ok(())
                    }
                }
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: CreateElicitationRequest, responder, _connection| {
                formed.forms.lock().unwrap().push(request);
                let action = match consent {
                    UserConsent::Form(content) => {
                        let content: std::collections::BTreeMap<String, ElicitationContentValue> =
                            serde_json::from_str(content).unwrap();
                        ElicitationAction::Accept(ElicitationAcceptAction::new().content(content))
                    }
                    _ => ElicitationAction::Decline,
                };
                responder.respond(CreateElicitationResponse::new(action))
            },
            on_receive_request!(),
        )
        .connect_with(transport, async move |connection: ConnectionTo<Agent>| {
            let session = ClientSessionCapabilities::new()
                .compaction(CompactionCapabilities::new())
                .notices(NoticeCapabilities::new());
            let mut capabilities = ClientCapabilities::new().session(session);
            if let UserConsent::Form(_) = consent {
                let form = ElicitationFormCapabilities::new();
                capabilities = capabilities.elicitation(ElicitationCapabilities::new().form(form));
            }
            let request = InitializeRequest::new(ProtocolVersion::V1).client_capabilities(capabilities);
            let initialized = connection.send_request(request).block_task().await?;
            body(TestEditor { connection, initialized, received: Arc::clone(&received), directory }).await;
            received.unanswered.lock().unwrap().clear();
            Ok(())
        })
        .await
}

fn choose_option(
    request: &RequestPermissionRequest,
    consent: UserConsent,
) -> Option<RequestPermissionOutcome> {
    let kind = match consent {
        UserConsent::Once => PermissionOptionKind::AllowOnce,
        UserConsent::Always => PermissionOptionKind::AllowAlways,
        UserConsent::Reject | UserConsent::Form(_) => PermissionOptionKind::RejectOnce,
        UserConsent::Silence => return None,
    };
    let option = request.options.iter().find(|option| option.kind == kind).unwrap();
    Some(RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone())))
}

impl TestEditor {
    /// Opens a new session.
    pub(crate) async fn open(&self) -> SessionId {
        let request = NewSessionRequest::new(self.directory.clone());
        self.connection.send_request(request).block_task().await.unwrap().session_id
    }

    /// Loads a session.
    pub(crate) async fn load(&self, session: &SessionId) {
        let request = LoadSessionRequest::new(session.clone(), self.directory.clone());
        self.connection.send_request(request).block_task().await.unwrap();
    }

    /// Sends a prompt; the future is its end.
    pub(crate) fn start(
        &self,
        session: &SessionId,
        text: &str,
    ) -> impl Future<Output = Result<StopReason, Error>> + use<> {
        let request = PromptRequest::new(session.clone(), vec![ContentBlock::from(text)]);
        let sent = self.connection.send_request(request);
        async move { sent.block_task().await.map(|response| response.stop_reason) }
    }

    /// Sends a prompt and waits for its end.
    pub(crate) async fn prompt(&self, session: &SessionId, text: &str) -> StopReason {
        self.start(session, text).await.unwrap()
    }

    pub(crate) fn cancel(&self, session: &SessionId) {
        self.connection.send_notification(CancelNotification::new(session.clone())).unwrap();
    }

    /// Forgets all updates so far.
    pub(crate) fn forget(&self) {
        self.received.updates.lock().unwrap().clear();
    }

    /// Waits until an update has come that fits.
    pub(crate) async fn until(&self, fits: impl Fn(&SessionUpdate) -> bool) {
        loop {
            let news = self.received.news.notified();
            if self.received.updates.lock().unwrap().iter().any(|received| fits(&received.update)) {
                return;
            }
            news.await;
        }
    }

    /// Waits until a permission request has come.
    pub(crate) async fn until_asked(&self) {
        loop {
            let news = self.received.news.notified();
            if !self.questions().is_empty() {
                return;
            }
            news.await;
        }
    }

    pub(crate) fn questions(&self) -> Vec<RequestPermissionRequest> {
        self.received.questions.lock().unwrap().clone()
    }

    pub(crate) fn forms(&self) -> Vec<CreateElicitationRequest> {
        self.received.forms.lock().unwrap().clone()
    }

    /// All updates of a session that `select` accepts.
    pub(crate) fn updates<T>(
        &self,
        session: &SessionId,
        select: impl Fn(&SessionUpdate) -> Option<T>,
    ) -> Vec<T> {
        let updates = self.received.updates.lock().unwrap();
        let own = updates.iter().filter(|received| received.session_id == *session);
        own.filter_map(|received| select(&received.update)).collect()
    }

    /// Chunks of the agent's messages.
    pub(crate) fn chunks(&self, session: &SessionId) -> Vec<String> {
        self.updates(session, |update| match update {
            SessionUpdate::AgentMessageChunk(chunk) => match &chunk.content {
                ContentBlock::Text(text) => Some(text.text.clone()),
                _ => None,
            },
            _ => None,
        })
    }

    /// Text of the agent's messages.
    pub(crate) fn text(&self, session: &SessionId) -> String {
        self.chunks(session).concat()
    }

    /// Tool calls of a session as they are after all updates.
    pub(crate) fn calls(&self, session: &SessionId) -> Vec<ToolCall> {
        let received = self.updates(session, |update| match update {
            SessionUpdate::ToolCall(call) => Some((call.clone(), None)),
            SessionUpdate::ToolCallUpdate(update) => {
                Some((ToolCall::new(update.tool_call_id.clone(), ""), Some(update.fields.clone())))
            }
            _ => None,
        });
        let mut calls: Vec<ToolCall> = Vec::new();
        for (call, fields) in received {
            match fields {
                None => calls.push(call),
                Some(fields) => {
                    let known = calls.iter_mut().find(|known| known.tool_call_id == call.tool_call_id);
                    known.expect("a call comes before its updates").update(fields);
                }
            }
        }
        calls
    }
}
