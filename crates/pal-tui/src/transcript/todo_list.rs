//! The task list of the agent as a checklist.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use serde_json::Value;

use crate::styled_text::{sanitize_line, truncate_columns};
use crate::theme::Theme;

/// Maximum visible items of the live list.
const LIVE_ITEMS: usize = 8;

/// The task list as the last call of `Todo` set it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct TodoList {
    items: Vec<TodoEntry>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct TodoEntry {
    text: String,
    state: TodoState,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TodoState {
    Pending,
    InProgress,
    Completed,
}

impl TodoList {
    /// Parses the input of a call; `None` if it has no list.
    pub(super) fn parse(input: &str) -> Option<TodoList> {
        let input: Value = serde_json::from_str(input).ok()?;
        let item = |item: &Value| {
            let state = match item.get("status").and_then(Value::as_str)? {
                "completed" => TodoState::Completed,
                "in_progress" => TodoState::InProgress,
                _ => TodoState::Pending,
            };
            Some(TodoEntry { text: sanitize_line(item.get("content")?.as_str()?), state })
        };
        let items = input.get("todos")?.as_array()?.iter().filter_map(item).collect();
        Some(TodoList { items })
    }

    /// Returns `true` if an item is not completed.
    pub(super) fn is_open(&self) -> bool {
        self.items.iter().any(|item| item.state != TodoState::Completed)
    }

    /// Progress in a few words.
    pub(super) fn summary(&self) -> String {
        let done = self.items.iter().filter(|item| item.state == TodoState::Completed).count();
        let current = self.items.iter().find(|item| item.state == TodoState::InProgress);
        let current = current.map_or(String::new(), |item| format!(", now: {}", item.text));
        format!("{done} of {} done{current}", self.items.len())
    }

    /// All items.
    pub(super) fn lines(&self, width: usize, theme: Theme) -> Vec<Line<'static>> {
        self.items.iter().map(|item| item.line(width, theme)).collect()
    }

    /// The items around the one in progress.
    pub(super) fn live_lines(&self, width: usize, theme: Theme) -> Vec<Line<'static>> {
        let current = self.items.iter().position(|item| item.state != TodoState::Completed).unwrap_or(0);
        let from = current.saturating_sub(2).min(self.items.len().saturating_sub(LIVE_ITEMS));
        let mut lines: Vec<Line<'static>> =
            self.items.iter().skip(from).take(LIVE_ITEMS).map(|item| item.line(width, theme)).collect();
        let hidden = self.items.len() - lines.len();
        if hidden > 0 {
            lines.push(Line::from(Span::styled(
                truncate_columns(&format!("  … {hidden} more, {}", self.summary()), width),
                theme.dim(),
            )));
        }
        lines
    }
}

impl TodoEntry {
    fn line(&self, width: usize, theme: Theme) -> Line<'static> {
        let (sign, sign_style, style) = match self.state {
            TodoState::Pending => ("  ☐ ", theme.dim(), Style::new()),
            TodoState::InProgress => ("  ▶ ", theme.accent(), theme.strong()),
            TodoState::Completed => ("  ☑ ", theme.good(), theme.dim()),
        };
        let text = truncate_columns(&self.text, width.saturating_sub(4));
        Line::from(vec![Span::styled(sign, sign_style), Span::styled(text, style)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(count: usize, current: usize) -> TodoList {
        let state = |at: usize| match at.cmp(&current) {
            std::cmp::Ordering::Less => "completed",
            std::cmp::Ordering::Equal => "in_progress",
            std::cmp::Ordering::Greater => "pending",
        };
        let items: Vec<Value> = (0..count)
            .map(|at| serde_json::json!({"content": format!("step {at}"), "status": state(at)}))
            .collect();
        TodoList::parse(&serde_json::json!({ "todos": items }).to_string()).unwrap()
    }

    #[test]
    fn a_long_list_shows_the_item_in_progress() {
        let text = |lines: Vec<Line<'static>>| {
            lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect::<Vec<_>>()
        };
        let short = list(3, 1);
        assert_eq!(text(short.lines(40, Theme::default())), ["  ☑ step 0", "  ▶ step 1", "  ☐ step 2"]);
        assert_eq!(short.summary(), "1 of 3 done, now: step 1");
        let long = text(list(30, 20).live_lines(40, Theme::default()));
        assert_eq!(long.len(), LIVE_ITEMS + 1);
        assert!(long.contains(&String::from("  ▶ step 20")), "{long:?}");
        assert_eq!(long[LIVE_ITEMS], "  … 22 more, 20 of 30 done, now: step 20");
        assert!(list(2, 0).is_open() && !list(2, 2).is_open());
    }

    #[test]
    fn an_input_without_a_list_is_none() {
        assert_eq!(TodoList::parse("{}"), None);
        assert_eq!(TodoList::parse("no json"), None);
    }
}
