//! The tools by which a run changes memories: they are called and used like those for files, and every change goes through
//! the memory directory's own door.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pal_memory::{Author, INDEX_FILE, Kind, Memory, Topic, Written};
use pal_permissions::Need;
use pal_tools::{Glob, Grep, Input, Output, Read, Running, Tool, Workspace};
use serde::Deserialize;

use crate::clock::Clock;

/// The longest memory that is taken: it is read into contexts whole.
const BYTES_MOST: usize = 32_000;

/// A memory directory that a run writes to, and what it has written.
#[derive(Clone)]
pub(crate) struct Book(Arc<Mutex<Pages>>);

struct Pages {
    memory: Memory,
    by: Author,
    clock: Clock,
    touched: BTreeSet<String>,
    points: Vec<u64>,
}

impl Book {
    /// All that is written is this author's.
    pub(crate) fn new(memory: Memory, by: Author, clock: Clock) -> Book {
        Book(Arc::new(Mutex::new(Pages { memory, by, clock, touched: BTreeSet::new(), points: Vec::new() })))
    }

    /// The tools of a run: those that look, and those that change memories.
    pub(crate) fn tools(&self) -> Vec<Box<dyn Tool>> {
        vec![
            Box::new(Amend(self.clone())),
            Box::new(Glob),
            Box::new(Grep),
            Box::new(Put(self.clone())),
            Box::new(Read),
        ]
    }

    /// The files that were changed.
    pub(crate) fn touched(&self) -> Vec<String> {
        self.pages().touched.iter().cloned().collect()
    }

    /// The points of the history that it led to.
    pub(crate) fn points(&self) -> Vec<u64> {
        self.pages().points.clone()
    }

    /// Does something with the directory itself.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Memory) -> T) -> T {
        act(&mut self.pages().memory)
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        // Whatever broke down, the directory on disk is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a memory whole; one without content goes.
    fn put(&self, slug: &str, content: &str) -> Result<String, String> {
        let pages = &mut *self.pages();
        let now = pages.clock.now();
        if content.trim().is_empty() {
            let written = pages.memory.remove(slug, &pages.by, now).map_err(|error| error.to_string())?;
            return Ok(pages.noted(&written, "is removed"));
        }
        check(content)?;
        let mut topic = Topic::read(slug, content);
        // Who wrote it first is not for the writer to say.
        topic.head.origin = pages.memory.read(slug).map_or_else(|_| pages.by.clone(), |old| old.head.origin);
        let written = pages.memory.write(slug, &topic, &pages.by, now).map_err(|error| error.to_string())?;
        Ok(pages.noted(&written, "is written"))
    }

    /// Replaces texts in a memory, all or none.
    fn amend(&self, slug: &str, replacements: &[Replacement]) -> Result<String, String> {
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

impl Pages {
    fn noted(&mut self, written: &Written, what: &str) -> String {
        self.touched.insert(format!("{}.md", written.slug));
        self.points.push(written.point);
        let masked = match written.masked.len() {
            0 => String::new(),
            count => format!(" {count} secrets in it were masked: secrets are never kept."),
        };
        format!("{}.md {what}; the index is up to date.{masked}", written.slug)
    }
}

/// Whether a file can be a memory.
fn check(file: &str) -> Result<(), String> {
    let lacks = Topic::lacks(file);
    if !lacks.is_empty() {
        return Err(format!("The front matter lacks {}.", lacks.join(", ")));
    }
    let kind = file.lines().find_map(|line| line.strip_prefix("type:")).unwrap_or_default();
    kind.trim().trim_matches(['"', '\'']).parse::<Kind>().map_err(|error| format!("{error}."))?;
    if file.len() > BYTES_MOST {
        return Err(format!("A memory may have {BYTES_MOST} bytes at most: say it shorter."));
    }
    Ok(())
}

fn amended(slug: &str, file: &str, replacements: &[Replacement]) -> Result<String, String> {
    let mut text = file.to_owned();
    for Replacement { old_string, new_string, replace_all } in replacements {
        let times = if old_string.is_empty() { 0 } else { text.matches(old_string.as_str()).count() };
        if times == 0 || (times > 1 && !replace_all) {
            return Err(format!(
                "`old_string` stands in {slug}.md {times} times; name it with so much around it that it stands there once."
            ));
        }
        text = text.replace(old_string.as_str(), new_string);
    }
    check(&text)?;
    let mut topic = Topic::read(slug, &text);
    topic.head.origin = Topic::read(slug, file).head.origin;
    Ok(topic.file())
}

/// The memory that a call was allowed to change.
fn granted(running: &Running<'_>) -> Result<String, String> {
    let granted = running.granted.iter().find_map(|need| match need {
        Need::Write(target) => slug_of(&target.real),
        _ => None,
    });
    granted.ok_or_else(|| String::from("This is no memory."))
}

/// The slug of a file that can be a memory, by its name alone.
pub(super) fn slug_of(file: &Path) -> Option<String> {
    let name = file.file_name()?.to_str()?;
    let slug = name.strip_suffix(".md").filter(|slug| !slug.is_empty() && !slug.starts_with('.'))?;
    (!name.eq_ignore_ascii_case(INDEX_FILE)).then(|| slug.to_owned())
}

/// `Write`: a memory as a whole.
struct Put(Book);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PutFields {
    file_path: String,
    content: String,
}

impl Tool for Put {
    fn name(&self) -> &str {
        "Write"
    }

    fn only_looks(&self, _: &Input) -> bool {
        false
    }

    fn needs(&self, input: &Input, workspace: &Workspace) -> Result<Vec<Need>, String> {
        let fields: PutFields = input.read()?;
        Ok(vec![Need::Write(workspace.resolve(&fields.file_path))])
    }

    fn run(&self, input: &Input, running: &Running<'_>) -> Output {
        let done =
            input.read::<PutFields>().and_then(|fields| self.0.put(&granted(running)?, &fields.content));
        told(done)
    }
}

/// `Edit`: pieces of a memory.
struct Amend(Book);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AmendFields {
    file_path: String,
    old_string: Option<String>,
    new_string: Option<String>,
    #[serde(default)]
    replace_all: bool,
    #[serde(default)]
    edits: Vec<Replacement>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Replacement {
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

impl Tool for Amend {
    fn name(&self) -> &str {
        "Edit"
    }

    fn only_looks(&self, _: &Input) -> bool {
        false
    }

    fn needs(&self, input: &Input, workspace: &Workspace) -> Result<Vec<Need>, String> {
        let fields: AmendFields = input.read()?;
        Ok(vec![Need::Write(workspace.resolve(&fields.file_path))])
    }

    fn run(&self, input: &Input, running: &Running<'_>) -> Output {
        let done = input.read::<AmendFields>().and_then(|fields| {
            let mut replacements = fields.edits;
            if let (Some(old_string), Some(new_string)) = (fields.old_string, fields.new_string) {
                replacements
                    .insert(0, Replacement { old_string, new_string, replace_all: fields.replace_all });
            }
            match replacements.is_empty() {
                true => Err(String::from("Give `old_string` and `new_string`, or `edits`.")),
                false => self.0.amend(&granted(running)?, &replacements),
            }
        });
        told(done)
    }
}

fn told(done: Result<String, String>) -> Output {
    match done {
        Ok(said) => Output::text(&said),
        Err(wrong) => Output::error(&wrong),
    }
}
