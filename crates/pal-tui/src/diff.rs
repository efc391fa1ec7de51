//! Colored diffs of file changes.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use crate::markdown::highlight;
use crate::styled_text::{sanitize, spell_out, wrap_anywhere};
use crate::theme::Theme;

/// Context lines around a change.
const AROUND: usize = 3;

/// Minimum width for indents and line numbers, in columns.
const NUMBERED_COLUMNS_MIN: usize = 20;

/// Diff of a call that changes files, in at most `most` lines; empty for any other call.
pub(crate) fn diff_excerpt(
    tool: &str,
    input: &Value,
    width: usize,
    most: usize,
    theme: Theme,
) -> Vec<Line<'static>> {
    let each = replacements(tool, input).into_iter();
    let layout =
        DiffLayout { width, theme, is_counted: false, is_numbered: false, language: language(input) };
    let each = each.map(|(old, new)| changes(&sanitize(old), &sanitize(new), layout));
    let lines = each.collect::<Vec<_>>().join(&Line::from(Span::styled("  ⋯", theme.dim())));
    limit_lines(lines, most, theme)
}

/// Full diff of a call; unchanged lines are replaced by their count. Invisible characters are spelled out. `before` is the
/// current content of the file, if it is known: then lines have numbers and context.
pub(crate) fn full_diff(
    tool: &str,
    input: &Value,
    before: Option<&str>,
    width: usize,
    theme: Theme,
) -> Vec<Line<'static>> {
    let each = replacements(tool, input);
    let language = language(input);
    if let Some(before) = before
        && let Some(after) = applied(tool, before, &each, input)
    {
        let layout = DiffLayout { width, theme, is_counted: true, is_numbered: true, language };
        return changes(&spell_out(before), &spell_out(&after), layout);
    }
    let layout = DiffLayout { width, theme, is_counted: true, is_numbered: false, language };
    let count = each.len();
    let mut lines = Vec::new();
    for (at, (old, new)) in each.into_iter().enumerate() {
        if count > 1 {
            lines.push(Line::from(Span::styled(format!("  change {} of {count}:", at + 1), theme.dim())));
        }
        lines.extend(changes(&spell_out(old), &spell_out(new), layout));
    }
    lines
}

/// Content of a file after a call; `None` if the changes do not fit it literally.
fn applied(tool: &str, before: &str, each: &[(&str, &str)], input: &Value) -> Option<String> {
    if tool == "Write" {
        return each.first().map(|(_, new)| (*new).to_owned());
    }
    let is_everywhere = |at: usize| {
        let edits = input.get("edits").and_then(Value::as_array);
        let fields = edits.map_or(Some(input), |edits| edits.get(at));
        fields.and_then(|fields| fields.get("replace_all")).is_some_and(|all| all != &Value::Bool(false))
    };
    let mut text = before.to_owned();
    for (at, (old, new)) in each.iter().enumerate() {
        match text.matches(old).count() {
            _ if old.is_empty() && text.is_empty() => text = (*new).to_owned(),
            _ if old.is_empty() => return None,
            1 => text = text.replacen(old, new, 1),
            2.. if is_everywhere(at) => text = text.replace(old, new),
            _ => return None,
        }
    }
    Some(text)
}

/// Language of a file by its extension, for the colors of its code.
fn language(input: &Value) -> &str {
    let path = input.get("file_path").and_then(Value::as_str).unwrap_or_default();
    match path.rsplit('/').next().unwrap_or_default().rsplit_once('.') {
        Some((_, "md" | "txt")) | None => "",
        Some((_, extension)) => extension,
    }
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

/// Form of a diff.
#[derive(Clone, Copy)]
struct DiffLayout<'a> {
    width: usize,
    theme: Theme,
    /// Reports the number of omitted lines.
    is_counted: bool,
    /// Shows line numbers.
    is_numbered: bool,
    /// Language of the code; empty for plain text.
    language: &'a str,
}

/// Changed lines with their context.
fn changes(old: &str, new: &str, layout: DiffLayout<'_>) -> Vec<Line<'static>> {
    let DiffLayout { theme, is_counted, .. } = layout;
    let diff = TextDiff::from_lines(old, new);
    let digits = diff.old_len().max(diff.new_len()).to_string().len();
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
            let number = change.new_index().or(change.old_index()).map_or(0, |index| index + 1);
            let number = if layout.is_numbered { format!("{number:>digits$} ") } else { String::new() };
            lines.extend(change_line(change.tag(), &number, change.value(), layout));
        }
    }
    let n_old = diff.old_len();
    if is_counted && n_old > shown_to {
        lines.push(left_out(n_old - shown_to));
    }
    lines
}

/// A line of a diff. Removed lines have one color; added and unchanged ones have the colors of the language, too.
fn change_line(tag: ChangeTag, number: &str, text: &str, layout: DiffLayout<'_>) -> Vec<Line<'static>> {
    let DiffLayout { width, theme, language, .. } = layout;
    let (sign, style) = match tag {
        ChangeTag::Delete => ("- ", theme.bad()),
        ChangeTag::Insert => ("+ ", theme.good()),
        ChangeTag::Equal => ("  ", theme.dim()),
    };
    let text = text.trim_end_matches('\n');
    let spans = match tag {
        ChangeTag::Delete => vec![Span::styled(text.to_owned(), style)],
        ChangeTag::Insert | ChangeTag::Equal => {
            let is_plain = |span: &Span<'static>| span.style == Style::new();
            let styled = |span: Span<'static>| if is_plain(&span) { span.style(style) } else { span };
            highlight(text, language, theme).into_iter().map(styled).collect()
        }
    };
    let rest = Span::raw(" ".repeat(number.len() + 4));
    let first = [Span::styled(format!("  {number}"), theme.dim()), Span::styled(sign, style)];
    // A number takes the room of text on a narrow screen.
    if width < NUMBERED_COLUMNS_MIN {
        return wrap_anywhere(&spans, &[Span::styled(sign, style)], &[Span::raw("  ")], width.max(4));
    }
    wrap_anywhere(&spans, &first, &[rest], width)
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
