//! Accesses of a tool call that need permission.

use std::path::PathBuf;

/// Access that a tool call needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ToolAccess {
    /// Read a file or folder.
    Read(TargetPath),
    /// Create or change a file.
    Write(TargetPath),
    /// Run a command line in a shell.
    Run(String),
    /// Fetch a web page.
    Fetch(String),
    /// Access described only by the tool's name, such as an MCP tool call.
    Use,
    /// Use of something that has a name: a skill, or a kind of agent. Allowed unless a rule says otherwise.
    Named(String),
}

/// File or folder as named and as resolved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TargetPath {
    /// Path as the model named it.
    pub named: String,
    /// Resolved path: absolute, links followed as far as it exists, without `.` and `..`.
    pub real: PathBuf,
}
