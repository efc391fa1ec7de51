//! All servers of a session, behind blocking calls.

mod restart;

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pal_model::ContentBlock;
use pal_process::CancelToken;
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, GetPromptRequestParams, GetPromptResponse, JsonObject,
    ReadResourceRequestParams, ReadResourceResponse,
};
use rmcp::service::{Peer, ServiceError};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::clean_text::{clean, tool_name_part};
use crate::pool_settings::ServerPoolSettings;
use crate::result_content::{self, ResultMediaSupport};
use crate::server_config::McpServerConfig;
use crate::server_state::{McpPrompt, McpResource, McpTool, ServerSnapshot, ServerState};
use crate::supervisor::{ServerContext, ServerHandle, supervise};

/// Maximum time for all servers to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum wait for the reason of a broken call.
const REASON_TIMEOUT: Duration = Duration::from_secs(1);
/// Poll interval while waiting for servers.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Maximum bytes of a server's error text.
const REASON_BYTES_MAX: usize = 4 * 1024;

/// Servers of a session. Dropping ends them.
pub struct ServerPool {
    servers: Vec<Arc<ServerHandle>>,
    context: Arc<ServerContext>,
    runtime: Mutex<Option<Runtime>>,
    /// Supervisor tasks, in the same order.
    tasks: Mutex<Vec<JoinHandle<()>>>,
    began: Instant,
}

impl fmt::Debug for ServerPool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.states()).finish()
    }
}

/// Event for a waiting thread.
enum WaitEvent<T> {
    Done(T),
    Cancelled,
}

impl ServerPool {
    /// Starts all servers in the background. The last of several with one name counts.
    pub fn start(configs: Vec<McpServerConfig>, settings: ServerPoolSettings) -> ServerPool {
        let mut servers: Vec<Arc<ServerHandle>> = Vec::new();
        for config in configs {
            // Tool names keep only letters and digits apart.
            servers.retain(|server| tool_name_part(&server.config.name) != tool_name_part(&config.name));
            servers.push(Arc::new(ServerHandle::new(config)));
        }
        servers.sort_by(|one, other| one.config.name.cmp(&other.config.name));
        let context = Arc::new(ServerContext {
            settings,
            changes: Mutex::default(),
            stopping: watch::Sender::new(false),
        });
        let mut tasks = Vec::new();
        let runtime = (!servers.is_empty()).then(runtime).transpose();
        let runtime = match runtime {
            Ok(runtime) => {
                if let Some(runtime) = &runtime {
                    let supervised =
                        |server: &Arc<ServerHandle>| supervise(Arc::clone(server), Arc::clone(&context));
                    tasks.extend(servers.iter().map(|server| runtime.spawn(supervised(server))));
                }
                runtime
            }
            Err(error) => {
                let why = format!("no thread can be started for it: {error}");
                for server in &servers {
                    server.known.send_modify(|known| known.state = ServerState::Failed(why.clone()));
                }
                None
            }
        };
        let (runtime, tasks) = (Mutex::new(runtime), Mutex::new(tasks));
        ServerPool { servers, context, runtime, tasks, began: Instant::now() }
    }

    /// Names of all servers, in any state.
    pub fn names(&self) -> Vec<&str> {
        self.servers.iter().map(|server| server.config.name.as_str()).collect()
    }

    /// State of each server, by name.
    pub fn states(&self) -> Vec<(String, ServerState)> {
        self.servers
            .iter()
            .map(|server| (server.config.name.clone(), server.known.borrow().state.clone()))
            .collect()
    }

    /// Tools that can be called now, by server and name, including those of a server that restarts on demand.
    pub fn tools(&self) -> Vec<McpTool> {
        self.offered(|known| known.lists.tools.clone())
    }

    /// Resources of all servers.
    pub fn resources(&self) -> Vec<McpResource> {
        self.offered(|known| known.lists.resources.clone())
    }

    /// Prompts of all servers.
    pub fn prompts(&self) -> Vec<McpPrompt> {
        self.offered(|known| known.lists.prompts.clone())
    }

    /// Instructions of the servers, by server.
    pub fn instructions(&self) -> Vec<(String, String)> {
        let said = self.servers.iter().filter_map(|server| {
            let known = server.known.borrow();
            known
                .instructions
                .clone()
                .filter(|_| known.is_callable())
                .map(|words| (server.config.name.clone(), words))
        });
        said.collect()
    }

    /// Takes the changes since the last call, one line each.
    pub fn take_changes(&self) -> Vec<String> {
        std::mem::take(&mut *self.context.changes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reports whether a server is still starting.
    pub fn is_any_starting(&self) -> bool {
        count_starting(&self.servers) > 0
    }

    /// Waits until another server is ready or failed, at most until `since_start` after the start; returns
    /// whether one did.
    pub fn wait_for_server(&self, since_start: Duration, cancel: &CancelToken) -> bool {
        let left = since_start.saturating_sub(self.began.elapsed());
        let before = count_starting(&self.servers);
        if left.is_zero() || before == 0 {
            return false;
        }
        let servers = self.servers.clone();
        let settled = async move {
            while count_starting(&servers) >= before {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            Ok(())
        };
        matches!(self.wait(cancel, left, settled), Some(Ok(())))
    }

    /// Calls a tool with a JSON object; the error is a text for the model.
    pub fn call(
        &self,
        server: &str,
        tool: &str,
        input: &str,
        cancel: &CancelToken,
    ) -> Result<Vec<ContentBlock>, String> {
        let arguments = object(input)?;
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let media_support = self.media_support();
        self.request(server, cancel, move |peer: Peer<RoleClient>| async move {
            match peer.call_tool_once(params).await? {
                CallToolResponse::Complete(result) => {
                    Ok(result_content::convert_call_result(result, media_support))
                }
                CallToolResponse::InputRequired(_) => {
                    Ok(Err(String::from("the server asks for more than the input of this call")))
                }
                _ => Ok(Err(String::from(
                    "the server began a task instead of answering, which is not spoken here",
                ))),
            }
        })?
    }

    /// Reads a resource.
    pub fn read_resource(
        &self,
        server: &str,
        uri: &str,
        cancel: &CancelToken,
    ) -> Result<Vec<ContentBlock>, String> {
        let (params, media_support) = (ReadResourceRequestParams::new(uri), self.media_support());
        self.request(server, cancel, move |peer: Peer<RoleClient>| async move {
            match peer.read_resource_once(params).await? {
                ReadResourceResponse::Complete(result) => {
                    Ok(Ok(result_content::convert_resource(result, media_support)))
                }
                _ => Ok(Err(String::from("the server asks for more than an address"))),
            }
        })?
    }

    /// Gets a prompt of a server with these arguments, a JSON object.
    pub fn get_prompt(
        &self,
        server: &str,
        name: &str,
        arguments: &str,
        cancel: &CancelToken,
    ) -> Result<Vec<ContentBlock>, String> {
        let (arguments, media_support) = (object(arguments)?, self.media_support());
        let params = GetPromptRequestParams::new(name).with_arguments(arguments);
        self.request(server, cancel, move |peer: Peer<RoleClient>| async move {
            match peer.get_prompt_once(params).await? {
                GetPromptResponse::Complete(result) => {
                    Ok(Ok(result_content::convert_prompt(result, media_support)))
                }
                _ => Ok(Err(String::from("the server asks for more than the arguments"))),
            }
        })?
    }

    /// Ends all servers and their children. Later calls fail.
    pub fn stop(&self) {
        let Some(runtime) = self.runtime.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        self.context.stopping.send_replace(true);
        let tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        let (sender, ended) = channel();
        runtime.spawn(async move {
            for task in tasks {
                let _ = task.await;
            }
            let _ = sender.send(());
        });
        let _ = ended.recv_timeout(STOP_TIMEOUT);
        runtime.shutdown_background();
    }

    fn offered<T>(&self, list: impl Fn(&ServerSnapshot) -> Vec<T>) -> Vec<T> {
        let known = self.servers.iter().map(|server| server.known.borrow());
        known.filter(|known| known.is_callable()).flat_map(|known| list(&known)).collect()
    }

    fn media_support(&self) -> ResultMediaSupport {
        ResultMediaSupport {
            images: self.context.settings.images,
            documents: self.context.settings.documents,
        }
    }

    /// Sends a request to a server once it is ready, within its time limit.
    fn request<T, A>(
        &self,
        name: &str,
        cancel: &CancelToken,
        send: impl FnOnce(Peer<RoleClient>) -> A + Send + 'static,
    ) -> Result<T, String>
    where
        T: Send + 'static,
        A: Future<Output = Result<T, ServiceError>> + Send,
    {
        let server = self.servers.iter().find(|server| server.config.name == name);
        let server = Arc::clone(server.ok_or_else(|| format!("there is no server of the name {name}"))?);
        let limit = server.config.call_limit.unwrap_or(self.context.settings.call_limit);
        let asking = async move {
            let peer = server.peer().await?;
            let answer = send(peer).await;
            match answer {
                Ok(answer) => {
                    server.has_served.store(true, Ordering::Relaxed);
                    Ok(answer)
                }
                Err(error) => Err(explain_failure(&server, error).await),
            }
        };
        match self.wait(cancel, limit, asking) {
            Some(answer) => answer,
            None if cancel.is_cancelled() => Err(String::from("[Interrupted by the user.]")),
            None => Err(format!("the server {name} did not answer within {} s", limit.as_secs_f64())),
        }
    }

    /// Waits for a future; none after the limit or a cancellation. Dropping the future tells the server that
    /// the request is cancelled.
    fn wait<T: Send + 'static>(
        &self,
        cancel: &CancelToken,
        limit: Duration,
        what: impl Future<Output = Result<T, String>> + Send + 'static,
    ) -> Option<Result<T, String>> {
        let (sender, events) = channel();
        let cancelled = sender.clone();
        let _watch = cancel.watch(move || {
            let _ = cancelled.send(WaitEvent::Cancelled);
        });
        let waiting = async move {
            let done = tokio::time::timeout(limit, what).await.ok();
            let _ = sender.send(WaitEvent::Done(done));
        };
        let task = match &*self.runtime.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(runtime) => runtime.spawn(waiting),
            None => return Some(Err(String::from("the servers are ended"))),
        };
        match events.recv() {
            Ok(WaitEvent::Done(done)) => done,
            Ok(WaitEvent::Cancelled) => {
                task.abort();
                None
            }
            Err(_) => Some(Err(String::from("the servers were ended"))),
        }
    }
}

impl Drop for ServerPool {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Number of servers that are still starting.
fn count_starting(servers: &[Arc<ServerHandle>]) -> usize {
    servers.iter().filter(|server| server.known.borrow().state == ServerState::Starting).count()
}

/// One thread suffices: the tasks only wait.
fn runtime() -> std::io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(1).thread_name("pal-mcp").enable_all().build()
}

/// Parses a JSON object; empty text counts as an empty object.
fn object(input: &str) -> Result<JsonObject, String> {
    match input.trim() {
        "" => Ok(JsonObject::new()),
        input => serde_json::from_str(input).map_err(|error| format!("the input is no JSON object: {error}")),
    }
}

/// Explains a failed request.
async fn explain_failure(server: &ServerHandle, error: ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => {
            let data = error.data.map_or(String::new(), |data| format!(" ({data})"));
            clean(&format!("{}{data}", error.message), REASON_BYTES_MAX)
        }
        ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
            let reason =
                server.why_gone(REASON_TIMEOUT).await.unwrap_or_else(|| String::from("the connection broke"));
            format!("the server {} went away before it answered: {reason}", server.config.name)
        }
        ServiceError::UnexpectedResponse => String::from("the server's answer is none of the protocol"),
        other => clean(&other.to_string(), REASON_BYTES_MAX),
    }
}
