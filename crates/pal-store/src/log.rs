//! The log of one session and its single writer.
//!
//! The file is append-only, except that a failed write and a torn tail are cut off. An append returns once
//! its line has left the process, so a kill loses at most the entry being written; only [`Log::sync`] and
//! [`Log::finish_sync`] wait for the disk.

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use pal_model::{EntryDraft, EntryId, IdSource, LogEntry, SharedText, Timestamp};
use rustc_hash::FxHashMap;

use crate::append_writer::{AppendWriter, SinkError};
use crate::checksum::seal;
use crate::error::{AppendError, FileError, LogChange, LogProblem, OpenError, RewindError};
use crate::located_entry::{LocatedEntry, read_entry};
use crate::log_open;
use crate::log_scan::LogScan;
use crate::log_tail::{TornTail, find_tail, settle_tail};
use crate::omitted_history::OmittedHistory;
use crate::rescue;
use crate::resume::{ResumeStart, ResumedBranch, resume};
use crate::safe_open::LockedFile;
use crate::segment::{LINE_BYTES_MAX, LogSource};

/// Single writer of one log. Dropping it releases the lock.
pub struct Log {
    path: PathBuf,
    writer: AppendWriter<LockedFile>,
    ids: IdSource,
    /// Id and offset of the entry that the next one follows.
    head: Option<(EntryId, u64)>,
    /// Offset of the last line.
    last_line: Option<u64>,
    offsets: FxHashMap<EntryId, u64>,
    is_directory_synced: bool,
    /// Path of the rescued copy, once the file was lost.
    rescued: Option<PathBuf>,
}

/// An opened log with what its session needs to resume.
pub struct OpenedLog {
    /// The writer.
    pub log: Log,
    /// Entries that the view needs.
    pub branch: LogBranch,
    /// Torn tail that was moved away. Reported once: the log no longer has it.
    pub torn: Option<TornTail>,
}

/// Entries of one branch, in file order.
#[derive(Debug, Default)]
pub struct LogBranch {
    /// Entries in order. For a resumed session: the prefix in force, the preserved messages, the newest
    /// boundary in force and everything after it; without a boundary, the whole branch, or as much of it as a
    /// window may hold.
    pub entries: Vec<LogEntry>,
    /// Damage found while reading.
    pub problems: Vec<LogProblem>,
    /// Part that was left out because it exceeds every context window; never set for a whole branch.
    pub omitted: Option<OmittedHistory>,
}

impl Log {
    /// Creates an empty log with mode 0600. Its directory must exist.
    pub fn create(path: &Path, ids: IdSource) -> Result<Log, OpenError> {
        let file = log_open::create_to_append(path)?;
        Ok(Log::new(path, AppendWriter::new(file, 0), ids))
    }

    /// Opens a log to resume it: takes the lock, moves a torn tail away, and reads what the view needs.
    pub fn open(path: &Path, ids: IdSource) -> Result<OpenedLog, OpenError> {
        let file = log_open::open_to_append(path)?;
        let end = file.metadata().map_err(|error| FileError::new("read", path, error))?.len();
        let mut tail = find_tail(LogSource { file: &file, path, end })?;
        // Read before mending, so that a refused log stays unchanged.
        let start = match tail.last.take() {
            Some(last) => {
                let offset = last.offset;
                Some((
                    offset,
                    resume(LogSource { file: &file, path, end: tail.end }, &ResumeStart::Last(last))?,
                ))
            }
            None => None,
        };
        let (torn, end) = settle_tail(&file, path, &tail)?;
        let mut log = Log::new(path, AppendWriter::new(file, end), ids);
        log.last_line = start.as_ref().map(|(offset, _)| *offset);
        let branch = start.map_or(LogBranch::default(), |(_, resumed)| log.adopt(resumed));
        tracing::debug!(
            bytes = end,
            entries = branch.entries.len(),
            problems = branch.problems.len(),
            "log opened"
        );
        if let Some(torn) = &torn {
            tracing::warn!(bytes = torn.bytes, "a torn end was set aside");
        }
        Ok(OpenedLog { log, branch, torn })
    }

    /// Appends an entry after the head and returns it exactly as a reader will see it.
    pub fn append(&mut self, draft: EntryDraft, at: Timestamp) -> Result<LogEntry, AppendError> {
        let mut entries = self.append_all(vec![draft], at)?;
        // One draft makes one entry.
        entries.pop().ok_or_else(|| AppendError::Broken { path: self.path.clone() })
    }

    /// Appends several entries with one write. On an error none of them is in the log; a kill may keep the
    /// first ones.
    pub fn append_all(
        &mut self,
        drafts: Vec<EntryDraft>,
        at: Timestamp,
    ) -> Result<Vec<LogEntry>, AppendError> {
        let mut batch = AppendBatch::default();
        let start = self.writer.length();
        let mut head = self.head;
        for draft in drafts {
            let offset = start + batch.bytes.len() as u64;
            let id = draft.id().unwrap_or_else(|| self.fresh_id(at));
            let last_line = batch.located.last().map(|located| located.offset).or(self.last_line);
            let parent_offset = head.map(|(_, offset)| offset).filter(|offset| Some(*offset) != last_line);
            let line = draft.into_line(id, head.map(|(id, _)| id), at, parent_offset);
            batch.add(&self.path, offset, line)?;
            head = Some((id, offset));
        }
        if let Some(change) = self.find_change()? {
            return Err(AppendError::Changed { path: self.path.clone(), change, lines: batch.bytes });
        }
        self.writer.append(batch.bytes.as_bytes()).map_err(|error| self.refused(error))?;
        for located in &batch.located {
            self.offsets.insert(located.entry.id, located.offset);
            self.last_line = Some(located.offset);
        }
        self.head = head;
        Ok(batch.located.into_iter().map(|located| located.entry).collect())
    }

    /// Detects whether another program deleted, replaced or resized the file.
    pub fn find_change(&self) -> Result<Option<LogChange>, FileError> {
        rescue::find_change(self.writer.sink(), &self.path, self.writer.length())
            .map_err(|error| FileError::new("read", &self.path, error))
    }

    /// Saves a log that was deleted, replaced or truncated to a new file next to it, followed by `lines` that
    /// could not be appended. `entries` serve as the source if the file has lost them. Later calls append to
    /// the same new file.
    pub fn rescue(&mut self, entries: &[LogEntry], lines: &str) -> Result<PathBuf, FileError> {
        if let Some(path) = &self.rescued {
            rescue::save_more(path, lines)?;
            return Ok(path.clone());
        }
        let path = rescue::save(self.source(), entries, lines)?;
        Ok(self.rescued.insert(path).clone())
    }

    /// Waits until everything appended so far is on disk.
    pub fn sync(&mut self) -> Result<(), FileError> {
        self.writer.sync().map_err(|error| FileError::new("sync", &self.path, error))?;
        if !self.is_directory_synced {
            log_open::sync_directory(self.path.parent().unwrap_or(Path::new("")))?;
            self.is_directory_synced = true;
        }
        Ok(())
    }

    /// Reports whether everything appended so far is known to be on disk.
    pub fn is_synced(&self) -> bool {
        self.writer.is_synced() && self.is_directory_synced
    }

    /// Starts syncing everything appended so far in the background; [`Log::finish_sync`] waits for it.
    pub fn begin_sync(&mut self) -> Result<PendingSync, FileError> {
        let length = self.writer.length();
        if self.writer.is_synced() || !self.is_directory_synced {
            self.sync()?;
            return Ok(PendingSync { length, thread: None });
        }
        let failed = |error| FileError::new("sync", &self.path, error);
        let file = self.writer.sink().try_clone().map_err(failed)?;
        let work = move || file.sync_data();
        let thread = std::thread::Builder::new().name(String::from("sync")).spawn(work).map_err(failed)?;
        Ok(PendingSync { length, thread: Some(thread) })
    }

    /// Waits for a sync that [`Log::begin_sync`] started.
    pub fn finish_sync(&mut self, syncing: PendingSync) -> Result<(), FileError> {
        let Some(thread) = syncing.thread else { return Ok(()) };
        let done = thread.join().unwrap_or_else(|_| Err(std::io::Error::other("the sync thread crashed")));
        done.map_err(|error| FileError::new("sync", &self.path, error))?;
        self.writer.note_synced(syncing.length);
        Ok(())
    }

    /// Moves the head to an entry: the next append starts a new branch there. Returns what the view needs at
    /// that entry. Writes nothing until the next append.
    pub fn rewind(&mut self, to: EntryId) -> Result<LogBranch, RewindError> {
        let found = {
            let known = match self.offset(to) {
                Some(offset) => self.source().line_at(offset)?.and_then(|line| line.parse().ok()),
                None => None,
            };
            match known.filter(|located| located.entry.id == to) {
                Some(located) => Some(located),
                None => self.find(to)?,
            }
        };
        let located = found.ok_or_else(|| RewindError::NoSuchEntry { path: self.path.clone(), id: to })?;
        Ok(self.resume_from(located)?)
    }

    /// Offset of an entry's line, if this log has read or written the entry.
    pub fn offset(&self, id: EntryId) -> Option<u64> {
        self.offsets.get(&id).copied()
    }

    /// Entry that the next append follows.
    pub fn head(&self) -> Option<EntryId> {
        self.head.map(|(id, _)| id)
    }

    /// Path of the log file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn new(path: &Path, writer: AppendWriter<LockedFile>, ids: IdSource) -> Log {
        Log {
            path: path.to_owned(),
            writer,
            ids,
            head: None,
            last_line: None,
            offsets: FxHashMap::default(),
            is_directory_synced: false,
            rescued: None,
        }
    }

    fn source(&self) -> LogSource<'_> {
        LogSource { file: self.writer.sink(), path: &self.path, end: self.writer.length() }
    }

    fn resume_from(&mut self, located: LocatedEntry) -> Result<LogBranch, OpenError> {
        let resumed = resume(self.source(), &ResumeStart::Chosen(located))?;
        Ok(self.adopt(resumed))
    }

    /// Finds the newest entry with this id anywhere in the file.
    fn find(&self, id: EntryId) -> Result<Option<LocatedEntry>, OpenError> {
        let source = self.source();
        let Some(found) = LogScan::read(source)?.find(id) else { return Ok(None) };
        let bytes = source.read(found.offset, found.offset + found.bytes)?;
        let text = std::str::from_utf8(&bytes).ok();
        Ok(text.and_then(|text| read_entry(found.offset, &SharedText::from(text)).ok()))
    }

    fn adopt(&mut self, resumed: ResumedBranch) -> LogBranch {
        let ResumedBranch { located, problems, head, left_out } = resumed;
        self.head = Some(head);
        self.offsets.extend(located.iter().map(|located| (located.entry.id, located.offset)));
        LogBranch {
            entries: located.into_iter().map(|located| located.entry).collect(),
            problems,
            omitted: left_out,
        }
    }

    /// Skips ids that a source with the same seed used before.
    fn fresh_id(&mut self, at: Timestamp) -> EntryId {
        loop {
            let id = self.ids.next_id(at);
            if !self.offsets.contains_key(&id) {
                return id;
            }
        }
    }

    fn refused(&self, error: SinkError) -> AppendError {
        match error {
            SinkError::Io(error) => FileError::new("append to", &self.path, error).into(),
            SinkError::Broken => AppendError::Broken { path: self.path.clone() },
        }
    }
}

/// A sync in progress.
#[derive(Debug)]
#[must_use = "whether they arrive is known when they were waited for"]
pub struct PendingSync {
    length: u64,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

/// Lines written together.
#[derive(Default)]
struct AppendBatch {
    bytes: String,
    located: Vec<LocatedEntry>,
}

impl AppendBatch {
    /// Adds a line after checking that it can be read back.
    fn add(&mut self, path: &Path, offset: u64, mut line: String) -> Result<(), AppendError> {
        seal(&mut line);
        let bytes = line.len() as u64 + 1;
        if bytes > LINE_BYTES_MAX {
            return Err(AppendError::TooLong { path: path.to_owned(), bytes, limit: LINE_BYTES_MAX });
        }
        let entry = LogEntry::parse(SharedText::from(line.as_str()))
            .map_err(|why| AppendError::Invalid { path: path.to_owned(), why })?;
        if self.bytes.is_empty() {
            self.bytes = line;
        } else {
            self.bytes.push_str(&line);
        }
        self.bytes.push('\n');
        self.located.push(LocatedEntry {
            offset,
            entry,
            is_altered: false,
            has_crlf: false,
            has_checksum: true,
            is_salvaged: false,
        });
        Ok(())
    }
}
