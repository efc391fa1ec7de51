//! MCP servers that a client passes to a session.

use std::collections::BTreeMap;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{EnvVariable, HttpHeader, McpServer};
use pal_mcp::{McpServerConfig, ServerTransport};

use crate::agent_host::invalid_params;

/// Configuration source shown for these servers.
const PLACE: &str = "the editor";

/// Converts the client's server descriptions.
pub(crate) fn servers(given: Vec<McpServer>) -> Result<Vec<McpServerConfig>, Error> {
    given.into_iter().map(server).collect()
}

fn server(given: McpServer) -> Result<McpServerConfig, Error> {
    let (name, reach) = match given {
        McpServer::Stdio(program) => {
            let reach = ServerTransport::Stdio {
                command: program.command.display().to_string(),
                arguments: program.args,
                variables: program
                    .env
                    .into_iter()
                    .map(|EnvVariable { name, value, .. }| (name, value))
                    .collect(),
                directory: None,
            };
            (program.name, reach)
        }
        McpServer::Http(http) => (http.name, address(http.url, http.headers, false)),
        McpServer::Sse(sse) => (sse.name, address(sse.url, sse.headers, true)),
        _ => {
            return Err(invalid_params("this MCP server has an unsupported transport; use stdio or http"));
        }
    };
    if name.is_empty() {
        return Err(invalid_params("an MCP server has no name"));
    }
    Ok(McpServerConfig {
        name,
        transport: reach,
        start_limit: None,
        call_limit: None,
        source: PLACE.to_owned(),
    })
}

fn address(url: String, headers: Vec<HttpHeader>, is_event_stream: bool) -> ServerTransport {
    let headers: BTreeMap<String, String> =
        headers.into_iter().map(|HttpHeader { name, value, .. }| (name, value)).collect();
    ServerTransport::Http { url, headers, is_event_stream }
}
