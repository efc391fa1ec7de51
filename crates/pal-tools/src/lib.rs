//! Built-in tools of the agent: files, searches, shell, web pages.
//!
//! `pal-prompt` holds their descriptions for the model; this crate executes them. A tool first names the
//! access it needs ([`ToolHandler::required_access`]), so that permissions can be checked, and then runs
//! ([`ToolHandler::run`]).

mod changed_files;
mod file_checkpoints;
mod files;
mod output_files;
mod path_resolution;
mod restored_tags;
mod search;
mod session_tools;
mod shell;
mod tool_handler;
mod tool_input;
mod tool_output;
mod web;
mod workspace;
mod workspace_permissions;
mod workspace_sandbox;

pub use changed_files::{ChangedFile, take_changed_files};
pub use file_checkpoints::{FileCheckpoints, FileRestoration};
pub use files::{EditTool, NotebookEditTool, ReadTool, WriteTool, file_seen};
pub use output_files::store_output;
pub use search::{GlobTool, GrepTool};
pub use session_tools::{
    AgentDefinition, EnterPlanModeTool, ExitPlanModeTool, SkillInfo, SkillTool, TodoTool, agent_definitions,
    available_skills, definition_stamp, open_todos, output_styles, skill_prompt, skill_text, user_skills,
};
pub use shell::{
    BashOutputTool, BashTool, KillBashTool, SandboxConfig, SessionSandbox, Shell, shell_tools,
    visible_variables,
};
pub use tool_handler::{ToolContext, ToolHandler};
pub use tool_input::ToolInput;
pub use tool_output::ToolOutput;
pub use web::WebFetchTool;
pub use workspace::{
    HiddenFiles, MediaSupport, PluginDefinitions, RecordedFolder, RecordedWrite, VersionKeeper, Workspace,
};
pub use workspace_permissions::{hidden_files, judge_access, with_permission_context};
pub use workspace_sandbox::{SandboxOptions, sandbox_limits, workspace_sandbox};

/// Tools for files, searches, web pages and the session itself, sorted by name.
pub fn builtin_tools() -> Vec<Box<dyn ToolHandler>> {
    vec![
        Box::new(EditTool),
        Box::new(EnterPlanModeTool),
        Box::new(ExitPlanModeTool),
        Box::new(GlobTool),
        Box::new(GrepTool),
        Box::new(NotebookEditTool),
        Box::new(ReadTool),
        Box::new(SkillTool),
        Box::new(TodoTool),
        Box::new(WebFetchTool),
        Box::new(WriteTool),
    ]
}

/// Finds a tool by name.
pub fn find_tool<'a>(tools: &'a [Box<dyn ToolHandler>], name: &str) -> Option<&'a dyn ToolHandler> {
    tools.iter().find(|tool| tool.name() == name).map(AsRef::as_ref)
}
