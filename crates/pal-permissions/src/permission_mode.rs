//! Permission modes of a session.

use std::fmt;
use std::str::FromStr;

/// Extent of actions that need no confirmation. Deny and ask rules hold in every mode.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum PermissionMode {
    /// Allows reading; asks before changing files or running commands.
    #[default]
    Default,
    /// Allows changing project files; asks before running commands.
    AcceptEdits,
    /// Allows reading; denies all changes.
    Plan,
    /// Never asks; the sandbox limits commands.
    Bypass,
}

/// Error for an unknown mode name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown permission mode `{0}`; use `default`, `accept-edits`, `plan` or `bypass`")]
pub struct UnknownPermissionMode(String);

impl PermissionMode {
    /// All modes, the default first.
    pub const ALL: [PermissionMode; 4] =
        [PermissionMode::Default, PermissionMode::AcceptEdits, PermissionMode::Plan, PermissionMode::Bypass];

    /// Name in settings and flags.
    pub fn name(self) -> &'static str {
        match self {
            PermissionMode::Default => "default",
            PermissionMode::AcceptEdits => "accept-edits",
            PermissionMode::Plan => "plan",
            PermissionMode::Bypass => "bypass",
        }
    }

    /// Name in scripts written for Claude Code.
    pub fn claude_code_name(self) -> &'static str {
        match self {
            PermissionMode::Default => "default",
            PermissionMode::AcceptEdits => "acceptEdits",
            PermissionMode::Plan => "plan",
            PermissionMode::Bypass => "bypassPermissions",
        }
    }
}

impl fmt::Display for PermissionMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for PermissionMode {
    type Err = UnknownPermissionMode;

    fn from_str(name: &str) -> Result<PermissionMode, UnknownPermissionMode> {
        let found = PermissionMode::ALL
            .into_iter()
            .find(|mode| mode.name() == name || mode.claude_code_name() == name);
        found.ok_or_else(|| UnknownPermissionMode(String::from(name)))
    }
}
