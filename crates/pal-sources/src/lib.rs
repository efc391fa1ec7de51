//! What is around a session on disk: instruction files, the git repository, the machine. Gathered here as the plain
//! data of `pal-prompt`; what it means is decided there.

mod changes;
mod discover;
mod environment;
mod front_matter;
mod gather;
mod git;
mod includes;
mod limit;
mod notice;
mod project;
mod reading;
mod rule;
mod search;
mod stamp;
mod walk;
mod words;

pub use discover::{Discovered, discover};
pub use environment::environment;
pub use gather::{Gathered, Request, gather};
pub use git::{GIT_TIME, git_snapshot};
pub use notice::{Became, Notice};
pub use reading::FILE_BYTES_MAX;
pub use rule::Rule;
pub use search::{INSTRUCTION_TOKENS_MAX, Limit, Search, managed_folders, user_folders};
pub use walk::Question;
pub use words::source_note;
