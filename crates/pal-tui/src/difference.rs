//! What an edit changes, in colours.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use crate::paint::{chopped, harmless};
use crate::theme::Theme;

/// Lines around a change that stay as they are.
const AROUND: usize = 2;

/// What a call of a tool that changes files would change, in at most so many lines; nothing for any other call.
pub(crate) fn of_call(
    tool: &str,
    input: &Value,
    width: usize,
    most: usize,
    theme: Theme,
) -> Vec<Line<'static>> {
    let text = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default();
    let lines = match tool {
        "Edit" => changes(text("old_string"), text("new_string"), width, theme),
        "MultiEdit" => {
            let edits = input.get("edits").and_then(Value::as_array).into_iter().flatten();
            let each = edits.map(|edit| {
                let text = |name: &str| edit.get(name).and_then(Value::as_str).unwrap_or_default();
                changes(text("old_string"), text("new_string"), width, theme)
            });
            each.collect::<Vec<_>>().join(&Line::from(Span::styled("  ⋯", theme.dim())))
        }
        "Write" => changes("", text("content"), width, theme),
        "NotebookEdit" => changes("", text("new_source"), width, theme),
        _ => Vec::new(),
    };
    capped(lines, most, theme)
}

/// The style of a line of a unified diff.
pub(crate) fn diff_style(line: &str, theme: Theme) -> Style {
    match line.chars().next() {
        Some('+') => theme.good(),
        Some('-') => theme.bad(),
        Some('@') => theme.accent(),
        _ => Style::new(),
    }
}

/// The changes that make one text the other, with the lines around them.
fn changes(old: &str, new: &str, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let (old, new) = (harmless(old), harmless(new));
    let diff = TextDiff::from_lines(&old, &new);
    let mut lines = Vec::new();
    for (at, group) in diff.grouped_ops(AROUND).iter().enumerate() {
        if at > 0 {
            lines.push(Line::from(Span::styled("  ⋯", theme.dim())));
        }
        for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
            let (mark, style) = match change.tag() {
                ChangeTag::Delete => ("  - ", theme.bad()),
                ChangeTag::Insert => ("  + ", theme.good()),
                ChangeTag::Equal => ("    ", theme.dim()),
            };
            let text = change.value().trim_end_matches('\n').to_owned();
            let (first, rest) = (Span::styled(mark, style), Span::raw("    "));
            lines.extend(chopped(&[Span::styled(text, style)], &[first], &[rest], width.max(12)));
        }
    }
    lines
}

fn capped(mut lines: Vec<Line<'static>>, most: usize, theme: Theme) -> Vec<Line<'static>> {
    if lines.len() > most {
        let more = lines.len() - most.saturating_sub(1);
        lines.truncate(most.saturating_sub(1));
        let line = if more == 1 { "line" } else { "lines" };
        lines.push(Line::from(Span::styled(format!("    … {more} more {line}"), theme.dim())));
    }
    lines
}
