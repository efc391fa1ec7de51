//! How much a session does without asking.

use std::fmt;
use std::str::FromStr;

/// How much a session does without asking. Rules that deny or ask hold in every mode.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Mode {
    /// Looks around freely; asks before it changes or runs anything.
    #[default]
    Default,
    /// Changes files of the project freely; asks before it runs anything.
    AcceptEdits,
    /// Looks around and changes nothing.
    Plan,
    /// Asks nothing.
    Bypass,
}

/// A name that is no mode.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is no permission mode: there are `default`, `accept-edits`, `plan` and `bypass`")]
pub struct UnknownMode(String);

impl Mode {
    /// All modes, from the most ordinary one.
    pub const ALL: [Mode; 4] = [Mode::Default, Mode::AcceptEdits, Mode::Plan, Mode::Bypass];

    /// The name in settings and flags.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Default => "default",
            Mode::AcceptEdits => "accept-edits",
            Mode::Plan => "plan",
            Mode::Bypass => "bypass",
        }
    }

    /// The name that scripts written for Claude Code know.
    pub fn foreign_name(self) -> &'static str {
        match self {
            Mode::Default => "default",
            Mode::AcceptEdits => "acceptEdits",
            Mode::Plan => "plan",
            Mode::Bypass => "bypassPermissions",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(name: &str) -> Result<Mode, UnknownMode> {
        let found = Mode::ALL.into_iter().find(|mode| mode.name() == name || mode.foreign_name() == name);
        found.ok_or_else(|| UnknownMode(String::from(name)))
    }
}
