//! The disk side of Palimpsest: the log of a session.
//!
//! A log is a file of JSON lines, one entry each, to which one process at a time appends. The crate owns the file:
//! crash-safe appends, the lock, the torn tail, branches, and reading from the end just as far as the view needs.
//! It does not know what entries mean beyond parents, boundaries and undo. Invariant: whatever was acknowledged
//! stays, byte for byte, whatever kills the process; and no file, however broken, makes it hang or panic.
//!
//! ```
//! use pal_model::{Draft, IdSource, Origin, Timestamp};
//! use pal_store::Log;
//!
//! let directory = tempfile::tempdir().unwrap();
//! let path = directory.path().join("log.jsonl");
//! let now = Timestamp::from_milliseconds(1_800_000_000_000);
//! let mut log = Log::create(&path, IdSource::seeded(1)).unwrap();
//! let entry = log.append(Draft::user(Origin::Person, "\"fix the test\""), now).unwrap();
//! drop(log); // or kill -9
//! let opened = Log::open(&path, IdSource::seeded(2)).unwrap();
//! assert_eq!(opened.branch.entries[0].line, entry.line);
//! ```

mod checksum;
mod error;
mod file;
mod held;
mod line;
mod log;
mod omitted_history;
mod outputs;
mod paths;
mod read;
mod repairs;
mod rescue;
mod resume;
mod salvage;
mod scan;
mod segment;
mod skim;
mod strict_modes;
mod tail;
mod walk;
mod whole;
mod writer;

pub use error::{
    AppendError, BadLine, FileError, LinePosition, LogChange, OpenError, Problem, RewindError, Why,
};
pub use file::create_private_directory;
pub use held::{LockedFile, NotOwn, if_there, open_own_directory, open_regular_file};
pub use line::append_private_line;
pub use log::{Branch, Log, Opened, Syncing};
pub use omitted_history::OmittedHistory;
pub use outputs::{
    OUTPUT_FOLDERS, OutputCleanup, OutputFile, choose_outputs_to_remove, directory_bytes, list_outputs,
    list_session_outputs, remove_outputs, total_bytes,
};
pub use paths::{home, home_from_environment, log_path, project_directory, session_directory, slug};
pub use read::{Line, Lines, LogCheck, ReadError, Reader};
pub use skim::EntryHead;
pub use strict_modes::{UnsafeHome, check_owner_and_mode};
pub use tail::Torn;
pub use whole::{replace_private_file, write_whole};
