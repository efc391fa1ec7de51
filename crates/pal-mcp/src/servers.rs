//! All servers of a session, behind calls for threads that know nothing of how they are kept.

mod restarting;

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pal_model::Block;
use pal_process::Cancel;
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, GetPromptRequestParams, GetPromptResponse, JsonObject,
    ReadResourceRequestParams, ReadResourceResponse,
};
use rmcp::service::{Peer, ServiceError};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::config::ServerConfig;
use crate::content::{self, Eyes};
use crate::keeper::{House, Server, keep};
use crate::known::{Known, PromptOffered, ResourceOffered, State, ToolOffered};
use crate::settings::Settings;
use crate::words::{clean, spelled};

/// How long all servers together may take to end.
const ENDING: Duration = Duration::from_secs(3);
/// How long the reason for a broken call is waited for.
const REASON: Duration = Duration::from_secs(1);
/// How often somebody who waits for servers looks at them.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Most bytes of what a server says about a failure.
const WHY_MOST: usize = 4 * 1024;

/// The servers of a session. They end with it.
pub struct Servers {
    servers: Vec<Arc<Server>>,
    house: Arc<House>,
    runtime: Mutex<Option<Runtime>>,
    /// Who keeps each of them, in the same order.
    tasks: Mutex<Vec<JoinHandle<()>>>,
    began: Instant,
}

impl fmt::Debug for Servers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.states()).finish()
    }
}

/// What a thread that waits for an answer hears.
enum Heard<T> {
    Done(T),
    Cancelled,
}

impl Servers {
    /// Begins to start all servers and returns at once. Of several of one name the last counts.
    pub fn start(configs: Vec<ServerConfig>, settings: Settings) -> Servers {
        let mut servers: Vec<Arc<Server>> = Vec::new();
        for config in configs {
            // Tools are called under names that only letters and digits keep apart.
            servers.retain(|server| spelled(&server.config.name) != spelled(&config.name));
            servers.push(Arc::new(Server::new(config)));
        }
        servers.sort_by(|one, other| one.config.name.cmp(&other.config.name));
        let house =
            Arc::new(House { settings, changes: Mutex::default(), stopping: watch::Sender::new(false) });
        let mut tasks = Vec::new();
        let runtime = (!servers.is_empty()).then(runtime).transpose();
        let runtime = match runtime {
            Ok(runtime) => {
                if let Some(runtime) = &runtime {
                    let keeping = |server: &Arc<Server>| keep(Arc::clone(server), Arc::clone(&house));
                    tasks.extend(servers.iter().map(|server| runtime.spawn(keeping(server))));
                }
                runtime
            }
            Err(error) => {
                let why = format!("no thread can be started for it: {error}");
                for server in &servers {
                    server.known.send_modify(|known| known.state = State::Failed(why.clone()));
                }
                None
            }
        };
        let (runtime, tasks) = (Mutex::new(runtime), Mutex::new(tasks));
        Servers { servers, house, runtime, tasks, began: Instant::now() }
    }

    /// The names of all servers, whatever became of them.
    pub fn names(&self) -> Vec<&str> {
        self.servers.iter().map(|server| server.config.name.as_str()).collect()
    }

    /// How each server is, by name.
    pub fn states(&self) -> Vec<(String, State)> {
        self.servers
            .iter()
            .map(|server| (server.config.name.clone(), server.known.borrow().state.clone()))
            .collect()
    }

    /// The tools that can be called now, by server and name. Those of a server that comes back when it is called stay.
    pub fn tools(&self) -> Vec<ToolOffered> {
        self.offered(|known| known.lists.tools.clone())
    }

    /// What can be read.
    pub fn resources(&self) -> Vec<ResourceOffered> {
        self.offered(|known| known.lists.resources.clone())
    }

    /// The prompts that servers offer.
    pub fn prompts(&self) -> Vec<PromptOffered> {
        self.offered(|known| known.lists.prompts.clone())
    }

    /// What servers say about the use of their tools, by server.
    pub fn instructions(&self) -> Vec<(String, String)> {
        let said = self.servers.iter().filter_map(|server| {
            let known = server.known.borrow();
            known
                .instructions
                .clone()
                .filter(|_| known.is_offered())
                .map(|words| (server.config.name.clone(), words))
        });
        said.collect()
    }

    /// What happened since somebody last asked, a line each.
    pub fn take_changes(&self) -> Vec<String> {
        std::mem::take(&mut *self.house.changes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a server still comes up.
    pub fn is_any_starting(&self) -> bool {
        starting(&self.servers) > 0
    }

    /// Waits until one more server has come up or failed, at most until so much time has passed since they were started;
    /// whether it was worth the wait.
    pub fn await_one(&self, since_start: Duration, cancel: &Cancel) -> bool {
        let left = since_start.saturating_sub(self.began.elapsed());
        let before = starting(&self.servers);
        if left.is_zero() || before == 0 {
            return false;
        }
        let servers = self.servers.clone();
        let settled = async move {
            while starting(&servers) >= before {
                tokio::time::sleep(LOOK_EVERY).await;
            }
            Ok(())
        };
        matches!(self.wait(cancel, left, settled), Some(Ok(())))
    }

    /// Calls a tool with a JSON object; what it answers, or what went wrong, in words for the model.
    pub fn call(&self, server: &str, tool: &str, input: &str, cancel: &Cancel) -> Result<Vec<Block>, String> {
        let arguments = object(input)?;
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let eyes = self.eyes();
        self.ask(server, cancel, move |peer: Peer<RoleClient>| async move {
            match peer.call_tool_once(params).await? {
                CallToolResponse::Complete(result) => Ok(content::of_call(result, eyes)),
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
    pub fn read_resource(&self, server: &str, uri: &str, cancel: &Cancel) -> Result<Vec<Block>, String> {
        let (params, eyes) = (ReadResourceRequestParams::new(uri), self.eyes());
        self.ask(server, cancel, move |peer: Peer<RoleClient>| async move {
            match peer.read_resource_once(params).await? {
                ReadResourceResponse::Complete(result) => Ok(Ok(content::of_resource(result, eyes))),
                _ => Ok(Err(String::from("the server asks for more than an address"))),
            }
        })?
    }

    /// What a prompt of a server says with these arguments, a JSON object.
    pub fn get_prompt(
        &self,
        server: &str,
        name: &str,
        arguments: &str,
        cancel: &Cancel,
    ) -> Result<Vec<Block>, String> {
        let (arguments, eyes) = (object(arguments)?, self.eyes());
        let params = GetPromptRequestParams::new(name).with_arguments(arguments);
        self.ask(server, cancel, move |peer: Peer<RoleClient>| async move {
            match peer.get_prompt_once(params).await? {
                GetPromptResponse::Complete(result) => Ok(Ok(content::of_prompt(result, eyes))),
                _ => Ok(Err(String::from("the server asks for more than the arguments"))),
            }
        })?
    }

    /// Ends all servers with everything that they started. Calls fail from now on.
    pub fn stop(&self) {
        let Some(runtime) = self.runtime.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        self.house.stopping.send_replace(true);
        let tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        let (sender, ended) = channel();
        runtime.spawn(async move {
            for task in tasks {
                let _ = task.await;
            }
            let _ = sender.send(());
        });
        let _ = ended.recv_timeout(ENDING);
        runtime.shutdown_background();
    }

    fn offered<T>(&self, list: impl Fn(&Known) -> Vec<T>) -> Vec<T> {
        let known = self.servers.iter().map(|server| server.known.borrow());
        known.filter(|known| known.is_offered()).flat_map(|known| list(&known)).collect()
    }

    fn eyes(&self) -> Eyes {
        Eyes { images: self.house.settings.images, documents: self.house.settings.documents }
    }

    /// Asks a server something: as soon as it is there, and within its time.
    fn ask<T, A>(
        &self,
        name: &str,
        cancel: &Cancel,
        ask: impl FnOnce(Peer<RoleClient>) -> A + Send + 'static,
    ) -> Result<T, String>
    where
        T: Send + 'static,
        A: Future<Output = Result<T, ServiceError>> + Send,
    {
        let server = self.servers.iter().find(|server| server.config.name == name);
        let server = Arc::clone(server.ok_or_else(|| format!("there is no server of the name {name}"))?);
        let limit = server.config.call_limit.unwrap_or(self.house.settings.call_limit);
        let asking = async move {
            let peer = server.peer().await?;
            let answer = ask(peer).await;
            match answer {
                Ok(answer) => {
                    server.has_served.store(true, Ordering::Relaxed);
                    Ok(answer)
                }
                Err(error) => Err(why(&server, error).await),
            }
        };
        match self.wait(cancel, limit, asking) {
            Some(answer) => answer,
            None if cancel.is_cancelled() => Err(String::from("[Interrupted by the user.]")),
            None => Err(format!("the server {name} did not answer within {} s", limit.as_secs_f64())),
        }
    }

    /// Waits for something that happens elsewhere; none if it took too long or somebody wants it to stop. What is given up
    /// is dropped, at which the server is told that nobody waits for its answer.
    fn wait<T: Send + 'static>(
        &self,
        cancel: &Cancel,
        limit: Duration,
        what: impl Future<Output = Result<T, String>> + Send + 'static,
    ) -> Option<Result<T, String>> {
        let (sender, heard) = channel();
        let cancelled = sender.clone();
        let _watch = cancel.watch(move || {
            let _ = cancelled.send(Heard::Cancelled);
        });
        let waiting = async move {
            let done = tokio::time::timeout(limit, what).await.ok();
            let _ = sender.send(Heard::Done(done));
        };
        let task = match &*self.runtime.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(runtime) => runtime.spawn(waiting),
            None => return Some(Err(String::from("the servers are ended"))),
        };
        match heard.recv() {
            Ok(Heard::Done(done)) => done,
            Ok(Heard::Cancelled) => {
                task.abort();
                None
            }
            Err(_) => Some(Err(String::from("the servers were ended"))),
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.stop();
    }
}

/// How many servers still come up.
fn starting(servers: &[Arc<Server>]) -> usize {
    servers.iter().filter(|server| server.known.borrow().state == State::Starting).count()
}

/// One thread serves them all: what they do is wait.
fn runtime() -> std::io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(1).thread_name("pal-mcp").enable_all().build()
}

/// A JSON object; nothing counts as an empty one.
fn object(input: &str) -> Result<JsonObject, String> {
    match input.trim() {
        "" => Ok(JsonObject::new()),
        input => serde_json::from_str(input).map_err(|error| format!("the input is no JSON object: {error}")),
    }
}

/// Why a question was not answered.
async fn why(server: &Server, error: ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => {
            let data = error.data.map_or(String::new(), |data| format!(" ({data})"));
            clean(&format!("{}{data}", error.message), WHY_MOST)
        }
        ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
            let reason =
                server.why_gone(REASON).await.unwrap_or_else(|| String::from("the connection broke"));
            format!("the server {} went away before it answered: {reason}", server.config.name)
        }
        ServiceError::UnexpectedResponse => String::from("the server's answer is none of the protocol"),
        other => clean(&other.to_string(), WHY_MOST),
    }
}
