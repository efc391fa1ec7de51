//! The keys of the terminal: one table for the panel of `?` and for `/help`.

use ratatui_core::text::{Line, Span};

use crate::styled_text::{columns, truncate_columns};
use crate::theme::Theme;

/// Keys and their effects, most useful first.
pub const KEY_HELP: &[(&str, &str)] = &[
    ("Enter", "send; while the agent works, steer it"),
    ("Ctrl-J, Alt-Enter", "new line; so does \\ before Enter"),
    ("Esc", "stop the agent; twice on an empty line: go back to an earlier prompt"),
    ("Ctrl-C", "stop the agent or clear the line; twice: leave"),
    ("1, 2, 3", "answer a dialog; other text goes to your input, and Enter sends it"),
    ("/ NAME", "run a command; /help lists them"),
    ("@ PATH", "attach a file, a folder or a picture"),
    ("! COMMAND", "run a shell command yourself; the agent sees its output"),
    ("# TEXT", "save a memory for later sessions"),
    ("Shift-Tab", "next permission mode"),
    ("Up, Down", "earlier prompts; while the agent works, edit queued messages"),
    ("Ctrl-R", "search the prompts of this project"),
    ("Ctrl-G", "write the prompt in your editor ($VISUAL, $EDITOR)"),
    ("Ctrl-O", "show the last tool results in full"),
    ("Ctrl-Z", "suspend; `fg` continues"),
    ("Ctrl-A, Ctrl-E", "start and end of the line"),
    ("Ctrl-K, U, W, Y", "cut to the end, to the start, a word; paste it"),
    ("Ctrl-L", "clear the screen"),
];

/// Screens below this width have a shorter last line.
const NARROW: usize = 44;

/// Maximum columns of the key names.
const NAMES_MAX: usize = 32;

/// The panel below the editor, in at most `rows` lines.
pub(crate) fn help_panel(width: usize, rows: usize, theme: Theme) -> Vec<Line<'static>> {
    let wide = KEY_HELP.iter().map(|(name, _)| columns(name)).max().unwrap_or(0).min(NAMES_MAX);
    // A narrow screen has no room for two columns.
    let wide = wide.min(width / 2);
    let line = |(name, about): &(&str, &str)| {
        let name = truncate_columns(name, wide);
        let gap = " ".repeat(wide.saturating_sub(columns(&name)) + 2);
        let about = truncate_columns(about, width.saturating_sub(wide + 4));
        Line::from(vec![
            Span::styled(format!("  {name}"), theme.accent()),
            Span::raw(gap),
            Span::styled(about, theme.dim()),
        ])
    };
    let is_whole = KEY_HELP.len() < rows;
    let shown = if is_whole { KEY_HELP.len() } else { rows.saturating_sub(1) };
    let mut lines: Vec<Line<'static>> = KEY_HELP.iter().take(shown).map(line).collect();
    let end = match is_whole {
        _ if width < NARROW => "  any key closes this",
        true => "  any key closes this",
        false => "  … /help shows all · any key closes this",
    };
    lines.push(Line::from(Span::styled(truncate_columns(end, width), theme.dim())));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::styled_text::line_columns;

    #[test]
    fn the_panel_fits_every_screen() {
        for (width, rows) in [(23, 3), (79, 22), (299, 70), (10, 1)] {
            let lines = help_panel(width, rows, Theme::default());
            assert!(lines.len() <= rows.max(1), "{width}x{rows}: {}", lines.len());
            assert!(lines.iter().all(|line| line_columns(line) <= width), "{width}x{rows}: {lines:?}");
        }
        let whole: String = help_panel(79, 40, Theme::default()).iter().map(ToString::to_string).collect();
        assert!(KEY_HELP.iter().all(|(name, _)| whole.contains(name)), "{whole}");
    }
}
