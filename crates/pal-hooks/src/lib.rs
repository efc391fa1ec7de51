//! Hooks: user commands that run at events of a session.
//!
//! The contract is the one that existing hook scripts are written for: an event as JSON on standard input,
//! and an answer by exit code, as text or as JSON on standard output (`docs/hooks.md`). A hook never breaks
//! the session: a failure, timeout or invalid output is reported in [`HookOutcome::failures`], and the
//! session continues as if it had not run.
//!
//! ```
//! use pal_hooks::{HookConfig, HookContext, HookEvent, HookSession, SessionHooks};
//! # let folder = tempfile::tempdir().unwrap();
//! let config = serde_json::json!({"Stop": [{"hooks": [{"type": "command", "command": "echo not yet >&2; exit 2"}]}]});
//! let session = HookSession {
//!     session_id: "0199a8f2".into(),
//!     transcript_path: folder.path().join("log.jsonl"),
//!     project: folder.path().into(),
//!     folder: folder.path().into(),
//! };
//! let hooks = SessionHooks::new(vec![HookConfig::parse(&config).unwrap()], session);
//! let stop = HookEvent::Stop { is_hook_active: false, last_message: Some("done") };
//! let outcome = hooks.run(&stop, &HookContext::new(folder.path()), &pal_process::CancelToken::new());
//! assert_eq!(outcome.blocked.unwrap().reason, "not yet");
//! ```

mod callback_config;
mod event_name;
mod hook_answer;
mod hook_callback;
mod hook_config;
mod hook_event;
mod hook_matcher;
mod hook_outcome;
mod session_hooks;

pub use event_name::HookEventName;
pub use hook_answer::HookPermission;
pub use hook_callback::{HookCallback, HookHost};
pub use hook_config::{HookCommand, HookConfig, HookGroup};
pub use hook_event::{HookContext, HookEvent, HookSession, HookSubagent, HookToolCall};
pub use hook_matcher::HookMatcher;
pub use hook_outcome::{HookBlock, HookFailure, HookOutcome};
pub use session_hooks::SessionHooks;
