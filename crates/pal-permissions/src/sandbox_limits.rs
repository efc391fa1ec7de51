//! Limits for actions that no rule allows: they apply to commands, file tools and web pages alike.

use std::path::PathBuf;

/// Permissions that need neither a rule nor a confirmation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SandboxLimits {
    /// Availability of a sandbox for commands.
    pub state: SandboxState,
    /// Folders besides the roots that are writable in bypass mode.
    pub writable: Vec<PathBuf>,
    /// True if bypass mode may use the network.
    pub network: bool,
}

/// Availability of a sandbox for commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SandboxState {
    /// A sandbox works on this machine.
    #[default]
    Available,
    /// This machine has no sandbox: commands that would run in one ask.
    Unavailable,
    /// The user switched it off: commands that would run in one ask, and bypass mode is unlimited.
    Off,
}

/// Sandbox level of a command, strictest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SandboxLevel {
    /// Not allowed by any rule: reads the project without credentials, writes nothing, and has no network.
    ReadOnly,
    /// Allowed by the mode: writes in the project and to temporary files; network only if settings allow it.
    WorkspaceWrite,
    /// Allowed by a rule: unlimited, but guarded paths are read-only and credentials hidden.
    Guarded,
    /// Confirmed by the user, or a rule allows a program that needs credentials.
    Full,
}
