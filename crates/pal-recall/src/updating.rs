//! Bringing the index up to date: only what the files have grown by is read.
//!
//! For every file it is noted up to where it is indexed, in the same change as the documents of that stretch. So a process that
//! is killed leaves the index as it was before its last stretch, and processes that do it at the same time share the work.

use pal_model::{DecisionKind, Entry};
use pal_search::{Changing, Document, Index, SearchError};
use pal_store::{Line, ReadError, Reader};

use crate::about::About;
use crate::chunks::chunks;
use crate::places::{Source, session_and_agent, sources};
use crate::said::{Who, said};
use crate::{FIELDS, Recall};

/// Bytes that are indexed in one change: others wait no longer than that takes.
const STRETCH: u64 = 1 << 20;
/// Bytes of the beginning of a file by which it is known again.
const HEAD: u64 = 120;
/// Damaged lines of one file that are remembered.
const DAMAGED_MAX: usize = 20;

/// How far the index is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Bytes that were read.
    pub done: u64,
    /// Bytes that there were to read.
    pub total: u64,
}

/// What came of bringing the index up to date.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Updated {
    /// Bytes that were read.
    pub bytes: u64,
    /// Files that could not be read, and why.
    pub unread: Vec<String>,
    /// Damaged lines of logs, by file; what is intact is found all the same.
    pub damaged: Vec<String>,
    /// Whether it was stopped, or another process was at it for too long: what is newest may be missing.
    pub is_behind: bool,
}

impl Recall {
    /// Reads what is new in the sessions. `go_on` is told how far it is, and says whether to go on.
    pub fn update(&mut self, go_on: &mut dyn FnMut(Progress) -> bool) -> Result<Updated, SearchError> {
        let only = self.only.clone();
        let done = self.with_index(|index, sessions| {
            let sources = sources(sessions, only.as_ref());
            forget_gone(index, &sources)?;
            Updating { index, go_on, updated: Updated::default(), done: 0, total: 0 }.run(&sources)
        });
        match done {
            // Somebody else brings it up to date; what is there can be searched.
            Err(error) if error.is_busy() => Ok(Updated { is_behind: true, ..Updated::default() }),
            done => done,
        }
    }
}

/// Up to where a file is indexed; nothing of it if another stands in its place.
pub(crate) fn indexed_to(index: &Index, source: &Source) -> Result<u64, SearchError> {
    let name = note_name(&source.name);
    let known = Known::read(index.notes(&name)?.get(&name).map(String::as_str));
    let is_same = Reader::open(&source.path).is_ok_and(|reader| known.is_same(&reader));
    Ok(if is_same { known.to } else { 0 })
}

/// Copies what is known of sessions to another index.
pub(crate) fn copy_abouts(from: &Index, to: &mut Index) -> Result<(), SearchError> {
    let abouts = from.notes("session:")?;
    to.change(|changing| abouts.iter().try_for_each(|(name, note)| changing.set_note(name, note)))
}

/// What is known of damage in these files, in their order.
fn damaged_files(index: &Index, sources: &[Source]) -> Result<Vec<String>, SearchError> {
    let notes = index.notes("damaged:")?;
    let of = |source: &Source| {
        let lines = notes.get(&damaged_name(&source.name))?;
        Some(lines.lines().map(|line| format!("{}: {line}", source.path.display())).collect::<Vec<_>>())
    };
    Ok(sources.iter().filter_map(of).flatten().collect())
}

/// The note about a file.
fn note_name(name: &str) -> String {
    format!("file:{name}#")
}

/// The note about a session.
pub(crate) fn about_name(session: &str) -> String {
    format!("session:{session}#")
}

/// The note that a file's text stands in a log as well.
fn spilled_name(name: &str) -> String {
    format!("spilled:{name}#")
}

/// The note about damaged lines of a file.
fn damaged_name(name: &str) -> String {
    format!("damaged:{name}#")
}

/// Forgets files that are not there any more.
fn forget_gone(index: &mut Index, sources: &[Source]) -> Result<(), SearchError> {
    let there: std::collections::HashSet<&str> = sources.iter().map(|source| source.name.as_str()).collect();
    let known = index.notes("file:")?;
    let names = known.keys().filter_map(|note| note.strip_prefix("file:")?.strip_suffix('#'));
    for gone in names.filter(|name| !there.contains(name)) {
        index.change(|changing| {
            changing.remove_beginning(&format!("{gone}#"))?;
            changing.remove_beginning(&damaged_name(gone))?;
            changing.remove_beginning(&note_name(gone))
        })?;
    }
    Ok(())
}

/// What is known of a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Known {
    /// Up to where it is indexed for good: what is read next begins there.
    to: u64,
    /// How long it was then.
    length: u64,
    /// How it begins.
    head: String,
}

impl Known {
    fn read(note: Option<&str>) -> Known {
        let read = |note: &str| {
            let mut parts = note.splitn(3, ' ');
            let mut number = || parts.next()?.parse().ok();
            let (to, length) = (number()?, number()?);
            Some(Known { to, length, head: parts.next()?.to_owned() })
        };
        note.and_then(read).unwrap_or_default()
    }

    fn note(&self) -> String {
        format!("{} {} {}", self.to, self.length, self.head)
    }

    /// Whether a file still begins as it did, and has not become shorter.
    fn is_same(&self, reader: &Reader) -> bool {
        self.to <= reader.length()
            && head(reader, self.head.len() as u64).is_some_and(|head| head == self.head)
    }
}

/// How a file begins; what is no text in it counts as the same sign.
fn head(reader: &Reader, bytes: u64) -> Option<String> {
    Some(String::from_utf8_lossy(&reader.bytes(0, bytes).ok()?).into_owned())
}

struct Updating<'a> {
    index: &'a mut Index,
    go_on: &'a mut dyn FnMut(Progress) -> bool,
    updated: Updated,
    done: u64,
    total: u64,
}

impl Updating<'_> {
    fn run(mut self, sources: &[Source]) -> Result<Updated, SearchError> {
        let notes = self.index.notes("file:")?;
        let left = |source: &&Source| {
            let known = Known::read(notes.get(&note_name(&source.name)).map(String::as_str));
            // A torn last line that nobody went on with is as torn as it was.
            if source.bytes == known.length { 0 } else { source.bytes.abs_diff(known.to) }
        };
        let todo: Vec<&Source> = sources.iter().filter(|source| left(source) > 0).collect();
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

    /// Indexes a file to its end; whether to go on.
    fn file(&mut self, source: &Source) -> Result<bool, SearchError> {
        let reader = match Reader::open(&source.path) {
            Ok(reader) => reader,
            Err(error) => {
                self.updated.unread.push(error.to_string());
                return Ok(true);
            }
        };
        loop {
            let progress = Progress { done: self.done, total: self.total };
            if !(self.go_on)(progress) {
                return Ok(false);
            }
            let step = self.index.change(|changing| Step::take(changing, source, &reader))?;
            self.done += step.bytes;
            if let Some(problem) = step.problem {
                self.updated.unread.push(problem);
            }
            if step.is_last {
                return Ok(true);
            }
        }
    }
}

/// One stretch of a file.
#[derive(Default)]
struct Step {
    bytes: u64,
    is_last: bool,
    problem: Option<String>,
}

impl Step {
    fn take(changing: &mut Changing<'_>, source: &Source, reader: &Reader) -> Result<Step, SearchError> {
        let name = note_name(&source.name);
        let mut known = Known::read(changing.note(&name)?.as_deref());
        if !known.is_same(reader) {
            // Another file stands in its place: nothing that was known of it counts.
            changing.remove_beginning(&format!("{}#", source.name))?;
            changing.remove_beginning(&damaged_name(&source.name))?;
            known = Known::default();
        }
        if known.head.is_empty() {
            known.head = head(reader, HEAD).unwrap_or_default();
        }
        let step = match source.is_log {
            true => Step::of_log(changing, source, reader, &mut known)?,
            false => Step::of_text(changing, source, reader, &mut known)?,
        };
        known.length = if step.is_last { reader.length() } else { known.to };
        changing.set_note(&name, &known.note())?;
        Ok(step)
    }

    fn of_log(
        changing: &mut Changing<'_>,
        source: &Source,
        reader: &Reader,
        known: &mut Known,
    ) -> Result<Step, SearchError> {
        let lines = match reader.lines_from(known.to) {
            Ok(Some(lines)) => lines,
            Ok(None) => {
                // It was written anew behind its beginning.
                changing.remove_beginning(&format!("{}#", source.name))?;
                known.to = 0;
                return Ok(Step { is_last: reader.length() == 0, ..Step::default() });
            }
            Err(error) => return Ok(Step { is_last: true, problem: Some(error.to_string()), bytes: 0 }),
        };
        let (session, agent) = session_and_agent(&source.name);
        let mut about = Heard::read(changing, session, agent.is_none())?;
        let before = known.to;
        let until = before + STRETCH;
        let mut is_last = true;
        let mut problem = None;
        let mut damaged = Vec::new();
        for line in lines {
            let end = match line {
                Ok(line) => {
                    if line.offset + line.entry.line.len() as u64 + 1 > reader.length() {
                        // Without its end it may still be written.
                        break;
                    }
                    if line.is_altered {
                        let number = reader.number_at(line.offset).unwrap_or_default();
                        damaged.push(format!(
                            "line {number} (byte {}) was altered after it was written (its checksum does not match)",
                            line.offset
                        ));
                    }
                    let end = line.next;
                    about.hear(&line.entry);
                    index_entry(changing, source, &line)?;
                    end
                }
                // A torn last line is looked at again; any other is passed over.
                Err(ReadError::Bad(bad)) if bad.offset + bad.bytes >= reader.length() => break,
                Err(ReadError::Bad(mut bad)) => {
                    bad.number = reader.number_at(bad.offset).unwrap_or_default();
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
        about.write(changing, session)?;
        note_damage(changing, source, damaged)?;
        Ok(Step { is_last, problem, bytes: known.to - before })
    }

    fn of_text(
        changing: &mut Changing<'_>,
        source: &Source,
        reader: &Reader,
        known: &mut Known,
    ) -> Result<Step, SearchError> {
        if changing.note(&spilled_name(&source.name))?.is_some() {
            // Its text is in the log, and found there.
            known.to = reader.length();
            return Ok(Step { is_last: true, ..Step::default() });
        }
        let bytes = match reader.bytes(known.to, known.to + STRETCH) {
            Ok(bytes) => bytes,
            Err(error) => return Ok(Step { is_last: true, problem: Some(error.to_string()), bytes: 0 }),
        };
        let is_last = known.to + bytes.len() as u64 >= reader.length();
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
        let shown = if is_last { bytes.len() } else { whole };
        // Places in the file must stay places in the text, so what is no text becomes one sign for each byte.
        let text = crate::finding::text_of(&bytes[..shown]);
        let mut last = 0;
        for chunk in chunks(&text) {
            last = chunk.start;
            let key = format!("{}#{}", source.name, known.to + chunk.start as u64);
            let fields: [&str; FIELDS] = ["", &text[chunk]];
            changing.put(&Document { key: &key, stamp: "", fields: &fields })?;
        }
        // A last line without an end may go on: then its stretch is indexed again, in its own place.
        known.to += if whole == shown { whole as u64 } else { last as u64 };
        Ok(Step { is_last, problem: None, bytes: shown as u64 })
    }
}

/// Remembers damaged lines of a log: whoever searches it is told every time, not only when they are first read.
fn note_damage(
    changing: &mut Changing<'_>,
    source: &Source,
    damaged: Vec<String>,
) -> Result<(), SearchError> {
    if damaged.is_empty() {
        return Ok(());
    }
    let name = damaged_name(&source.name);
    let known = changing.note(&name)?.unwrap_or_default();
    let mut lines: Vec<String> = known.lines().map(str::to_owned).collect();
    lines.extend(damaged);
    lines.dedup();
    lines.truncate(DAMAGED_MAX);
    changing.set_note(&name, &lines.join("\n"))
}

pub(crate) fn index_entry(
    changing: &mut Changing<'_>,
    source: &Source,
    line: &Line,
) -> Result<(), SearchError> {
    note_spilled(changing, source, &line.entry)?;
    let entry = line.entry.id.to_string();
    for (part, said) in said(&line.entry).iter().enumerate() {
        for chunk in chunks(&said.text) {
            let key = format!("{}#{}.{part}.{}", source.name, line.offset, chunk.start);
            let text = &said.text[chunk];
            // The name of a tool is found with what it was called with.
            let called = match &said.who {
                Who::Call(tool) => format!("{tool} {text}"),
                _ => String::new(),
            };
            let fields: [&str; FIELDS] = match &said.who {
                Who::Call(_) => ["", &called],
                who if who.speaks() => [text, ""],
                _ => ["", text],
            };
            changing.put(&Document { key: &key, stamp: &entry, fields: &fields })?;
        }
    }
    Ok(())
}

/// A result that went to disk stands in the log as it was, so its file is not indexed.
fn note_spilled(changing: &mut Changing<'_>, source: &Source, entry: &Entry) -> Result<(), SearchError> {
    let Some(DecisionKind::Spill { path, .. }) = entry.decision() else { return Ok(()) };
    let Some(folder) = source.name.rsplit_once('/').map(|(folder, _)| folder) else { return Ok(()) };
    let name = format!("{folder}/{path}");
    changing.remove_beginning(&format!("{name}#"))?;
    changing.set_note(&spilled_name(&name), "")
}

/// What a log says of its session.
struct Heard {
    about: About,
    is_new: bool,
    /// Whether it is the log of the session itself, not of an agent.
    counts: bool,
}

impl Heard {
    fn read(changing: &Changing<'_>, session: &str, counts: bool) -> Result<Heard, SearchError> {
        let note = changing.note(&about_name(session))?;
        let about = note.and_then(|note| serde_json::from_str(&note).ok()).unwrap_or_default();
        Ok(Heard { about, is_new: false, counts })
    }

    fn hear(&mut self, entry: &Entry) {
        self.is_new |= self.counts && self.about.hear(entry);
    }

    fn write(&self, changing: &mut Changing<'_>, session: &str) -> Result<(), SearchError> {
        match serde_json::to_string(&self.about) {
            Ok(note) if self.is_new => changing.set_note(&about_name(session), &note),
            _ => Ok(()),
        }
    }
}
