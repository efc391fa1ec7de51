//! An agent: a session that a model works on with tools, under permissions and hooks.
//!
//! [`Agent`] joins the engine with a provider, tools, permissions and hooks, and reports everything as plain
//! [`pal_events::AgentEvent`]s. It runs on the calling thread; an [`AgentHandle`] steers and interrupts it from
//! others.

mod agent;
mod agent_commands;
mod agent_handle;
mod agent_inbox;
mod agent_runtime;
mod agent_start;
mod approved_plan;
mod background_tasks;
mod conversation_model;
mod day_budget;
mod disk_output_limit;
mod error;
mod event_sink;
mod failure_advice;
mod hook_runner;
mod hook_tool_response;
mod idle_session;
mod model_fallback;
mod model_settings;
mod options;
mod parent_agent;
mod pause_recorder;
mod pending_entries;
mod permission_checker;
mod project_context;
mod prompt_mentions;
mod restored_files;
mod rewind;
mod rewind_mark;
mod session_directory;
mod session_mcp;
mod session_open;
mod session_presence;
mod session_shell;
mod session_switches;
mod session_tools;
mod subagents;
mod teammate_session;
mod todo_reminder;
mod tool_job;
mod tool_runner;
mod user_shell;

pub use agent::Agent;
pub use agent_commands::CompactionPreview;
pub use agent_handle::AgentHandle;
pub use approved_plan::approved_plan;
pub use error::AgentError;
pub use idle_session::{CacheLifetime, IdleOutcome};
pub use model_settings::{cache_settings, learned_limits, run_settings, ttl_preference};
pub use options::{
    AgentOptions, BackgroundOptions, McpOptions, MemoryOptions, ModelLookup, ModelOptions, ModelProfile,
    OutputCheck, OutputSchema, PauseOptions, PermissionOptions, PromptOptions, SessionOrigin,
    SubagentOptions, TeammateCommand, ToolOptions,
};
pub use parent_agent::{MessagePurpose, ParentAgent};
pub use restored_files::{directory_around, restored_file};
pub use rewind::RewindReport;
pub use rewind_mark::RewindScope;
pub use session_directory::{is_same_directory, session_directory};
pub use session_presence::{SendError, SendReceipt, SessionPresence, restart_server, send};
pub use session_switches::apply_switches;
pub use subagents::{SubagentStatus, SubagentsHandle, TeammateAssignment};
pub use teammate_session::work_as_teammate;
pub use user_shell::UserCommandOutput;
