//! What happens, as hooks read it on standard input.

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::event::EventName;
use crate::hooks::Place;

/// What happens.
#[derive(Clone, Debug)]
pub enum Happening<'a> {
    /// A session starts.
    SessionStart {
        /// How: `startup`, `resume`, `clear`, `compact` or `fork`.
        source: &'a str,
        /// The model.
        model: Option<&'a str>,
        /// The session's title.
        title: Option<&'a str>,
        /// Tokens of its context.
        context_tokens: Option<u64>,
        /// How long ago the model answered last.
        since_last_response: Option<Duration>,
    },
    /// A person said something.
    UserPromptSubmit {
        /// What.
        prompt: &'a str,
        /// The session's title.
        title: Option<&'a str>,
    },
    /// A tool is about to be called.
    PreToolUse(Call<'a>),
    /// A tool did what it was called for.
    PostToolUse {
        /// The call.
        call: Call<'a>,
        /// What came of it.
        response: &'a Value,
        /// How long it took.
        took: Duration,
    },
    /// A tool failed.
    PostToolUseFailure {
        /// The call.
        call: Call<'a>,
        /// What went wrong.
        error: &'a str,
        /// Whether somebody interrupted it.
        is_interrupt: bool,
    },
    /// The conversation is about to be compacted.
    PreCompact {
        /// `manual` or `auto`.
        trigger: &'a str,
        /// What the user wants of the summary; may be empty.
        instructions: &'a str,
    },
    /// It was compacted.
    PostCompact {
        /// `manual` or `auto`.
        trigger: &'a str,
        /// The summary.
        summary: &'a str,
    },
    /// The model has nothing left to do.
    Stop {
        /// Whether a hook has already made it go on.
        is_hook_active: bool,
        /// What it said last.
        last_message: Option<&'a str>,
    },
    /// A subagent has nothing left to do; which one, [`Moment::agent`] says.
    SubagentStop {
        /// Whether a hook has already made it go on.
        is_hook_active: bool,
        /// What it said last.
        last_message: Option<&'a str>,
        /// Its log.
        transcript_path: &'a Path,
    },
    /// A file of instructions was read.
    InstructionsLoaded {
        /// Which.
        file_path: &'a Path,
        /// Whose: `User`, `Project`, `Local` or `Managed`.
        memory_type: &'a str,
        /// `session_start`, `nested_traversal`, `path_glob_match`, `include` or `compact`.
        load_reason: &'a str,
        /// The patterns of files that it waited for.
        globs: &'a [String],
    },
    /// The session ends.
    SessionEnd {
        /// Why: `clear`, `logout`, `prompt_input_exit` or `other`.
        reason: &'a str,
    },
}

/// A call of a tool.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The tool.
    pub tool_name: &'a str,
    /// What it is called with: a JSON object.
    pub input: &'a str,
    /// Which call.
    pub tool_use_id: &'a str,
    /// The server whose tool it is.
    pub mcp_server: Option<&'a str>,
}

/// What is around that changes in the course of a session.
#[derive(Clone, Copy)]
pub struct Moment<'a> {
    /// The working directory.
    pub directory: &'a Path,
    /// The permission mode as existing scripts know it: `default`, `acceptEdits`, `plan`, `bypassPermissions`.
    pub permission_mode: Option<&'a str>,
    /// The prompt that is being worked on.
    pub prompt_id: Option<&'a str>,
    /// The subagent in which it happens.
    pub agent: Option<Agent<'a>>,
    /// How hard the model thinks.
    pub effort: Option<&'a str>,
    /// Whether the call fits a permission rule, for hooks with a condition; without this they run for every call.
    pub fits: Option<&'a (dyn Fn(&str) -> bool + Sync)>,
}

/// A subagent.
#[derive(Clone, Copy, Debug)]
pub struct Agent<'a> {
    /// Which.
    pub id: &'a str,
    /// Of which kind.
    pub kind: &'a str,
}

impl<'a> Moment<'a> {
    /// A moment of which only the working directory is known.
    pub fn in_directory(directory: &'a Path) -> Moment<'a> {
        Moment { directory, permission_mode: None, prompt_id: None, agent: None, effort: None, fits: None }
    }
}

impl Happening<'_> {
    /// The event.
    pub fn event(&self) -> EventName {
        match self {
            Happening::SessionStart { .. } => EventName::SessionStart,
            Happening::UserPromptSubmit { .. } => EventName::UserPromptSubmit,
            Happening::PreToolUse(_) => EventName::PreToolUse,
            Happening::PostToolUse { .. } => EventName::PostToolUse,
            Happening::PostToolUseFailure { .. } => EventName::PostToolUseFailure,
            Happening::PreCompact { .. } => EventName::PreCompact,
            Happening::PostCompact { .. } => EventName::PostCompact,
            Happening::Stop { .. } => EventName::Stop,
            Happening::SubagentStop { .. } => EventName::SubagentStop,
            Happening::InstructionsLoaded { .. } => EventName::InstructionsLoaded,
            Happening::SessionEnd { .. } => EventName::SessionEnd,
        }
    }

    /// What matchers are about; nothing where hooks run whatever their matcher says.
    pub(crate) fn subject<'b>(&'b self, moment: &Moment<'b>) -> Option<&'b str> {
        match self {
            Happening::PreToolUse(call)
            | Happening::PostToolUse { call, .. }
            | Happening::PostToolUseFailure { call, .. } => Some(call.tool_name),
            Happening::SessionStart { source, .. } => Some(source),
            Happening::PreCompact { trigger, .. } | Happening::PostCompact { trigger, .. } => Some(trigger),
            Happening::InstructionsLoaded { load_reason, .. } => Some(load_reason),
            Happening::SessionEnd { reason } => Some(reason),
            Happening::SubagentStop { .. } => Some(moment.agent.map_or("", |agent| agent.kind)),
            Happening::UserPromptSubmit { .. } | Happening::Stop { .. } => None,
        }
    }

    /// Whether it is about a call of a tool.
    pub(crate) fn is_call(&self) -> bool {
        matches!(self.event(), EventName::PreToolUse | EventName::PostToolUse | EventName::PostToolUseFailure)
    }

    /// What a hook reads.
    pub(crate) fn input(&self, place: &Place, moment: &Moment<'_>) -> String {
        let mut input = Map::new();
        let mut put = |name: &str, value: Value| {
            if !value.is_null() {
                input.insert(name.to_owned(), value);
            }
        };
        put("session_id", json!(place.session_id));
        put("transcript_path", path(&place.transcript_path));
        put("cwd", path(moment.directory));
        put("prompt_id", json!(moment.prompt_id));
        put("permission_mode", json!(moment.permission_mode));
        put("agent_id", json!(moment.agent.map(|agent| agent.id)));
        put("agent_type", json!(moment.agent.map(|agent| agent.kind)));
        put("effort", moment.effort.map_or(Value::Null, |level| json!({ "level": level })));
        put("hook_event_name", json!(self.event().name()));
        for (name, value) in self.extras() {
            put(name, value);
        }
        Value::Object(input).to_string()
    }

    /// What only this event has; what is unknown is left out.
    fn extras(&self) -> Vec<(&'static str, Value)> {
        match self {
            Happening::SessionStart { source, model, title, context_tokens, since_last_response } => vec![
                ("source", json!(source)),
                ("model", json!(model)),
                ("session_title", json!(title)),
                ("context_tokens", json!(context_tokens)),
                ("seconds_since_last_response", json!(since_last_response.map(|time| time.as_secs()))),
            ],
            Happening::UserPromptSubmit { prompt, title } => {
                vec![("prompt", json!(prompt)), ("session_title", json!(title))]
            }
            Happening::PreToolUse(call) => call.extras(),
            Happening::PostToolUse { call, response, took } => {
                let mut extras = call.extras();
                extras.push(("tool_response", (*response).clone()));
                extras.push(("duration_ms", json!(took.as_millis() as u64)));
                extras
            }
            Happening::PostToolUseFailure { call, error, is_interrupt } => {
                let mut extras = call.extras();
                extras.extend([("error", json!(error)), ("is_interrupt", json!(is_interrupt))]);
                extras
            }
            Happening::PreCompact { trigger, instructions } => {
                vec![("trigger", json!(trigger)), ("custom_instructions", json!(instructions))]
            }
            Happening::PostCompact { trigger, summary } => {
                vec![("trigger", json!(trigger)), ("compact_summary", json!(summary))]
            }
            Happening::Stop { is_hook_active, last_message } => stop(*is_hook_active, *last_message),
            Happening::SubagentStop { is_hook_active, last_message, transcript_path } => {
                let mut extras = stop(*is_hook_active, *last_message);
                extras.push(("agent_transcript_path", path(transcript_path)));
                extras
            }
            Happening::InstructionsLoaded { file_path, memory_type, load_reason, globs } => vec![
                ("file_path", path(file_path)),
                ("memory_type", json!(memory_type)),
                ("load_reason", json!(load_reason)),
                ("globs", if globs.is_empty() { Value::Null } else { json!(globs) }),
            ],
            Happening::SessionEnd { reason } => vec![("reason", json!(reason))],
        }
    }
}

impl Call<'_> {
    fn extras(&self) -> Vec<(&'static str, Value)> {
        let input = serde_json::from_str(self.input).unwrap_or_else(|_| json!(self.input));
        vec![
            ("tool_name", json!(self.tool_name)),
            ("tool_input", input),
            ("tool_use_id", json!(self.tool_use_id)),
            ("mcp_server", json!(self.mcp_server)),
        ]
    }
}

fn stop(is_hook_active: bool, last_message: Option<&str>) -> Vec<(&'static str, Value)> {
    vec![("stop_hook_active", json!(is_hook_active)), ("last_assistant_message", json!(last_message))]
}

fn path(path: &Path) -> Value {
    json!(path.display().to_string())
}
