//! Error of commands that could not run in the sandbox.

use std::fmt;

/// Error when a command could not run in the sandbox.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SandboxError {
    /// Cause of the failure.
    pub why: String,
}

impl fmt::Display for SandboxError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "the command did not run: no sandbox could be put around it ({}). Install bubblewrap, use a Linux kernel \
             with Landlock, or turn the sandbox off in the settings",
            self.why
        )
    }
}

impl std::error::Error for SandboxError {}
