//! Messages between processes: one directory per reader, to which any process posts.
//!
//! # Guarantee
//!
//! Whichever process is killed, at any byte: a message whose post returned is delivered, no message is delivered
//! twice, and the messages of one sender arrive in the order in which they were posted. A sender that was killed posts
//! the same message again, with the same id.
//!
//! # Files
//!
//! `<dir>/<name>/` (0700, files 0600, links are not followed):
//!
//! | file | content |
//! | --- | --- |
//! | `spool.jsonl` | a header, then one message per line; append-only, or replaced as a whole |
//! | `cursor.json` | position that the reader confirmed, with the spool's stamp |
//! | `lock` | held (`flock`) while the spool is changed |
//! | `reader` | held by the only reader as long as it lives |
//!
//! # Protocol
//!
//! 1. *Post.* Under the lock, read the lines appended since the last post. If the id is among them, or the header
//!    remembers it, the message was posted before and nothing is written. Otherwise append the line with one write that
//!    ends with the line end, release the lock, and sync.
//! 2. *Torn line.* A message counts once its line end is written. A writer that finds no line end at the end of the
//!    spool knows, since it holds the lock, that another was killed there; it writes a cancel character and a line end
//!    before its own line. No JSON ends with that character, so a torn line is never read as a message, even if only
//!    its line end was missing. Nothing is ever cut off: a reader without the lock always sees a prefix of the file.
//! 3. *Take.* The reader reads whole lines after its position in memory, which starts at the cursor.
//! 4. *Confirm.* When the caller has stored the messages durably, the cursor is replaced by a rename.
//! 5. *Clean.* After a confirmation, if enough is confirmed and the lock is free, a new spool is renamed over the old
//!    one. It has a new stamp, a header that remembers the removed ids, and the unconfirmed lines. A cursor with another
//!    stamp than the spool's means the first line, which is exactly the unconfirmed rest. Two files change, and no kill
//!    can come between them.
//! 6. *Memory.* The header remembers the newest 1,024 ids, and the largest that it forgot. An older message that is not
//!    remembered is refused, since it may have been delivered.
//!
//! The mailbox cannot see a reader that is killed after its caller stored messages but before the confirmation.
//! Everything present when a reader starts is therefore marked ([`Delivery::perhaps_seen`]), and the caller checks
//! whether it has a message of this id. Later messages were certainly never delivered.
//!
//! # Rationale
//!
//! One spool instead of one file per sender gives one lock, one cursor, one rename and a total order. The lock is held
//! for a short read and one write, so writers do not wait for each other's disk. One file per message, as in a maildir,
//! would still need a memory of ids, would make a thousand files of a thousand messages, and would derive the order
//! from file names. The reader needs no lock, so a stopped writer cannot block it.
//!
//! The guarantee is about kills. Against power failure, a post is synced before it returns and a spool before it is
//! renamed; a lost cursor makes messages come again, marked. Network file systems are not supported: their locks and
//! appends promise less.

#[cfg(test)]
mod delivery_properties;
mod mailbox_dir;
mod mailbox_disk;
mod spool_format;
mod spool_reader;
mod spool_writer;
mod sweep;

use std::path::Path;
use std::time::Duration;

use crate::address::AgentName;
use crate::envelope::{Envelope, MessageId};
use crate::private_dir::PrivateDirError;
use mailbox_disk::MailboxDisk;

pub use spool_reader::Delivery;
pub use sweep::sweep_mailboxes;

/// Maximum size of a mailbox, in bytes. Up to a megabyte of it may have been read already.
const MAILBOX_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Maximum wait of a post for other writers.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// Limits, which tests make smaller.
#[derive(Clone, Copy)]
struct Limits {
    /// Maximum size of a spool.
    spool_bytes_max: u64,
    /// Confirmed bytes after which the spool is replaced.
    clean_at_bytes: u64,
    /// Number of ids that a header remembers.
    remembered: usize,
}

impl Limits {
    const REAL: Limits = Limits {
        spool_bytes_max: MAILBOX_BYTES_MAX,
        clean_at_bytes: 1024 * 1024,
        remembered: crate::known_ids::REMEMBERED,
    };
}

/// Writing end of an agent's mailbox. Any number of processes may open it.
pub struct Mailbox(spool_writer::SpoolWriter<mailbox_dir::MailboxDir>);

/// Reading end of an agent's mailbox. Only one can be open at a time.
pub struct Inbox(spool_reader::SpoolReader<mailbox_dir::MailboxDir>);

/// Result of a post.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PostOutcome {
    /// The message was added.
    Added,
    /// The message was there already, from an earlier attempt.
    Duplicate,
}

/// A message was not posted. After a disk error its state is unknown: post the same message again. After any
/// other error it is not there.
#[derive(Debug, thiserror::Error)]
pub enum PostError {
    /// The mailbox is full.
    #[error(
        "the mailbox of `{name}` is full ({bytes} unread bytes); start `{name}` so that it reads them, or remove {}",
        .path.display()
    )]
    Full {
        /// Owner of the mailbox.
        name: String,
        /// Size of the mailbox.
        bytes: u64,
        /// Path of the mailbox.
        path: std::path::PathBuf,
    },
    /// The message is too old to tell whether it was delivered.
    #[error("message {id} is too old to tell whether it was delivered; if it was not, send it as a new one")]
    Forgotten {
        /// Message id.
        id: MessageId,
    },
    /// Another process holds the lock for too long.
    #[error("another process holds the lock on {}; look for a suspended process", .path.display())]
    Busy {
        /// Path of the mailbox.
        path: std::path::PathBuf,
    },
    /// A file operation failed.
    #[error(transparent)]
    Folder(#[from] PrivateDirError),
}

/// A mailbox cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    /// Another process reads the mailbox.
    #[error("another process reads {}; end that one, or choose another name", .path.display())]
    InUse {
        /// Path of the mailbox.
        path: std::path::PathBuf,
    },
    /// A file operation failed.
    #[error(transparent)]
    Folder(#[from] PrivateDirError),
}

impl Mailbox {
    /// Opens the mailbox of `name` under `dir`, creating both if needed.
    pub fn open(dir: &Path, name: &AgentName) -> Result<Mailbox, PrivateDirError> {
        Ok(Mailbox(spool_writer::SpoolWriter::new(mailbox_dir::MailboxDir::open(dir, name)?, Limits::REAL)))
    }

    /// Posts a message. Once this returns, the message is delivered even if processes are killed. After a
    /// disk error or a kill, post the same message again.
    pub fn post(&mut self, message: &Envelope) -> Result<PostOutcome, PostError> {
        self.0.post(message, LOCK_WAIT)
    }
}

impl Inbox {
    /// Opens the mailbox of `name` under `dir` for reading, creating both if needed.
    pub fn open(dir: &Path, name: &AgentName) -> Result<Inbox, InboxError> {
        let mut folder = mailbox_dir::MailboxDir::open(dir, name)?;
        if !folder.lock_reader()? {
            return Err(InboxError::InUse { path: folder.path().to_owned() });
        }
        Ok(Inbox(spool_reader::SpoolReader::new(folder, Limits::REAL)?))
    }

    /// Takes the messages that arrived since the last call, in order. Unconfirmed messages come again after a
    /// restart.
    pub fn take(&mut self) -> Result<Vec<Delivery>, PrivateDirError> {
        self.0.take()
    }

    /// Confirms that everything taken so far is stored durably and need not be delivered again.
    pub fn confirm(&mut self) -> Result<(), PrivateDirError> {
        self.0.confirm()
    }

    /// Number of lines skipped because they were truncated or corrupt.
    pub fn skipped(&self) -> u64 {
        self.0.skipped()
    }
}
