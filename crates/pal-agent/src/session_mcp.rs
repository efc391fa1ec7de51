//! MCP servers of a session and their tools.
//!
//! No request lists the tools of servers: `ToolSearch` and `CallTool` are in the prefix from the start, and
//! announcements say what comes and goes. So servers never invalidate the prompt cache. Tools of a driving program
//! (`sdk`) are there before the first request and stay, so the prefix lists them.

mod server_tools;

use std::sync::Arc;
use std::time::{Duration, Instant};

use pal_events::McpServerInfo;
use pal_mcp::{McpServerConfig, ServerPool, ServerState, ServerTransport};
use pal_process::CancelToken;
use pal_prompt::{ToolCatalog, ToolOrigin, ToolSpec};
use pal_settings::KillSwitch;
use pal_tools::ToolHandler;
use smol_str::SmolStr;

use crate::options::AgentOptions;

/// Time after the start during which a tool search waits for servers.
const AWAITED: Duration = Duration::from_secs(10);

/// Poll interval while servers of the driving program start.
const HOST_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The servers and their last known tools.
pub(crate) struct McpServers {
    pub(crate) servers: Arc<ServerPool>,
    /// Last known tools, to detect changes.
    pub(crate) seen: Vec<ToolSpec>,
    /// Whether the user knows that this session cannot use them yet.
    pub(crate) is_excused: bool,
    /// Whether they belong to the parent agent, which stops them.
    is_shared: bool,
    /// Tools of the driving program, which the prefix lists.
    listed: Vec<ToolSpec>,
}

/// Returns whether a server runs inside the driving program.
fn is_of_host(server: &McpServerConfig) -> bool {
    server.transport == ServerTransport::Host
}

/// Names of the configured servers whose tools are found by search.
pub(crate) fn names(options: &AgentOptions) -> Vec<SmolStr> {
    if options.switches.is_off(KillSwitch::Mcp) {
        return Vec::new();
    }
    let servers = options.mcp.servers.iter().filter(|server| !is_of_host(server));
    let mut names: Vec<SmolStr> = servers.map(|server| SmolStr::new(&server.name)).collect();
    names.sort();
    names.dedup();
    names
}

impl McpServers {
    /// Starts the servers in the background.
    pub(crate) fn start(options: &AgentOptions) -> McpServers {
        let serving = &options.mcp;
        let is_off = options.switches.is_off(KillSwitch::Mcp);
        let configs = if is_off { Vec::new() } else { serving.servers.clone() };
        let can = &options.model.lens.card.can;
        let settings = pal_mcp::ServerPoolSettings {
            directory: options.sources.search.directory.clone(),
            variables: pal_tools::visible_variables(&options.tools.secret_variables),
            allows_plain_http: serving.allows_plain_http,
            start_limit: serving.start_limit,
            call_limit: serving.call_limit,
            images: can.images,
            documents: can.documents,
            version: options.prompt.version.clone(),
            host: serving.host.clone(),
        };
        let shared = options.mcp.shared.clone();
        let is_shared = shared.is_some();
        McpServers {
            servers: shared.unwrap_or_else(|| Arc::new(ServerPool::start(configs, settings))),
            seen: Vec::new(),
            is_excused: false,
            is_shared,
            listed: Vec::new(),
        }
    }

    /// Waits for the servers of the driving program and returns their tools, which the prefix lists. Those of a server that
    /// does not start in time are found by search.
    pub(crate) fn await_host_tools(&mut self, options: &AgentOptions) -> Vec<ToolSpec> {
        let servers = options.mcp.servers.iter().filter(|server| is_of_host(server));
        let names: Vec<&str> = servers.map(|server| server.name.as_str()).collect();
        let until = Instant::now() + options.mcp.start_limit;
        let is_starting = |(name, state): &(String, ServerState)| {
            names.contains(&name.as_str()) && *state == ServerState::Starting
        };
        while !names.is_empty() && self.servers.states().iter().any(is_starting) && Instant::now() < until {
            std::thread::sleep(HOST_POLL_INTERVAL);
        }
        let is_of_host = |spec: &ToolSpec| spec.origin.server().is_some_and(|server| names.contains(&server));
        let of_host = self.specs().into_iter().filter(is_of_host);
        self.listed = of_host.map(|spec| ToolSpec { is_deferred: false, ..spec }).collect();
        self.listed.clone()
    }

    /// Servers and their states, as session descriptions name them.
    pub(crate) fn describe(&self) -> Vec<McpServerInfo> {
        let status = |state: &ServerState| match state {
            ServerState::Starting => "pending",
            ServerState::Ready { .. } => "connected",
            ServerState::Failed(_) | ServerState::Gone(_) => "failed",
        };
        let states = self.servers.states().into_iter();
        states
            .map(|(name, state)| McpServerInfo { name, status: SmolStr::new_static(status(&state)) })
            .collect()
    }

    /// Stops the servers unless they are shared.
    pub(crate) fn stop(&self) {
        if !self.is_shared {
            self.servers.stop();
        }
    }

    /// Tools of the servers that the catalog names.
    pub(crate) fn tools(&self, catalog: &ToolCatalog) -> Vec<Box<dyn ToolHandler>> {
        server_tools::of_servers(&self.servers, catalog)
    }

    /// Waits for a starting server; returns whether one more is ready or has failed.
    pub(crate) fn await_one(&self, cancel: &CancelToken) -> bool {
        self.servers.wait_for_server(AWAITED, cancel)
    }

    /// Explanation for servers without tools.
    pub(crate) fn missing(&self) -> Option<String> {
        let told = self.servers.states().into_iter().filter_map(|(name, state)| match state {
            ServerState::Starting => Some(format!("{name} is still coming up")),
            ServerState::Failed(why) => Some(format!("{name} did not come up ({})", first_line(&why))),
            ServerState::Gone(why) => Some(format!("{name} is gone ({})", first_line(&why))),
            ServerState::Ready { .. } => None,
        });
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| format!("Of the MCP servers, {}.", told.join("; ")))
    }

    /// Tool specifications of all servers, without those that the prefix lists.
    pub(crate) fn specs(&self) -> Vec<ToolSpec> {
        let offered = self.servers.tools().into_iter().map(|tool| ToolSpec {
            name: SmolStr::new(&tool.name),
            description: tool.description,
            schema: tool.schema,
            origin: ToolOrigin::Mcp { server: SmolStr::new(&tool.server) },
            is_deferred: true,
        });
        let is_listed = |spec: &ToolSpec| {
            self.listed.iter().any(|own| own.name == spec.name && own.origin == spec.origin)
        };
        let mut specs: Vec<ToolSpec> = offered.filter(|spec| !is_listed(spec)).collect();
        if !self.servers.resources().is_empty() {
            specs.extend(server_tools::resource_specs());
        }
        specs
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
