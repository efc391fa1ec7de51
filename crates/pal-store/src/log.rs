//! The log of one session and its single writer.
//!
//! Only appends, ever, with two exceptions that both cut off what never became an entry: a failed write and a torn
//! tail. An append returns when its line has left the process, so a kill loses at most the entry being written;
//! only [`Log::sync`] and [`Log::finish_sync`] wait for the disk.

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use pal_model::{Draft, Entry, EntryId, IdSource, Text, Timestamp};
use rustc_hash::FxHashMap;

use crate::checksum::seal;
use crate::error::{AppendError, FileError, LogChange, OpenError, Problem, RewindError};
use crate::file;
use crate::held::LockedFile;
use crate::omitted_history::OmittedHistory;
use crate::rescue;
use crate::resume::{Resumed, Start, resume};
use crate::scan::Scan;
use crate::segment::{LINE_BYTES_MAX, Located, Source, read_entry};
use crate::tail::{Torn, find_tail, mend};
use crate::writer::{WriteError, Writer};

/// The single writer of one log. Dropping it lets the next one in.
pub struct Log {
    path: PathBuf,
    writer: Writer<LockedFile>,
    ids: IdSource,
    /// The entry that the next one follows, and where its line starts.
    head: Option<(EntryId, u64)>,
    /// Where the last line starts.
    last_line: Option<u64>,
    offsets: FxHashMap<EntryId, u64>,
    is_directory_synced: bool,
    /// Where the session was saved, because the file is not what it was.
    rescued: Option<PathBuf>,
}

/// A log that was opened, with what its session needs to go on.
pub struct Opened {
    /// The log.
    pub log: Log,
    /// What the view needs.
    pub branch: Branch,
    /// The torn end, if there was one. It is reported once: the log no longer has it.
    pub torn: Option<Torn>,
}

/// Entries of one branch, in the order of the file.
#[derive(Debug, Default)]
pub struct Branch {
    /// The entries. For a session that goes on: the prefix in force, the messages that the newest boundary in
    /// force keeps, that boundary, and all that follows it; without a boundary, the whole branch or what a window may
    /// hold of it.
    pub entries: Vec<Entry>,
    /// What the file no longer gives.
    pub problems: Vec<Problem>,
    /// What is left out because no context window holds it. There is none in a branch that is read whole.
    pub left_out: Option<OmittedHistory>,
}

impl Log {
    /// Makes a new, empty log for its owner only. Its directory must exist.
    pub fn create(path: &Path, ids: IdSource) -> Result<Log, OpenError> {
        let file = file::create_to_append(path)?;
        Ok(Log::new(path, Writer::new(file, 0), ids))
    }

    /// Opens a log to go on with it: takes the lock, sets a torn tail aside, reads what the view needs.
    pub fn open(path: &Path, ids: IdSource) -> Result<Opened, OpenError> {
        let file = file::open_to_append(path)?;
        let end = file.metadata().map_err(|error| FileError::new("read", path, error))?.len();
        let mut tail = find_tail(Source { file: &file, path, end })?;
        // Read first, mend then: a log that is refused stays as it was.
        let start = match tail.last.take() {
            Some(last) => {
                let offset = last.offset;
                Some((offset, resume(Source { file: &file, path, end: tail.end }, &Start::Last(last))?))
            }
            None => None,
        };
        let (torn, end) = mend(&file, path, &tail)?;
        let mut log = Log::new(path, Writer::new(file, end), ids);
        log.last_line = start.as_ref().map(|(offset, _)| *offset);
        let branch = start.map_or(Branch::default(), |(_, resumed)| log.go_on(resumed));
        tracing::debug!(
            bytes = end,
            entries = branch.entries.len(),
            problems = branch.problems.len(),
            "log opened"
        );
        if let Some(torn) = &torn {
            tracing::warn!(bytes = torn.bytes, "a torn end was set aside");
        }
        Ok(Opened { log, branch, torn })
    }

    /// Appends an entry behind the head. The entry that comes back is what a reader of the file will see.
    pub fn append(&mut self, draft: Draft, at: Timestamp) -> Result<Entry, AppendError> {
        let mut entries = self.append_all(vec![draft], at)?;
        // One draft makes one entry.
        entries.pop().ok_or_else(|| AppendError::Broken { path: self.path.clone() })
    }

    /// Appends several entries, each behind the one before, with one write: either all of them are in the log
    /// afterwards or, on an error, none. A kill in between may keep the first ones.
    pub fn append_all(&mut self, drafts: Vec<Draft>, at: Timestamp) -> Result<Vec<Entry>, AppendError> {
        let mut batch = Batch::default();
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

    /// Finds out whether the file at the path still is the one that this log writes, as long as it left it.
    pub fn find_change(&self) -> Result<Option<LogChange>, FileError> {
        rescue::find_change(self.writer.sink(), &self.path, self.writer.length())
            .map_err(|error| FileError::new("read", &self.path, error))
    }

    /// Saves a log that was deleted, replaced or cut to a new file beside it, and behind it `lines` that could not be
    /// appended. `entries` are what is at hand of it, for the case that the file has lost them. Returns the new file,
    /// which is the same for later calls.
    pub fn rescue(&mut self, entries: &[Entry], lines: &str) -> Result<PathBuf, FileError> {
        if let Some(path) = &self.rescued {
            rescue::save_more(path, lines)?;
            return Ok(path.clone());
        }
        let path = rescue::save(self.source(), entries, lines)?;
        Ok(self.rescued.insert(path).clone())
    }

    /// Waits until everything appended so far is on the disk.
    pub fn sync(&mut self) -> Result<(), FileError> {
        self.writer.sync().map_err(|error| FileError::new("sync", &self.path, error))?;
        if !self.is_directory_synced {
            file::sync_directory(self.path.parent().unwrap_or(Path::new("")))?;
            self.is_directory_synced = true;
        }
        Ok(())
    }

    /// Whether everything appended so far is known to be on the disk.
    pub fn is_synced(&self) -> bool {
        self.writer.is_synced() && self.is_directory_synced
    }

    /// Begins to bring everything appended so far to the disk, while the caller does something else; [`Log::finish_sync`]
    /// waits for it.
    pub fn begin_sync(&mut self) -> Result<Syncing, FileError> {
        let length = self.writer.length();
        if self.writer.is_synced() || !self.is_directory_synced {
            self.sync()?;
            return Ok(Syncing { length, thread: None });
        }
        let failed = |error| FileError::new("sync", &self.path, error);
        let file = self.writer.sink().try_clone().map_err(failed)?;
        let work = move || file.sync_data();
        let thread = std::thread::Builder::new().name(String::from("sync")).spawn(work).map_err(failed)?;
        Ok(Syncing { length, thread: Some(thread) })
    }

    /// Waits until what was appended before the beginning is on the disk.
    pub fn finish_sync(&mut self, syncing: Syncing) -> Result<(), FileError> {
        let Some(thread) = syncing.thread else { return Ok(()) };
        let done = thread.join().unwrap_or_else(|_| Err(std::io::Error::other("the thread broke down")));
        done.map_err(|error| FileError::new("sync", &self.path, error))?;
        self.writer.note_synced(syncing.length);
        Ok(())
    }

    /// Goes back to an entry: the next append follows it, on a branch of its own. What comes back is what the view
    /// needs there. Until something is appended the file knows nothing of it.
    pub fn rewind(&mut self, to: EntryId) -> Result<Branch, RewindError> {
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
        Ok(self.go_on_from(located)?)
    }

    /// Where the line of an entry starts, if this log has read or written that entry.
    pub fn offset(&self, id: EntryId) -> Option<u64> {
        self.offsets.get(&id).copied()
    }

    /// The entry that the next append follows.
    pub fn head(&self) -> Option<EntryId> {
        self.head.map(|(id, _)| id)
    }

    /// The log file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn new(path: &Path, writer: Writer<LockedFile>, ids: IdSource) -> Log {
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

    fn source(&self) -> Source<'_> {
        Source { file: self.writer.sink(), path: &self.path, end: self.writer.length() }
    }

    fn go_on_from(&mut self, located: Located) -> Result<Branch, OpenError> {
        let resumed = resume(self.source(), &Start::Chosen(located))?;
        Ok(self.go_on(resumed))
    }

    /// The newest entry `id`, wherever it stands in the file.
    fn find(&self, id: EntryId) -> Result<Option<Located>, OpenError> {
        let source = self.source();
        let Some(found) = Scan::read(source)?.find(id) else { return Ok(None) };
        let bytes = source.read(found.offset, found.offset + found.bytes)?;
        let text = std::str::from_utf8(&bytes).ok();
        Ok(text.and_then(|text| read_entry(found.offset, &Text::from(text)).ok()))
    }

    fn go_on(&mut self, resumed: Resumed) -> Branch {
        let Resumed { located, problems, head, left_out } = resumed;
        self.head = Some(head);
        self.offsets.extend(located.iter().map(|located| (located.entry.id, located.offset)));
        Branch { entries: located.into_iter().map(|located| located.entry).collect(), problems, left_out }
    }

    /// A source seeded like an earlier one would repeat its ids.
    fn fresh_id(&mut self, at: Timestamp) -> EntryId {
        loop {
            let id = self.ids.next_id(at);
            if !self.offsets.contains_key(&id) {
                return id;
            }
        }
    }

    fn refused(&self, error: WriteError) -> AppendError {
        match error {
            WriteError::Io(error) => FileError::new("append to", &self.path, error).into(),
            WriteError::Broken => AppendError::Broken { path: self.path.clone() },
        }
    }
}

/// Bytes that are on their way to the disk.
#[derive(Debug)]
#[must_use = "whether they arrive is known when they were waited for"]
pub struct Syncing {
    length: u64,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

/// Lines that go out together.
#[derive(Default)]
struct Batch {
    bytes: String,
    located: Vec<Located>,
}

impl Batch {
    /// Adds a line that can be read back.
    fn add(&mut self, path: &Path, offset: u64, mut line: String) -> Result<(), AppendError> {
        seal(&mut line);
        let bytes = line.len() as u64 + 1;
        if bytes > LINE_BYTES_MAX {
            return Err(AppendError::TooLong { path: path.to_owned(), bytes, limit: LINE_BYTES_MAX });
        }
        let entry = Entry::parse(Text::from(line.as_str()))
            .map_err(|why| AppendError::Invalid { path: path.to_owned(), why })?;
        if self.bytes.is_empty() {
            self.bytes = line;
        } else {
            self.bytes.push_str(&line);
        }
        self.bytes.push('\n');
        self.located.push(Located {
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
