//! Calls of tools that look into the session itself, and the tools of MCP servers.

use std::sync::Arc;

use pal_engine::{Session, SessionConfig};
use pal_model::{ContentBlock, EntryBody, EntryId, LogEntry, MessageOrigin, SharedText};
use pal_prompt::{CALL_TOOL, McpInstructions, TOOL_SEARCH, ToolCatalog, ToolSpec};
use pal_run::{ToolCall, ToolCallResult};
use pal_tools::{Shell, ToolHandler};

use crate::agent_runtime::AgentRuntime;
use crate::session_mcp::McpServers;
use crate::session_tools;
use crate::session_tools::question_tool::AskUserQuestionTool;
use crate::session_tools::structured_output::StructuredOutput;
use crate::session_tools::web_search_tool::WebSearchTool;
use crate::session_tools::{context_tool, recall_tool};
use crate::subagents::{AgentTool, SendMessageTool, Subagents};
use crate::tool_runner::ToolRunner;

/// Entries of the newest prompt and of the response that makes the call.
fn newest_words(session: &Session) -> Vec<EntryId> {
    let branch = session.view().branch();
    let is_prompt = |entry: &&LogEntry| matches!(&entry.body, EntryBody::User(user) if user.origin == MessageOrigin::Person);
    let prompt = branch.iter().rev().find(is_prompt);
    let response = branch.iter().rev().take_while(|entry| !matches!(entry.body, EntryBody::User(_)));
    prompt.into_iter().chain(response).map(|entry| entry.id).collect()
}

impl AgentRuntime<'_> {
    /// Executes a call of a session tool.
    pub(crate) fn look_inside(
        &mut self,
        session: &mut Session,
        config: &SessionConfig,
        call: &ToolCall,
    ) -> ToolCallResult {
        let done = match call.name.as_str() {
            session_tools::RECALL => recall_tool::recall(
                (&self.project.log, &newest_words(session)),
                &call.input,
                self.clock.now(),
                &self.inbox.handle.cancel(),
            )
            .map(|text| vec![ContentBlock::text(&text)]),
            session_tools::CONTEXT => {
                self.report_context(session, config, call).map(|text| vec![ContentBlock::text(&text)])
            }
            TOOL_SEARCH => self.search_tools(session, call),
            _ => Err(String::from(
                "CallTool calls tools that ToolSearch found. There are none here that cannot be called by their own name.",
            )),
        };
        let is_error = done.is_err();
        let content = done.unwrap_or_else(|why| vec![ContentBlock::text(&why)]);
        ToolCallResult::plain(&call.id, content, is_error)
    }

    fn report_context(
        &mut self,
        session: &Session,
        config: &SessionConfig,
        call: &ToolCall,
    ) -> Result<String, String> {
        let wanted: context_tool::ContextToolInput =
            serde_json::from_str(&call.input).map_err(|error| format!("the input does not fit: {error}"))?;
        let text = context_tool::told(session.view(), &config.limits, &wanted);
        if wanted.compact {
            self.pending.compaction = Some(wanted.instructions);
        }
        Ok(text)
    }

    fn search_tools(&mut self, session: &Session, call: &ToolCall) -> Result<Vec<ContentBlock>, String> {
        let input = pal_tools::ToolInput(call.input.clone());
        let query = input.text("query").ok_or("give a `query`: what the tool shall do")?;
        self.poll_servers(session);
        // `select:` must find all named tools; any other query needs one match.
        let wanted = query.trim().strip_prefix("select:").map_or(1, |names| names.split(',').count());
        while self.tools.catalog.search(&query).len() < wanted
            && self.mcp.await_one(&self.inbox.handle.cancel())
        {
            self.poll_servers(session);
        }
        let found = self.tools.catalog.search(&query);
        let mut blocks = self.tools.catalog.render_search_result(&self.model.card, &found).blocks().to_vec();
        if found.is_empty() {
            blocks.extend(self.mcp.missing().map(|text| ContentBlock::text(&text)));
        }
        Ok(blocks)
    }

    /// Updates the catalog with the tools that servers offer now, if the requests of this session can reach
    /// them.
    pub(crate) fn poll_servers(&mut self, session: &Session) {
        self.announce_servers();
        let specs = self.mcp.specs();
        let has_way = session.view().prefix().is_some_and(|prefix| lists_way(&prefix.tools));
        if !has_way {
            self.excuse(&specs);
            return;
        }
        let said = self.mcp.servers.instructions();
        self.project.servers =
            said.into_iter().map(|(server, text)| McpInstructions { server, text }).collect();
        if specs == self.mcp.seen {
            return;
        }
        self.tools.catalog.set_late_tools(&specs);
        let ToolRunner { shell, catalog, output, .. } = &self.tools;
        let all = all_tools(&self.mcp, shell, &self.subagents, catalog, output.as_ref());
        self.tools.all = Arc::new(all);
        self.mcp.seen = specs;
    }

    /// Reports changes of servers to the user.
    pub(crate) fn announce_servers(&mut self) {
        for notice in self.mcp.servers.take_changes() {
            self.events.notice(notice);
        }
    }

    /// Tells the user once that a session that started without servers cannot use them before its next
    /// compaction.
    fn excuse(&mut self, specs: &[ToolSpec]) {
        if !specs.is_empty() && !self.mcp.is_excused {
            self.mcp.is_excused = true;
            let text = "this session began without MCP servers; their tools join it with its next compaction, or are there at once \
                        in a new session";
            self.events.notice(text.to_owned());
        }
    }
}

/// Returns whether a tool list contains the dispatcher.
fn lists_way(tools: &SharedText) -> bool {
    tools.contains(&format!("\"name\":\"{CALL_TOOL}\""))
}

/// All tools that can be executed: the built-in ones, and those of MCP servers in the catalog.
pub(crate) fn all_tools(
    mcp: &McpServers,
    shell: &Arc<Shell>,
    subagents: &Arc<Subagents>,
    catalog: &ToolCatalog,
    output: Option<&StructuredOutput>,
) -> Vec<Box<dyn ToolHandler>> {
    let mut all = pal_tools::builtin_tools();
    all.extend(output.map(StructuredOutput::tool));
    all.extend(pal_tools::shell_tools(shell));
    all.push(Box::new(AgentTool(Arc::clone(subagents))));
    all.push(Box::new(AskUserQuestionTool));
    all.push(Box::new(SendMessageTool(Arc::clone(subagents))));
    if let Some(search) = WebSearchTool::new(&subagents.template, &subagents.sender) {
        all.push(Box::new(search));
    }
    all.extend(mcp.tools(catalog));
    all
}
