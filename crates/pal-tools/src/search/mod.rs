//! Tools that search files by content and by name.

mod file_search;
mod file_walk;
mod glob_tool;
mod grep_tool;

pub use glob_tool::GlobTool;
pub use grep_tool::GrepTool;
