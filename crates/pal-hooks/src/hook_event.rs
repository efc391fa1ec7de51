//! Events with their data, as hooks read them on standard input.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::event_name::HookEventName;

/// Event with its data.
#[derive(Clone, Debug)]
pub enum HookEvent<'a> {
    /// A session starts or continues.
    SessionStart {
        /// Source: `startup`, `resume`, `clear`, `compact` or `fork`.
        source: &'a str,
        /// Model name.
        model: Option<&'a str>,
        /// Title of the session.
        title: Option<&'a str>,
        /// Tokens in the context.
        context_tokens: Option<u64>,
        /// Time since the last response of the model.
        since_last_response: Option<Duration>,
    },
    /// The user submitted a prompt.
    UserPromptSubmit {
        /// Text of the prompt.
        prompt: &'a str,
        /// Title of the session.
        title: Option<&'a str>,
    },
    /// A tool is about to be called.
    PreToolUse(HookToolCall<'a>),
    /// A tool succeeded.
    PostToolUse {
        /// Tool call.
        call: HookToolCall<'a>,
        /// Result of the call.
        response: &'a Value,
        /// Duration of the call.
        took: Duration,
    },
    /// A tool failed.
    PostToolUseFailure {
        /// Tool call.
        call: HookToolCall<'a>,
        /// Error message.
        error: &'a str,
        /// True if it was interrupted.
        is_interrupt: bool,
    },
    /// The conversation is about to be compacted.
    PreCompact {
        /// `manual` or `auto`.
        trigger: &'a str,
        /// Instructions of the user for the summary; may be empty.
        instructions: &'a str,
    },
    /// The conversation was compacted.
    PostCompact {
        /// `manual` or `auto`.
        trigger: &'a str,
        /// Text of the summary.
        summary: &'a str,
    },
    /// The model ended its turn.
    Stop {
        /// True if a hook has already made it continue.
        is_hook_active: bool,
        /// Last message.
        last_message: Option<&'a str>,
    },
    /// A subagent ended its turn; [`HookContext::agent`] names it.
    SubagentStop {
        /// True if a hook has already made it continue.
        is_hook_active: bool,
        /// Last message.
        last_message: Option<&'a str>,
        /// Path of its log.
        transcript_path: &'a Path,
    },
    /// An instruction file was loaded.
    InstructionsLoaded {
        /// Path of the file.
        file_path: &'a Path,
        /// Origin: `User`, `Project`, `Local` or `Managed`.
        memory_type: &'a str,
        /// `session_start`, `nested_traversal`, `path_glob_match`, `include` or `compact`.
        load_reason: &'a str,
        /// Globs that triggered the loading.
        globs: &'a [String],
    },
    /// The session ends.
    SessionEnd {
        /// Reason: `clear`, `logout`, `prompt_input_exit` or `other`.
        reason: &'a str,
    },
}

/// Tool call as hooks see it.
#[derive(Clone, Copy, Debug)]
pub struct HookToolCall<'a> {
    /// Name of the tool.
    pub tool_name: &'a str,
    /// Input: a JSON object.
    pub input: &'a str,
    /// Id of the call.
    pub tool_use_id: &'a str,
    /// MCP server of the tool.
    pub mcp_server: Option<&'a str>,
}

/// Context of an event that changes during a session.
#[derive(Clone, Copy)]
pub struct HookContext<'a> {
    /// The working directory.
    pub directory: &'a Path,
    /// Permission mode as existing scripts know it: `default`, `acceptEdits`, `plan`, `bypassPermissions`.
    pub permission_mode: Option<&'a str>,
    /// Id of the current prompt.
    pub prompt_id: Option<&'a str>,
    /// Subagent in which the event occurs.
    pub agent: Option<HookSubagent<'a>>,
    /// Reasoning effort of the model.
    pub effort: Option<&'a str>,
    /// Returns whether the call matches a permission rule, for hooks with a condition; without it they run
    /// for every call.
    pub matches_rule: Option<&'a (dyn Fn(&str) -> bool + Sync)>,
}

/// Session data for hooks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HookSession {
    /// Id of the session.
    pub session_id: String,
    /// Path of its log.
    pub transcript_path: PathBuf,
    /// Root of the project.
    pub project: PathBuf,
    /// Session folder for long contexts.
    pub folder: PathBuf,
}

/// Subagent as hooks see it.
#[derive(Clone, Copy, Debug)]
pub struct HookSubagent<'a> {
    /// Identifier.
    pub id: &'a str,
    /// Type name.
    pub kind: &'a str,
}

impl<'a> HookContext<'a> {
    /// Context with only a working directory.
    pub fn new(directory: &'a Path) -> HookContext<'a> {
        HookContext {
            directory,
            permission_mode: None,
            prompt_id: None,
            agent: None,
            effort: None,
            matches_rule: None,
        }
    }
}

impl HookEvent<'_> {
    /// Name of the event.
    pub fn event_name(&self) -> HookEventName {
        match self {
            HookEvent::SessionStart { .. } => HookEventName::SessionStart,
            HookEvent::UserPromptSubmit { .. } => HookEventName::UserPromptSubmit,
            HookEvent::PreToolUse(_) => HookEventName::PreToolUse,
            HookEvent::PostToolUse { .. } => HookEventName::PostToolUse,
            HookEvent::PostToolUseFailure { .. } => HookEventName::PostToolUseFailure,
            HookEvent::PreCompact { .. } => HookEventName::PreCompact,
            HookEvent::PostCompact { .. } => HookEventName::PostCompact,
            HookEvent::Stop { .. } => HookEventName::Stop,
            HookEvent::SubagentStop { .. } => HookEventName::SubagentStop,
            HookEvent::InstructionsLoaded { .. } => HookEventName::InstructionsLoaded,
            HookEvent::SessionEnd { .. } => HookEventName::SessionEnd,
        }
    }

    /// Subject that matchers test; `None` if hooks run regardless of their matcher.
    pub(crate) fn subject<'b>(&'b self, context: &HookContext<'b>) -> Option<&'b str> {
        match self {
            HookEvent::PreToolUse(call)
            | HookEvent::PostToolUse { call, .. }
            | HookEvent::PostToolUseFailure { call, .. } => Some(call.tool_name),
            HookEvent::SessionStart { source, .. } => Some(source),
            HookEvent::PreCompact { trigger, .. } | HookEvent::PostCompact { trigger, .. } => Some(trigger),
            HookEvent::InstructionsLoaded { load_reason, .. } => Some(load_reason),
            HookEvent::SessionEnd { reason } => Some(reason),
            HookEvent::SubagentStop { .. } => Some(context.agent.map_or("", |agent| agent.kind)),
            HookEvent::UserPromptSubmit { .. } | HookEvent::Stop { .. } => None,
        }
    }

    /// Returns whether it concerns a tool call.
    pub(crate) fn is_call(&self) -> bool {
        matches!(
            self.event_name(),
            HookEventName::PreToolUse | HookEventName::PostToolUse | HookEventName::PostToolUseFailure
        )
    }

    /// JSON input of a hook.
    pub(crate) fn input(&self, session: &HookSession, context: &HookContext<'_>) -> String {
        let mut input = Map::new();
        let mut put = |name: &str, value: Value| {
            if !value.is_null() {
                input.insert(name.to_owned(), value);
            }
        };
        put("session_id", json!(session.session_id));
        put("transcript_path", path(&session.transcript_path));
        put("cwd", path(context.directory));
        put("prompt_id", json!(context.prompt_id));
        put("permission_mode", json!(context.permission_mode));
        put("agent_id", json!(context.agent.map(|agent| agent.id)));
        put("agent_type", json!(context.agent.map(|agent| agent.kind)));
        put("effort", context.effort.map_or(Value::Null, |level| json!({ "level": level })));
        put("hook_event_name", json!(self.event_name().name()));
        for (name, value) in self.extras() {
            put(name, value);
        }
        Value::Object(input).to_string()
    }

    /// Fields specific to the event; unknown ones are null.
    fn extras(&self) -> Vec<(&'static str, Value)> {
        match self {
            HookEvent::SessionStart { source, model, title, context_tokens, since_last_response } => vec![
                ("source", json!(source)),
                ("model", json!(model)),
                ("session_title", json!(title)),
                ("context_tokens", json!(context_tokens)),
                ("seconds_since_last_response", json!(since_last_response.map(|time| time.as_secs()))),
            ],
            HookEvent::UserPromptSubmit { prompt, title } => {
                vec![("prompt", json!(prompt)), ("session_title", json!(title))]
            }
            HookEvent::PreToolUse(call) => call.extras(),
            HookEvent::PostToolUse { call, response, took } => {
                let mut extras = call.extras();
                extras.push(("tool_response", (*response).clone()));
                extras.push(("duration_ms", json!(took.as_millis() as u64)));
                extras
            }
            HookEvent::PostToolUseFailure { call, error, is_interrupt } => {
                let mut extras = call.extras();
                extras.extend([("error", json!(error)), ("is_interrupt", json!(is_interrupt))]);
                extras
            }
            HookEvent::PreCompact { trigger, instructions } => {
                vec![("trigger", json!(trigger)), ("custom_instructions", json!(instructions))]
            }
            HookEvent::PostCompact { trigger, summary } => {
                vec![("trigger", json!(trigger)), ("compact_summary", json!(summary))]
            }
            HookEvent::Stop { is_hook_active, last_message } => stop(*is_hook_active, *last_message),
            HookEvent::SubagentStop { is_hook_active, last_message, transcript_path } => {
                let mut extras = stop(*is_hook_active, *last_message);
                extras.push(("agent_transcript_path", path(transcript_path)));
                extras
            }
            HookEvent::InstructionsLoaded { file_path, memory_type, load_reason, globs } => vec![
                ("file_path", path(file_path)),
                ("memory_type", json!(memory_type)),
                ("load_reason", json!(load_reason)),
                ("globs", if globs.is_empty() { Value::Null } else { json!(globs) }),
            ],
            HookEvent::SessionEnd { reason } => vec![("reason", json!(reason))],
        }
    }
}

impl HookToolCall<'_> {
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
