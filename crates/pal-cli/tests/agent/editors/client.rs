//! An editor inside of the test.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    ClientCapabilities, ClientSessionCapabilities, CompactionCapabilities, ContentBlock, InitializeRequest,
    InitializeResponse, LoadSessionRequest, NewSessionRequest, NoticeCapabilities, PermissionOptionKind,
    PromptRequest, RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
    SelectedPermissionOutcome, SessionId, SessionNotification, SessionUpdate, StopReason, ToolCall,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Agent, Client, Error, Lines, on_receive_notification, on_receive_request};
use futures_util::{sink, stream};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::sync::mpsc::unbounded_channel;

use crate::test_world::{PATIENCE, TestWorld, finish};

/// Answer of the editor's user to permission requests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EditorConsent {
    Once,
    Always,
    Reject,
    /// Nothing, ever.
    Silence,
}

#[derive(Default)]
struct EditorTraffic {
    updates: Mutex<Vec<SessionNotification>>,
    questions: Mutex<Vec<RequestPermissionRequest>>,
    unanswered: Mutex<Vec<Responder<RequestPermissionResponse>>>,
    news: Notify,
}

/// A client that is connected.
pub(super) struct TestEditor {
    pub(super) connection: ConnectionTo<Agent>,
    pub(super) begun: InitializeResponse,
    heard: Arc<EditorTraffic>,
    directory: std::path::PathBuf,
}

/// Lets an editor do something whose user allows nothing to be asked.
pub(super) fn edit(world: &TestWorld, body: impl AsyncFnOnce(TestEditor)) {
    edit_as(world, EditorConsent::Silence, body);
}

pub(super) fn edit_as(world: &TestWorld, consent: EditorConsent, body: impl AsyncFnOnce(TestEditor)) {
    edit_with(world.command(&["acp"]), consent, body);
}

/// Starts the program, lets an editor do something, and leaves: the program has to end by itself, and to have said nothing
/// that is no message.
pub(super) fn edit_with(mut command: Command, consent: EditorConsent, body: impl AsyncFnOnce(TestEditor)) {
    let directory = command.get_current_dir().unwrap().to_owned();
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let (input, out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let (sender, incoming) = unbounded_channel();
    let kept = Arc::clone(&lines);
    let reading = std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            kept.lock().unwrap().push(line.clone());
            let _ = sender.send(line);
        }
    });
    let incoming = stream::unfold(incoming, |mut incoming| async move {
        incoming.recv().await.map(|line| (Ok(line), incoming))
    });
    let outgoing = sink::unfold(input, |mut input, line: String| async move {
        writeln!(input, "{line}")?;
        Ok::<_, std::io::Error>(input)
    });
    let transport = Lines::new(Box::pin(outgoing), Box::pin(incoming));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let working = connected(transport, consent, directory, body);
        tokio::time::timeout(PATIENCE, working).await.expect("it takes too long").unwrap();
    });
    let said = finish(child);
    assert_eq!(said.code, 0, "{}", said.err);
    reading.join().unwrap();
    for line in lines.lock().unwrap().iter() {
        let message: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("no message: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
    }
}

async fn connected(
    transport: impl agent_client_protocol::ConnectTo<Client> + 'static,
    consent: EditorConsent,
    directory: std::path::PathBuf,
    body: impl AsyncFnOnce(TestEditor),
) -> Result<(), Error> {
    let heard: Arc<EditorTraffic> = Arc::default();
    let (noting, asked) = (Arc::clone(&heard), Arc::clone(&heard));
    Client
        .v1()
        .on_receive_notification(
            async move |notification: SessionNotification, _connection| {
                noting.updates.lock().unwrap().push(notification);
                noting.news.notify_waiters();
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _connection| {
                let chosen = option(&request, consent);
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
        .connect_with(transport, async move |connection: ConnectionTo<Agent>| {
            let session = ClientSessionCapabilities::new()
                .compaction(CompactionCapabilities::new())
                .notices(NoticeCapabilities::new());
            let request = InitializeRequest::new(ProtocolVersion::V1)
                .client_capabilities(ClientCapabilities::new().session(session));
            let begun = connection.send_request(request).block_task().await?;
            body(TestEditor { connection, begun, heard: Arc::clone(&heard), directory }).await;
            heard.unanswered.lock().unwrap().clear();
            Ok(())
        })
        .await
}

fn option(request: &RequestPermissionRequest, consent: EditorConsent) -> Option<RequestPermissionOutcome> {
    let kind = match consent {
        EditorConsent::Once => PermissionOptionKind::AllowOnce,
        EditorConsent::Always => PermissionOptionKind::AllowAlways,
        EditorConsent::Reject => PermissionOptionKind::RejectOnce,
        EditorConsent::Silence => return None,
    };
    let option = request.options.iter().find(|option| option.kind == kind).unwrap();
    Some(RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone())))
}

impl TestEditor {
    /// A new session.
    pub(super) async fn session(&self) -> SessionId {
        let request = NewSessionRequest::new(self.directory.clone());
        self.connection.send_request(request).block_task().await.unwrap().session_id
    }

    pub(super) async fn load(&self, session: &SessionId) {
        let request = LoadSessionRequest::new(session.clone(), self.directory.clone());
        self.connection.send_request(request).block_task().await.unwrap();
    }

    /// Sends a prompt; its end can be waited for.
    pub(super) fn start(
        &self,
        session: &SessionId,
        text: &str,
    ) -> impl Future<Output = Result<StopReason, Error>> + use<> {
        let request = PromptRequest::new(session.clone(), vec![ContentBlock::from(text)]);
        let sent = self.connection.send_request(request);
        async move { sent.block_task().await.map(|response| response.stop_reason) }
    }

    pub(super) async fn prompt(&self, session: &SessionId, text: &str) -> Result<StopReason, Error> {
        self.start(session, text).await
    }

    /// Forgets what was told so far.
    pub(super) fn forget(&self) {
        self.heard.updates.lock().unwrap().clear();
    }

    /// Waits until something was told that fits.
    pub(super) async fn until(&self, fits: impl Fn(&SessionUpdate) -> bool) {
        loop {
            let news = self.heard.news.notified();
            if self.heard.updates.lock().unwrap().iter().any(|told| fits(&told.update)) {
                return;
            }
            news.await;
        }
    }

    pub(super) fn questions(&self) -> Vec<RequestPermissionRequest> {
        self.heard.questions.lock().unwrap().clone()
    }

    /// All that was told of a session and fits.
    pub(super) fn all<T>(&self, session: &SessionId, fits: impl Fn(&SessionUpdate) -> Option<T>) -> Vec<T> {
        let updates = self.heard.updates.lock().unwrap();
        updates
            .iter()
            .filter(|told| told.session_id == *session)
            .filter_map(|told| fits(&told.update))
            .collect()
    }

    pub(super) fn last<T>(&self, session: &SessionId, fits: impl Fn(&SessionUpdate) -> Option<T>) -> T {
        self.all(session, fits).pop().expect("it was told")
    }

    /// Text of the agent's messages.
    pub(super) fn words(&self, session: &SessionId) -> String {
        let words = self.all(session, |update| match update {
            SessionUpdate::AgentMessageChunk(chunk) => match &chunk.content {
                ContentBlock::Text(text) => Some(text.text.clone()),
                _ => None,
            },
            _ => None,
        });
        words.concat()
    }

    /// The calls of a session as they stand after all updates.
    pub(super) fn calls(&self, session: &SessionId) -> Vec<ToolCall> {
        let told = self.all(session, |update| match update {
            SessionUpdate::ToolCall(call) => Some((call.clone(), None)),
            SessionUpdate::ToolCallUpdate(update) => {
                Some((ToolCall::new(update.tool_call_id.clone(), ""), Some(update.fields.clone())))
            }
            _ => None,
        });
        let mut calls: Vec<ToolCall> = Vec::new();
        for (call, fields) in told {
            match fields {
                None => calls.push(call),
                Some(fields) => {
                    let known = calls.iter_mut().find(|known| known.tool_call_id == call.tool_call_id);
                    known.expect("a call is told before its updates").update(fields);
                }
            }
        }
        calls
    }
}
