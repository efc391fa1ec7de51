//! What is around a session on disk: instruction files, the git repository, the machine. Gathered here as the plain
//! data of `pal-prompt`; what it means is decided there.

mod discover;
mod front_matter;
mod includes;
mod limit;
mod project;
mod reading;
mod rule;
mod search;
mod stamp;
mod walk;
mod words;

pub use discover::{Discovered, discover};
pub use reading::FILE_BYTES_MAX;
pub use rule::Rule;
pub use search::{INSTRUCTION_TOKENS_MAX, Limit, Search, managed_folders, user_folders};
pub use walk::Question;
pub use words::source_note;
