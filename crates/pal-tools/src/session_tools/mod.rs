//! Tools for the session itself: todo list, skills, plan mode; and definitions of skills, agents and output styles.

mod agent_definitions;
mod definition_stamp;
mod front_matter;
mod output_styles;
mod plan_mode;
mod skill_files;
mod skill_tool;
mod todo_tool;

pub use agent_definitions::{AgentDefinition, agent_definitions};
pub use definition_stamp::definition_stamp;
pub use output_styles::output_styles;
pub use plan_mode::{EnterPlanModeTool, ExitPlanModeTool};
pub use skill_files::{SkillInfo, available_skills, skill_text};
pub use skill_tool::{SkillTool, skill_prompt, user_skills};
pub use todo_tool::{TodoTool, open_todos};
