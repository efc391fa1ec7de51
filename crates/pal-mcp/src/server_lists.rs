//! Reads the tools, resources and prompts of a server, page by page and bounded.

use std::sync::Arc;
use std::time::Duration;

use pal_model::SharedText;
use rmcp::RoleClient;
use rmcp::model::{JsonObject, PaginatedRequestParams, Prompt, Resource, ResourceTemplate, Tool};
use rmcp::service::Peer;
use tokio::time::timeout;

use crate::clean_text::{DESCRIPTION_MAX, NAME_MAX, clean, one_line};
use crate::server_state::{McpPrompt, McpResource, McpTool, ServerLists};

/// Maximum items of one list, and maximum pages.
const ITEMS_MAX: usize = 500;
const PAGES_MAX: usize = 50;
/// Maximum bytes of a schema and of a URI.
const SCHEMA_BYTES_MAX: usize = 100 * 1024;
const URI_BYTES_MAX: usize = 2 * 1024;

/// Reads all pages of a list; `$of` names its field.
macro_rules! all {
    ($peer:expr, $list:ident, $of:ident) => {{
        let mut items = Vec::new();
        let mut cursor = None;
        for _ in 0..PAGES_MAX {
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            let page = $peer.$list(Some(params)).await.map_err(|error| error.to_string())?;
            items.extend(page.$of);
            cursor = page.next_cursor;
            if cursor.is_none() || items.len() >= ITEMS_MAX {
                break;
            }
        }
        items.truncate(ITEMS_MAX);
        items
    }};
}

/// Reads all lists that the server supports. Tools are required; failures of the others are ignored.
pub(crate) async fn read_lists(
    server: &str,
    peer: &Peer<RoleClient>,
    limit: Duration,
) -> Result<ServerLists, String> {
    let info = peer.peer_info();
    let has = |which: fn(&rmcp::model::ServerCapabilities) -> bool| {
        info.as_ref().is_some_and(|info| which(&info.capabilities))
    };
    let mut lists = ServerLists::default();
    if has(|can| can.tools.is_some()) {
        let tools = timeout(limit, tools(server, peer)).await;
        lists.tools = tools.map_err(|_| String::from("it did not list its tools in time"))??;
    }
    if has(|can| can.resources.is_some()) {
        lists.resources =
            timeout(limit, resources(server, peer)).await.unwrap_or(Ok(Vec::new())).unwrap_or_default();
    }
    if has(|can| can.prompts.is_some()) {
        lists.prompts =
            timeout(limit, prompts(server, peer)).await.unwrap_or(Ok(Vec::new())).unwrap_or_default();
    }
    Ok(lists)
}

async fn tools(server: &str, peer: &Peer<RoleClient>) -> Result<Vec<McpTool>, String> {
    let tools = all!(peer, list_tools, tools);
    // The server's order is arbitrary and may change.
    let mut tools: Vec<McpTool> = tools.iter().filter_map(|tool| offered(server, tool)).collect();
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    tools.dedup_by(|one, other| one.name == other.name);
    Ok(tools)
}

fn offered(server: &str, tool: &Tool) -> Option<McpTool> {
    // A name that had to be cleaned could not be called.
    if tool.name.is_empty() || tool.name.len() > NAME_MAX || tool.name.contains(char::is_control) {
        return None;
    }
    let title = tool.title.as_deref().or(tool.annotations.as_ref().and_then(|notes| notes.title.as_deref()));
    let description = tool.description.as_deref().filter(|words| !words.trim().is_empty());
    Some(McpTool {
        server: server.to_owned(),
        name: tool.name.to_string(),
        description: clean(description.or(title).unwrap_or_default(), DESCRIPTION_MAX),
        schema: schema(&tool.input_schema)?,
        is_read_only: tool.annotations.as_ref().and_then(|notes| notes.read_only_hint).unwrap_or(false),
    })
}

fn schema(schema: &Arc<JsonObject>) -> Option<SharedText> {
    let text = serde_json::to_string(schema.as_ref()).ok()?;
    (text.len() <= SCHEMA_BYTES_MAX).then(|| SharedText::from(text))
}

async fn resources(server: &str, peer: &Peer<RoleClient>) -> Result<Vec<McpResource>, String> {
    let resources: Vec<Resource> = all!(peer, list_resources, resources);
    let mut offered: Vec<McpResource> = resources
        .into_iter()
        .map(|resource| McpResource {
            server: server.to_owned(),
            name: one_line(resource.title.as_deref().unwrap_or(&resource.name), NAME_MAX),
            description: clean(resource.description.as_deref().unwrap_or_default(), DESCRIPTION_MAX),
            mime_type: resource.mime_type.map(|kind| one_line(&kind, NAME_MAX)),
            uri: resource.uri,
            is_template: false,
        })
        .collect();
    let templates: Result<Vec<ResourceTemplate>, String> =
        async { Ok(all!(peer, list_resource_templates, resource_templates)) }.await;
    offered.extend(templates.unwrap_or_default().into_iter().map(|template| McpResource {
        server: server.to_owned(),
        name: one_line(template.title.as_deref().unwrap_or(&template.name), NAME_MAX),
        description: clean(template.description.as_deref().unwrap_or_default(), DESCRIPTION_MAX),
        mime_type: template.mime_type.map(|kind| one_line(&kind, NAME_MAX)),
        uri: template.uri_template,
        is_template: true,
    }));
    offered.retain(|resource| {
        !resource.uri.is_empty()
            && resource.uri.len() <= URI_BYTES_MAX
            && !resource.uri.contains(char::is_control)
    });
    offered.sort_by(|one, other| (one.is_template, &one.uri).cmp(&(other.is_template, &other.uri)));
    Ok(offered)
}

async fn prompts(server: &str, peer: &Peer<RoleClient>) -> Result<Vec<McpPrompt>, String> {
    let prompts: Vec<Prompt> = all!(peer, list_prompts, prompts);
    let offered = |prompt: Prompt| McpPrompt {
        server: server.to_owned(),
        description: clean(
            prompt.description.as_deref().or(prompt.title.as_deref()).unwrap_or_default(),
            DESCRIPTION_MAX,
        ),
        arguments: prompt
            .arguments
            .unwrap_or_default()
            .into_iter()
            .map(|argument| (one_line(&argument.name, NAME_MAX), argument.required.unwrap_or(false)))
            .collect(),
        name: prompt.name,
    };
    let mut prompts: Vec<McpPrompt> = prompts.into_iter().map(offered).collect();
    prompts.retain(|prompt| !prompt.name.is_empty() && prompt.name.len() <= NAME_MAX);
    prompts.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(prompts)
}
