//! Translation of tool calls and their results to the protocol's types.

use std::path::{Path, PathBuf};

use agent_client_protocol::v1::schema::{
    Diff, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, ToolCall, ToolCallContent, ToolCallLocation,
    ToolKind,
};
use pal_events::call_subject;
use pal_model::ContentBlock;
use serde::Deserialize;
use serde_json::Value;

use crate::prompt_content::{fenced, shown};

/// Name of the tool whose calls become plan updates.
pub(crate) const TODO: &str = "Todo";
/// Maximum length of a call's title, in characters.
const TITLE_MAX: usize = 160;
/// Maximum size of a file whose previous content is included in a diff, in bytes.
const OLD_BYTES_MAX: u64 = 256 << 10;

/// A tool call to show; `input` is a JSON object.
pub(crate) struct ToolCallView<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) input: &'a str,
    /// Working directory of the session.
    pub(crate) directory: &'a Path,
}

impl ToolCallView<'_> {
    /// Builds the protocol's tool call. With `is_ahead` the call has not run yet, so the previous content of a written file
    /// is read from disk.
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
        let about = call_subject(self.input);
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
        let path = input["file_path"].as_str().or(input["notebook_path"].as_str())?;
        Some(self.directory.join(path))
    }

    /// Diffs of the files that the call changes.
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

fn kind(name: &str) -> ToolKind {
    match name {
        "Read" => ToolKind::Read,
        "Edit" | "NotebookEdit" | "Write" => ToolKind::Edit,
        "Glob" | "Grep" | "Recall" => ToolKind::Search,
        "Bash" | "BashOutput" | "KillBash" => ToolKind::Execute,
        "WebFetch" | "WebSearch" => ToolKind::Fetch,
        "EnterPlanMode" | "ExitPlanMode" => ToolKind::SwitchMode,
        "Agent" | "Context" | "Skill" => ToolKind::Think,
        _ => ToolKind::Other,
    }
}

/// Content of a result; `None` for a successful file change, whose diff is already shown.
pub(crate) fn result(name: &str, is_error: bool, blocks: &[ContentBlock]) -> Option<Vec<ToolCallContent>> {
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

/// Text blocks of a result, joined by newlines.
pub(crate) fn result_text(blocks: &[ContentBlock]) -> String {
    blocks.iter().filter_map(|block| block.string("text")).collect::<Vec<_>>().join("\n")
}

#[derive(Deserialize)]
struct TodoArguments {
    todos: Vec<TodoEntry>,
}

#[derive(Deserialize)]
struct TodoEntry {
    content: String,
    status: PlanStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum PlanStatus {
    Pending,
    InProgress,
    Completed,
}

/// Parses the plan that a call of the to-do tool sets.
pub(crate) fn plan(input: &str) -> Option<Plan> {
    let TodoArguments { todos } = serde_json::from_str(input).ok()?;
    let entry = |todo: TodoEntry| {
        let status = match todo.status {
            PlanStatus::Pending => PlanEntryStatus::Pending,
            PlanStatus::InProgress => PlanEntryStatus::InProgress,
            PlanStatus::Completed => PlanEntryStatus::Completed,
        };
        // The to-do list has no priorities.
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
        ToolCallView { id: "1", name, input, directory: Path::new("/project") }.shown(false)
    }

    #[test]
    fn tool_calls_have_title_location_and_diff() {
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
