//! The question whether a call may be carried out.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use pal_agent::Asked;
use ratatui_core::text::{Line, Span};
use serde_json::Value;

use crate::difference;
use crate::editor::{Editor, laid};
use crate::paint::{chopped, harmless, harmless_line, wrapped};
use crate::theme::Theme;
use crate::told::Consent;

/// Keys that come sooner were meant for what was typed before.
const TOO_SOON: Duration = Duration::from_millis(300);
/// Lines of a command or a change that are shown.
const LINES_MAX: usize = 16;

/// A question that waits for its answer.
pub(crate) struct Question {
    pub(crate) asked: Asked,
    answer: mpsc::Sender<Consent>,
    selected: usize,
    /// What the model is to know of a no, while it is typed.
    reason: Option<Editor>,
    since: Instant,
}

/// What a key did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answered {
    /// Nothing is decided.
    Open,
    /// It was meant for what is typed below.
    NotMeant,
    /// It is answered.
    Done,
    /// It is answered by a no, and the work is to stop.
    Stopped,
}

impl Question {
    pub(crate) fn new(asked: Asked, answer: mpsc::Sender<Consent>) -> Question {
        Question { asked, answer, selected: 0, reason: None, since: Instant::now() }
    }

    /// A key was pressed.
    pub(crate) fn key(&mut self, key: &KeyEvent) -> Answered {
        if self.since.elapsed() < TOO_SOON {
            return Answered::NotMeant;
        }
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return self.stop();
        }
        match &mut self.reason {
            Some(_) => self.reason_key(key),
            None => self.choice_key(key),
        }
    }

    /// Text was pasted.
    pub(crate) fn paste(&mut self, text: &str) {
        if let Some(reason) = &mut self.reason {
            reason.insert(&text.replace(['\r', '\n'], " "));
        }
    }

    fn choice_key(&mut self, key: &KeyEvent) -> Answered {
        let count = self.choices().len();
        match key.code {
            KeyCode::Esc => return self.stop(),
            KeyCode::Up | KeyCode::BackTab => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down | KeyCode::Tab => self.selected = (self.selected + 1).min(count - 1),
            KeyCode::Enter => return self.choose(self.selected),
            KeyCode::Char('y') => return self.choose(0),
            KeyCode::Char('a') if count == 3 => return self.choose(1),
            KeyCode::Char('n') => return self.choose(count - 1),
            KeyCode::Char(digit @ '1'..='3') => {
                let at = digit as usize - '1' as usize;
                if at < count {
                    return self.choose(at);
                }
            }
            _ => {}
        }
        Answered::Open
    }

    fn reason_key(&mut self, key: &KeyEvent) -> Answered {
        let Some(reason) = &mut self.reason else { return Answered::Open };
        match key.code {
            KeyCode::Esc => self.reason = None,
            KeyCode::Enter => {
                let text = reason.text().trim().to_owned();
                return self.answer(Consent::No(Some(text).filter(|text| !text.is_empty())));
            }
            KeyCode::Backspace => reason.backspace(),
            KeyCode::Delete => reason.delete(),
            KeyCode::Left => reason.left(),
            KeyCode::Right => reason.right(),
            KeyCode::Home => reason.home(),
            KeyCode::End => reason.end(),
            KeyCode::Char(character) if !key.modifiers.contains(KeyModifiers::CONTROL) => {
                reason.insert(character.encode_utf8(&mut [0; 4]));
            }
            _ => {}
        }
        Answered::Open
    }

    fn choose(&mut self, at: usize) -> Answered {
        let last = self.choices().len() - 1;
        self.selected = at;
        match at {
            0 => self.answer(Consent::Once),
            at if at == last => {
                self.reason = Some(Editor::default());
                Answered::Open
            }
            _ => self.answer(Consent::Project),
        }
    }

    fn answer(&mut self, consent: Consent) -> Answered {
        // Whoever asked may have been stopped meanwhile.
        let _ = self.answer.send(consent);
        Answered::Done
    }

    fn stop(&mut self) -> Answered {
        let _ = self.answer.send(Consent::No(None));
        Answered::Stopped
    }

    /// What can be answered. Where no rule would cover the call, it cannot be allowed for good.
    fn choices(&self) -> Vec<String> {
        let mut choices = vec![String::from("yes, this once")];
        if !self.asked.rule.is_empty() {
            choices.push(format!("yes, always in this project: {}", harmless_line(&self.asked.rule)));
        }
        choices.push(String::from("no, and tell it why"));
        choices
    }

    /// What the call is about: its command, its change, or what it is called with.
    pub(crate) fn subject(&self, width: usize, theme: Theme) -> Vec<Line<'static>> {
        let input: Value = serde_json::from_str(&self.asked.input).unwrap_or(Value::Null);
        let text = |name: &str| input.get(name).and_then(Value::as_str);
        let indent = [Span::raw("  ")];
        let mut lines = Vec::new();
        if let Some(command) = text("command") {
            let shown = harmless(command);
            for line in shown.lines() {
                lines.extend(chopped(&[Span::raw(line.to_owned())], &indent, &[Span::raw("    ")], width));
            }
        } else if let Some(path) = text("file_path") {
            lines.extend(chopped(
                &[Span::styled(harmless_line(path), theme.accent())],
                &indent,
                &indent,
                width,
            ));
            lines.extend(difference::of_call(&self.asked.tool, &input, width, LINES_MAX, theme));
        } else if plan(&self.asked, width).is_some() {
            lines.push(Line::from("  The plan stands above."));
        } else {
            let shown = harmless_line(&self.asked.input);
            lines.extend(chopped(&[Span::raw(shown)], &indent, &indent, width));
        }
        if lines.len() > LINES_MAX + 1 {
            let more = lines.len() - LINES_MAX;
            lines.truncate(LINES_MAX);
            lines.push(Line::from(Span::styled(format!("  … {more} more lines"), theme.warning())));
        }
        lines
    }

    /// The question, and where the cursor stands if a reason is typed.
    pub(crate) fn lines(&self, width: usize, theme: Theme) -> (Vec<Line<'static>>, Option<(usize, usize)>) {
        let tool = harmless_line(&self.asked.tool);
        let title = match &self.asked.agent {
            Some(agent) => format!("{tool} of the agent {} wants your consent", harmless_line(agent)),
            None => format!("{tool} wants your consent"),
        };
        let mut lines = vec![Line::from(Span::styled(title, theme.warning().patch(theme.strong())))];
        lines.extend(self.subject(width, theme));
        let why = [Span::styled(harmless_line(&self.asked.why), theme.dim())];
        lines.extend(wrapped(&why, &[Span::raw("  ")], &[Span::raw("  ")], width));
        for (at, choice) in self.choices().iter().enumerate() {
            let is_selected = at == self.selected;
            let (mark, style) =
                if is_selected { ("❯ ", theme.accent()) } else { ("  ", Default::default()) };
            lines.push(Line::from(vec![
                Span::styled(mark, style),
                Span::styled(format!("{} {choice}", at + 1), style),
            ]));
        }
        let Some(reason) = &self.reason else { return (lines, None) };
        let room = width.saturating_sub(8).max(1);
        let laid = laid(reason.text(), reason.cursor(), room);
        let first = lines.len();
        for (at, row) in laid.rows.iter().enumerate() {
            let mark = if at == 0 { "  why › " } else { "        " };
            lines.push(Line::from(vec![
                Span::styled(mark, theme.accent()),
                Span::raw(reason.text()[row.clone()].to_owned()),
            ]));
        }
        (lines, Some((first + laid.row, 8 + laid.column)))
    }
}

/// The plan that is to be approved, if it is one: it is shown whole, where it stays.
pub(crate) fn plan(asked: &Asked, width: usize) -> Option<Vec<Line<'static>>> {
    let input: Value = serde_json::from_str(&asked.input).ok()?;
    let plan = input.get("plan").and_then(Value::as_str).filter(|_| asked.tool == "ExitPlanMode")?;
    let indent = [Span::raw("  ")];
    let mut lines = vec![Line::from("The plan:")];
    for line in harmless(plan).lines() {
        lines.extend(wrapped(&[Span::raw(line.to_owned())], &indent, &indent, width));
    }
    Some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(rule: &str) -> (Question, mpsc::Receiver<Consent>) {
        let (sender, receiver) = mpsc::channel();
        let asked = Asked {
            agent: None,
            call: pal_model::ToolUseId::from("toolu_1"),
            tool: String::from("Bash"),
            input: String::from(r#"{"command":"git push\n\u001b[2Jrm"}"#),
            why: String::from("no rule allows it"),
            rule: rule.to_owned(),
        };
        let mut question = Question::new(asked, sender);
        question.since = Instant::now().checked_sub(TOO_SOON).unwrap();
        (question, receiver)
    }

    fn press(question: &mut Question, keys: &str) -> Answered {
        let key = |character: char| match character {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            other => KeyCode::Char(other),
        };
        let mut last = Answered::Open;
        for character in keys.chars() {
            last = question.key(&KeyEvent::new(key(character), KeyModifiers::NONE));
        }
        last
    }

    #[test]
    fn every_answer_reaches_who_asked() {
        for (keys, consent, answered) in [
            ("y", Consent::Once, Answered::Done),
            ("\n", Consent::Once, Answered::Done),
            ("2", Consent::Project, Answered::Done),
            ("n\n", Consent::No(None), Answered::Done),
            ("3not so\n", Consent::No(Some(String::from("not so"))), Answered::Done),
            ("\u{1b}", Consent::No(None), Answered::Stopped),
        ] {
            let (mut question, answer) = question("Bash(git push:*)");
            assert_eq!(press(&mut question, keys), answered, "{keys:?}");
            assert_eq!(answer.try_recv(), Ok(consent), "{keys:?}");
        }
    }

    #[test]
    fn what_no_rule_covers_is_not_allowed_for_good() {
        let (mut question, answer) = question("");
        assert_eq!(press(&mut question, "a3"), Answered::Open);
        assert!(answer.try_recv().is_err());
        assert_eq!(press(&mut question, "2no\n"), Answered::Done, "the second of two is a no");
        assert_eq!(answer.try_recv(), Ok(Consent::No(Some(String::from("no")))));
    }

    #[test]
    fn a_key_that_was_already_on_its_way_answers_nothing() {
        let (mut question, answer) = question("Bash");
        question.since = Instant::now();
        assert_eq!(press(&mut question, "y"), Answered::NotMeant);
        assert!(answer.try_recv().is_err());
    }

    #[test]
    fn a_command_is_shown_whole_and_drives_nothing() {
        let (question, _answer) = question("Bash");
        let (lines, _) = question.lines(40, Theme);
        let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
        assert!(
            text.contains(&String::from("  git push")) && text.contains(&String::from("  ·[2Jrm")),
            "{text:?}"
        );
    }
}
