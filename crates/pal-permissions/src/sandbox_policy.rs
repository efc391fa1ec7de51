//! The one policy for what nobody was asked about: commands, file tools and pages are held to it alike.

use std::path::PathBuf;

/// What may be done without a rule or a person's yes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SandboxPolicy {
    /// Whether commands can be put into a sandbox.
    pub state: SandboxState,
    /// Folders besides the roots that may be written in bypass mode.
    pub writable: Vec<PathBuf>,
    /// Whether the network may be reached in bypass mode.
    pub network: bool,
}

/// Whether commands can be put into a sandbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SandboxState {
    /// They can.
    #[default]
    Available,
    /// This machine has no sandbox: what would run in one is asked about.
    Unavailable,
    /// A person switched it off: what would run in one is asked about, and bypass mode is held to nothing.
    Off,
}

/// How much room a command gets, from the least on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SandboxLevel {
    /// Nobody allowed it: it sees the project without credentials, writes nothing, and reaches no network.
    ReadOnly,
    /// The mode allows changes: it writes in the project and to temporary files, and reaches the network only if
    /// settings say so.
    WorkspaceWrite,
    /// A rule allows it: it does what it likes, but guarded paths are read-only and credentials out of sight.
    Guarded,
    /// A person saw it and said yes, or a rule allows a program that works with credentials by itself.
    Full,
}
