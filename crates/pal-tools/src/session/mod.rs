//! The tools that are about the session itself: what is to be done, how to do it, whether to plan first.

mod agents;
mod front_matter;
mod plan;
mod skill;
mod skills;
mod todo;

pub use agents::{AgentInfo, agents};
pub use plan::{EnterPlanMode, ExitPlanMode};
pub use skill::Skill;
pub use skills::{SkillInfo, skill_text, skills};
pub use todo::{Todo, open_todos};
