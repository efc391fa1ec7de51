//! Colored diffs of file changes.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use crate::styled_text::{sanitize, spell_out, wrap_anywhere};
use crate::theme::Theme;

/// Context lines around a change.
const AROUND: usize = 2;

/// Diff of a call that changes files, in at most `most` lines; empty for any other call.
pub(crate) fn diff_excerpt(
    tool: &str,
    input: &Value,
    width: usize,
    most: usize,
    theme: Theme,
) -> Vec<Line<'static>> {
    let each = replacements(tool, input).into_iter();
    let each = each.map(|(old, new)| changes(&sanitize(old), &sanitize(new), width, theme, false));
    let lines = each.collect::<Vec<_>>().join(&Line::from(Span::styled("  ⋯", theme.dim())));
    limit_lines(lines, most, theme)
}

/// Full diff of a call; unchanged lines are replaced by their count. Invisible characters are spelled out. `before` is the
/// current content of a file that is overwritten.
pub(crate) fn full_diff(
    tool: &str,
    input: &Value,
    before: Option<&str>,
    width: usize,
    theme: Theme,
) -> Vec<Line<'static>> {
    let each = replacements(tool, input);
    let count = each.len();
    let mut lines = Vec::new();
    for (at, (old, new)) in each.into_iter().enumerate() {
        if count > 1 {
            lines.push(Line::from(Span::styled(format!("  change {} of {count}:", at + 1), theme.dim())));
        }
        let old = before.filter(|_| tool == "Write").unwrap_or(old);
        lines.extend(changes(&spell_out(old), &spell_out(new), width, theme, true));
    }
    lines
}

/// Old and new text of each change in a call.
fn replacements<'a>(tool: &str, input: &'a Value) -> Vec<(&'a str, &'a str)> {
    let text = |value: &'a Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    match tool {
        "Edit" | "MultiEdit" => match input.get("edits").and_then(Value::as_array) {
            Some(edits) => {
                edits.iter().map(|edit| (text(edit, "old_string"), text(edit, "new_string"))).collect()
            }
            None => vec![(text(input, "old_string"), text(input, "new_string"))],
        },
        "Write" => vec![("", text(input, "content"))],
        "NotebookEdit" => vec![("", text(input, "new_source"))],
        _ => Vec::new(),
    }
}

/// Style of a line in a unified diff.
pub(crate) fn diff_style(line: &str, theme: Theme) -> Style {
    match line.chars().next() {
        Some('+') => theme.good(),
        Some('-') => theme.bad(),
        Some('@') => theme.accent(),
        _ => Style::new(),
    }
}

/// Changed lines with their context; `is_counted` reports the number of omitted lines.
fn changes(old: &str, new: &str, width: usize, theme: Theme, is_counted: bool) -> Vec<Line<'static>> {
    let diff = TextDiff::from_lines(old, new);
    let mut lines = Vec::new();
    let mut shown_to = 0;
    let left_out = |count: usize| {
        let unchanged = if count == 1 { "unchanged line" } else { "unchanged lines" };
        Line::from(Span::styled(format!("  ⋯ {count} {unchanged}"), theme.dim()))
    };
    for (at, group) in diff.grouped_ops(AROUND).iter().enumerate() {
        let first = group.first().map_or(shown_to, |operation| operation.old_range().start);
        if is_counted && first > shown_to {
            lines.push(left_out(first - shown_to));
        } else if at > 0 {
            lines.push(Line::from(Span::styled("  ⋯", theme.dim())));
        }
        shown_to = group.last().map_or(shown_to, |operation| operation.old_range().end);
        for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
            let (mark, style) = match change.tag() {
                ChangeTag::Delete => ("  - ", theme.bad()),
                ChangeTag::Insert => ("  + ", theme.good()),
                ChangeTag::Equal => ("    ", theme.dim()),
            };
            let text = change.value().trim_end_matches('\n').to_owned();
            let (first, rest) = (Span::styled(mark, style), Span::raw("    "));
            lines.extend(wrap_anywhere(&[Span::styled(text, style)], &[first], &[rest], width.max(12)));
        }
    }
    let n_old = diff.old_len();
    if is_counted && n_old > shown_to {
        lines.push(left_out(n_old - shown_to));
    }
    lines
}

fn limit_lines(mut lines: Vec<Line<'static>>, most: usize, theme: Theme) -> Vec<Line<'static>> {
    if lines.len() > most {
        let more = lines.len() - most.saturating_sub(1);
        lines.truncate(most.saturating_sub(1));
        let line = if more == 1 { "line" } else { "lines" };
        lines.push(Line::from(Span::styled(format!("    … {more} more {line}"), theme.dim())));
    }
    lines
}
