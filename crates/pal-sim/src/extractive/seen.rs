//! What a conversation holds: words, files, commands, errors, decisions and open items, in one pass.

use pal_model::{Role, array_items, fields, member, member_string, unescape};
use rustc_hash::FxHashMap;

use super::prose::{cut, first_line, sentences};
use super::sections::is_summary;
use crate::Ask;
use crate::heard::{Heard, without_reminders};

/// The facts of a conversation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// The user's words, text by text.
    pub words: Vec<String>,
    /// Texts of the user's side that stand in tags, as programs put them there: only their beginnings.
    pub inserted: Vec<String>,
    /// The newest earlier summary.
    pub earlier: Option<String>,
    /// Files, in the order of their first touch.
    pub files: Vec<File>,
    /// Commands, in order.
    pub commands: Vec<Command>,
    /// What went wrong, in order.
    pub troubles: Vec<Trouble>,
    /// What the model said, message by message.
    pub said: Vec<String>,
    /// The newest list of tasks.
    pub tasks: Vec<Task>,
    /// The newest call.
    pub last_call: Option<Target>,
    /// How many messages there are.
    pub messages: usize,
    /// How many calls were made.
    pub calls: usize,
}

/// A file that a tool was called with.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub path: String,
    pub reads: usize,
    pub writes: usize,
    /// What was last written into it, cut.
    pub change: Option<String>,
    /// The number of the call that touched it last.
    pub last: usize,
}

/// A command that was run.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub line: String,
    pub failed: bool,
}

/// An error that was seen.
#[derive(Clone, Debug)]
pub(crate) struct Trouble {
    pub call: String,
    pub lines: String,
    /// What the model said or did next.
    pub then: Option<String>,
}

/// One item of a list of tasks.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub what: String,
    pub status: String,
}

/// A call and what it is about.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub name: String,
    pub target: String,
    command: Option<usize>,
}

const PATH_KEYS: [&str; 8] =
    ["file_path", "path", "notebook_path", "filename", "file", "target_file", "new_path", "old_path"];
const COMMAND_KEYS: [&str; 3] = ["command", "cmd", "script"];
const TASK_KEYS: [&str; 4] = ["todos", "plan", "tasks", "items"];
const PATCH_HEADS: [&str; 4] = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "];
const WRITING: [&str; 6] = ["write", "edit", "create", "replace", "patch", "insert"];
const SEARCHING: [&str; 6] = ["grep", "glob", "search", "list", "ls", "find"];
const ERROR_WORDS: [&str; 13] = [
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
];
const HARMLESS: [&str; 6] = ["0 failed", "0 errors", "no errors", "0 failures", "no error", "errors: 0"];

impl Seen {
    /// Reads a conversation; the block of the directive itself is not part of it.
    pub(crate) fn of(ask: &Ask<'_>, directive: Option<(usize, usize)>) -> Seen {
        let mut reading = Reading::default();
        reading.seen.messages = ask.messages.len();
        for (index, message) in ask.messages.iter().enumerate() {
            let blocks = message.blocks.iter().enumerate();
            let blocks = blocks.filter(|(place, _)| directive != Some((index, *place)));
            let heard = blocks.map(|(_, raw)| Heard::of(raw));
            match message.role {
                Role::User => reading.user(heard),
                Role::Assistant => reading.assistant(heard),
                Role::System => {}
            }
        }
        reading.seen
    }

    /// The tasks that are not done.
    pub(crate) fn open_tasks(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter().filter(|task| !matches!(task.status.as_str(), "completed" | "done" | "cancelled"))
    }

    /// Sentences of the model that hold one of these words, newest first.
    pub(crate) fn sentences_with(&self, words: &[&str], most: usize) -> Vec<String> {
        let mut found = Vec::new();
        for said in self.said.iter().rev() {
            for sentence in sentences(said) {
                let lower = sentence.to_lowercase();
                if (12..400).contains(&sentence.len()) && words.iter().any(|word| lower.contains(word)) {
                    found.push(sentence.to_owned());
                }
            }
            if found.len() >= most {
                found.truncate(most);
                break;
            }
        }
        found
    }
}

/// A conversation while it is read.
#[derive(Default)]
struct Reading {
    seen: Seen,
    calls: FxHashMap<String, Target>,
    /// Where each path stands in the list of files.
    paths: FxHashMap<String, usize>,
    /// Troubles that nothing followed yet, from here on.
    open: usize,
}

impl Reading {
    fn user<'a>(&mut self, blocks: impl Iterator<Item = Heard<'a>>) {
        for block in blocks {
            match block {
                Heard::Text(text) => {
                    let text = without_reminders(&text);
                    let text = text.trim();
                    if is_summary(text) {
                        self.seen.earlier = Some(text.to_owned());
                    } else if is_inserted(text) {
                        self.seen.inserted.push(cut(text, 120));
                    } else if !text.is_empty() {
                        self.seen.words.push(text.to_owned());
                    }
                }
                Heard::Returned { id, text, is_error } => self.returned(&id, &text, is_error),
                Heard::Call { .. } | Heard::Other => {}
            }
        }
    }

    fn assistant<'a>(&mut self, blocks: impl Iterator<Item = Heard<'a>>) {
        let mut said = String::new();
        let mut done = None;
        for block in blocks {
            match block {
                // A summary of the provider comes in the model's message.
                Heard::Text(text) if is_summary(&text) => self.seen.earlier = Some(text.into_owned()),
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
                    self.seen.last_call = Some(call);
                }
                _ => {}
            }
        }
        let then = if said.is_empty() { done } else { Some(first_line(&said, 200)) };
        if let Some(then) = then {
            for trouble in self.seen.troubles.iter_mut().skip(self.open) {
                trouble.then = Some(then.clone());
            }
            self.open = self.seen.troubles.len();
        }
        if !said.is_empty() {
            self.seen.said.push(said);
        }
    }

    fn called(&mut self, name: &str, input: &str) -> Target {
        self.seen.calls += 1;
        let members = fields(input).unwrap_or_default();
        let lower = name.to_lowercase();
        let is = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        let mut target = Target { name: name.to_owned(), target: String::new(), command: None };
        for key in COMMAND_KEYS {
            let Some(line) = member(&members, key).map(command_line).filter(|line| !line.is_empty()) else {
                continue;
            };
            // Editors have a command such as `view` beside their path.
            if members.iter().any(|(name, _)| PATH_KEYS.contains(&name.as_ref())) {
                break;
            }
            target.command = Some(self.seen.commands.len());
            target.target = line.clone();
            self.seen.commands.push(Command { line: cut(&line, 300), failed: false });
            break;
        }
        let writes = is(&WRITING)
            || member_string(&members, "command")
                .is_some_and(|command| WRITING.iter().any(|word| command.contains(word)));
        for key in PATH_KEYS {
            let Some(path) = member_string(&members, key).filter(|path| is_path(path)) else { continue };
            if target.target.is_empty() {
                target.target = path.to_string();
            }
            if !is(&SEARCHING) {
                let change = ["new_string", "new_str", "content", "file_text", "new_source"];
                let change = change.iter().find_map(|key| member_string(&members, key));
                self.touched(&path, writes, change.as_deref());
            }
        }
        if is(&SEARCHING)
            && let Some(pattern) = member_string(&members, "pattern").or(member_string(&members, "query"))
        {
            target.target = pattern.into_owned();
        }
        self.patched(input);
        if let Some(tasks) = TASK_KEYS.iter().find_map(|key| member(&members, key)).and_then(tasks) {
            self.seen.tasks = tasks;
        }
        target
    }

    /// Files named by the heads of a patch, wherever in the input the patch stands.
    fn patched(&mut self, input: &str) {
        if !input.contains("*** ") {
            return;
        }
        let mut texts = Vec::new();
        strings(input, 0, &mut texts);
        for text in texts {
            for line in text.lines() {
                let path = PATCH_HEADS.iter().find_map(|head| line.strip_prefix(head)).map(str::trim);
                if let Some(path) = path.filter(|path| is_path(path)) {
                    self.touched(path, true, None);
                }
            }
        }
    }

    fn touched(&mut self, path: &str, is_write: bool, change: Option<&str>) {
        let index = *self.paths.entry(path.to_owned()).or_insert_with(|| {
            self.seen.files.push(File { path: path.to_owned(), reads: 0, writes: 0, change: None, last: 0 });
            self.seen.files.len() - 1
        });
        if let Some(file) = self.seen.files.get_mut(index) {
            file.last = self.seen.calls;
            if is_write {
                file.writes += 1;
                file.change = change.map(|change| cut(change.trim(), 300)).or(file.change.take());
            } else {
                file.reads += 1;
            }
        }
    }

    fn returned(&mut self, id: &str, text: &str, is_error: bool) {
        let call = self.calls.get(id);
        let command = call.and_then(|call| call.command);
        let lines = if is_error || command.is_some() { error_lines(text, is_error) } else { String::new() };
        if lines.is_empty() {
            return;
        }
        if let Some(command) = command.and_then(|index| self.seen.commands.get_mut(index)) {
            command.failed = true;
        }
        let call = call.map_or_else(|| "a call".to_owned(), named);
        self.seen.troubles.push(Trouble { call, lines, then: None });
    }
}

fn named(call: &Target) -> String {
    cut(&format!("{} {}", call.name, call.target.lines().next().unwrap_or_default()), 160)
        .trim_end()
        .to_owned()
}

/// The lines of a result that speak of an error; the first ones if the whole result is one.
fn error_lines(text: &str, is_error: bool) -> String {
    let speaks = |line: &&str| {
        let lower = line.to_lowercase();
        ERROR_WORDS.iter().any(|word| lower.contains(word))
            && !HARMLESS.iter().any(|word| lower.contains(word))
    };
    // A result may be long; what matters of it stands in its beginning or its end.
    const LOOKED_AT: usize = 20_000;
    let head = text.get(..text.floor_char_boundary(LOOKED_AT)).unwrap_or_default();
    let tail_from = text.ceil_char_boundary(text.len().saturating_sub(LOOKED_AT).max(head.len()));
    let tail = text.get(tail_from..).unwrap_or_default();
    let lines = || head.lines().chain(tail.lines()).map(str::trim).filter(|line| !line.is_empty());
    let mut found: Vec<String> = lines().filter(speaks).take(3).map(|line| cut(line, 240)).collect();
    if found.is_empty() && is_error {
        found = lines().take(2).map(|line| cut(line, 240)).collect();
    }
    found.join(" / ")
}

/// A command as one line: a string, or a list of arguments of which the last is what a shell runs.
fn command_line(raw: &str) -> String {
    match unescape(raw) {
        Some(line) => line.trim().to_owned(),
        None => {
            let words: Vec<String> = array_items(raw)
                .unwrap_or_default()
                .into_iter()
                .filter_map(|item| unescape(item).map(|word| word.into_owned()))
                .collect();
            match words.as_slice() {
                [shell, flag, line] if shell.ends_with("sh") && flag.starts_with('-') => {
                    line.trim().to_owned()
                }
                words => words.join(" "),
            }
        }
    }
}

/// Whether a text is wrapped in tags of one line each, as environments, instructions and reminders are.
fn is_inserted(text: &str) -> bool {
    let opens = text.strip_prefix('<').and_then(|rest| rest.split_once('>'));
    let is_name = |name: &str| {
        name.len() < 40 && name.chars().all(|letter| letter.is_alphanumeric() || "-_ ".contains(letter))
    };
    // A command or a short quotation may well be a person's.
    text.len() > 400
        && opens.is_some_and(|(name, rest)| is_name(name) && rest.contains("</"))
        && text.ends_with('>')
}

/// Whether a text can be a path of a file.
fn is_path(text: &str) -> bool {
    (1..400).contains(&text.len()) && !text.contains(['\n', '\0']) && text.contains(['/', '.', '\\'])
}

/// The items of a list of tasks, whatever a program calls their parts.
fn tasks(raw: &str) -> Option<Vec<Task>> {
    let items = array_items(raw).ok()?;
    let task = |item: &str| {
        let members = fields(item).ok()?;
        let what = ["content", "step", "task", "title", "description", "subject"];
        let what = what.iter().find_map(|key| member_string(&members, key))?;
        let status = member_string(&members, "status")
            .map_or_else(|| "pending".to_owned(), |status| status.into_owned());
        Some(Task { what: cut(what.trim(), 300), status })
    };
    let tasks: Vec<Task> = items.into_iter().filter_map(task).collect();
    (!tasks.is_empty()).then_some(tasks)
}

/// All strings of a value.
fn strings(raw: &str, depth: usize, out: &mut Vec<String>) {
    const DEPTH_MOST: usize = 8;
    if let Some(text) = unescape(raw) {
        out.push(text.into_owned());
    } else if depth < DEPTH_MOST {
        let members = fields(raw).unwrap_or_default();
        members.iter().for_each(|(_, value)| strings(value, depth + 1, out));
        array_items(raw).unwrap_or_default().into_iter().for_each(|item| strings(item, depth + 1, out));
    }
}
