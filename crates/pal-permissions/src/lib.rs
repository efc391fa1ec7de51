//! Permission checks for tool calls: rules, modes, and parsing of shell commands.
//!
//! The crate is pure: the caller resolves links and passes all paths in a [`PermissionContext`].
//!
//! ```
//! use pal_permissions::{
//!     PermissionContext, PermissionMode, PermissionRequest, RuleSet, SandboxLimits, SourcedRule, ToolAccess, Verdict,
//!     authorize,
//! };
//! use std::path::{Path, PathBuf};
//!
//! let context = PermissionContext {
//!     roots: vec![PathBuf::from("/project")],
//!     home: None,
//!     session: PathBuf::from("/sessions/one"),
//!     own: None,
//!     memory: None,
//!     directory: PathBuf::from("/project"),
//!     resolve: &|named: &str, directory: &Path| directory.join(named),
//!     is_folder: &|_| false,
//!     sandbox: SandboxLimits::default(),
//! };
//! let mut rules = RuleSet::default();
//! rules.allow.push(SourcedRule { rule: "Bash(cargo test:*)".parse()?, origin: String::from("user settings") });
//! let check = |command: &str| {
//!     let needs = [ToolAccess::Run(String::from(command))];
//!     let mode = PermissionMode::Default;
//!     authorize(&PermissionRequest { tool: "Bash", needs: &needs, mode }, &rules, &context)
//! };
//! assert_eq!(check("cargo test --workspace | tail -5"), Verdict::Allow);
//! assert!(matches!(check("cargo test; rm -rf target"), Verdict::Ask { rule, .. } if rule == "Bash(rm -rf target)"));
//! # Ok::<(), pal_permissions::RuleError>(())
//! ```

mod confinement;
mod explain;
mod permission_context;
mod permission_mode;
mod permission_rule;
mod rule_evaluator;
mod rule_set;
mod sandbox_limits;
mod sensitive_paths;
mod shell;
mod tool_access;
mod trusted_programs;
mod verdict;

pub use confinement::{ConfinedPart, Confinement, confine_command};
pub use explain::{CommandMark, CommandMarkKind, explain_access, explain_command, reveal, reveal_character};
pub use permission_context::PermissionContext;
pub use permission_mode::{PermissionMode, UnknownPermissionMode};
pub use permission_rule::{PermissionRule, RuleError};
pub use rule_evaluator::{PermissionRequest, authorize, may_match};
pub use rule_set::{RuleSet, SourcedRule};
pub use sandbox_limits::{SandboxLevel, SandboxLimits, SandboxState};
pub use sensitive_paths::{SHELL_START_FILES, is_credential_path};
pub use shell::is_read_only;
pub use tool_access::{TargetPath, ToolAccess};
pub use verdict::Verdict;
