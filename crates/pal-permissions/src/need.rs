//! What a call would do, as far as permissions are about it.

use std::path::PathBuf;

/// One thing that a call would do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Need {
    /// Look at a file or folder.
    Read(Target),
    /// Create or change a file.
    Write(Target),
    /// Run a command line in a shell.
    Run(String),
    /// Fetch a page.
    Fetch(String),
    /// Something else that only the tool's name describes, such as a call of a server's tool.
    Use,
}

/// A file or folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// As the model named it.
    pub named: String,
    /// Where it really is: absolute, links followed as far as it exists, nothing of `.` and `..` left.
    pub real: PathBuf,
}
