//! MCP server on standard input and output.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer, serve_server};

use crate::server::memory_service::MemoryService;
use crate::server::tool_definitions::{INSTRUCTIONS, tools};

/// Maximum characters of a client's name.
const CLIENT_NAME_CHARS_MAX: usize = 60;

/// Serves one client on standard input and output until it disconnects.
pub fn serve_stdio(offer: MemoryService) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let served = runtime.block_on(async {
        let server = MemoryServer { offer: Arc::new(offer) };
        let running = serve_server(server, rmcp::transport::stdio()).await;
        let running = running.map_err(|error| format!("the client did not begin: {error}"))?;
        running.waiting().await.map(|_| ()).map_err(|error| error.to_string())
    });
    // Do not wait for a thread that is blocked on standard input.
    runtime.shutdown_background();
    served
}

struct MemoryServer {
    offer: Arc<MemoryService>,
}

impl ServerHandler for MemoryServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("palimpsest", &*self.offer.version))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools(self.offer.is_read_only)))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools(self.offer.is_read_only).into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let client = client(&context);
        let offer = Arc::clone(&self.offer);
        // Run file access on another thread, so that the connection stays responsive.
        let called = tokio::task::spawn_blocking(move || {
            offer.call(&client, &request.name, request.arguments.unwrap_or_default())
        });
        let done = called.await.unwrap_or_else(|_| Err(String::from("the call broke down")));
        Ok(match done {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]).into(),
            Err(why) => CallToolResult::error(vec![ContentBlock::text(why)]).into(),
        })
    }
}

/// Name of the client, restricted to characters that are safe in a history.
fn client(context: &RequestContext<RoleServer>) -> String {
    let info = context.peer.peer_info();
    let name = info.map(|info| format!("{} {}", info.client_info.name, info.client_info.version));
    let is_plain = |letter: &char| letter.is_alphanumeric() || " ._-/+".contains(*letter);
    let name: String =
        name.unwrap_or_default().chars().filter(is_plain).take(CLIENT_NAME_CHARS_MAX).collect();
    if name.trim().is_empty() { String::from("client") } else { name.trim().to_owned() }
}
