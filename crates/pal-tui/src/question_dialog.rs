//! The dialog for questions of the model: one question at a time, with options to choose from and room for other words.

use std::sync::mpsc;
use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use pal_events::{QuestionAnswer, UserQuestion};
use ratatui_core::text::{Line, Span};

use crate::dialog::{Dialog, DialogLines, DialogOutcome};
use crate::editor::{Editor, lay_out_text};
use crate::styled_text::{sanitize_line, truncate_columns, wrap};
use crate::theme::Theme;
use crate::ui_events::Consent;

/// Label of the choice that lets the user type.
const OTHER: &str = "something else: type it";

/// Questions that wait for their answers.
pub(crate) struct QuestionDialog {
    agent: Option<String>,
    questions: Vec<UserQuestion>,
    answer: mpsc::Sender<Consent>,
    /// Question on screen.
    at: usize,
    /// Choice of each question so far.
    choices: Vec<QuestionChoice>,
    /// Other words, while they are typed.
    typed: Option<Editor>,
    /// Time of the first frame that showed it.
    shown_at: Option<Instant>,
    /// Columns and rows of the layout.
    size: (usize, usize),
}

/// Choice of the user for one question.
#[derive(Clone, Default)]
struct QuestionChoice {
    /// Option under the cursor; the one after the last lets the user type.
    selected: usize,
    /// Chosen options.
    chosen: Vec<usize>,
    /// The user's own words.
    words: Option<String>,
}

impl QuestionChoice {
    fn answers(&self, question: &UserQuestion) -> Vec<String> {
        let mut chosen = self.chosen.clone();
        chosen.sort_unstable();
        let labels = chosen.into_iter().filter_map(|at| question.options.get(at));
        labels.map(|option| option.label.clone()).chain(self.words.clone()).collect()
    }
}

impl QuestionDialog {
    pub(crate) fn new(
        agent: Option<String>,
        questions: Vec<UserQuestion>,
        answer: mpsc::Sender<Consent>,
    ) -> QuestionDialog {
        let choices = vec![QuestionChoice::default(); questions.len()];
        QuestionDialog {
            agent,
            questions,
            answer,
            at: 0,
            choices,
            typed: None,
            shown_at: None,
            size: (80, 24),
        }
    }

    fn question(&self) -> &UserQuestion {
        &self.questions[self.at]
    }

    fn choice_key(&mut self, key: &KeyEvent) -> DialogOutcome {
        let (count, is_multi) = (self.question().options.len(), self.question().multi_select);
        let choice = &mut self.choices[self.at];
        match key.code {
            KeyCode::Esc => return self.stop(),
            KeyCode::Up => choice.selected = choice.selected.saturating_sub(1),
            KeyCode::Down | KeyCode::Tab => choice.selected = (choice.selected + 1).min(count),
            KeyCode::Left | KeyCode::BackTab => self.at = self.at.saturating_sub(1),
            KeyCode::Char(' ') if is_multi => self.toggle(),
            KeyCode::Enter if is_multi && choice.selected < count && !choice.answers_nothing() => {
                return self.advance();
            }
            KeyCode::Enter => return self.take_selected(),
            KeyCode::Char(digit @ '1'..='9') if digit as usize - '1' as usize <= count => {
                self.choices[self.at].selected = digit as usize - '1' as usize;
                return if is_multi { self.toggle_or_type() } else { self.take_selected() };
            }
            KeyCode::Char(_) => return DialogOutcome::NotForDialog,
            _ => {}
        }
        DialogOutcome::Open
    }

    /// Chooses or drops the selected option.
    fn toggle(&mut self) {
        let count = self.question().options.len();
        let choice = &mut self.choices[self.at];
        match choice.chosen.iter().position(|at| *at == choice.selected) {
            _ if choice.selected == count => self.typed = Some(Editor::default()),
            Some(at) => drop(choice.chosen.remove(at)),
            None => choice.chosen.push(choice.selected),
        }
    }

    fn toggle_or_type(&mut self) -> DialogOutcome {
        self.toggle();
        DialogOutcome::Open
    }

    /// Answers with the selected option, or lets the user type.
    fn take_selected(&mut self) -> DialogOutcome {
        let count = self.question().options.len();
        let is_multi = self.question().multi_select;
        let choice = &mut self.choices[self.at];
        if choice.selected == count {
            self.typed = Some(Editor::default());
            return DialogOutcome::Open;
        }
        if !is_multi {
            (choice.chosen, choice.words) = (Vec::new(), None);
        }
        choice.chosen.push(choice.selected);
        self.advance()
    }

    fn typed_key(&mut self, key: &KeyEvent) -> DialogOutcome {
        let Some(typed) = &mut self.typed else { return DialogOutcome::Open };
        match key.code {
            KeyCode::Esc => self.typed = None,
            KeyCode::Enter if typed.text().trim().is_empty() => self.typed = None,
            KeyCode::Enter => {
                let words = typed.text().trim().to_owned();
                self.typed = None;
                let is_multi = self.question().multi_select;
                let choice = &mut self.choices[self.at];
                if !is_multi {
                    choice.chosen.clear();
                }
                choice.words = Some(words);
                return self.advance();
            }
            KeyCode::Backspace => typed.backspace(),
            KeyCode::Delete => typed.delete(),
            KeyCode::Left => typed.left(),
            KeyCode::Right => typed.right(),
            KeyCode::Home => typed.home(),
            KeyCode::End => typed.end(),
            KeyCode::Char(character) if !key.modifiers.contains(KeyModifiers::CONTROL) => {
                typed.insert(character.encode_utf8(&mut [0; 4]));
            }
            _ => {}
        }
        DialogOutcome::Open
    }

    /// Goes to the next question, or sends the answers after the last.
    fn advance(&mut self) -> DialogOutcome {
        if self.at + 1 < self.questions.len() {
            self.at += 1;
            return DialogOutcome::Open;
        }
        // The asker may have been stopped.
        let _ = self.answer.send(Consent::Answers(self.answers()));
        DialogOutcome::Done
    }

    fn answers(&self) -> Vec<QuestionAnswer> {
        let answer = |(question, choice): (&UserQuestion, &QuestionChoice)| QuestionAnswer {
            question: question.question.clone(),
            answers: choice.answers(question),
        };
        self.questions.iter().zip(&self.choices).map(answer).collect()
    }

    fn stop(&mut self) -> DialogOutcome {
        let _ = self.answer.send(Consent::No(None));
        DialogOutcome::Stopped
    }

    fn head(&self, theme: Theme) -> Vec<Line<'static>> {
        let (width, question) = (self.size.0, self.question());
        let agent = self.agent.as_ref().map_or(String::new(), |agent| format!(" of the agent {agent}"));
        let count = match self.questions.len() {
            1 => format!("A question{agent}"),
            count => format!("Question {} of {count}{agent}", self.at + 1),
        };
        let title = sanitize_line(&format!("{count} · {}", question.header));
        let strong = theme.accent().patch(theme.strong());
        let mut lines = vec![Line::from(Span::styled(truncate_columns(&title, width), strong))];
        let indent = [Span::raw("  ")];
        lines.extend(wrap(&[Span::raw(sanitize_line(&question.question))], &indent, &indent, width));
        lines
    }

    fn option_lines(&self, with_descriptions: bool, theme: Theme) -> Vec<Line<'static>> {
        let (width, question, choice) = (self.size.0, self.question(), &self.choices[self.at]);
        let count = question.options.len();
        let mut lines = Vec::new();
        for at in 0..=count {
            let is_selected = at == choice.selected;
            let (mark, style) =
                if is_selected { ("❯ ", theme.accent()) } else { ("  ", Default::default()) };
            let tick = match (question.multi_select && at < count, choice.chosen.contains(&at)) {
                (false, _) => "",
                (true, true) => "[x] ",
                (true, false) => "[ ] ",
            };
            let option = question.options.get(at);
            let label = option.map_or(OTHER, |option| option.label.as_str());
            let label = format!("{mark}{} {tick}{}", at + 1, sanitize_line(label));
            lines.push(Line::from(Span::styled(truncate_columns(&label, width), style)));
            let description = option.map(|option| sanitize_line(&option.description)).unwrap_or_default();
            if with_descriptions && !description.is_empty() {
                let indent = [Span::raw("    ")];
                lines.extend(wrap(&[Span::styled(description, theme.dim())], &indent, &indent, width));
            }
        }
        lines
    }

    /// Line about the keys, or the typed words with the cursor.
    fn foot(&self, theme: Theme) -> (Vec<Line<'static>>, Option<(usize, usize)>) {
        let width = self.size.0;
        let Some(typed) = &self.typed else {
            let keys = match self.question().multi_select {
                true => "Space chooses · Enter answers · ← back · Esc stops",
                false => "Enter answers · ← back · Esc stops",
            };
            return (vec![Line::from(Span::styled(truncate_columns(keys, width), theme.dim()))], None);
        };
        let room = width.saturating_sub(4).max(1);
        let laid = lay_out_text(typed.text(), typed.cursor(), room);
        let row = |(at, row): (usize, &std::ops::Range<usize>)| {
            let mark = if at == 0 { "  › " } else { "    " };
            let text = typed.text()[row.clone()].to_owned();
            Line::from(vec![Span::styled(mark, theme.accent()), Span::raw(text)])
        };
        (laid.rows.iter().enumerate().map(row).collect(), Some((laid.row, 4 + laid.column)))
    }
}

impl QuestionChoice {
    fn answers_nothing(&self) -> bool {
        self.chosen.is_empty() && self.words.is_none()
    }
}

impl Dialog for QuestionDialog {
    fn key(&mut self, key: &KeyEvent) -> DialogOutcome {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return self.stop();
        }
        match &self.typed {
            Some(_) => self.typed_key(key),
            None => self.choice_key(key),
        }
    }

    fn shown_at(&self) -> Option<Instant> {
        self.shown_at
    }

    fn n_answers(&self) -> usize {
        self.question().options.len() + 1
    }

    fn has_text_field(&self) -> bool {
        self.typed.is_some()
    }

    fn paste(&mut self, text: &str) {
        if let Some(typed) = &mut self.typed {
            typed.insert(&text.replace(['\r', '\n'], " "));
        }
    }

    fn lay_out(&mut self, width: usize, rows: usize, _: Theme) {
        self.size = (width, rows);
    }

    fn note_shown(&mut self, _: &dyn Fn(usize) -> bool) {
        self.shown_at.get_or_insert_with(Instant::now);
    }

    fn drawn(&self, theme: Theme) -> DialogLines {
        let mut lines = self.head(theme);
        let (foot, cursor) = self.foot(theme);
        let whole = self.option_lines(true, theme);
        // A low screen shows the labels only.
        let fits = lines.len() + whole.len() + foot.len() <= self.size.1;
        lines.extend(if fits { whole } else { self.option_lines(false, theme) });
        let first = lines.len();
        lines.extend(foot);
        DialogLines { lines, cursor: cursor.map(|(row, column)| (first + row, column)) }
    }

    fn record(&self, width: usize, _theme: Theme) -> Option<Vec<Line<'static>>> {
        let indent = [Span::raw("  ")];
        let mut lines = Vec::new();
        for QuestionAnswer { question, answers } in self.answers() {
            lines.extend(wrap(&[Span::raw(sanitize_line(&question))], &[], &indent, width));
            let answer = sanitize_line(&format!("→ {}", answers.join("; ")));
            lines.extend(wrap(&[Span::raw(answer)], &indent, &indent, width));
        }
        self.choices.iter().any(|choice| !choice.answers_nothing()).then_some(lines)
    }
}

#[cfg(test)]
mod tests {
    use pal_events::QuestionOption;

    use super::*;

    fn dialog(multi: &[bool]) -> (QuestionDialog, mpsc::Receiver<Consent>) {
        let option = |label: &str| QuestionOption {
            label: label.to_owned(),
            description: format!("It is {label}.\u{1b}[2J"),
        };
        let question = |(at, multi_select): (usize, &bool)| UserQuestion {
            question: format!("Which one, number {at}?"),
            header: String::from("Choice"),
            options: vec![option("red"), option("blue"), option("green")],
            multi_select: *multi_select,
        };
        let (sender, receiver) = mpsc::channel();
        let questions = multi.iter().enumerate().map(question).collect();
        let mut dialog = QuestionDialog::new(None, questions, sender);
        dialog.lay_out(80, 24, Theme::default());
        (dialog, receiver)
    }

    fn press(dialog: &mut QuestionDialog, keys: &str) -> DialogOutcome {
        let key = |character: char| match character {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            '↓' => KeyCode::Down,
            '←' => KeyCode::Left,
            other => KeyCode::Char(other),
        };
        let press = |character: char| dialog.key(&KeyEvent::new(key(character), KeyModifiers::NONE));
        keys.chars().map(press).last().unwrap_or(DialogOutcome::Open)
    }

    /// Presses keys and checks the answers; `;` separates the answers of one question, `|` the questions.
    fn check(multi: &[bool], keys: &str, expected: &str) {
        let (mut dialog, answered) = dialog(multi);
        assert_eq!(press(&mut dialog, keys), DialogOutcome::Done, "{keys:?}");
        let Ok(Consent::Answers(answers)) = answered.try_recv() else { panic!("no answer to {keys:?}") };
        let answers: Vec<String> = answers.iter().map(|answer| answer.answers.join(";")).collect();
        assert_eq!(answers.join("|"), expected, "{keys:?}");
    }

    #[test]
    fn every_way_of_answering_reaches_the_asker() {
        check(&[false], "\n", "red");
        check(&[false], "↓\n", "blue");
        check(&[false], "3", "green");
        check(&[false], "4a shade of grey\n", "a shade of grey");
        check(&[false], "4\u{1b}2", "blue");
        check(&[false, false], "12", "red|blue");
        check(&[false, false], "1←23", "blue|green");
        check(&[true], "31\n", "red;green");
        check(&[true], " ↓ ↓  \n", "red;blue");
        check(&[true], "↓\n", "blue");
        check(&[true], "14and black\n", "red;and black");
    }

    #[test]
    fn escape_stops() {
        let (mut dialog, answered) = dialog(&[false]);
        assert_eq!(press(&mut dialog, "\u{1b}"), DialogOutcome::Stopped);
        assert_eq!(answered.try_recv(), Ok(Consent::No(None)));
    }

    #[test]
    fn the_question_and_its_options_are_shown_without_control_characters() {
        let (mut dialog, _answered) = dialog(&[true, false]);
        press(&mut dialog, "2");
        let text = |dialog: &QuestionDialog| -> String {
            dialog.drawn(Theme::default()).lines.iter().map(|line| format!("{line}\n")).collect()
        };
        let shown = text(&dialog);
        assert!(shown.contains("Question 1 of 2 · Choice"), "{shown}");
        assert!(shown.contains("❯ 2 [x] blue") && shown.contains("It is red."), "{shown}");
        assert!(shown.contains("4 something else") && !shown.contains('\u{1b}'), "{shown}");
        dialog.lay_out(80, 8, Theme::default());
        let shown = text(&dialog);
        assert!(shown.contains("3 [ ] green") && !shown.contains("It is red."), "{shown}");
    }
}
