//! The region below the conversation, put together: what still changes, what is asked or typed, how the session stands.

use ratatui_core::text::{Line, Span};

use crate::asking::Question;
use crate::editor::{Editor, laid};
use crate::paint::{clipped, columns};
use crate::picker::Picker;
use crate::screen::Live;
use crate::status::Status;
use crate::suggest::{OFFERED_MAX, Suggestions};
use crate::theme::Theme;
use crate::transcript::Transcript;

/// Rows of what is typed that are seen at once.
const TYPED_ROWS: usize = 10;
/// What stands before what is typed.
const PROMPT: &str = "› ";

/// What the region is made of.
pub(crate) struct Parts<'a> {
    pub(crate) transcript: &'a Transcript,
    pub(crate) status: &'a Status,
    pub(crate) editor: &'a Editor,
    pub(crate) question: Option<&'a Question>,
    pub(crate) picker: Option<&'a Picker>,
    pub(crate) suggestions: Option<(&'a Suggestions, usize)>,
    /// A word about what goes on, with its sign.
    pub(crate) working: Option<String>,
    /// A word about what was just pressed.
    pub(crate) hint: Option<&'a str>,
}

/// Columns for what is typed.
pub(crate) fn typed_columns(width: usize) -> usize {
    width.saturating_sub(columns(PROMPT)).max(1)
}

/// Rows that a question may take of a region: a blank line stands above it, the status line below.
pub(crate) fn question_rows(rows: usize) -> usize {
    rows.saturating_sub(2)
}

/// The region in so many columns and at most so many rows, and the row that a question begins in. The question was laid out
/// before.
pub(crate) fn composed(parts: &Parts<'_>, width: usize, rows: usize, theme: Theme) -> (Live, Option<usize>) {
    let (below, cursor) = below(parts, width, rows, theme);
    let room = rows.saturating_sub(below.len() + 2);
    let mut lines = parts.transcript.live(room.min(rows / 2));
    if let Some(working) = &parts.working {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.push(Line::from(Span::styled(clipped(working, width), theme.accent())));
    }
    // What is finished ends above; a blank line parts it from what is typed.
    if lines.first().is_none_or(|line| line.spans.iter().any(|span| !span.content.trim().is_empty())) {
        lines.insert(0, Line::default());
    }
    if lines.len() > 1 {
        lines.push(Line::default());
    }
    let above = lines.len();
    lines.extend(below);
    let live = Live { lines, cursor: cursor.map(|(row, column)| (row + above, column)) };
    (live, parts.question.filter(|_| parts.picker.is_none()).map(|_| above))
}

/// Notes which lines of a question a frame has brought on screen: of a region that is too high only its end is seen.
pub(crate) fn note_question_shown(question: &mut Question, first: usize, live: &Live, rows: usize) {
    let n_cut = live.lines.len().saturating_sub(rows);
    question.note_shown(|row| first + row >= n_cut);
}

type Drawn = (Vec<Line<'static>>, Option<(usize, usize)>);

/// What is asked, chosen or typed, and the status line.
fn below(parts: &Parts<'_>, width: usize, rows: usize, theme: Theme) -> Drawn {
    if let Some(picker) = parts.picker {
        let (lines, cursor) = picker.lines(width, rows.saturating_sub(2).min(20), theme);
        return (lines, Some(cursor));
    }
    let (mut lines, cursor) = match parts.question {
        Some(question) => {
            let drawn = question.drawn(theme);
            (drawn.lines, drawn.cursor)
        }
        None => typed(parts.editor, width, theme),
    };
    if let Some((suggestions, selected)) = parts.suggestions.filter(|_| parts.question.is_none()) {
        lines.extend(offered(suggestions, selected, width, theme));
    } else {
        lines.push(match parts.hint {
            Some(hint) => Line::from(Span::styled(clipped(hint, width), theme.warning())),
            None => parts.status.line(width, theme),
        });
    }
    (lines, cursor)
}

fn typed(editor: &Editor, width: usize, theme: Theme) -> Drawn {
    let laid = laid(editor.text(), editor.cursor(), typed_columns(width));
    let from = (laid.row + 1).saturating_sub(TYPED_ROWS);
    let mut lines = Vec::new();
    for (at, row) in laid.rows.iter().enumerate().skip(from).take(TYPED_ROWS) {
        let mark = if at == 0 { PROMPT } else { "  " };
        let text = editor.text()[row.clone()].trim_end_matches(' ').to_owned();
        lines.push(Line::from(vec![Span::styled(mark, theme.accent()), Span::raw(text)]));
    }
    (lines, Some((laid.row - from, columns(PROMPT) + laid.column)))
}

fn offered(suggestions: &Suggestions, selected: usize, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let from = (selected + 1).saturating_sub(OFFERED_MAX);
    let shown = suggestions.offered.iter().enumerate().skip(from).take(OFFERED_MAX);
    let wide = shown.clone().map(|(_, (name, _))| columns(name)).max().unwrap_or(0);
    let line = |(at, (name, about)): (usize, &(String, String))| {
        let style = if at == selected { theme.accent() } else { Default::default() };
        let mark = if at == selected { "❯ " } else { "  " };
        let name = clipped(name, width.saturating_sub(2));
        let gap = " ".repeat(wide.saturating_sub(columns(&name)));
        let room = width.saturating_sub(columns(&name) + gap.len() + 2);
        Line::from(vec![
            Span::styled(format!("{mark}{name}"), style),
            Span::raw(gap),
            Span::styled(clipped(about, room), theme.dim()),
        ])
    };
    shown.map(line).collect()
}
