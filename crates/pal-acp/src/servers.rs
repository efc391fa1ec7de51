//! MCP servers that a client gives to a session.

use std::collections::BTreeMap;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{EnvVariable, HttpHeader, McpServer};
use pal_mcp::{Reach, ServerConfig};

use crate::host::wrong;

/// Where such a server is described.
const PLACE: &str = "the editor";

/// The servers of a client, as ours are described.
pub(crate) fn servers(given: Vec<McpServer>) -> Result<Vec<ServerConfig>, Error> {
    given.into_iter().map(server).collect()
}

fn server(given: McpServer) -> Result<ServerConfig, Error> {
    let (name, reach) = match given {
        McpServer::Stdio(program) => {
            let reach = Reach::Program {
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
            return Err(wrong(
                "this MCP server is reached in a way that pal does not know: stdio and http are known",
            ));
        }
    };
    if name.is_empty() {
        return Err(wrong("an MCP server has no name"));
    }
    Ok(ServerConfig { name, reach, start_limit: None, call_limit: None, place: PLACE.to_owned() })
}

fn address(url: String, headers: Vec<HttpHeader>, is_event_stream: bool) -> Reach {
    let headers: BTreeMap<String, String> =
        headers.into_iter().map(|HttpHeader { name, value, .. }| (name, value)).collect();
    Reach::Address { url, headers, is_event_stream }
}
