//! The first lines of a session: what the program is, the model, the folder, the context, and hints.

use pal_events::SessionInfo;
use pal_model::text::group_digits;
use ratatui_core::text::{Line, Span};

use crate::styled_text::{columns, sanitize_line, truncate_columns};
use crate::theme::Theme;

/// Description of the program in a few words.
const ABOUT: &str = "a coding agent that forgets nothing";

/// What to do first.
const HINTS: [&str; 2] = [
    "Say what you want done, or ask about this folder, and press Enter.",
    "? lists the keys · / lists the commands · @ attaches a file",
];

/// Columns of the labels.
const LABEL_COLUMNS: usize = 9;

/// Title, model and folder of the first session.
pub(crate) fn title_lines(began: &SessionInfo, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let title = truncate_columns(&format!("Palimpsest {}", sanitize_line(&began.version)), width);
    let about = truncate_columns(&format!(" · {ABOUT}"), width.saturating_sub(columns(&title)));
    vec![
        Line::from(vec![Span::styled(title, theme.strong()), Span::styled(about, theme.dim())]),
        labelled("model", &began.model, width, theme),
        labelled("folder", &began.cwd, width, theme),
    ]
}

/// Title of a later session in one line.
pub(crate) fn short_title(began: &SessionInfo, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let title = truncate_columns(&format!("Palimpsest {}", sanitize_line(&began.version)), width);
    let place = format!(" · {} · {}", sanitize_line(&began.model), sanitize_line(&began.cwd));
    let room = width.saturating_sub(columns(&title));
    vec![Line::from(vec![
        Span::styled(title, theme.strong()),
        Span::styled(truncate_columns(&place, room), theme.dim()),
    ])]
}

/// Size of the context.
pub(crate) fn context_line(tokens: u64, compaction_tokens: u64, width: usize, theme: Theme) -> Line<'static> {
    let text =
        format!("{} of {} tokens until compaction", group_digits(tokens), group_digits(compaction_tokens));
    labelled("context", &text, width, theme)
}

/// Hints for a new session.
pub(crate) fn hint_lines(width: usize, theme: Theme) -> Vec<Line<'static>> {
    let hint =
        |text: &&str| Line::from(Span::styled(truncate_columns(&format!("  {text}"), width), theme.dim()));
    let mut lines = vec![Line::default()];
    lines.extend(HINTS.iter().map(hint));
    lines
}

fn labelled(label: &str, text: &str, width: usize, theme: Theme) -> Line<'static> {
    let label = truncate_columns(&format!("  {label:<LABEL_COLUMNS$}"), width);
    let text = truncate_columns(&sanitize_line(text), width.saturating_sub(columns(&label)));
    Line::from(vec![Span::styled(label, theme.dim()), Span::raw(text)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::styled_text::line_columns;

    #[test]
    fn the_first_lines_name_model_folder_and_context_and_fit() {
        let began = SessionInfo {
            session_id: String::new(),
            transcript_path: String::new(),
            cwd: String::from("/home/me/a/rather/long/path/to/a/project"),
            model: "claude-opus-5-5".into(),
            tools: Vec::new(),
            permission_mode: "default".into(),
            is_resumed: false,
            version: String::from("0.1.0"),
            mcp_servers: Vec::new(),
            agents: Vec::new(),
            skills: Vec::new(),
            output_style: None,
        };
        let lines = |width: usize| {
            let theme = Theme::default();
            let mut lines = title_lines(&began, width, theme);
            lines.push(context_line(10_412, 967_000, width, theme));
            lines.extend(hint_lines(width, theme));
            lines
        };
        let whole: Vec<String> = lines(79).iter().map(ToString::to_string).collect();
        assert_eq!(whole[1], "  model    claude-opus-5-5");
        assert_eq!(whole[2], "  folder   /home/me/a/rather/long/path/to/a/project");
        assert_eq!(whole[3], "  context  10,412 of 967,000 tokens until compaction");
        for width in [1, 10, 23, 299] {
            assert!(lines(width).iter().all(|line| line_columns(line) <= width), "{width}");
            assert!(line_columns(&short_title(&began, width, Theme::default())[0]) <= width, "{width}");
        }
    }
}
