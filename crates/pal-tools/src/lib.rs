//! The agent's own tools: files, searches, shell, pages.
//!
//! What the model is told of each stands in `pal-prompt`; here they are carried out. A tool says first what it would do
//! ([`Tool::needs`]), so that permissions can be asked, and then does it ([`Tool::run`]).

mod files;
mod input;
mod output;
mod paths;
mod quoted;
mod search;
mod session;
mod shell;
mod tool;
mod web;
mod workspace;

pub use files::{Edit, Read, Write, file_seen};
pub use input::Input;
pub use output::Output;
pub use search::{Glob, Grep};
pub use session::{
    AgentInfo, EnterPlanMode, ExitPlanMode, Skill, SkillInfo, Todo, agents, open_todos, skill_text, skills,
};
pub use shell::{Bash, BashOutput, KillBash, Sandbox, SandboxConfig, Shell, open_variables, shell_tools};
pub use tool::{Running, Tool};
pub use web::WebFetch;
pub use workspace::{Abilities, Hidden, Keeper, Kept, Workspace};

/// The tools for files, searches, pages and the session itself, by name.
pub fn tools() -> Vec<Box<dyn Tool>> {
    vec![
        Box::new(Edit),
        Box::new(EnterPlanMode),
        Box::new(ExitPlanMode),
        Box::new(Glob),
        Box::new(Grep),
        Box::new(Read),
        Box::new(Skill),
        Box::new(Todo),
        Box::new(WebFetch),
        Box::new(Write),
    ]
}

/// The tool with this name.
pub fn find<'a>(tools: &'a [Box<dyn Tool>], name: &str) -> Option<&'a dyn Tool> {
    tools.iter().find(|tool| tool.name() == name).map(AsRef::as_ref)
}
