//! What is around a session on disk: instruction files, the git repository, the machine. Gathered here as the plain
//! data of `pal-prompt`; what it means is decided there.
//!
//! ```no_run
//! use std::{path::Path, sync::Arc};
//! use pal_permissions::Rules;
//! use pal_sources::{GIT_TIME, INSTRUCTION_TOKENS_MAX, Limit, Request, Search, gather, managed_folders, user_folders};
//!
//! let home = Path::new("/home/ada");
//! let measure = Arc::new(|text: &str| text.len() as u64 / 4);
//! let search = Search {
//!     managed: managed_folders(),
//!     user: user_folders(home, &home.join(".palimpsest")),
//!     home: Some(home.to_owned()),
//!     directory: home.join("engine"),
//!     root: None,
//!     added: Vec::new(),
//!     allowed: Vec::new(),
//!     refused: Vec::new(),
//!     rules: Rules::default(),
//!     is_on: true,
//!     is_bare: false,
//!     limit: Limit { tokens_max: INSTRUCTION_TOKENS_MAX, drops: false, measure },
//! };
//! let mut gathered = gather(&Request { search, git_time: Some(GIT_TIME), shell: Some("zsh".to_owned()) });
//! for file in &gathered.instructions.files {
//!     println!("{}: {}", file.path, file.reason);
//! }
//! // Later: what joins because a file was touched, and what changed on disk.
//! let joined = gathered.instructions.touched(Path::new("src/main.rs"));
//! let notices = gathered.instructions.changes();
//! ```

mod changes;
mod discover;
mod environment;
mod front_matter;
mod gather;
mod git;
mod identity;
mod include_permission;
mod includes;
mod limit;
mod notice;
mod project;
mod reading;
mod rule;
mod rule_files;
mod search;
mod stamp;
mod walk;
mod words;

pub use discover::{Discovered, discover};
pub use environment::environment;
pub use gather::{Gathered, Request, gather};
pub use git::{GIT_TIME, git_snapshot};
pub use identity::project_of;
pub use notice::{Became, Notice, joining_text};
pub use project::project_root;
pub use reading::FILE_BYTES_MAX;
pub use rule::Rule;
pub use search::{INSTRUCTION_TOKENS_MAX, Limit, Search, managed_folders, user_folders};
pub use walk::Question;
pub use words::source_note;
