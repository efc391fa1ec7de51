//! What a call of a tool may do: rules, modes, and shell commands taken apart.
//!
//! The crate is pure: paths come in with their links followed, and whoever asks says where things are.
//!
//! ```
//! use pal_permissions::{Ground, Mode, Need, Placed, Request, Rules, SandboxPolicy, Verdict, judge};
//! use std::path::{Path, PathBuf};
//!
//! let ground = Ground {
//!     roots: vec![PathBuf::from("/project")],
//!     home: None,
//!     session: PathBuf::from("/sessions/one"),
//!     own: None,
//!     memory: None,
//!     directory: PathBuf::from("/project"),
//!     resolve: &|named: &str, directory: &Path| directory.join(named),
//!     is_folder: &|_| false,
//!     sandbox: SandboxPolicy::default(),
//! };
//! let mut rules = Rules::default();
//! rules.allow.push(Placed { rule: "Bash(cargo test:*)".parse()?, origin: String::from("user settings") });
//! let say = |command: &str| {
//!     let needs = [Need::Run(String::from(command))];
//!     judge(&Request { tool: "Bash", needs: &needs, mode: Mode::Default }, &rules, &ground)
//! };
//! assert_eq!(say("cargo test --workspace | tail -5"), Verdict::Allow);
//! assert!(matches!(say("cargo test; rm -rf target"), Verdict::Ask { rule, .. } if rule == "Bash(rm -rf target)"));
//! # Ok::<(), pal_permissions::RuleError>(())
//! ```

mod confinement;
mod explain;
mod ground;
mod judge;
mod mode;
mod need;
mod rule;
mod rules;
mod sandbox_policy;
mod sensitive;
mod shell;
mod verdict;

pub use confinement::{ConfinedPart, Confinement, confine};
pub use explain::{CommandMark, CommandMarkKind, explain_command, explain_need, reveal, reveal_character};
pub use ground::Ground;
pub use judge::{Request, judge, may_concern};
pub use mode::{Mode, UnknownMode};
pub use need::{Need, Target};
pub use rule::{Rule, RuleError};
pub use rules::{Placed, Rules};
pub use sandbox_policy::{SandboxLevel, SandboxPolicy, SandboxState};
pub use sensitive::{SHELL_START_FILES, holds_credentials};
pub use shell::is_read_only;
pub use verdict::Verdict;
