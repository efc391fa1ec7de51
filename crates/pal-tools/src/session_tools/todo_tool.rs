//! `Todo` tool: the task list.

use pal_permissions::ToolAccess;
use serde::Deserialize;

use crate::{ToolContext, ToolHandler, ToolInput, ToolOutput, Workspace};

/// Sets the task list, which lives in the log as the input of the last call.
#[derive(Clone, Copy, Debug)]
pub struct TodoTool;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TodoInput {
    todos: Vec<TodoItem>,
}

#[derive(Deserialize)]
#[serde(expecting = "struct Item")]
struct TodoItem {
    content: String,
    status: TodoStatus,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TodoStatus {
    Pending,
    InProgress,
    Completed,
}

impl ToolHandler for TodoTool {
    fn name(&self) -> &'static str {
        "Todo"
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        // It changes no file, but calls must stay in order.
        false
    }

    fn required_access(&self, input: &ToolInput, _: &Workspace) -> Result<Vec<ToolAccess>, String> {
        parse_input(input).map(|_| Vec::new())
    }

    fn run(&self, input: &ToolInput, _: &ToolContext<'_>) -> ToolOutput {
        parse_input(input)
            .map_or_else(|wrong| ToolOutput::error(&wrong), |todos| ToolOutput::text(&render(&todos)))
    }
}

/// Rendered list of a call, if an item is still open.
pub fn open_todos(input: &ToolInput) -> Option<String> {
    let todos = parse_input(input).ok()?;
    todos.iter().any(|item| item.status != TodoStatus::Completed).then(|| render(&todos))
}

fn parse_input(input: &ToolInput) -> Result<Vec<TodoItem>, String> {
    let TodoInput { todos } = input.read()?;
    if let Some(at) = todos.iter().position(|item| item.content.trim().is_empty()) {
        return Err(format!("`todos[{at}].content` is empty: say what is to be done."));
    }
    let under_way: Vec<String> = todos
        .iter()
        .enumerate()
        .filter(|(_, item)| item.status == TodoStatus::InProgress)
        .map(|(at, _)| format!("todos[{at}]"))
        .collect();
    if under_way.len() > 1 {
        return Err(format!("Only one item may be in_progress, but {} are.", under_way.join(" and ")));
    }
    Ok(todos)
}

fn render(todos: &[TodoItem]) -> String {
    if todos.is_empty() {
        return String::from("The list is empty.");
    }
    let done = todos.iter().filter(|item| item.status == TodoStatus::Completed).count();
    let mut text = format!("{done} of {} done:\n", todos.len());
    for item in todos {
        let sign = match item.status {
            TodoStatus::Pending => ' ',
            TodoStatus::InProgress => '>',
            TodoStatus::Completed => 'x',
        };
        text.push_str(&format!("[{sign}] {}\n", item.content.trim()));
    }
    text
}

#[cfg(test)]
mod tests {
    use pal_model::SharedText;

    use super::*;

    #[test]
    fn todo_lists_are_validated_and_rendered() {
        let todos = |items: &str| {
            parse_input(&ToolInput(SharedText::from(format!(r#"{{"todos":[{items}]}}"#))))
                .map(|todos| render(&todos))
        };
        let item = |content: &str, status: &str| format!(r#"{{"content":"{content}","status":"{status}"}}"#);
        let good = [item("a", "completed"), item("b", "in_progress"), item("c", "pending")].join(",");
        assert_eq!(todos(&good).unwrap(), "1 of 3 done:\n[x] a\n[>] b\n[ ] c\n");
        assert_eq!(todos("").unwrap(), "The list is empty.");
        let two = [item("a", "in_progress"), item("b", "in_progress")].join(",");
        assert!(todos(&two).unwrap_err().contains("todos[0] and todos[1]"));
        assert!(todos(&item(" ", "pending")).unwrap_err().contains("todos[0].content"));
        assert!(todos(&item("a", "done")).unwrap_err().contains("`todos[0].status`: unknown variant `done`"));
    }
}
