//! Supervisor of one server: connects, lists, watches, and restarts it on demand.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::service::Peer;
use tokio::sync::{Notify, watch};

use crate::clean_text::{clean, one_line};
use crate::mcp_connection::{ConnectionSetup, ListChangeListener, McpConnection};
use crate::pool_settings::ServerPoolSettings;
use crate::server_config::McpServerConfig;
use crate::server_lists;
use crate::server_process::ProcessEnvironment;
use crate::server_state::{ServerLists, ServerSnapshot, ServerState};

/// Pause before a dead server is restarted.
const RESTART_DELAY: Duration = Duration::from_millis(500);
/// Time to collect list changes, and minimum time between two refreshes.
const DEBOUNCE_TIME: Duration = Duration::from_millis(200);
const REFRESH_INTERVAL_MIN: Duration = Duration::from_secs(1);
/// Maximum change lines that are kept.
const CHANGES_MAX: usize = 100;
/// Maximum bytes of a server's instructions.
const INSTRUCTIONS_BYTES_MAX: usize = 4 * 1024;
/// Maximum bytes of a reason.
const REASON_BYTES_MAX: usize = 2 * 1024;

/// State shared by all servers.
pub(crate) struct ServerContext {
    pub(crate) settings: ServerPoolSettings,
    pub(crate) changes: Mutex<Vec<String>>,
    /// All servers have to end.
    pub(crate) stopping: watch::Sender<bool>,
}

impl ServerContext {
    fn add_change(&self, line: String) {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if changes.len() < CHANGES_MAX {
            changes.push(line);
        }
    }

    async fn stopped(&self) {
        // Fails if the sender is gone, which also means the end.
        let _ = self.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }
}

/// One server.
pub(crate) struct ServerHandle {
    pub(crate) config: McpServerConfig,
    pub(crate) known: watch::Sender<ServerSnapshot>,
    /// Signals that a dead server is needed again.
    pub(crate) wanted: Notify,
    /// The server has answered a call since it started.
    pub(crate) has_served: AtomicBool,
}

impl ServerHandle {
    pub(crate) fn new(config: McpServerConfig) -> ServerHandle {
        ServerHandle {
            config,
            known: watch::Sender::new(ServerSnapshot::starting()),
            wanted: Notify::new(),
            has_served: AtomicBool::new(false),
        }
    }

    /// Returns the connection once it is ready; asks a dead server to restart.
    pub(crate) async fn peer(&self) -> Result<Peer<RoleClient>, String> {
        let mut known = self.known.subscribe();
        loop {
            {
                let now = known.borrow_and_update();
                match (&now.state, &now.peer) {
                    (ServerState::Ready { .. }, Some(peer)) => return Ok(peer.clone()),
                    (ServerState::Gone(_), _) if now.restarts_on_call => self.wanted.notify_one(),
                    (ServerState::Failed(why) | ServerState::Gone(why), _) => {
                        return Err(format!("the server {} is not there: {why}", self.config.name));
                    }
                    _ => {}
                }
            }
            if known.changed().await.is_err() {
                return Err(format!("the server {} is not there any more", self.config.name));
            }
        }
    }

    /// Reason why the server is gone, if it goes within this time.
    pub(crate) async fn why_gone(&self, within: Duration) -> Option<String> {
        let mut known = self.known.subscribe();
        let gone = known.wait_for(|known| matches!(known.state, ServerState::Gone(_)));
        match &tokio::time::timeout(within, gone).await.ok()?.ok()?.state {
            ServerState::Gone(why) => Some(why.clone()),
            _ => None,
        }
    }
}

/// Runs a server until all have to end or it does not come back.
pub(crate) async fn supervise(server: Arc<ServerHandle>, context: Arc<ServerContext>) {
    let mut is_second = false;
    loop {
        let changed = Arc::new(Notify::new());
        let (connection, lists) = match connect(&server, &context, &changed).await {
            Some(Ok(begun)) => begun,
            Some(Err(why)) => return set_failed(&server, &context, &why, is_second),
            None => return,
        };
        let peer = connection.peer.clone();
        server.known.send_modify(|known| {
            known.state = state_of(&lists);
            known.lists = Arc::new(lists);
            known.instructions = connection.instructions().map(|words| clean(&words, INSTRUCTIONS_BYTES_MAX));
            known.peer = Some(peer.clone());
            known.restarts_on_call = false;
        });
        let why = tokio::select! {
            why = connection.watch(context.stopped()) => why,
            () = follow_list_changes(&server, &context, &peer, &changed) => None,
        };
        let Some(why) = why else { return };
        // Do not restart a server forever that dies with every call.
        let restarts_on_call = server.has_served.swap(false, Ordering::Relaxed) || !is_second;
        set_gone(&server, &context, &why, restarts_on_call);
        if !restarts_on_call {
            return;
        }
        tokio::select! {
            () = server.wanted.notified() => {}
            () = context.stopped() => return,
        }
        server.known.send_modify(|known| known.state = ServerState::Starting);
        tokio::time::sleep(RESTART_DELAY).await;
        is_second = true;
    }
}

/// Connects and reads the lists; none if all servers have to end.
async fn connect(
    server: &ServerHandle,
    context: &ServerContext,
    changed: &Arc<Notify>,
) -> Option<Result<(McpConnection, ServerLists), String>> {
    let settings = &context.settings;
    let limit = server.config.start_limit.unwrap_or(settings.start_limit);
    let setup = ConnectionSetup {
        server_transport: &server.config.transport,
        environment: ProcessEnvironment { variables: &settings.variables, directory: &settings.directory },
        allows_plain_http: settings.allows_plain_http,
        listener: ListChangeListener { changed: Arc::clone(changed), version: settings.version.clone() },
        name: &server.config.name,
        host: settings.host.as_ref(),
    };
    let connecting = async {
        let connection = setup.connect(limit).await?;
        match server_lists::read_lists(&server.config.name, &connection.peer, limit).await {
            Ok(lists) => Ok((connection, lists)),
            Err(why) => {
                // The cause of death says more than the missing answer.
                let died = connection.watch(std::future::ready(())).await;
                Err(died.unwrap_or(why))
            }
        }
    };
    tokio::select! {
        begun = connecting => Some(begun),
        () = context.stopped() => None,
    }
}

/// Reads the lists again when the server reports a change. Keeps the old lists on failure.
async fn follow_list_changes(
    server: &ServerHandle,
    context: &ServerContext,
    peer: &Peer<RoleClient>,
    changed: &Notify,
) {
    loop {
        changed.notified().await;
        tokio::time::sleep(DEBOUNCE_TIME).await;
        let limit = server.config.start_limit.unwrap_or(context.settings.start_limit);
        if let Ok(lists) = server_lists::read_lists(&server.config.name, peer, limit).await {
            let before = Arc::clone(&server.known.borrow().lists);
            if let Some(line) = describe_tool_changes(&server.config.name, &before, &lists) {
                context.add_change(line);
            }
            server.known.send_modify(|known| {
                known.state = state_of(&lists);
                known.lists = Arc::new(lists);
            });
        }
        tokio::time::sleep(REFRESH_INTERVAL_MIN).await;
    }
}

/// Describes a change of the tool list.
fn describe_tool_changes(server: &str, before: &ServerLists, after: &ServerLists) -> Option<String> {
    let has = |lists: &ServerLists, name: &str| lists.tools.iter().any(|tool| tool.name == name);
    let came = after.tools.iter().filter(|tool| !has(before, &tool.name)).count();
    let went = before.tools.iter().filter(|tool| !has(after, &tool.name)).count();
    (came + went > 0)
        .then(|| format!("the MCP server {server} changed its tools: {came} added, {went} removed"))
}

fn state_of(lists: &ServerLists) -> ServerState {
    ServerState::Ready {
        tools: lists.tools.len(),
        resources: lists.resources.len(),
        prompts: lists.prompts.len(),
    }
}

fn set_failed(server: &ServerHandle, context: &ServerContext, why: &str, is_second: bool) {
    let name = &server.config.name;
    let why = clean(why, REASON_BYTES_MAX);
    context.add_change(match is_second {
        true => format!("the MCP server {name} failed to restart: {}", one_line(&why, REASON_BYTES_MAX)),
        false => format!("the MCP server {name} failed to start: {}", one_line(&why, REASON_BYTES_MAX)),
    });
    server.known.send_modify(|known| {
        known.state = if is_second { ServerState::Gone(why) } else { ServerState::Failed(why) };
        known.peer = None;
        known.restarts_on_call = false;
    });
}

fn set_gone(server: &ServerHandle, context: &ServerContext, why: &str, restarts_on_call: bool) {
    let why = clean(why, REASON_BYTES_MAX);
    let next = if restarts_on_call { "it restarts with the next call" } else { "it is not restarted" };
    let name = &server.config.name;
    context
        .add_change(format!("the MCP server {name} stopped: {}; {next}", one_line(&why, REASON_BYTES_MAX)));
    server.known.send_modify(|known| {
        known.state = ServerState::Gone(why);
        known.peer = None;
        known.restarts_on_call = restarts_on_call;
    });
}
