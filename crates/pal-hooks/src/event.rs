//! Events of a session.

use std::time::Duration;

/// An event at which hooks run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum EventName {
    /// A session starts, or goes on after it was resumed, cleared or compacted.
    SessionStart,
    /// A person said something that is about to be sent.
    UserPromptSubmit,
    /// A tool is about to be called.
    PreToolUse,
    /// A tool did what it was called for.
    PostToolUse,
    /// A tool failed.
    PostToolUseFailure,
    /// The conversation is about to be compacted.
    PreCompact,
    /// It was compacted.
    PostCompact,
    /// The model has nothing left to do.
    Stop,
    /// A subagent has nothing left to do.
    SubagentStop,
    /// A file of instructions was read.
    InstructionsLoaded,
    /// The session ends.
    SessionEnd,
}

/// Events of other programs that hooks may be written for and that do not happen here.
const ELSEWHERE: &[&str] = &[
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

impl EventName {
    /// All of them.
    pub const ALL: &[EventName] = &[
        EventName::SessionStart,
        EventName::UserPromptSubmit,
        EventName::PreToolUse,
        EventName::PostToolUse,
        EventName::PostToolUseFailure,
        EventName::PreCompact,
        EventName::PostCompact,
        EventName::Stop,
        EventName::SubagentStop,
        EventName::InstructionsLoaded,
        EventName::SessionEnd,
    ];

    /// Its name in settings and in what hooks read.
    pub fn name(self) -> &'static str {
        match self {
            EventName::SessionStart => "SessionStart",
            EventName::UserPromptSubmit => "UserPromptSubmit",
            EventName::PreToolUse => "PreToolUse",
            EventName::PostToolUse => "PostToolUse",
            EventName::PostToolUseFailure => "PostToolUseFailure",
            EventName::PreCompact => "PreCompact",
            EventName::PostCompact => "PostCompact",
            EventName::Stop => "Stop",
            EventName::SubagentStop => "SubagentStop",
            EventName::InstructionsLoaded => "InstructionsLoaded",
            EventName::SessionEnd => "SessionEnd",
        }
    }

    /// The event of this name.
    pub fn find(name: &str) -> Option<EventName> {
        EventName::ALL.iter().copied().find(|event| event.name() == name)
    }

    /// Whether another program knows an event of this name.
    pub(crate) fn is_elsewhere(name: &str) -> bool {
        ELSEWHERE.contains(&name)
    }

    /// Whether a hook may stop what is about to happen, or has it go on.
    pub fn can_block(self) -> bool {
        matches!(
            self,
            EventName::UserPromptSubmit
                | EventName::PreToolUse
                | EventName::PostToolUse
                | EventName::PreCompact
                | EventName::Stop
                | EventName::SubagentStop
        )
    }

    /// Whether plain text on standard output is for the model.
    pub(crate) fn takes_text(self) -> bool {
        matches!(self, EventName::SessionStart | EventName::UserPromptSubmit | EventName::PreCompact)
    }

    /// How long one hook may take unless it says otherwise.
    pub(crate) fn time_limit(self) -> Duration {
        match self {
            EventName::UserPromptSubmit => Duration::from_secs(30),
            EventName::SessionEnd => Duration::from_millis(1_500),
            _ => Duration::from_secs(600),
        }
    }
}
