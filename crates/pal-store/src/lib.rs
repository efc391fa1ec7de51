//! Logs of sessions on disk.
//!
//! A log is a file of JSON lines, one entry each, to which one process at a time appends. The crate owns the file:
//! crash-safe appends, the lock, the torn tail, branches, and reading from the end as far as the view needs. Of the
//! entries it knows only parents, boundaries and undo. Invariants: an acknowledged entry stays, byte for byte, however
//! the process ends; and no file, however damaged, makes the crate hang or panic.
//!
//! ```
//! use pal_model::{EntryDraft, IdSource, MessageOrigin, Timestamp};
//! use pal_store::Log;
//!
//! let directory = tempfile::tempdir().unwrap();
//! let path = directory.path().join("log.jsonl");
//! let now = Timestamp::from_milliseconds(1_800_000_000_000);
//! let mut log = Log::create(&path, IdSource::seeded(1)).unwrap();
//! let entry = log.append(EntryDraft::user(MessageOrigin::Person, "\"fix the test\""), now).unwrap();
//! drop(log); // or kill -9
//! let opened = Log::open(&path, IdSource::seeded(2)).unwrap();
//! assert_eq!(opened.branch.entries[0].line, entry.line);
//! ```

mod append_writer;
mod atomic_write;
mod branch_walk;
mod checksum;
mod entry_heads;
mod error;
mod home_paths;
mod located_entry;
mod log;
mod log_lock;
mod log_open;
mod log_reader;
mod log_scan;
mod log_tail;
mod omitted_history;
mod output_files;
mod private_lines;
mod repairs;
mod rescue;
mod resume;
mod safe_open;
mod salvage;
mod segment;
mod session_entry;
mod session_trash;
mod strict_modes;

pub use atomic_write::{extend_log, replace_private_file, write_new_log};
pub use entry_heads::EntryHead;
pub use error::{
    AppendError, BadLine, FileError, LineFault, LinePosition, LogChange, LogProblem, OpenError, RewindError,
};
pub use home_paths::{
    former_slug, home, home_from_environment, log_path, project_directory, session_directory, slug,
};
pub use log::{Log, LogBranch, OpenedLog, PendingSync};
pub use log_open::create_private_directory;
pub use log_reader::{LogCheck, LogLine, LogLines, LogReader, ReadError};
pub use log_tail::TornTail;
pub use omitted_history::OmittedHistory;
pub use output_files::{
    OutputCleanup, OutputFile, choose_outputs_to_remove, directory_bytes, list_outputs, list_session_outputs,
    remove_outputs, total_bytes,
};
pub use private_lines::append_private_line;
pub use safe_open::{LockedFile, OwnDirectoryError, none_if_missing, open_own_directory, open_regular_file};
pub use session_entry::read_session_entry;
pub use session_trash::{TrashedSession, delete_trashed, list_trash, remove_session, restore_session};
pub use strict_modes::{UnsafeHome, check_owner_and_mode};
