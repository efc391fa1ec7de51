//! Names of hook events.

use std::time::Duration;

/// Name of an event at which hooks run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum HookEventName {
    /// A session starts, or continues after a resume, clear or compaction.
    SessionStart,
    /// The user submitted a prompt.
    UserPromptSubmit,
    /// A tool is about to be called.
    PreToolUse,
    /// A tool succeeded.
    PostToolUse,
    /// A tool failed.
    PostToolUseFailure,
    /// The conversation is about to be compacted.
    PreCompact,
    /// The conversation was compacted.
    PostCompact,
    /// The model ended its turn.
    Stop,
    /// A subagent ended its turn.
    SubagentStop,
    /// An instruction file was loaded.
    InstructionsLoaded,
    /// The session ends.
    SessionEnd,
}

/// Events of other programs that never occur here.
const FOREIGN_EVENTS: &[&str] = &[
    "PostToolBatch",
    "Notification",
    "UserPromptExpansion",
    "StopFailure",
    "SubagentStart",
    "PreModelSwitch",
    "PostModelSwitch",
    "PermissionRequest",
    "PermissionDenied",
    "Setup",
    "TeammateIdle",
    "TaskCreated",
    "TaskCompleted",
    "Elicitation",
    "ElicitationResult",
    "ConfigChange",
    "WorktreeCreate",
    "WorktreeRemove",
    "CwdChanged",
    "FileChanged",
    "DirectoryAdded",
    "MessageDisplay",
];

impl HookEventName {
    /// All events.
    pub const ALL: &[HookEventName] = &[
        HookEventName::SessionStart,
        HookEventName::UserPromptSubmit,
        HookEventName::PreToolUse,
        HookEventName::PostToolUse,
        HookEventName::PostToolUseFailure,
        HookEventName::PreCompact,
        HookEventName::PostCompact,
        HookEventName::Stop,
        HookEventName::SubagentStop,
        HookEventName::InstructionsLoaded,
        HookEventName::SessionEnd,
    ];

    /// Name in settings and in hook input.
    pub fn name(self) -> &'static str {
        match self {
            HookEventName::SessionStart => "SessionStart",
            HookEventName::UserPromptSubmit => "UserPromptSubmit",
            HookEventName::PreToolUse => "PreToolUse",
            HookEventName::PostToolUse => "PostToolUse",
            HookEventName::PostToolUseFailure => "PostToolUseFailure",
            HookEventName::PreCompact => "PreCompact",
            HookEventName::PostCompact => "PostCompact",
            HookEventName::Stop => "Stop",
            HookEventName::SubagentStop => "SubagentStop",
            HookEventName::InstructionsLoaded => "InstructionsLoaded",
            HookEventName::SessionEnd => "SessionEnd",
        }
    }

    /// Event with this name.
    pub fn find(name: &str) -> Option<HookEventName> {
        HookEventName::ALL.iter().copied().find(|event| event.name() == name)
    }

    /// Returns whether another program has an event of this name.
    pub(crate) fn is_foreign(name: &str) -> bool {
        FOREIGN_EVENTS.contains(&name)
    }

    /// Returns whether a hook may block the event or make the model continue.
    pub(crate) fn can_block(self) -> bool {
        matches!(
            self,
            HookEventName::UserPromptSubmit
                | HookEventName::PreToolUse
                | HookEventName::PostToolUse
                | HookEventName::PreCompact
                | HookEventName::Stop
                | HookEventName::SubagentStop
        )
    }

    /// Returns whether plain text on standard output goes to the model.
    pub(crate) fn accepts_text(self) -> bool {
        matches!(
            self,
            HookEventName::SessionStart
                | HookEventName::UserPromptSubmit
                | HookEventName::PreCompact
                | HookEventName::PostCompact
        )
    }

    /// Default time limit of one hook.
    pub(crate) fn time_limit(self) -> Duration {
        match self {
            HookEventName::UserPromptSubmit => Duration::from_secs(30),
            HookEventName::SessionEnd => Duration::from_millis(1_500),
            _ => Duration::from_secs(600),
        }
    }
}
