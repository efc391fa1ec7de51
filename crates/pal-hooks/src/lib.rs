//! Hooks: commands of the user that run at events of a session, and what they say.
//!
//! The contract is the one that existing hook scripts are written for: an event as JSON on standard input, an answer by
//! exit code, as text or as JSON on standard output (`docs/hooks.md`). A hook never breaks the session: one that fails,
//! takes too long or prints nonsense is told of in [`Said::failures`], and the session goes on as if it had not run.
//!
//! ```
//! use pal_hooks::{Config, Happening, Hooks, Moment, Place};
//! # let folder = tempfile::tempdir().unwrap();
//! let config = serde_json::json!({"Stop": [{"hooks": [{"type": "command", "command": "echo not yet >&2; exit 2"}]}]});
//! let place = Place {
//!     session_id: "0199a8f2".into(),
//!     transcript_path: folder.path().join("log.jsonl"),
//!     project: folder.path().into(),
//!     folder: folder.path().into(),
//! };
//! let hooks = Hooks::new(vec![Config::parse(&config).unwrap()], place);
//! let stop = Happening::Stop { is_hook_active: false, last_message: Some("done") };
//! let said = hooks.run(&stop, &Moment::in_directory(folder.path()), &pal_process::Cancel::new());
//! assert_eq!(said.blocked.unwrap().reason, "not yet");
//! ```

mod answer;
mod config;
mod event;
mod happening;
mod hooks;
mod matcher;
mod said;

pub use config::{Command, Config, Group};
pub use event::EventName;
pub use happening::{Agent, Call, Happening, Moment};
pub use hooks::{Hooks, Place};
pub use matcher::Matcher;
pub use said::{Blocked, Failure, Permission, Said};
