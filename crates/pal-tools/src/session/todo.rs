//! Todo: the list of what is to be done.

use pal_permissions::Need;
use serde::Deserialize;

use crate::{Input, Output, Running, Tool, Workspace};

/// Keeps the list of what is to be done. The list lives in the log, as the input of the last call.
#[derive(Clone, Copy, Debug)]
pub struct Todo;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    todos: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    content: String,
    status: Status,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
}

impl Tool for Todo {
    fn name(&self) -> &'static str {
        "Todo"
    }

    fn only_looks(&self, _: &Input) -> bool {
        // It changes no file, but the last call of several has to be the last.
        false
    }

    fn needs(&self, input: &Input, _: &Workspace) -> Result<Vec<Need>, String> {
        checked(input).map(|_| Vec::new())
    }

    fn run(&self, input: &Input, _: &Running<'_>) -> Output {
        checked(input).map_or_else(|wrong| Output::error(&wrong), |todos| Output::text(&rendered(&todos)))
    }
}

/// The list that a call sets, if it leaves something to be done.
pub fn open_todos(input: &Input) -> Option<String> {
    let todos = checked(input).ok()?;
    todos.iter().any(|item| item.status != Status::Completed).then(|| rendered(&todos))
}

fn checked(input: &Input) -> Result<Vec<Item>, String> {
    let Fields { todos } = input.read()?;
    if let Some(at) = todos.iter().position(|item| item.content.trim().is_empty()) {
        return Err(format!("`todos[{at}].content` is empty: say what is to be done."));
    }
    let under_way: Vec<String> = todos
        .iter()
        .enumerate()
        .filter(|(_, item)| item.status == Status::InProgress)
        .map(|(at, _)| format!("todos[{at}]"))
        .collect();
    if under_way.len() > 1 {
        return Err(format!("Only one item may be in_progress, but {} are.", under_way.join(" and ")));
    }
    Ok(todos)
}

fn rendered(todos: &[Item]) -> String {
    if todos.is_empty() {
        return String::from("The list is empty.");
    }
    let done = todos.iter().filter(|item| item.status == Status::Completed).count();
    let mut text = format!("{done} of {} done:\n", todos.len());
    for item in todos {
        let sign = match item.status {
            Status::Pending => ' ',
            Status::InProgress => '>',
            Status::Completed => 'x',
        };
        text.push_str(&format!("[{sign}] {}\n", item.content.trim()));
    }
    text
}

#[cfg(test)]
mod tests {
    use pal_model::Text;

    use super::*;

    #[test]
    fn one_item_is_under_way_and_each_says_something() {
        let todos = |items: &str| {
            checked(&Input(Text::from(format!(r#"{{"todos":[{items}]}}"#)))).map(|todos| rendered(&todos))
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
