//! The input of a call: the command that it runs, the files that it touches, the tasks that it lists. Programs name
//! their parameters differently; what is common to them is in the tables here.

use pal_model::{Field, ToolKind, array_items, fields, member, member_string, unescape};

use crate::facts::Task;
use crate::prose::cut;

const PATH_KEYS: [&str; 8] =
    ["file_path", "path", "notebook_path", "filename", "file", "target_file", "new_path", "old_path"];
const COMMAND_KEYS: [&str; 3] = ["command", "cmd", "script"];
const TASK_KEYS: [&str; 4] = ["todos", "plan", "tasks", "items"];
const CHANGE_KEYS: [&str; 5] = ["new_string", "new_str", "content", "file_text", "new_source"];
const PATCH_HEADS: [&str; 4] = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "];

/// What a call is about.
#[derive(Debug, Default)]
pub(crate) struct Called {
    /// The path, the command or the pattern.
    pub target: String,
    /// What a shell runs.
    pub command: Option<String>,
    /// The files that it touches.
    pub touches: Vec<Touch>,
    /// The list of tasks that it writes.
    pub tasks: Option<Vec<Task>>,
}

/// A file that a call touches.
#[derive(Debug)]
pub(crate) struct Touch {
    pub path: String,
    pub is_write: bool,
    /// What is written.
    pub change: Option<String>,
}

impl Called {
    /// Reads the input of a call.
    pub(crate) fn of(name: &str, input: &str) -> Called {
        let members = fields(input).unwrap_or_default();
        let is_search = ToolKind::Search.may_be(name) || ToolKind::List.may_be(name);
        let mut called = Called::default();
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

    fn files(&mut self, members: &[Field<'_>], is_write: bool, is_search: bool) {
        for key in PATH_KEYS {
            let Some(path) = member_string(members, key).filter(|path| is_path(path)) else { continue };
            if self.target.is_empty() {
                self.target = path.to_string();
            }
            if !is_search {
                let change = CHANGE_KEYS.iter().find_map(|key| member_string(members, key));
                let change = change.filter(|_| is_write).map(|change| cut(change.trim(), 300));
                self.touches.push(Touch { path: path.into_owned(), is_write, change });
            }
        }
    }

    /// Files named by the heads of a patch, wherever in the input the patch stands.
    fn patched(&mut self, input: &str) {
        if !input.contains("*** ") {
            return;
        }
        let mut texts = Vec::new();
        strings(input, 0, &mut texts);
        for line in texts.iter().flat_map(|text| text.lines()) {
            let path = PATCH_HEADS.iter().find_map(|head| line.strip_prefix(head)).map(str::trim);
            if let Some(path) = path.filter(|path| is_path(path)) {
                self.touches.push(Touch { path: path.to_owned(), is_write: true, change: None });
            }
        }
    }
}

/// Whether a call writes the file that it names: its name says so, or its command does.
fn writes(name: &str, members: &[Field<'_>]) -> bool {
    let says = |name: &str| ToolKind::Edit.may_be(name) || ToolKind::Write.may_be(name);
    match member_string(members, "command") {
        // An editor's command says more than its name.
        Some(command) if ToolKind::Read.may_be(&command) => false,
        Some(command) => says(name) || says(&command),
        None => says(name),
    }
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
