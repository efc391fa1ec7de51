//! Calls of tools, as clients show them.

use std::path::{Path, PathBuf};

use agent_client_protocol::v1::schema::{
    Diff, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, ToolCall, ToolCallContent, ToolCallLocation,
    ToolKind,
};
use pal_agent::telling;
use pal_model::Block;
use serde::Deserialize;
use serde_json::Value;

use crate::content::{fenced, shown};

/// The tool whose calls are shown as the plan.
pub(crate) const TODO: &str = "Todo";
/// Letters of a title.
const TITLE_MAX: usize = 160;
/// Files with more bytes are not shown as they were before.
const OLD_BYTES_MAX: u64 = 256 << 10;

/// A call: the tool, and the JSON object that it is called with.
pub(crate) struct Called<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) input: &'a str,
    /// Where the session works.
    pub(crate) directory: &'a Path,
}

impl Called<'_> {
    /// As a client shows it. What a file was before is read from disk where `is_ahead`: the call is not carried out yet.
    pub(crate) fn shown(&self, is_ahead: bool) -> ToolCall {
        let input: Value = serde_json::from_str(self.input).unwrap_or_default();
        ToolCall::new(self.id.to_owned(), self.title(&input))
            .name(self.name.to_owned())
            .kind(kind(self.name))
            .locations(self.locations(&input))
            .content(self.changes(&input, is_ahead))
            .raw_input(input)
    }

    fn title(&self, input: &Value) -> String {
        let about = telling(self.input);
        let about = Path::new(&about)
            .strip_prefix(self.directory)
            .map_or(about.clone(), |path| path.display().to_string());
        let line = clipped(about.lines().next().unwrap_or_default());
        match (self.name, input["description"].as_str()) {
            ("Bash", _) => format!("`{line}`"),
            ("Agent", Some(what)) => format!("Agent: {}", clipped(what)),
            (name, _) if line.is_empty() => name.to_owned(),
            (name, _) => format!("{name} {line}"),
        }
    }

    fn locations(&self, input: &Value) -> Vec<ToolCallLocation> {
        let line = input["offset"].as_u64().and_then(|line| u32::try_from(line).ok());
        let path = self.path(input);
        path.into_iter().map(|path| ToolCallLocation::new(path).line(line)).collect()
    }

    fn path(&self, input: &Value) -> Option<PathBuf> {
        Some(self.directory.join(input["file_path"].as_str()?))
    }

    /// What a call changes, file by file.
    fn changes(&self, input: &Value, is_ahead: bool) -> Vec<ToolCallContent> {
        let Some(path) = self.path(input) else { return Vec::new() };
        let change = |edit: &Value| {
            let (old, new) = (edit["old_string"].as_str()?, edit["new_string"].as_str()?);
            Some(Diff::new(path.clone(), new).old_text(old.to_owned()).into())
        };
        match self.name {
            "Edit" => match input["edits"].as_array() {
                Some(edits) => edits.iter().filter_map(change).collect(),
                None => change(input).into_iter().collect(),
            },
            "Write" => {
                let Some(new) = input["content"].as_str() else { return Vec::new() };
                let old = is_ahead.then(|| text_of(&path)).flatten();
                vec![Diff::new(path, new).old_text(old).into()]
            }
            _ => Vec::new(),
        }
    }
}

/// What sort of tool it is.
fn kind(name: &str) -> ToolKind {
    match name {
        "Read" => ToolKind::Read,
        "Edit" | "Write" => ToolKind::Edit,
        "Glob" | "Grep" | "Recall" => ToolKind::Search,
        "Bash" | "BashOutput" | "KillBash" => ToolKind::Execute,
        "WebFetch" => ToolKind::Fetch,
        "EnterPlanMode" | "ExitPlanMode" => ToolKind::SwitchMode,
        "Agent" | "Context" | "Skill" => ToolKind::Think,
        _ => ToolKind::Other,
    }
}

/// What a call returned, as a client shows it; none if what it changed says more.
pub(crate) fn result(name: &str, is_error: bool, blocks: &[Block]) -> Option<Vec<ToolCallContent>> {
    let is_verbatim = matches!(kind(name), ToolKind::Read | ToolKind::Search | ToolKind::Execute);
    if matches!(name, "Edit" | "Write") && !is_error {
        return None;
    }
    let block = |block| match block {
        agent_client_protocol::v1::schema::ContentBlock::Text(text) if is_verbatim || is_error => {
            ToolCallContent::from(fenced(&text.text))
        }
        other => ToolCallContent::from(other),
    };
    Some(shown(blocks).into_iter().map(block).collect())
}

/// What a call returned, in words.
pub(crate) fn words(blocks: &[Block]) -> String {
    blocks.iter().filter_map(|block| block.string("text")).collect::<Vec<_>>().join("\n")
}

#[derive(Deserialize)]
struct Todos {
    todos: Vec<Todo>,
}

#[derive(Deserialize)]
struct Todo {
    content: String,
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
}

/// The plan that a call of the list sets.
pub(crate) fn plan(input: &str) -> Option<Plan> {
    let Todos { todos } = serde_json::from_str(input).ok()?;
    let entry = |todo: Todo| {
        let status = match todo.status {
            Status::Pending => PlanEntryStatus::Pending,
            Status::InProgress => PlanEntryStatus::InProgress,
            Status::Completed => PlanEntryStatus::Completed,
        };
        // The list knows no ranks.
        PlanEntry::new(todo.content, PlanEntryPriority::Medium, status)
    };
    Some(Plan::new(todos.into_iter().map(entry).collect()))
}

fn text_of(path: &Path) -> Option<String> {
    let metadata = path.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > OLD_BYTES_MAX {
        return None;
    }
    std::fs::read_to_string(path).ok()
}

fn clipped(text: &str) -> String {
    match text.char_indices().nth(TITLE_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown_call(name: &str, input: &str) -> ToolCall {
        Called { id: "1", name, input, directory: Path::new("/project") }.shown(false)
    }

    #[test]
    fn a_call_says_what_it_is_about_where_and_what_changes() {
        let read = shown_call("Read", r#"{"file_path":"/project/src/a.rs","offset":7}"#);
        assert_eq!((read.title.as_str(), read.kind), ("Read src/a.rs", ToolKind::Read));
        assert_eq!(read.locations, [ToolCallLocation::new("/project/src/a.rs").line(7)]);
        let edit =
            shown_call("Edit", r#"{"file_path":"b.rs","edits":[{"old_string":"a","new_string":"b"}]}"#);
        let diff = Diff::new("/project/b.rs", "b").old_text(String::from("a"));
        assert_eq!(edit.content, [ToolCallContent::Diff(diff)]);
        assert_eq!(shown_call("Bash", r#"{"command":"ls\nrm"}"#).title, "`ls`");
        assert_eq!(shown_call("mcp__x__y", "no object").title, "mcp__x__y");
    }
}
