//! Reading a conversation in one pass, from a request or from a log.
//!
//! The two sources differ in one thing: a request says only which side speaks, so a person's words are told from
//! inserted ones by their tags; a log says who spoke.

use pal_model::{Body, Boundary, Content, EARLIER_RESULT, Entry, EntryId, Origin, Role};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::called::{Called, Touch};
use crate::facts::{Command, Facts, File, Target, Trouble, Words};
use crate::heard::{Heard, without_reminders};
use crate::prose::{cut, first_line, lines_with};
use crate::sections::is_summary;

/// Words by which a line that speaks of an error is known.
const ERROR_WORDS: [&str; 15] = [
    "error:",
    "error[",
    "error -",
    "failed",
    "failure",
    "panicked",
    "exception",
    "traceback",
    "fatal:",
    "no such file",
    "not found",
    "cannot ",
    "permission denied",
    "--- fail",
    "npm err!",
];
/// Words by which a line is known that only seems to.
const HARMLESS: [&str; 6] = ["0 failed", "0 errors", "no errors", "0 failures", "no error", "errors: 0"];

/// Results that say of a call only that it was not made.
const NOT_MADE: [&str; 3] =
    ["doesn't want to proceed with this tool use", "interrupted by user", "sibling tool call errored"];
/// Commands that print what is written somewhere: errors that it speaks of did not happen.
const PRINTING: [&str; 18] = [
    "cat", "cd", "grep", "rg", "sed", "awk", "head", "tail", "less", "find", "ls", "jq", "sort", "wc",
    "echo", "git diff", "git log", "git show",
];

/// A conversation while it is read.
#[derive(Default)]
pub(crate) struct Reading {
    facts: Facts,
    calls: FxHashMap<String, Target>,
    /// Where each path stands in the list of files.
    paths: FxHashMap<String, usize>,
    /// Entries whose words were heard: a boundary may carry what it also keeps.
    heard: FxHashSet<EntryId>,
    /// Troubles that nothing followed yet, from here on.
    open: usize,
}

impl Reading {
    pub(crate) fn finish(self) -> Facts {
        self.facts
    }

    /// Reads an entry of a log.
    pub(crate) fn entry(&mut self, entry: &Entry) {
        match &entry.body {
            Body::User(user) => {
                self.facts.messages += 1;
                self.user_entry(entry.id, user.origin, &user.content);
            }
            Body::Assistant(assistant) => {
                self.facts.messages += 1;
                // In a log, summaries are boundaries; what the model says is said.
                self.assistant(assistant.content.blocks().iter().map(Heard::of_block), false);
            }
            Body::Boundary(boundary) => self.boundary(boundary),
            // Who adds an attachment adds it again where it is still needed.
            _ => {}
        }
    }

    /// Reads a message of a request.
    pub(crate) fn message<'a>(&mut self, role: Role, blocks: impl IntoIterator<Item = Heard<'a>>) {
        self.facts.messages += 1;
        match role {
            Role::User => blocks.into_iter().for_each(|block| self.user_block(block)),
            Role::Assistant => self.assistant(blocks, true),
            Role::System => {}
        }
    }

    fn user_entry(&mut self, id: EntryId, origin: Origin, content: &Content) {
        let is_new = self.heard.insert(id);
        for block in content.blocks() {
            match (Heard::of_block(block), origin) {
                // What stands in for a result that never came says nothing of the call.
                (Heard::Returned { .. }, Origin::Synthetic) => {}
                (Heard::Returned { id, text, is_error }, _) => self.returned(&id, &text, is_error),
                (Heard::Text(text), Origin::Person) if is_new => self.words(Some(id), text.trim()),
                (Heard::Text(text), Origin::Tool | Origin::Agent) => self.inserted(text.trim()),
                _ => {}
            }
        }
    }

    fn boundary(&mut self, boundary: &Boundary) {
        if !boundary.stands() {
            return;
        }
        for content in [&boundary.lead, &boundary.summary] {
            let texts = content.blocks().iter().filter_map(|block| match Heard::of_block(block) {
                Heard::Text(text) => Some(text.into_owned()),
                _ => None,
            });
            self.earlier(texts.collect::<Vec<_>>().join("\n\n"));
        }
        let carried = &boundary.snapshot.carried;
        self.facts.pointed = carried.pointed;
        self.facts.has_earlier_words = !carried.words.is_empty() || carried.pointed > 0;
        let new: Vec<_> = carried.words.iter().filter(|words| !self.heard.contains(&words.entry)).collect();
        for words in new {
            self.heard.insert(words.entry);
            self.words(Some(words.entry), words.text.trim());
        }
    }

    /// A boundary may be shown more than once, in parts.
    fn earlier(&mut self, text: String) {
        if !text.is_empty() && !self.facts.earlier.contains(&text) {
            self.facts.earlier.push(text);
        }
    }

    fn user_block(&mut self, block: Heard<'_>) {
        match block {
            Heard::Text(text) => {
                let text = without_reminders(&text);
                let text = text.trim();
                let is_result = text.starts_with(EARLIER_RESULT);
                // A tool may well return what looks like a summary.
                if !is_result && is_summary(text) {
                    self.earlier(text.to_owned());
                } else if is_result || is_inserted(text) {
                    self.inserted(text);
                } else {
                    self.words(None, text);
                }
            }
            Heard::Returned { id, text, is_error } => self.returned(&id, &text, is_error),
            Heard::Call { .. } | Heard::Other => {}
        }
    }

    fn words(&mut self, entry: Option<EntryId>, text: &str) {
        if text.is_empty() {
            return;
        }
        for trouble in self.facts.troubles.iter_mut().skip(self.open) {
            trouble.heard.get_or_insert_with(|| cut(text, 200));
        }
        self.facts.words.push(Words { entry, text: text.to_owned() });
    }

    fn inserted(&mut self, text: &str) {
        if !text.is_empty() {
            self.facts.inserted.push(cut(text, 120));
        }
    }

    fn assistant<'a>(&mut self, blocks: impl IntoIterator<Item = Heard<'a>>, may_summarise: bool) {
        let mut said = String::new();
        let mut done = None;
        for block in blocks {
            match block {
                // A summary of the provider comes in the model's message.
                Heard::Text(text) if may_summarise && is_summary(&text) => self.earlier(text.into_owned()),
                Heard::Text(text) if !text.trim().is_empty() => {
                    if !said.is_empty() {
                        said.push('\n');
                    }
                    said.push_str(text.trim());
                }
                Heard::Call { id, name, input } => {
                    let call = self.called(&name, input);
                    done.get_or_insert_with(|| named(&call));
                    self.calls.insert(id.into_owned(), call.clone());
                    self.facts.last_call = Some(call);
                }
                _ => {}
            }
        }
        let then = if said.is_empty() { done } else { Some(first_line(&said, 200)) };
        if let Some(then) = then {
            for trouble in self.facts.troubles.iter_mut().skip(self.open) {
                trouble.then = Some(then.clone());
            }
            self.open = self.facts.troubles.len();
        }
        if !said.is_empty() {
            self.facts.said.push(said);
        }
    }

    fn called(&mut self, name: &str, input: &str) -> Target {
        self.facts.calls += 1;
        let called = Called::of(name, input);
        let command = called.command.map(|line| {
            self.facts.commands.push(Command { line: cut(&line, 300), failed: false });
            self.facts.commands.len() - 1
        });
        called.touches.into_iter().for_each(|touch| self.touched(touch));
        if let Some(tasks) = called.tasks {
            self.facts.tasks = tasks;
        }
        Target { name: name.to_owned(), target: called.target, command }
    }

    fn touched(&mut self, touch: Touch) {
        let index = *self.paths.entry(touch.path.clone()).or_insert_with(|| {
            self.facts.files.push(File { path: touch.path, reads: 0, writes: 0, change: None, last: 0 });
            self.facts.files.len() - 1
        });
        if let Some(file) = self.facts.files.get_mut(index) {
            file.last = self.facts.calls;
            if touch.is_write {
                file.writes += 1;
                file.change = touch.change.or(file.change.take());
            } else {
                file.reads += 1;
            }
        }
    }

    fn returned(&mut self, id: &str, text: &str, is_error: bool) {
        let call = self.calls.get(id);
        let command = call.and_then(|call| call.command);
        let is_run = command.and_then(|index| self.facts.commands.get(index));
        let may_fail = is_error || is_run.is_some_and(|command| !prints_only(&command.line));
        let lines = if may_fail { error_lines(text, is_error) } else { Vec::new() };
        if lines.is_empty() {
            return;
        }
        if let Some(command) = command.and_then(|index| self.facts.commands.get_mut(index)) {
            command.failed = true;
        }
        let call = call.map_or_else(|| "a call".to_owned(), named);
        self.facts.troubles.push(Trouble { call, lines, heard: None, then: None });
    }
}

fn named(call: &Target) -> String {
    cut(&format!("{} {}", call.name, call.target.lines().next().unwrap_or_default()), 160)
        .trim_end()
        .to_owned()
}

/// The lines of a result that speak of an error; the first ones if the whole result is one.
fn error_lines(text: &str, is_error: bool) -> Vec<String> {
    // A result may be long; what matters of it stands in its beginning or its end.
    const LOOKED_AT: usize = 20_000;
    let head = text.get(..text.floor_char_boundary(LOOKED_AT)).unwrap_or_default();
    let tail_from = text.ceil_char_boundary(text.len().saturating_sub(LOOKED_AT).max(head.len()));
    let tail = text.get(tail_from..).unwrap_or_default();
    let is_harmful = |line: &&str| {
        let lower = line.to_ascii_lowercase();
        !HARMLESS.iter().any(|word| lower.contains(word))
    };
    let clean = |line: &str| cut(line.trim(), 240);
    let speaking = [head, tail].into_iter().flat_map(|part| lines_with(part, &ERROR_WORDS));
    if is_error && !lines_with(head, &NOT_MADE).is_empty() {
        return Vec::new();
    }
    let mut found: Vec<String> = speaking.filter(is_harmful).take(3).map(clean).collect();
    if found.is_empty() && is_error {
        let lines = head.lines().filter(|line| !line.trim().is_empty());
        found = lines.take(2).map(clean).collect();
    }
    found
}

/// Whether a command only prints what is written somewhere, each of its parts.
fn prints_only(command: &str) -> bool {
    let mut parts = command.split(['|', ';', '\n']).flat_map(|part| part.split("&&"));
    parts.all(|part| {
        let part = part.trim();
        part.is_empty()
            || PRINTING.iter().any(|name| {
                part.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            })
    })
}

/// Whether one tag wraps a text, as it does environments, instructions and reminders. Several beside each other, as
/// in a prompt that a program filled in from a form, wrap nothing.
fn is_inserted(text: &str) -> bool {
    let Some((tag, _)) = text.strip_prefix('<').and_then(|rest| rest.split_once('>')) else { return false };
    let is_tag =
        tag.len() < 40 && tag.chars().all(|letter| letter.is_alphanumeric() || "-_ ".contains(letter));
    let name = tag.split(' ').next().unwrap_or_default();
    // A command or a short quotation may well be a person's.
    text.len() > 400 && is_tag && !name.is_empty() && text.ends_with(&format!("</{name}>"))
}
