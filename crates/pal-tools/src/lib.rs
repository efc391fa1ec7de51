//! The agent's own tools: files, searches, shell, pages.
//!
//! What the model is told of each stands in `pal-prompt`; here they are carried out. A tool says first what it would do
//! ([`Tool::needs`]), so that permissions can be asked, and then does it ([`Tool::run`]).

mod output;
mod tool;
mod workspace;

pub use output::Output;
pub use tool::{Input, Running, Tool};
pub use workspace::{Abilities, Workspace};
