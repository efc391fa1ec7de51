//! The question before a prompt goes into an expired cache.

use std::sync::mpsc;
use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::text::{Line, Span};

use crate::dialog::{Dialog, DialogLines, DialogOutcome};
use crate::styled_text::{sanitize_line, wrap};
use crate::theme::Theme;
use crate::ui_events::ColdTurnAnswer;

/// Keys of the question about the budget of the day.
const BUDGET_KEYS: &str = "1 or Enter sends, and lifts the budget for this session · Esc returns to editing";
/// Keys of the dialog.
const KEYS: &str = "1 or Enter sends · 2 compacts first · Esc returns to editing";

/// A prompt that waits for the user's decision.
pub(crate) struct ColdTurnDialog {
    text: String,
    answer: mpsc::Sender<ColdTurnAnswer>,
    /// True if compacting first is offered.
    can_compact: bool,
    /// Time of the first frame that showed it.
    shown_at: Option<Instant>,
    width: usize,
}

impl ColdTurnDialog {
    pub(crate) fn new(text: &str, answer: mpsc::Sender<ColdTurnAnswer>) -> ColdTurnDialog {
        ColdTurnDialog { text: sanitize_line(text), answer, can_compact: true, shown_at: None, width: 80 }
    }

    /// The same question about the budget of the day, without compacting first.
    pub(crate) fn of_budget(text: &str, answer: mpsc::Sender<ColdTurnAnswer>) -> ColdTurnDialog {
        ColdTurnDialog { can_compact: false, ..ColdTurnDialog::new(text, answer) }
    }

    fn reply(&self, answer: ColdTurnAnswer) -> DialogOutcome {
        // The asker may be gone.
        let _ = self.answer.send(answer);
        match answer {
            ColdTurnAnswer::Edit => DialogOutcome::TakenBack,
            ColdTurnAnswer::Send | ColdTurnAnswer::CompactFirst => DialogOutcome::Done,
        }
    }
}

impl Dialog for ColdTurnDialog {
    fn key(&mut self, key: &KeyEvent) -> DialogOutcome {
        let is_control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control_c || key.code == KeyCode::Esc {
            return self.reply(ColdTurnAnswer::Edit);
        }
        match key.code {
            KeyCode::Enter | KeyCode::Char('1') => self.reply(ColdTurnAnswer::Send),
            KeyCode::Char('2') if self.can_compact => self.reply(ColdTurnAnswer::CompactFirst),
            KeyCode::Char(_) => DialogOutcome::NotForDialog,
            _ => DialogOutcome::Open,
        }
    }

    fn shown_at(&self) -> Option<Instant> {
        self.shown_at
    }

    fn n_answers(&self) -> usize {
        if self.can_compact { 2 } else { 1 }
    }

    fn paste(&mut self, _text: &str) {}

    fn lay_out(&mut self, width: usize, _rows: usize, _theme: Theme) {
        self.width = width;
    }

    fn note_shown(&mut self, _is_visible: &dyn Fn(usize) -> bool) {
        self.shown_at.get_or_insert_with(Instant::now);
    }

    fn drawn(&self, theme: Theme) -> DialogLines {
        let mut lines = wrap(&[Span::styled(self.text.clone(), theme.warning())], &[], &[], self.width);
        let keys = if self.can_compact { KEYS } else { BUDGET_KEYS };
        lines.push(Line::from(Span::styled(keys, theme.dim())));
        DialogLines { lines, cursor: None }
    }

    fn record(&self, width: usize, theme: Theme) -> Option<Vec<Line<'static>>> {
        Some(wrap(&[Span::styled(self.text.clone(), theme.dim())], &[], &[], width))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressed(code: KeyCode) -> (DialogOutcome, Option<ColdTurnAnswer>) {
        let (sender, answers) = mpsc::channel();
        let mut dialog = ColdTurnDialog::new("cache expired 12 min ago", sender);
        (dialog.key(&KeyEvent::from(code)), answers.try_recv().ok())
    }

    #[test]
    fn each_key_has_its_answer() {
        assert_eq!(pressed(KeyCode::Enter), (DialogOutcome::Done, Some(ColdTurnAnswer::Send)));
        assert_eq!(pressed(KeyCode::Char('2')), (DialogOutcome::Done, Some(ColdTurnAnswer::CompactFirst)));
        assert_eq!(pressed(KeyCode::Esc), (DialogOutcome::TakenBack, Some(ColdTurnAnswer::Edit)));
        assert_eq!(pressed(KeyCode::Char('c')), (DialogOutcome::NotForDialog, None));
    }
}
