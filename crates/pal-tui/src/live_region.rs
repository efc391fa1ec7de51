//! Composition of the live region: live lines, dialog or editor, and the status line.

use ratatui_core::text::{Line, Span};

use crate::completion::{OFFERED_MAX, Suggestions};
use crate::dialog::Dialog;
use crate::editor::{Editor, lay_out_text};
use crate::key_help::help_panel;
use crate::picker::Picker;
use crate::screen::LiveRegion;
use crate::status_line::StatusLine;
use crate::styled_text::{columns, sanitize_line, truncate_columns, truncate_line};
use crate::theme::Theme;
use crate::transcript::Transcript;

/// Maximum visible rows of the editor.
const TYPED_ROWS: usize = 10;
/// Prompt sign of the editor.
const PROMPT: &str = "› ";

/// Parts of the live region.
pub(crate) struct LiveParts<'a> {
    pub(crate) transcript: &'a Transcript,
    pub(crate) status: &'a StatusLine,
    pub(crate) editor: &'a Editor,
    /// Suggestion for the next prompt, shown while the editor is empty.
    pub(crate) suggestion: Option<&'a str>,
    pub(crate) question: Option<&'a dyn Dialog>,
    pub(crate) picker: Option<&'a Picker>,
    pub(crate) suggestions: Option<(&'a Suggestions, usize)>,
    /// Text of the working indicator.
    pub(crate) working: Option<String>,
    /// Hint about the last key; replaces the status line.
    pub(crate) hint: Option<&'a str>,
    /// Output of the user's status command.
    pub(crate) status_lines: Vec<Line<'static>>,
    /// Mode of the keys of vi.
    pub(crate) vi_mode: Option<&'static str>,
    /// The panel with the keys replaces the status line.
    pub(crate) has_key_help: bool,
    /// Keys answer the dialog although the editor has text.
    pub(crate) is_on_dialog: bool,
}

/// Width of the editor, in columns.
pub(crate) fn typed_columns(width: usize) -> usize {
    width.saturating_sub(columns(PROMPT)).max(1)
}

/// Rows for a dialog: all but a blank line above and the status line below.
pub(crate) fn question_rows(rows: usize) -> usize {
    rows.saturating_sub(2)
}

/// Composes the region; also returns the first row of the dialog, which must be laid out already.
pub(crate) fn compose(
    parts: &LiveParts<'_>,
    width: usize,
    rows: usize,
    theme: Theme,
) -> (LiveRegion, Option<usize>) {
    let (below, cursor) = below(parts, width, rows, theme);
    let room = rows.saturating_sub(below.len() + 2);
    let mut lines = parts.transcript.live(room.min(rows / 2));
    if let Some(working) = &parts.working {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.push(Line::from(Span::styled(truncate_columns(working, width), theme.accent())));
    }
    // A blank line separates finished lines from the region.
    if lines.first().is_none_or(|line| line.spans.iter().any(|span| !span.content.trim().is_empty())) {
        lines.insert(0, Line::default());
    }
    if lines.len() > 1 {
        lines.push(Line::default());
    }
    let above = lines.len();
    lines.extend(below);
    let live = LiveRegion { lines, cursor: cursor.map(|(row, column)| (row + above, column)) };
    (live, parts.question.filter(|_| parts.picker.is_none()).map(|_| above))
}

/// Marks the dialog's lines that a frame showed; of a region that is too high only the end is visible.
pub(crate) fn note_question_shown(question: &mut dyn Dialog, first: usize, live: &LiveRegion, rows: usize) {
    let n_cut = live.lines.len().saturating_sub(rows);
    question.note_shown(&|row| first + row >= n_cut);
}

type DrawnLines = (Vec<Line<'static>>, Option<(usize, usize)>);

/// Dialog, picker or editor, and the status line.
fn below(parts: &LiveParts<'_>, width: usize, rows: usize, theme: Theme) -> DrawnLines {
    if let Some(picker) = parts.picker {
        let (lines, cursor) = picker.lines(width, rows.saturating_sub(2).min(20), theme);
        return (lines, Some(cursor));
    }
    let (mut lines, mut cursor) = match parts.question {
        Some(question) => {
            let drawn = question.drawn(theme);
            (drawn.lines, drawn.cursor)
        }
        None => typed(parts.editor, parts.suggestion, width, theme),
    };
    if let Some((suggestions, selected)) = parts.suggestions.filter(|_| parts.question.is_none()) {
        lines.extend(offered(suggestions, selected, width, theme));
    } else if parts.has_key_help && parts.question.is_none() {
        lines.extend(help_panel(width, rows.saturating_sub(lines.len() + 1), theme));
    } else if parts.question.is_some() && !parts.editor.is_empty() {
        lines.extend(parts.status_lines.iter().map(|line| truncate_line(line, width)));
        let (line, column) = typed_line(parts.editor, parts.is_on_dialog, width, theme);
        if cursor.is_none() && !parts.is_on_dialog {
            cursor = Some((lines.len(), column));
        }
        lines.push(line);
    } else {
        lines.extend(parts.status_lines.iter().map(|line| truncate_line(line, width)));
        lines.push(match parts.hint {
            Some(hint) => Line::from(Span::styled(truncate_columns(hint, width), theme.warning())),
            None => match parts.vi_mode.filter(|_| parts.question.is_none()) {
                Some(mode) => {
                    let mut spans = vec![Span::styled(format!("{mode} "), theme.strong())];
                    let room = width.saturating_sub(columns(mode) + 1);
                    spans.extend(parts.status.line(room, theme).spans);
                    Line::from(spans)
                }
                None => parts.status.line(width, theme),
            },
        });
    }
    (lines, cursor)
}

fn typed(editor: &Editor, suggestion: Option<&str>, width: usize, theme: Theme) -> DrawnLines {
    if let Some(suggestion) = suggestion.filter(|_| editor.is_empty()) {
        let ghost = truncate_columns(&format!("{} (Tab)", sanitize_line(suggestion)), typed_columns(width));
        let line = vec![Span::styled(PROMPT, theme.accent()), Span::styled(ghost, theme.dim())];
        return (vec![Line::from(line)], Some((0, columns(PROMPT))));
    }
    let laid = lay_out_text(editor.text(), editor.cursor(), typed_columns(width));
    let from = (laid.row + 1).saturating_sub(TYPED_ROWS);
    let mut lines = Vec::new();
    for (at, row) in laid.rows.iter().enumerate().skip(from).take(TYPED_ROWS) {
        let mark = if at == 0 { PROMPT } else { "  " };
        let text = editor.text()[row.clone()].trim_end_matches(' ').to_owned();
        lines.push(Line::from(vec![Span::styled(mark, theme.accent()), Span::raw(text)]));
    }
    (lines, Some((laid.row - from, columns(PROMPT) + laid.column)))
}

/// The row of the editor with the cursor, in place of the status line while a dialog is open, and the cursor's column. The dialog
/// keeps its rows, so that typing does not start its pages over.
fn typed_line(editor: &Editor, is_on_dialog: bool, width: usize, theme: Theme) -> (Line<'static>, usize) {
    let laid = lay_out_text(editor.text(), editor.cursor(), typed_columns(width));
    let text = laid.rows.get(laid.row).map_or("", |row| &editor.text()[row.clone()]);
    let keys =
        if is_on_dialog { "   type to go on here" } else { "   Enter sends it · ↑ ↓ answer above" };
    let used = columns(PROMPT) + columns(text).max(laid.column + 1);
    let mut spans = vec![Span::styled(PROMPT, theme.accent()), Span::raw(text.to_owned())];
    if used + columns(keys) <= width {
        spans.push(Span::styled(keys, theme.dim()));
    }
    (Line::from(spans), columns(PROMPT) + laid.column)
}

fn offered(suggestions: &Suggestions, selected: usize, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let from = (selected + 1).saturating_sub(OFFERED_MAX);
    let shown = suggestions.offered.iter().enumerate().skip(from).take(OFFERED_MAX);
    let wide = shown.clone().map(|(_, (name, _))| columns(name)).max().unwrap_or(0);
    let line = |(at, (name, about)): (usize, &(String, String))| {
        let style = if at == selected { theme.accent() } else { Default::default() };
        let mark = if at == selected { "❯ " } else { "  " };
        let name = truncate_columns(name, width.saturating_sub(2));
        let gap = " ".repeat(wide.saturating_sub(columns(&name)));
        let room = width.saturating_sub(columns(&name) + gap.len() + 2);
        Line::from(vec![
            Span::styled(format!("{mark}{name}"), style),
            Span::raw(gap),
            Span::styled(truncate_columns(about, room), theme.dim()),
        ])
    };
    shown.map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_text_stays_in_sight_below_a_dialog() {
        let shown = |text: &str, width: usize| {
            let mut editor = Editor::default();
            editor.insert(text);
            let (line, column) = typed_line(&editor, false, width, Theme::default());
            (line.to_string(), column)
        };
        let (line, column) = shown("use the other directory", 80);
        assert_eq!(line, "› use the other directory   Enter sends it · ↑ ↓ answer above");
        assert_eq!(column, 25);
        assert_eq!(shown("use the other directory", 23).0, "› directory", "the row with the cursor");
        assert_eq!(shown("one\ntwo", 30).0, "› two");
    }

    #[test]
    fn a_suggestion_shows_only_in_an_empty_editor() {
        let shown = |text: &str, suggestion: Option<&str>| {
            let mut editor = Editor::default();
            editor.insert(text);
            let (lines, cursor) = typed(&editor, suggestion, 30, Theme::default());
            (lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"), cursor)
        };
        assert_eq!(shown("", Some("run the tests")), (String::from("› run the tests (Tab)"), Some((0, 2))));
        assert_eq!(shown("no", Some("run the tests")).0, "› no");
        assert_eq!(shown("", None).0, "› ");
        let long = shown("", Some(&format!("run \u{1b}[31m{}", "x".repeat(90)))).0;
        assert!(columns(&long) <= 30 && !long.contains('\u{1b}'), "{long}");
    }
}
