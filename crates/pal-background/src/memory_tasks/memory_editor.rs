//! Tools that change memories in background runs. They look like the file tools; every change goes through
//! `pal-memory`.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pal_memory::{Author, INDEX_FILE, MemoryFile, MemoryKind, MemoryStore, MemoryWriteResult};
use pal_permissions::ToolAccess;
use pal_tools::{GlobTool, GrepTool, ReadTool, ToolContext, ToolHandler, ToolInput, ToolOutput, Workspace};
use serde::Deserialize;

use crate::clock::Clock;

/// Maximum bytes of a memory, since contexts include it whole.
const BYTES_MAX: usize = 32_000;

/// A memory directory open for one run, with its changes.
#[derive(Clone)]
pub(crate) struct MemoryEditor(Arc<Mutex<EditorState>>);

struct EditorState {
    memory: MemoryStore,
    by: Author,
    clock: Clock,
    touched: BTreeSet<String>,
    points: Vec<u64>,
    /// True if new memories consolidate old ones and keep their origin.
    consolidates: bool,
    /// Memories that this run removed.
    removed: Vec<MemoryFile>,
}

impl MemoryEditor {
    /// Creates an editor; all changes are recorded for this author.
    pub(crate) fn new(memory: MemoryStore, by: Author, clock: Clock) -> MemoryEditor {
        MemoryEditor(Arc::new(Mutex::new(EditorState {
            memory,
            by,
            clock,
            touched: BTreeSet::new(),
            points: Vec::new(),
            consolidates: false,
            removed: Vec::new(),
        })))
    }

    /// Makes new memories keep the origin of the old memory whose text they carry on.
    pub(crate) fn consolidating(self) -> MemoryEditor {
        self.pages().consolidates = true;
        self
    }

    /// Tools of a run: reading files, and changing memories.
    pub(crate) fn tools(&self) -> Vec<Box<dyn ToolHandler>> {
        vec![
            Box::new(EditMemoryTool(self.clone())),
            Box::new(GlobTool),
            Box::new(GrepTool),
            Box::new(WriteMemoryTool(self.clone())),
            Box::new(ReadTool),
        ]
    }

    /// Changed files.
    pub(crate) fn touched(&self) -> Vec<String> {
        self.pages().touched.iter().cloned().collect()
    }

    /// History points of the changes.
    pub(crate) fn points(&self) -> Vec<u64> {
        self.pages().points.clone()
    }

    /// Runs a function on the directory.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut MemoryStore) -> T) -> T {
        act(&mut self.pages().memory)
    }

    fn pages(&self) -> MutexGuard<'_, EditorState> {
        // The directory on disk is consistent even after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a memory; empty content removes it.
    fn put(&self, slug: &str, content: &str) -> Result<String, String> {
        let pages = &mut *self.pages();
        let now = pages.clock.now();
        if content.trim().is_empty() {
            let removed = pages.memory.read(slug);
            let written = pages.memory.remove(slug, &pages.by, now).map_err(|error| error.to_string())?;
            pages.removed.extend(removed);
            return Ok(pages.noted(&written, "is removed"));
        }
        check(content)?;
        let mut topic = MemoryFile::parse(slug, content);
        // The origin is not for the writer to change.
        topic.head.origin = match pages.memory.read(slug) {
            Ok(old) => old.head.origin,
            Err(_) => pages.carried_origin(&topic).unwrap_or_else(|| pages.by.clone()),
        };
        let written = pages.memory.write(slug, &topic, &pages.by, now).map_err(|error| error.to_string())?;
        Ok(pages.noted(&written, "is written"))
    }

    /// Replaces texts in a memory, all or none.
    fn amend(&self, slug: &str, replacements: &[TextReplacement]) -> Result<String, String> {
        let pages = &mut *self.pages();
        let now = pages.clock.now();
        let mut wrong = String::new();
        let revised = |file: &str| match amended(slug, file, replacements) {
            Ok(file) => Some(file),
            Err(why) => {
                wrong = why;
                None
            }
        };
        let written = pages.memory.revise(slug, &pages.by, now, revised);
        match written.map_err(|error| error.to_string())? {
            Some(written) => Ok(pages.noted(&written, "is changed")),
            None => Err(wrong),
        }
    }
}

impl EditorState {
    /// Origin of the memory of which a new one carries on the most, at least half of its words.
    fn carried_origin(&mut self, new: &MemoryFile) -> Option<Author> {
        if !self.consolidates {
            return None;
        }
        let listed = self.memory.list().unwrap_or_default();
        let mut old: Vec<MemoryFile> =
            listed.iter().filter_map(|known| self.memory.read(&known.slug).ok()).collect();
        old.extend(self.removed.iter().cloned());
        let words = significant_words(&new.body);
        let percent = |old: &MemoryFile| {
            let before = significant_words(&old.body);
            before.intersection(&words).count() * 100 / before.len().max(1)
        };
        let best = old.into_iter().map(|old| (percent(&old), old)).max_by_key(|(percent, _)| *percent)?;
        (best.0 >= 50).then_some(best.1.head.origin)
    }

    fn noted(&mut self, written: &MemoryWriteResult, what: &str) -> String {
        self.touched.insert(format!("{}.md", written.slug));
        self.points.push(written.point);
        let masked = match written.masked.len() {
            0 => String::new(),
            count => format!(" {count} secrets in it were masked: secrets are never kept."),
        };
        format!("{}.md {what}; the index is up to date.{masked}", written.slug)
    }
}

/// Words of more than three letters, in lower case.
fn significant_words(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    words.filter(|word| word.chars().count() > 3).map(str::to_lowercase).collect()
}

/// Checks that a file is a valid memory.
fn check(file: &str) -> Result<(), String> {
    let lacks = MemoryFile::missing_keys(file);
    if !lacks.is_empty() {
        return Err(format!("The front matter lacks {}.", lacks.join(", ")));
    }
    let kind = file.lines().find_map(|line| line.strip_prefix("type:")).unwrap_or_default();
    kind.trim().trim_matches(['"', '\'']).parse::<MemoryKind>().map_err(|error| format!("{error}."))?;
    if file.len() > BYTES_MAX {
        return Err(format!("A memory may have {BYTES_MAX} bytes at most: say it shorter."));
    }
    Ok(())
}

fn amended(slug: &str, file: &str, replacements: &[TextReplacement]) -> Result<String, String> {
    let mut text = file.to_owned();
    for TextReplacement { old_string, new_string, replace_all } in replacements {
        let times = if old_string.is_empty() { 0 } else { text.matches(old_string.as_str()).count() };
        if times == 0 || (times > 1 && !replace_all) {
            return Err(format!(
                "`old_string` stands in {slug}.md {times} times; name it with so much around it that it stands there once."
            ));
        }
        text = text.replace(old_string.as_str(), new_string);
    }
    check(&text)?;
    let mut topic = MemoryFile::parse(slug, &text);
    topic.head.origin = MemoryFile::parse(slug, file).head.origin;
    Ok(topic.render())
}

/// Memory that a call may change.
fn granted(running: &ToolContext<'_>) -> Result<String, String> {
    let granted = running.granted.iter().find_map(|need| match need {
        ToolAccess::Write(target) => slug_of(&target.real),
        _ => None,
    });
    granted.ok_or_else(|| String::from("This is no memory."))
}

/// Slug of a memory file, by its name.
pub(super) fn slug_of(file: &Path) -> Option<String> {
    let name = file.file_name()?.to_str()?;
    let slug = name.strip_suffix(".md").filter(|slug| !slug.is_empty() && !slug.starts_with('.'))?;
    (!name.eq_ignore_ascii_case(INDEX_FILE)).then(|| slug.to_owned())
}

/// `Write`: a whole memory.
struct WriteMemoryTool(MemoryEditor);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteMemoryInput {
    file_path: String,
    content: String,
}

impl ToolHandler for WriteMemoryTool {
    fn name(&self) -> &str {
        "Write"
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        false
    }

    fn required_access(&self, input: &ToolInput, workspace: &Workspace) -> Result<Vec<ToolAccess>, String> {
        let fields: WriteMemoryInput = input.read()?;
        Ok(vec![ToolAccess::Write(workspace.resolve(&fields.file_path))])
    }

    fn run(&self, input: &ToolInput, running: &ToolContext<'_>) -> ToolOutput {
        let done = input
            .read::<WriteMemoryInput>()
            .and_then(|fields| self.0.put(&granted(running)?, &fields.content));
        told(done)
    }
}

/// `Edit`: parts of a memory.
struct EditMemoryTool(MemoryEditor);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EditMemoryInput {
    file_path: String,
    old_string: Option<String>,
    new_string: Option<String>,
    #[serde(default)]
    replace_all: bool,
    #[serde(default)]
    edits: Vec<TextReplacement>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextReplacement {
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

impl ToolHandler for EditMemoryTool {
    fn name(&self) -> &str {
        "Edit"
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        false
    }

    fn required_access(&self, input: &ToolInput, workspace: &Workspace) -> Result<Vec<ToolAccess>, String> {
        let fields: EditMemoryInput = input.read()?;
        Ok(vec![ToolAccess::Write(workspace.resolve(&fields.file_path))])
    }

    fn run(&self, input: &ToolInput, running: &ToolContext<'_>) -> ToolOutput {
        let done = input.read::<EditMemoryInput>().and_then(|fields| {
            let mut replacements = fields.edits;
            if let (Some(old_string), Some(new_string)) = (fields.old_string, fields.new_string) {
                replacements
                    .insert(0, TextReplacement { old_string, new_string, replace_all: fields.replace_all });
            }
            match replacements.is_empty() {
                true => Err(String::from("Give `old_string` and `new_string`, or `edits`.")),
                false => self.0.amend(&granted(running)?, &replacements),
            }
        });
        told(done)
    }
}

fn told(done: Result<String, String>) -> ToolOutput {
    match done {
        Ok(said) => ToolOutput::text(&said),
        Err(wrong) => ToolOutput::error(&wrong),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consolidated_memories_keep_their_origin() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::default();
        let memory = MemoryStore::open(folder.path(), clock.now()).unwrap();
        let file =
            |body: &str| format!("---\nname: Rule\ndescription: a rule\ntype: project\n---\n\n{body}\n");
        let session =
            |entry: &str| Author::Session { session: String::from("s1"), entry: Some(entry.to_owned()) };
        let extraction = MemoryEditor::new(memory, session("e1"), clock);
        extraction.put("fridays", &file("Releases happen on Fridays after lunch.")).unwrap();
        let memory = MemoryStore::open(folder.path(), clock.now()).unwrap();
        let dream = Author::Named(String::from("dream r1"));
        let book = MemoryEditor::new(memory, dream.clone(), clock).consolidating();
        let origin = |slug: &str| book.with(|memory| memory.read(slug).unwrap().head.origin);
        book.put("fridays", &file("Releases happen on Fridays.")).unwrap();
        assert_eq!(origin("fridays"), session("e1"), "rewritten");
        book.put("merged", &file("Releases happen on Fridays; support is closed on Mondays.")).unwrap();
        assert_eq!(origin("merged"), session("e1"), "merged into a new one");
        book.put("fridays", "").unwrap();
        book.put("merged", "").unwrap();
        book.put("release-days", &file("Our releases happen on Fridays.")).unwrap();
        assert_eq!(origin("release-days"), session("e1"), "renamed");
        book.put("other", &file("The parser lives in its own crate.")).unwrap();
        assert_eq!(origin("other"), dream, "its own");
    }
}
