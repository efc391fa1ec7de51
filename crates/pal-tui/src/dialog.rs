//! Dialogs that take the place of the prompt editor until the user has answered.

use std::time::{Duration, Instant};

use crossterm::event::KeyEvent;
use ratatui_core::text::Line;

use crate::theme::Theme;

/// Keys that arrive within this time were meant for the editor.
pub(crate) const KEY_GUARD_TIME: Duration = Duration::from_millis(300);

/// A question that waits for the user's answer.
pub(crate) trait Dialog {
    /// Handles a key.
    fn key(&mut self, key: &KeyEvent) -> DialogOutcome;

    /// Inserts pasted text into the text that is being typed.
    fn paste(&mut self, text: &str);

    /// Lays the dialog out for a size.
    fn lay_out(&mut self, width: usize, rows: usize, theme: Theme);

    /// Notes that a frame showed the rows that `is_visible` accepts.
    fn note_shown(&mut self, is_visible: &dyn Fn(usize) -> bool);

    /// Lines in the current layout.
    fn drawn(&self, theme: Theme) -> DialogLines;

    /// Text that the user wants to edit in their editor.
    fn text_to_edit(&self) -> Option<String> {
        None
    }

    /// Takes the edited text.
    fn set_edited(&mut self, _text: String) {}

    /// Lines that stay in the transcript once it is answered.
    fn record(&self, width: usize, theme: Theme) -> Option<Vec<Line<'static>>>;
}

/// Effect of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DialogOutcome {
    /// Not decided yet.
    Open,
    /// The key belongs to the editor below.
    NotForDialog,
    /// The text of the dialog is to be edited ([`Dialog::text_to_edit`]).
    Edit,
    /// Answered.
    Done,
    /// The prompt that it is about goes back to the editor.
    TakenBack,
    /// Refused, and the work is to stop.
    Stopped,
}

/// Lines of a dialog, and the cursor while a text is typed.
pub(crate) struct DialogLines {
    pub(crate) lines: Vec<Line<'static>>,
    pub(crate) cursor: Option<(usize, usize)>,
}

/// Returns whether a key came too early to be meant for a dialog that appeared at `shown_at`.
pub(crate) fn is_too_early(shown_at: Option<Instant>) -> bool {
    shown_at.is_none_or(|at| at.elapsed() < KEY_GUARD_TIME)
}
