//! The input of a tool call: its command, files and task list. Parameter names vary between programs; the
//! tables here list the common ones.

use pal_model::{JsonField, ToolKind, array_items, member, member_string, object_fields, unescape};

use crate::conversation_facts::TaskItem;
use crate::excerpts::truncate;

const PATH_KEYS: [&str; 8] =
    ["file_path", "path", "notebook_path", "filename", "file", "target_file", "new_path", "old_path"];
const COMMAND_KEYS: [&str; 3] = ["command", "cmd", "script"];
const TASK_KEYS: [&str; 4] = ["todos", "plan", "tasks", "items"];
const CHANGE_KEYS: [&str; 5] = ["new_string", "new_str", "content", "file_text", "new_source"];
const PATCH_HEADS: [&str; 4] = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "];

/// Parsed input of a tool call.
#[derive(Debug, Default)]
pub(crate) struct CallInput {
    /// Path, command or pattern.
    pub target: String,
    /// Shell command line.
    pub command: Option<String>,
    /// Files that the call touches.
    pub touches: Vec<FileTouch>,
    /// Task list that the call writes.
    pub tasks: Option<Vec<TaskItem>>,
}

/// A file that a call touches.
#[derive(Debug)]
pub(crate) struct FileTouch {
    pub path: String,
    pub is_write: bool,
    /// New content, truncated.
    pub change: Option<String>,
}

impl CallInput {
    /// Parses the input of a call.
    pub(crate) fn of(name: &str, input: &str) -> CallInput {
        let members = object_fields(input).unwrap_or_default();
        let is_search = ToolKind::Search.matches_name(name) || ToolKind::List.matches_name(name);
        let mut called = CallInput::default();
        // Editors have a command such as `view` beside their path.
        if !members.iter().any(|(name, _)| PATH_KEYS.contains(&name.as_ref())) {
            let mut lines = COMMAND_KEYS.iter().filter_map(|key| member(&members, key)).map(command_line);
            called.command = lines.find(|line| !line.is_empty());
            called.target = called.command.clone().unwrap_or_default();
        }
        called.files(&members, writes(name, &members), is_search);
        if is_search
            && let Some(pattern) = member_string(&members, "pattern").or(member_string(&members, "query"))
        {
            called.target = pattern.into_owned();
        }
        called.patched(input);
        called.tasks = TASK_KEYS.iter().find_map(|key| member(&members, key)).and_then(tasks);
        called
    }

    fn files(&mut self, members: &[JsonField<'_>], is_write: bool, is_search: bool) {
        for key in PATH_KEYS {
            let Some(path) = member_string(members, key).filter(|path| is_path(path)) else { continue };
            if self.target.is_empty() {
                self.target = path.to_string();
            }
            if !is_search {
                let change = CHANGE_KEYS.iter().find_map(|key| member_string(members, key));
                let change = change.filter(|_| is_write).map(|change| truncate(change.trim(), 300));
                self.touches.push(FileTouch { path: path.into_owned(), is_write, change });
            }
        }
    }

    /// Adds files named by patch headers anywhere in the input.
    fn patched(&mut self, input: &str) {
        if !input.contains("*** ") {
            return;
        }
        let mut texts = Vec::new();
        strings(input, 0, &mut texts);
        for line in texts.iter().flat_map(|text| text.lines()) {
            let path = PATCH_HEADS.iter().find_map(|head| line.strip_prefix(head)).map(str::trim);
            if let Some(path) = path.filter(|path| is_path(path)) {
                self.touches.push(FileTouch { path: path.to_owned(), is_write: true, change: None });
            }
        }
    }
}

/// Returns true if a call writes the file that it names, judging by the tool's name and its command.
fn writes(name: &str, members: &[JsonField<'_>]) -> bool {
    let says = |name: &str| ToolKind::Edit.matches_name(name) || ToolKind::Write.matches_name(name);
    match member_string(members, "command") {
        // An editor's command is more specific than its name.
        Some(command) if ToolKind::Read.matches_name(&command) => false,
        Some(command) => says(name) || says(&command),
        None => says(name),
    }
}

/// Parses a command: a string, or an argument list whose last item a shell runs.
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

/// Returns true if a text can be a file path.
fn is_path(text: &str) -> bool {
    (1..400).contains(&text.len()) && !text.contains(['\n', '\0']) && text.contains(['/', '.', '\\'])
}

/// Parses a task list; the keys vary between programs.
fn tasks(raw: &str) -> Option<Vec<TaskItem>> {
    let items = array_items(raw).ok()?;
    let task = |item: &str| {
        let members = object_fields(item).ok()?;
        let what = ["content", "step", "task", "title", "description", "subject"];
        let what = what.iter().find_map(|key| member_string(&members, key))?;
        let status = member_string(&members, "status")
            .map_or_else(|| "pending".to_owned(), |status| status.into_owned());
        Some(TaskItem { text: truncate(what.trim(), 300), status })
    };
    let tasks: Vec<TaskItem> = items.into_iter().filter_map(task).collect();
    (!tasks.is_empty()).then_some(tasks)
}

/// Collects all strings of a JSON value.
fn strings(raw: &str, depth: usize, out: &mut Vec<String>) {
    const DEPTH_MAX: usize = 8;
    if let Some(text) = unescape(raw) {
        out.push(text.into_owned());
    } else if depth < DEPTH_MAX {
        let members = object_fields(raw).unwrap_or_default();
        members.iter().for_each(|(_, value)| strings(value, depth + 1, out));
        array_items(raw).unwrap_or_default().into_iter().for_each(|item| strings(item, depth + 1, out));
    }
}
