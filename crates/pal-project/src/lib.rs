//! The project around a session: instruction files, the git repository, the machine. Collected as the plain data types of
//! `pal-prompt`, which decides how they are presented.
//!
//! ```no_run
//! use std::{path::Path, sync::Arc};
//! use pal_permissions::RuleSet;
//! use pal_project::{GIT_TIMEOUT, INSTRUCTION_TOKENS_MAX, InstructionLimit, InstructionSearch, ProjectQuery, take_project_snapshot, managed_folders, user_folders};
//!
//! let home = Path::new("/home/ada");
//! let measure = Arc::new(|text: &str| text.len() as u64 / 4);
//! let search = InstructionSearch {
//!     managed: managed_folders(),
//!     user: user_folders(home, &home.join(".palimpsest")),
//!     home: Some(home.to_owned()),
//!     directory: home.join("engine"),
//!     root: None,
//!     added: Vec::new(),
//!     listed: Vec::new(),
//!     allowed: Vec::new(),
//!     refused: Vec::new(),
//!     rules: RuleSet::default(),
//!     is_on: true,
//!     is_bare: false,
//!     limit: InstructionLimit { tokens_max: INSTRUCTION_TOKENS_MAX, drops: false, measure },
//! };
//! let mut gathered = take_project_snapshot(&ProjectQuery { search, git_time: Some(GIT_TIMEOUT), shell: Some("zsh".to_owned()) });
//! for file in &gathered.instructions.files {
//!     println!("{}: {}", file.path, file.reason);
//! }
//! // Later: what joins because a file was touched, and what changed on disk.
//! let joined = gathered.instructions.join_for_path(Path::new("src/main.rs"));
//! let notices = gathered.instructions.take_changes();
//! ```

mod display_text;
mod front_matter;
mod git_command;
mod git_snapshot;
mod host_environment;
mod include_permission;
mod includes;
mod instruction_changes;
mod instruction_discovery;
mod instruction_locations;
mod instruction_notice;
mod instruction_rule;
mod instruction_walk;
mod listed_instructions;
mod project_bounds;
mod project_identity;
mod project_snapshot;
mod rule_files;
mod source_stamp;
mod text_reader;
mod token_limit;

pub use display_text::source_note;
pub use git_command::run_git;
pub use git_snapshot::{GIT_TIMEOUT, take_git_snapshot};
pub use host_environment::read_environment;
pub use instruction_discovery::{InstructionSet, discover_instructions};
pub use instruction_locations::{
    INSTRUCTION_TOKENS_MAX, InstructionLimit, InstructionSearch, ListedInstructions, managed_folders,
    user_folders,
};
pub use instruction_notice::{InstructionChange, InstructionNotice, render_joining_text};
pub use instruction_rule::InstructionRule;
pub use instruction_walk::IncludeQuestion;
pub use project_bounds::find_project_root;
pub use project_identity::find_project;
pub use project_snapshot::{ProjectQuery, ProjectSnapshot, take_project_snapshot};
pub use text_reader::FILE_BYTES_MAX;
