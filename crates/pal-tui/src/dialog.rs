//! Dialogs that take the place of the prompt editor until the user has answered.

use std::time::Instant;

use crossterm::event::KeyEvent;
use ratatui_core::text::Line;

use crate::theme::Theme;

/// A question that waits for the user's answer.
pub(crate) trait Dialog {
    /// Handles a key that [`crate::dialog_focus::DialogFocus`] gives to it.
    fn key(&mut self, key: &KeyEvent) -> DialogOutcome;

    /// Time of the first frame that showed it.
    fn shown_at(&self) -> Option<Instant>;

    /// Number of answers; the digits from 1 on give them.
    fn n_answers(&self) -> usize;

    /// True while the user types a text in the dialog, such as the reason of a refusal.
    fn has_text_field(&self) -> bool {
        false
    }

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
