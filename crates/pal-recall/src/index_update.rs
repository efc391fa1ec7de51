//! Incremental index update: reads only what the files have grown by.
//!
//! The indexed extent of a file is stored in the same transaction as its documents. A killed process
//! therefore leaves a consistent index, and concurrent processes share the work.

use pal_model::{DecisionKind, LogEntry, Timestamp};
use pal_search::{SearchError, TextPlace, WindowIndex, WindowText, WindowTransaction};
use pal_store::{LogLine, LogReader, ReadError};

use crate::Recall;
use crate::entry_parts::{PartSpeaker, entry_parts};
use crate::session_description::SessionDescription;
use crate::session_files::{IndexedFile, modified, session_and_agent, sources};
use crate::text_chunks::{chunks, text_of};

/// Bytes indexed in one transaction, which bounds the wait of other processes.
const STEP_BYTES: u64 = 1 << 20;
/// Bytes of the start of a file that identify it.
const HEAD_BYTES: u64 = 120;
/// Part number of texts in separate files.
pub(crate) const FILE_PART: u32 = u32::MAX;
/// Maximum damaged lines remembered per file.
const DAMAGED_MAX: usize = 20;

/// Progress of an update.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndexProgress {
    /// Bytes read so far.
    pub done: u64,
    /// Bytes to read in total.
    pub total: u64,
}

/// Result of an update.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IndexUpdate {
    /// Bytes read.
    pub bytes: u64,
    /// Errors of files that could not be read.
    pub unreadable: Vec<String>,
    /// Damaged lines of logs, by file; intact lines are indexed nevertheless.
    pub damaged: Vec<String>,
    /// The update was stopped, or another process was busy: the newest text may be missing.
    pub is_behind: bool,
}

impl Recall {
    /// Indexes new text. `go_on` receives the progress and returns whether to continue.
    pub fn update(
        &mut self,
        go_on: &mut dyn FnMut(IndexProgress) -> bool,
    ) -> Result<IndexUpdate, SearchError> {
        let only = self.filter.clone();
        let done = self.with_index(|index, sessions| {
            let sources = sources(sessions, only.as_ref());
            remove_deleted_files(index, &sources)?;
            IndexUpdater { index, go_on, updated: IndexUpdate::default(), done: 0, total: 0 }.run(&sources)
        });
        match done {
            // Another process is updating; the existing index can be searched.
            Err(error) if error.is_busy() => Ok(IndexUpdate { is_behind: true, ..IndexUpdate::default() }),
            done => done,
        }
    }
}

/// Indexed length of a file; 0 if another file has taken its place.
pub(crate) fn indexed_to(index: &WindowIndex, source: &IndexedFile) -> Result<u64, SearchError> {
    let name = note_name(&source.name);
    let known = IndexedExtent::read(index.notes(&name)?.get(&name).map(String::as_str));
    let is_same = LogReader::open(&source.path).is_ok_and(|reader| known.is_same(&reader));
    Ok(if is_same { known.to } else { 0 })
}

/// Copies the session descriptions to another index.
pub(crate) fn copy_descriptions(from: &WindowIndex, to: &mut WindowIndex) -> Result<(), SearchError> {
    let abouts = from.notes("session:")?;
    to.change(|transaction| abouts.iter().try_for_each(|(name, note)| transaction.set_note(name, note)))
}

/// Recorded damage of these files, in order.
fn damaged_files(index: &WindowIndex, sources: &[IndexedFile]) -> Result<Vec<String>, SearchError> {
    let notes = index.notes("damaged:")?;
    let of = |source: &IndexedFile| {
        let lines = notes.get(&damaged_name(&source.name))?;
        Some(lines.lines().map(|line| format!("{}: {line}", source.path.display())).collect::<Vec<_>>())
    };
    Ok(sources.iter().filter_map(of).flatten().collect())
}

/// Name of the note about a file's extent.
fn note_name(name: &str) -> String {
    format!("file:{name}#")
}

/// Name of the note about a session.
pub(crate) fn description_note_name(session: &str) -> String {
    format!("session:{session}#")
}

/// Name of the note that a file's text is also in a log.
fn spilled_name(name: &str) -> String {
    format!("spilled:{name}#")
}

/// Name of the note about damaged lines of a file.
fn damaged_name(name: &str) -> String {
    format!("damaged:{name}#")
}

/// Removes the documents of deleted files.
fn remove_deleted_files(index: &mut WindowIndex, sources: &[IndexedFile]) -> Result<(), SearchError> {
    let there: std::collections::HashSet<&str> = sources.iter().map(|source| source.name.as_str()).collect();
    let known = index.notes("file:")?;
    let names = known.keys().filter_map(|note| note.strip_prefix("file:")?.strip_suffix('#'));
    for gone in names.filter(|name| !there.contains(name)) {
        index.change(|transaction| {
            transaction.remove_sequence(gone)?;
            transaction.remove_note(&damaged_name(gone))?;
            transaction.remove_note(&note_name(gone))
        })?;
    }
    Ok(())
}

/// Indexed extent of a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct IndexedExtent {
    /// Offset at which indexing continues.
    to: u64,
    /// Length of the file at that time.
    length: u64,
    /// First bytes of the file, to recognize it.
    head: String,
}

impl IndexedExtent {
    fn read(note: Option<&str>) -> IndexedExtent {
        let read = |note: &str| {
            let mut parts = note.splitn(3, ' ');
            let mut number = || parts.next()?.parse().ok();
            let (to, length) = (number()?, number()?);
            Some(IndexedExtent { to, length, head: parts.next()?.to_owned() })
        };
        note.and_then(read).unwrap_or_default()
    }

    fn note(&self) -> String {
        format!("{} {} {}", self.to, self.length, self.head)
    }

    /// Reports whether a file still starts the same and has not shrunk.
    fn is_same(&self, reader: &LogReader) -> bool {
        self.to <= reader.length()
            && head(reader, self.head.len() as u64).is_some_and(|head| head == self.head)
    }
}

/// Start of a file, with invalid bytes replaced.
fn head(reader: &LogReader, bytes: u64) -> Option<String> {
    Some(String::from_utf8_lossy(&reader.bytes(0, bytes).ok()?).into_owned())
}

struct IndexUpdater<'a> {
    index: &'a mut WindowIndex,
    go_on: &'a mut dyn FnMut(IndexProgress) -> bool,
    updated: IndexUpdate,
    done: u64,
    total: u64,
}

impl IndexUpdater<'_> {
    fn run(mut self, sources: &[IndexedFile]) -> Result<IndexUpdate, SearchError> {
        let notes = self.index.notes("file:")?;
        let left = |source: &&IndexedFile| {
            let known = IndexedExtent::read(notes.get(&note_name(&source.name)).map(String::as_str));
            // An unchanged torn last line needs no new attempt.
            if source.bytes == known.length { 0 } else { source.bytes.abs_diff(known.to) }
        };
        let todo: Vec<&IndexedFile> = sources.iter().filter(|source| left(source) > 0).collect();
        self.total = todo.iter().map(left).sum();
        for source in todo {
            if !self.file(source)? {
                self.updated.is_behind = true;
                break;
            }
        }
        self.updated.bytes = self.done;
        self.updated.damaged = damaged_files(self.index, sources)?;
        Ok(self.updated)
    }

    /// Indexes a file to its end; returns whether to continue.
    fn file(&mut self, source: &IndexedFile) -> Result<bool, SearchError> {
        let reader = match LogReader::open(&source.path) {
            Ok(reader) => reader,
            Err(error) => {
                self.updated.unreadable.push(error.to_string());
                return Ok(true);
            }
        };
        loop {
            let progress = IndexProgress { done: self.done, total: self.total };
            if !(self.go_on)(progress) {
                return Ok(false);
            }
            let step = self.index.change(|transaction| IndexStep::take(transaction, source, &reader))?;
            self.done += step.bytes;
            if let Some(problem) = step.problem {
                self.updated.unreadable.push(problem);
            }
            if step.is_last {
                return Ok(true);
            }
        }
    }
}

/// One indexed stretch of a file.
#[derive(Default)]
struct IndexStep {
    bytes: u64,
    is_last: bool,
    problem: Option<String>,
}

impl IndexStep {
    fn take(
        transaction: &mut WindowTransaction<'_>,
        source: &IndexedFile,
        reader: &LogReader,
    ) -> Result<IndexStep, SearchError> {
        let name = note_name(&source.name);
        let mut known = IndexedExtent::read(transaction.note(&name)?.as_deref());
        if !known.is_same(reader) {
            // Another file has taken its place.
            transaction.remove_sequence(&source.name)?;
            transaction.remove_note(&damaged_name(&source.name))?;
            known = IndexedExtent::default();
        }
        if known.head.is_empty() {
            known.head = head(reader, HEAD_BYTES).unwrap_or_default();
        }
        let step = match source.is_log {
            true => IndexStep::of_log(transaction, source, reader, &mut known)?,
            false => IndexStep::of_text(transaction, source, reader, &mut known)?,
        };
        known.length = if step.is_last { reader.length() } else { known.to };
        transaction.set_note(&name, &known.note())?;
        Ok(step)
    }

    fn of_log(
        transaction: &mut WindowTransaction<'_>,
        source: &IndexedFile,
        reader: &LogReader,
        known: &mut IndexedExtent,
    ) -> Result<IndexStep, SearchError> {
        let lines = match reader.lines_from(known.to) {
            Ok(Some(lines)) => lines,
            Ok(None) => {
                // The file was rewritten after its start.
                transaction.remove_sequence(&source.name)?;
                known.to = 0;
                return Ok(IndexStep { is_last: reader.length() == 0, ..IndexStep::default() });
            }
            Err(error) => return Ok(IndexStep { is_last: true, problem: Some(error.to_string()), bytes: 0 }),
        };
        let (session, agent) = session_and_agent(&source.name);
        let mut about = DescriptionCollector::read(transaction, session, agent.is_none())?;
        let before = known.to;
        let until = before + STEP_BYTES;
        let mut is_last = true;
        let mut problem = None;
        let mut damaged = Vec::new();
        let mut texts = Vec::new();
        for line in lines {
            let end = match line {
                Ok(line) => {
                    if line.offset + line.entry.line.len() as u64 + 1 > reader.length() {
                        // An unfinished line may still be growing.
                        break;
                    }
                    if line.is_altered {
                        let number = reader.line_number_at(line.offset).unwrap_or_default();
                        damaged.push(format!(
                            "line {number} (byte {}) was altered after it was written (its checksum does not match)",
                            line.offset
                        ));
                    }
                    let end = line.next;
                    about.add_entry(&line.entry);
                    note_entry(transaction, source, &line)?;
                    texts.extend(entry_texts(&line));
                    end
                }
                // Retry a torn last line later; skip any other damaged line.
                Err(ReadError::Bad(bad)) if bad.offset + bad.bytes >= reader.length() => break,
                Err(ReadError::Bad(mut bad)) => {
                    bad.number = reader.line_number_at(bad.offset).unwrap_or_default();
                    damaged.push(bad.to_string());
                    bad.offset + bad.bytes
                }
                Err(ReadError::File(error)) => {
                    problem = Some(error.to_string());
                    break;
                }
            };
            known.to = end;
            if end >= until {
                is_last = false;
                break;
            }
        }
        add_texts(transaction, source, &texts)?;
        about.write(transaction, session)?;
        note_damage(transaction, source, damaged)?;
        Ok(IndexStep { is_last, problem, bytes: known.to - before })
    }

    fn of_text(
        transaction: &mut WindowTransaction<'_>,
        source: &IndexedFile,
        reader: &LogReader,
        known: &mut IndexedExtent,
    ) -> Result<IndexStep, SearchError> {
        if transaction.note(&spilled_name(&source.name))?.is_some() {
            // Its text is already indexed from the log.
            known.to = reader.length();
            return Ok(IndexStep { is_last: true, ..IndexStep::default() });
        }
        let bytes = match reader.bytes(known.to, known.to + STEP_BYTES) {
            Ok(bytes) => bytes,
            Err(error) => return Ok(IndexStep { is_last: true, problem: Some(error.to_string()), bytes: 0 }),
        };
        let is_last = known.to + bytes.len() as u64 >= reader.length();
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
        let shown = if is_last { bytes.len() } else { whole };
        // Offsets in the file must equal offsets in the text.
        let text = text_of(&bytes[..shown]);
        let chunks = chunks(&text);
        let last = chunks.last().map_or(0, |chunk| chunk.start);
        let at = modified(&source.path).map_or(0, Timestamp::milliseconds);
        let texts: Vec<WindowText<'_>> = chunks
            .into_iter()
            .map(|chunk| WindowText {
                place: TextPlace { offset: known.to + chunk.start as u64, part: FILE_PART, start: 0 },
                text: &text[chunk],
                kind: PartSpeaker::Output.kind(),
                at,
            })
            .collect();
        transaction.remove_texts_from(&source.name, known.to)?;
        transaction.add_texts(&source.name, &texts)?;
        // An unfinished last line may grow: index its chunk again.
        known.to += if whole == shown { whole as u64 } else { last as u64 };
        Ok(IndexStep { is_last, problem: None, bytes: shown as u64 })
    }
}

/// Remembers damaged lines of a log, so that every search can report them.
fn note_damage(
    transaction: &mut WindowTransaction<'_>,
    source: &IndexedFile,
    damaged: Vec<String>,
) -> Result<(), SearchError> {
    if damaged.is_empty() {
        return Ok(());
    }
    let name = damaged_name(&source.name);
    let known = transaction.note(&name)?.unwrap_or_default();
    let mut lines: Vec<String> = known.lines().map(str::to_owned).collect();
    lines.extend(damaged);
    lines.dedup();
    lines.truncate(DAMAGED_MAX);
    transaction.set_note(&name, &lines.join("\n"))
}

/// A text of an entry.
pub(crate) struct EntryText {
    text: String,
    place: TextPlace,
    kind: u8,
    at: i64,
}

/// Texts of an entry: its parts, in chunks.
pub(crate) fn entry_texts(line: &LogLine) -> Vec<EntryText> {
    let mut texts = Vec::new();
    for (number, part) in (0..).zip(entry_parts(&line.entry)) {
        for chunk in chunks(&part.text) {
            let text = &part.text[chunk.clone()];
            texts.push(EntryText {
                // Index the tool's name together with its input.
                text: match &part.speaker {
                    PartSpeaker::Call(tool) => format!("{tool} {text}"),
                    _ => text.to_owned(),
                },
                place: TextPlace {
                    offset: line.offset,
                    part: number,
                    start: u32::try_from(chunk.start).unwrap_or(u32::MAX),
                },
                kind: part.speaker.kind(),
                at: line.entry.at.milliseconds(),
            });
        }
    }
    texts
}

/// Appends the texts of entries to the index.
pub(crate) fn add_texts(
    transaction: &mut WindowTransaction<'_>,
    source: &IndexedFile,
    texts: &[EntryText],
) -> Result<(), SearchError> {
    let texts: Vec<WindowText<'_>> = texts
        .iter()
        .map(|text| WindowText { text: &text.text, place: text.place, kind: text.kind, at: text.at })
        .collect();
    transaction.add_texts(&source.name, &texts)
}

/// Notes the place of an entry, and what it says about other files.
fn note_entry(
    transaction: &mut WindowTransaction<'_>,
    source: &IndexedFile,
    line: &LogLine,
) -> Result<(), SearchError> {
    note_spilled(transaction, source, &line.entry)?;
    transaction.set_place(&line.entry.id.bits().to_be_bytes(), &source.name, line.offset)
}

/// Marks a spilled file as not to be indexed, because its text is in the log.
fn note_spilled(
    transaction: &mut WindowTransaction<'_>,
    source: &IndexedFile,
    entry: &LogEntry,
) -> Result<(), SearchError> {
    let Some(DecisionKind::Spill { path, .. }) = entry.decision() else { return Ok(()) };
    let Some(folder) = source.name.rsplit_once('/').map(|(folder, _)| folder) else { return Ok(()) };
    let name = format!("{folder}/{path}");
    transaction.remove_sequence(&name)?;
    transaction.set_note(&spilled_name(&name), "")
}

/// Description of a session while its log is indexed.
struct DescriptionCollector {
    about: SessionDescription,
    is_new: bool,
    /// This is the log of the session itself, not of a subagent.
    counts: bool,
}

impl DescriptionCollector {
    fn read(
        transaction: &WindowTransaction<'_>,
        session: &str,
        counts: bool,
    ) -> Result<DescriptionCollector, SearchError> {
        let note = transaction.note(&description_note_name(session))?;
        let about = note.and_then(|note| serde_json::from_str(&note).ok()).unwrap_or_default();
        Ok(DescriptionCollector { about, is_new: false, counts })
    }

    fn add_entry(&mut self, entry: &LogEntry) {
        self.is_new |= self.counts && self.about.update_from_entry(entry);
    }

    fn write(&self, transaction: &mut WindowTransaction<'_>, session: &str) -> Result<(), SearchError> {
        match serde_json::to_string(&self.about) {
            Ok(note) if self.is_new => transaction.set_note(&description_note_name(session), &note),
            _ => Ok(()),
        }
    }
}
