//! Decides which keys answer an open dialog and which go on to the input: a person who types must not answer by accident.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::dialog::{Dialog, DialogOutcome};

/// Minimum time that a dialog is on screen before a key can answer it.
pub(crate) const SHOWN_TIME: Duration = Duration::from_millis(500);

/// Minimum time without typing before a key can answer a dialog.
pub(crate) const QUIET_TIME: Duration = Duration::from_secs(1);

/// Place of the keys while a dialog is open.
#[derive(Default)]
pub(crate) struct DialogFocus {
    /// Time of the last key that went to a text.
    typed_at: Option<Instant>,
    /// An arrow key or Tab moved to the dialog although the input has text.
    is_on_dialog: bool,
    /// Enter came while it could not answer.
    is_enter_ignored: bool,
}

/// State of the input below a dialog.
#[derive(Clone, Copy)]
pub(crate) struct InputState {
    pub(crate) is_empty: bool,
    /// Esc ends the insert mode of vi.
    pub(crate) is_vi_insert: bool,
}

impl DialogFocus {
    /// Notes a key or a paste that went to a text: until typing pauses, no key answers.
    pub(crate) fn note_typed(&mut self, now: Instant) {
        self.typed_at = Some(now);
        self.is_on_dialog = false;
    }

    /// Notes that a dialog closed.
    pub(crate) fn note_closed(&mut self) {
        self.is_on_dialog = false;
        self.is_enter_ignored = false;
    }

    /// True if keys answer the dialog although the input has text.
    pub(crate) fn is_on_dialog(&self) -> bool {
        self.is_on_dialog
    }

    /// True if the last key was an Enter that did nothing.
    pub(crate) fn is_enter_ignored(&self) -> bool {
        self.is_enter_ignored
    }

    /// Gives a key to the dialog, unless it belongs to the input ([`DialogOutcome::NotForDialog`]).
    pub(crate) fn route(
        &mut self,
        key: &KeyEvent,
        dialog: &mut dyn Dialog,
        input: InputState,
        now: Instant,
    ) -> DialogOutcome {
        self.is_enter_ignored = false;
        if dialog.has_text_field() {
            // The Enter that ends a reason must not answer the next dialog.
            self.note_typed(now);
            return dialog.key(key);
        }
        let is_quiet = has_passed(self.typed_at, QUIET_TIME, now);
        let is_shown = dialog.shown_at().is_some() && has_passed(dialog.shown_at(), SHOWN_TIME, now);
        let is_on_input = !input.is_empty && !self.is_on_dialog;
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc if is_on_input && input.is_vi_insert => DialogOutcome::NotForDialog,
            KeyCode::Esc => dialog.key(key),
            KeyCode::Char('c') if is_control => dialog.key(key),
            // It would end the program by a slip.
            KeyCode::Char('d') if is_control && input.is_empty => DialogOutcome::Open,
            KeyCode::PageUp | KeyCode::PageDown => dialog.key(key),
            KeyCode::Up | KeyCode::Down if is_on_input && !is_quiet => DialogOutcome::NotForDialog,
            KeyCode::Up | KeyCode::Down | KeyCode::Tab | KeyCode::BackTab => {
                self.is_on_dialog = is_quiet && !input.is_empty;
                dialog.key(key)
            }
            KeyCode::Left | KeyCode::Right | KeyCode::Home | KeyCode::End if !is_on_input => dialog.key(key),
            KeyCode::Enter | KeyCode::Char('1'..='9' | ' ') if key.modifiers.is_empty() => {
                if is_shown && is_quiet && !is_on_input {
                    return dialog.key(key);
                }
                self.is_enter_ignored = key.code == KeyCode::Enter && input.is_empty;
                DialogOutcome::NotForDialog
            }
            _ => DialogOutcome::NotForDialog,
        }
    }
}

/// Hint about the keys that answer a dialog.
pub(crate) fn answer_hint(n_answers: usize) -> String {
    match n_answers {
        0 | 1 => String::from("press 1"),
        2 => String::from("press 1 or 2"),
        3 => String::from("press 1, 2 or 3"),
        count => format!("press 1 to {count}"),
    }
}

fn has_passed(since: Option<Instant>, time: Duration, now: Instant) -> bool {
    since.is_none_or(|at| now.saturating_duration_since(at) >= time)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use pal_events::{QuestionOption, UserQuestion};

    use super::*;
    use crate::cold_turn_dialog::ColdTurnDialog;
    use crate::editor::Editor;
    use crate::permission_dialog::{PermissionDialog, question_about};
    use crate::question_dialog::QuestionDialog;
    use crate::theme::Theme;
    use crate::ui_events::{ColdTurnAnswer, Consent};

    /// Time between two keys of a person who types.
    const STROKE: Duration = Duration::from_millis(130);

    /// A person at a terminal with a dialog.
    struct TypingUser {
        focus: DialogFocus,
        editor: Editor,
        sent: Vec<String>,
        dialog: Box<dyn Dialog>,
        outcome: DialogOutcome,
        now: Instant,
    }

    impl TypingUser {
        fn new(dialog: Box<dyn Dialog>) -> TypingUser {
            TypingUser {
                focus: DialogFocus::default(),
                editor: Editor::default(),
                sent: Vec::new(),
                dialog,
                outcome: DialogOutcome::Open,
                now: Instant::now(),
            }
        }

        /// The dialog appears.
        fn show(&mut self) {
            self.dialog.lay_out(80, 22, Theme::default());
            self.dialog.note_shown(&|_| true);
            self.now = Instant::now().max(self.now);
        }

        fn pause(&mut self, milliseconds: u64) {
            self.now += Duration::from_millis(milliseconds);
        }

        fn press(&mut self, code: KeyCode) {
            self.now += STROKE;
            let is_open = !matches!(self.outcome, DialogOutcome::Done | DialogOutcome::Stopped);
            let input = InputState { is_empty: self.editor.is_empty(), is_vi_insert: false };
            if is_open && self.dialog.shown_at().is_some() {
                let key = KeyEvent::from(code);
                self.outcome = self.focus.route(&key, self.dialog.as_mut(), input, self.now);
                if self.outcome != DialogOutcome::NotForDialog {
                    return;
                }
            }
            match code {
                KeyCode::Char(character) => self.editor.insert(character.encode_utf8(&mut [0; 4])),
                KeyCode::Enter if !self.editor.is_empty() => self.sent.push(self.editor.take().sent),
                _ => {}
            }
            self.focus.note_typed(self.now);
        }

        fn type_text(&mut self, text: &str) {
            text.chars().for_each(|character| self.press(KeyCode::Char(character)));
        }
    }

    fn permission() -> (TypingUser, mpsc::Receiver<Consent>) {
        let (sender, answers) = mpsc::channel();
        let dialog = PermissionDialog::new(
            question_about("Bash", r#"{"command":"rm -rf build"}"#, "Bash(rm:*)"),
            sender,
        );
        (TypingUser::new(Box::new(dialog)), answers)
    }

    fn plan() -> (TypingUser, mpsc::Receiver<Consent>) {
        let (sender, answers) = mpsc::channel();
        let dialog =
            PermissionDialog::new(question_about("ExitPlanMode", r#"{"plan":"remove it"}"#, ""), sender);
        (TypingUser::new(Box::new(dialog)), answers)
    }

    fn question() -> (TypingUser, mpsc::Receiver<Consent>) {
        let (sender, answers) = mpsc::channel();
        let option = |label: &str| QuestionOption { label: label.to_owned(), description: String::new() };
        let question = UserQuestion {
            question: String::from("Which one?"),
            header: String::from("Choice"),
            options: vec![option("red"), option("blue")],
            multi_select: false,
        };
        let dialog = QuestionDialog::new(None, vec![question], sender);
        (TypingUser::new(Box::new(dialog)), answers)
    }

    #[test]
    fn typing_through_the_appearance_of_a_dialog_never_answers() {
        // Letters that were answers once, digits in a sentence, and Enter at the end.
        for text in ["use the other directory", "an always stale name", "no, not now", "run 1 of 3, 2 later"]
        {
            for shown_after in [0, 1, 3, text.len() - 1] {
                for (mut user, answers) in [permission(), plan(), question()] {
                    user.type_text(&text[..shown_after]);
                    user.show();
                    user.type_text(&text[shown_after..]);
                    assert_eq!(user.editor.text(), text, "every character is in the input");
                    user.press(KeyCode::Enter);
                    assert_eq!(user.sent, [text], "Enter sends the message");
                    user.press(KeyCode::Enter);
                    assert_eq!(user.outcome, DialogOutcome::NotForDialog, "{text:?} after {shown_after}");
                    assert!(user.focus.is_enter_ignored(), "the user is told which keys answer");
                    assert!(answers.try_recv().is_err(), "{text:?} after {shown_after}");
                }
            }
        }
    }

    #[test]
    fn letters_do_not_answer_after_a_long_pause() {
        for letter in ['y', 'a', 'n', 'e', 'Y', 'A', 'N', 'c'] {
            for (mut user, answers) in [permission(), plan(), question()] {
                user.show();
                user.pause(60_000);
                user.press(KeyCode::Char(letter));
                assert_eq!(user.editor.text(), letter.to_string());
                assert!(answers.try_recv().is_err(), "{letter}");
            }
        }
    }

    #[test]
    fn text_in_the_input_takes_digits_and_enter_however_long_the_pause() {
        let (mut user, answers) = permission();
        user.type_text("keep the last ");
        user.show();
        user.pause(5_000);
        user.press(KeyCode::Char('3'));
        user.pause(5_000);
        user.press(KeyCode::Enter);
        assert_eq!(user.sent, ["keep the last 3"]);
        assert!(answers.try_recv().is_err());
        // After a pause without text, the digit answers.
        user.pause(1_000);
        user.press(KeyCode::Char('1'));
        assert_eq!((user.outcome, answers.try_recv()), (DialogOutcome::Done, Ok(Consent::Once)));
    }

    #[test]
    fn an_arrow_key_moves_to_the_dialog_and_typing_moves_back() {
        let (mut user, answers) = permission();
        user.type_text("half a sen");
        user.show();
        user.press(KeyCode::Down);
        assert!(!user.focus.is_on_dialog(), "an arrow key while typing is for the text");
        user.pause(1_000);
        user.press(KeyCode::Down);
        assert!(user.focus.is_on_dialog());
        user.type_text("tence 2");
        assert_eq!(user.editor.text(), "half a sentence 2");
        assert!(answers.try_recv().is_err());
        user.pause(1_000);
        user.press(KeyCode::Tab);
        user.press(KeyCode::Char('2'));
        assert_eq!((user.outcome, answers.try_recv()), (DialogOutcome::Done, Ok(Consent::Project)));
        assert_eq!(user.editor.text(), "half a sentence 2", "the text stays");
    }

    #[test]
    fn a_new_dialog_takes_no_answer_at_once() {
        for code in [KeyCode::Enter, KeyCode::Char('1'), KeyCode::Char('2'), KeyCode::Char('3')] {
            let (mut user, answers) = permission();
            user.show();
            user.press(code);
            user.pause(200);
            user.press(code);
            assert!(answers.try_recv().is_err(), "{code:?}");
        }
    }

    #[test]
    fn escape_refuses_at_any_time() {
        let (mut user, answers) = permission();
        user.type_text("use");
        user.show();
        user.press(KeyCode::Esc);
        assert_eq!((user.outcome, answers.try_recv()), (DialogOutcome::Stopped, Ok(Consent::No(None))));
    }

    #[test]
    fn the_enter_that_ends_a_reason_does_not_answer_the_next_dialog() {
        let (mut user, answers) = permission();
        user.show();
        user.pause(1_000);
        user.press(KeyCode::Char('3'));
        user.type_text("yes, a 1 is no answer here");
        user.press(KeyCode::Enter);
        let reason = Some(String::from("yes, a 1 is no answer here"));
        assert_eq!(answers.try_recv(), Ok(Consent::No(reason)));
        let (next, answers) = permission();
        (user.dialog, user.outcome) = (next.dialog, DialogOutcome::Open);
        user.show();
        user.pause(600);
        user.press(KeyCode::Enter);
        assert!(answers.try_recv().is_err());
    }

    #[test]
    fn an_expired_cache_is_answered_by_digits_only() {
        for (code, answer) in [
            (KeyCode::Char('c'), None),
            (KeyCode::Char('1'), Some(ColdTurnAnswer::Send)),
            (KeyCode::Char('2'), Some(ColdTurnAnswer::CompactFirst)),
            (KeyCode::Enter, Some(ColdTurnAnswer::Send)),
        ] {
            let (sender, answers) = mpsc::channel();
            let mut user = TypingUser::new(Box::new(ColdTurnDialog::new("cache expired", sender)));
            user.type_text("cc");
            user.press(KeyCode::Enter);
            user.show();
            user.press(code);
            assert!(answers.try_recv().is_err(), "{code:?} came too early");
            user.editor.take();
            user.pause(1_000);
            user.press(code);
            assert_eq!(answers.try_recv().ok(), answer, "{code:?}");
        }
    }
}
