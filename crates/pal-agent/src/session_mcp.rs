//! MCP servers of a session and their tools.
//!
//! No request lists the tools of servers: `ToolSearch` and `CallTool` are in the prefix from the start, and
//! announcements say what comes and goes. So servers never invalidate the prompt cache.

mod server_tools;

use std::sync::Arc;
use std::time::Duration;

use pal_mcp::{ServerPool, ServerState};
use pal_process::CancelToken;
use pal_prompt::{ToolCatalog, ToolOrigin, ToolSpec};
use pal_settings::KillSwitch;
use pal_tools::ToolHandler;
use smol_str::SmolStr;

use crate::options::AgentOptions;

/// Time after the start during which a tool search waits for servers.
const AWAITED: Duration = Duration::from_secs(10);

/// The servers and their last known tools.
pub(crate) struct McpServers {
    pub(crate) servers: Arc<ServerPool>,
    /// Last known tools, to detect changes.
    pub(crate) seen: Vec<ToolSpec>,
    /// Whether the user knows that this session cannot use them yet.
    pub(crate) is_excused: bool,
    /// Whether they belong to the parent agent, which stops them.
    is_shared: bool,
}

/// Names of the configured servers.
pub(crate) fn names(options: &AgentOptions) -> Vec<SmolStr> {
    if options.switches.is_off(KillSwitch::Mcp) {
        return Vec::new();
    }
    let mut names: Vec<SmolStr> =
        options.mcp.servers.iter().map(|server| SmolStr::new(&server.name)).collect();
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
        };
        let shared = options.mcp.shared.clone();
        let is_shared = shared.is_some();
        McpServers {
            servers: shared.unwrap_or_else(|| Arc::new(ServerPool::start(configs, settings))),
            seen: Vec::new(),
            is_excused: false,
            is_shared,
        }
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

    /// Tool specifications of all servers.
    pub(crate) fn specs(&self) -> Vec<ToolSpec> {
        let offered = self.servers.tools().into_iter().map(|tool| ToolSpec {
            name: SmolStr::new(&tool.name),
            description: tool.description,
            schema: tool.schema,
            origin: ToolOrigin::Mcp { server: SmolStr::new(&tool.server) },
            is_deferred: true,
        });
        let mut specs: Vec<ToolSpec> = offered.collect();
        if !self.servers.resources().is_empty() {
            specs.extend(server_tools::resource_specs());
        }
        specs
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
