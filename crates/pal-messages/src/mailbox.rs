//! Messages between processes: a directory for each reader, to which any process posts.
//!
//! # The law
//!
//! Whatever is killed, and at whatever byte: a message whose post returned is delivered, no message is delivered twice,
//! and the messages of one sender are delivered in the order of their posts. A sender that was killed in the middle
//! posts the same message again, with the same id, and need not know how far it came.
//!
//! # On disk
//!
//! `<dir>/<name>/` (0700, files 0600, no link is followed):
//!
//! | file | what it is |
//! | --- | --- |
//! | `spool.jsonl` | a header, then one message a line; only ever appended to, or replaced as a whole |
//! | `cursor.json` | how far the reader has confirmed, in which spool |
//! | `lock` | held (`flock`) by whoever changes the spool |
//! | `reader` | held by the one reader as long as it lives |
//!
//! # The protocol
//!
//! 1. *Post.* Under the lock: read what was appended since the last look; if the id is there, or the header remembers
//!    it, the message came before, and that is all. Otherwise append the line with one write that ends in the line
//!    end, give the lock back, and sync.
//! 2. *Torn.* A message is there once its line end is. A writer that finds no line end at the end of the spool knows
//!    that another was killed there, since it holds the lock; it writes a cancel character and a line end before its
//!    own line. No JSON ends in that character, so what is torn can never be read as a message, not even if only the
//!    line end was missing. Nothing is ever cut off: a reader may look at any moment, without the lock, and sees a
//!    beginning of the same file.
//! 3. *Take.* The reader reads whole lines behind its place in memory. After a start, its place is the cursor.
//! 4. *Confirm.* When the reader's owner has what it took where it lasts, the cursor is replaced by a rename.
//! 5. *Clean.* After a confirm, if enough is confirmed, and the lock is free: a new spool with a new stamp, a header
//!    that remembers the ids of what goes, and the lines that are not confirmed yet, is renamed over the old one. A
//!    cursor with another stamp than the spool's means the first line: exactly what the rename left unconfirmed. So
//!    two files change and no kill comes between them.
//! 6. *Memory.* The header remembers the newest 1 024 ids, and the largest that it forgot. A message that is older
//!    than that and not remembered is refused, since nobody can tell whether it came: "never twice" has no end.
//!
//! A reader killed between its owner's keeping and the confirm is the one thing that no mailbox can see. Everything
//! that lay there when the reader started is therefore marked ([`Delivery::perhaps_seen`]): its owner looks whether it
//! has a message of this id. What came later was certainly never delivered.
//!
//! # Why so
//!
//! One spool, not one file per sender: one lock, one cursor, one rename, and an order of everything. The lock is held
//! for a read of a few bytes and one write, so writers do not wait for each other's disk. Not a file per message as in
//! a maildir: ids must be remembered somewhere anyway, a thousand messages would be a thousand files, and the order
//! would hang on their names. The reader needs no lock to read, so a writer that was stopped cannot stop it.
//!
//! Kills are what the law is about. Against a loss of power, a post is synced before it returns and a spool before it
//! is renamed; a cursor that is lost makes messages come again, marked. File systems of other machines are not for
//! this: their locks and appends promise less.

mod disk;
mod folder;
#[cfg(test)]
mod laws;
mod poster;
mod spool;
mod sweep;
mod taker;

use std::path::Path;
use std::time::Duration;

use crate::message::{Message, MessageId};
use crate::name::Name;
use crate::private::FolderError;
use disk::Disk;

pub use sweep::sweep;
pub use taker::Delivery;

/// The largest mailbox, in bytes. Up to a megabyte of it may have been read already.
pub const MAILBOX_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// How long a post waits for the others.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// Sizes that tests make smaller.
#[derive(Clone, Copy)]
struct Limits {
    /// How large a spool may grow.
    spool_bytes_max: u64,
    /// How much of it is confirmed before it is replaced.
    clean_at_bytes: u64,
    /// How many ids a header remembers.
    remembered: usize,
}

impl Limits {
    const REAL: Limits = Limits {
        spool_bytes_max: MAILBOX_BYTES_MAX,
        clean_at_bytes: 1024 * 1024,
        remembered: crate::known::REMEMBERED,
    };
}

/// Where messages for one agent are posted. Any number of processes may have one open.
pub struct Mailbox(poster::Poster<folder::Folder>);

/// Where one agent reads what was posted to it. There is one at a time.
pub struct Inbox(taker::Taker<folder::Folder>);

/// What became of a post.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Posted {
    /// The message is there now.
    Now,
    /// It was there before; this was a second attempt.
    Before,
}

/// A message that was not posted. Unless the disk is at fault, it is certainly not there; after that, post the same
/// message again.
#[derive(Debug, thiserror::Error)]
pub enum PostError {
    /// Too much waits there already.
    #[error(
        "the mailbox of `{name}` is full ({bytes} bytes that nobody read); start `{name}` so that it reads them, or remove {}",
        .path.display()
    )]
    Full {
        /// Whose mailbox it is.
        name: String,
        /// How much is in it.
        bytes: u64,
        /// Where it is.
        path: std::path::PathBuf,
    },
    /// It is so old that nobody can tell whether it was delivered.
    #[error("message {id} is too old to tell whether it was delivered; if it was not, send it as a new one")]
    Forgotten {
        /// Its id.
        id: MessageId,
    },
    /// Another process holds the lock and does not go on.
    #[error("another process has held {} for too long; look for one that is stopped", .path.display())]
    Busy {
        /// The mailbox.
        path: std::path::PathBuf,
    },
    /// The disk or the directory is at fault.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

/// A mailbox that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    /// Another process reads it.
    #[error("another process reads {}; end that one, or choose another name", .path.display())]
    InUse {
        /// The mailbox.
        path: std::path::PathBuf,
    },
    /// The disk or the directory is at fault.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl Mailbox {
    /// Opens the mailbox of `name` under `dir`, making both if need be.
    pub fn open(dir: &Path, name: &Name) -> Result<Mailbox, FolderError> {
        Ok(Mailbox(poster::Poster::new(folder::Folder::open(dir, name)?, Limits::REAL)))
    }

    /// Posts a message. Once this returns, it is delivered whatever is killed. After an error of the disk, or a kill, the same
    /// message can be posted again.
    pub fn post(&mut self, message: &Message) -> Result<Posted, PostError> {
        self.0.post(message, LOCK_WAIT)
    }
}

impl Inbox {
    /// Opens the mailbox of `name` under `dir` to read it, making both if need be.
    pub fn open(dir: &Path, name: &Name) -> Result<Inbox, InboxError> {
        let mut folder = folder::Folder::open(dir, name)?;
        if !folder.lock_reader()? {
            return Err(InboxError::InUse { path: folder.path().to_owned() });
        }
        Ok(Inbox(taker::Taker::new(folder, Limits::REAL)?))
    }

    /// Takes what came since the last time, in order. What is not confirmed comes again after a restart.
    pub fn take(&mut self) -> Result<Vec<Delivery>, FolderError> {
        self.0.take()
    }

    /// Says that everything taken so far is where it lasts, and need not be delivered again.
    pub fn confirm(&mut self) -> Result<(), FolderError> {
        self.0.confirm()
    }

    /// How many lines could not be read as messages: torn by a kill, or spoiled.
    pub fn skipped(&self) -> u64 {
        self.0.skipped()
    }
}
