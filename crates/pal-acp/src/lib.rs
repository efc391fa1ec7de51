//! The agent's side of the Agent Client Protocol, version 1, over standard input and output or another transport.
//!
//! [`serve`] and [`serve_transport`] serve one client until it disconnects. Every session runs on its own thread with its own
//! [`pal_agent::Agent`]; the connection only dispatches messages and never blocks on a session. An [`AgentHost`] configures
//! the agents.
//!
//! `session_updates` turns the events of a session into updates, in order; the response to a prompt follows all updates that
//! belong to it.

mod acp_server;
mod acp_session;
mod agent_host;
mod agent_opening;
mod client_mcp_servers;
mod methods;
mod mode_list;
mod open_responder;
mod permission_requests;
mod prompt_content;
mod question_forms;
mod replay;
mod session_updates;
mod session_worker;
mod stdio_lines;
mod tool_calls;

pub use acp_server::{ServeError, serve, serve_transport};
pub use agent_host::{
    AgentHost, CommandReply, EditorCommand, EditorCommands, EventObserver, HostError, ListedSession,
    SessionRequest, SessionSetup,
};
