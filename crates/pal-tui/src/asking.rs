//! The question whether a call may be carried out.
//!
//! The call is shown whole, a page at a time where it is longer than the screen. No key approves it before every line of it
//! has been on screen at the present size; a no is possible at any time.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use pal_agent::Asked;
use pal_permissions::reveal;
use ratatui_core::text::{Line, Span};
use serde_json::Value;

use crate::consent_document::{PriorContent, consent_document, rule_lines};
use crate::editor::{Editor, laid};
use crate::paint::{clipped, columns, harmless, line_columns, wrapped};
use crate::theme::Theme;
use crate::told::Consent;

/// Keys that come sooner were meant for what was typed before.
const TOO_SOON: Duration = Duration::from_millis(300);

/// Fewest rows of a call that are shown at once before the choices are put into one line.
const PAGE_MIN: usize = 4;

/// A question that waits for its answer.
pub(crate) struct Question {
    pub(crate) asked: Asked,
    answer: mpsc::Sender<Consent>,
    selected: usize,
    /// What the model is to know of a no, while it is typed.
    reason: Option<Editor>,
    /// Time of the first frame with it.
    shown_at: Option<Instant>,
    prior: PriorContent,
    page: Page,
}

/// The part of the document that is on screen, and what of it has been.
#[derive(Default)]
struct Page {
    /// Columns and rows that it is laid out for.
    size: (usize, usize),
    document: Vec<Line<'static>>,
    /// First line that is shown, and number of lines.
    top: usize,
    rows: usize,
    /// First line of the last frame: nobody scrolls past a page that was not drawn.
    drawn_top: usize,
    /// Lines that have been on screen.
    seen: Vec<bool>,
    /// Whether the choices stand in one line.
    is_compact: bool,
    /// Whether there is room for the document alone.
    is_bare: bool,
    /// Whether a line says where in the document one is.
    has_position: bool,
    /// Whether a key that approves was refused.
    is_refused: bool,
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

/// The lines of a question, which begin with those of the document, and where the cursor stands if a reason is typed.
pub(crate) struct DrawnQuestion {
    pub(crate) lines: Vec<Line<'static>>,
    pub(crate) cursor: Option<(usize, usize)>,
}

impl Page {
    fn is_long(&self) -> bool {
        self.document.len() > self.rows
    }

    fn n_unseen(&self) -> usize {
        self.seen.iter().filter(|is_seen| !**is_seen).count()
    }

    fn last_top(&self) -> usize {
        self.document.len().saturating_sub(self.rows)
    }

    fn scroll_to(&mut self, top: usize) {
        self.top = top.min(self.last_top());
        self.is_refused = false;
    }

    fn scroll_down(&mut self, rows: usize) {
        self.scroll_to((self.top + rows).min(self.drawn_top + self.rows));
    }

    /// The line below a document that does not fit.
    fn position(&self, width: usize, theme: Theme) -> Line<'static> {
        let (total, unseen) = (self.document.len(), self.n_unseen());
        let (first, last) = (self.top + 1, (self.top + self.rows).min(total));
        let text = match (self.is_refused, self.seen.iter().position(|is_seen| !is_seen)) {
            (true, Some(at)) => format!(
                "  scroll to the end first (PgDn): {unseen} of {total} lines not seen, from line {} on",
                at + 1
            ),
            (_, Some(_)) => {
                format!("  lines {first}–{last} of {total} · PgDn and ↓ scroll · {unseen} not seen yet")
            }
            (_, None) => format!("  lines {first}–{last} of {total} · PgUp and ↑ scroll back · all seen"),
        };
        let style = if self.is_refused { theme.warning().patch(theme.strong()) } else { theme.accent() };
        Line::from(Span::styled(clipped(&text, width), style))
    }
}

impl Question {
    pub(crate) fn new(asked: Asked, answer: mpsc::Sender<Consent>) -> Question {
        let prior = PriorContent::read(&asked);
        Question { asked, answer, selected: 0, reason: None, shown_at: None, prior, page: Page::default() }
    }

    /// A key was pressed.
    pub(crate) fn key(&mut self, key: &KeyEvent) -> Answered {
        if self.shown_at.is_none_or(|at| at.elapsed() < TOO_SOON) {
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
        let is_long = self.page.is_long();
        let page = &mut self.page;
        match key.code {
            KeyCode::Esc => return self.stop(),
            KeyCode::Up if is_long => page.scroll_to(page.top.saturating_sub(1)),
            KeyCode::Down if is_long => page.scroll_down(1),
            KeyCode::PageUp => page.scroll_to(page.top.saturating_sub(page.rows)),
            KeyCode::PageDown | KeyCode::Char(' ') => page.scroll_down(page.rows),
            KeyCode::Home => page.scroll_to(0),
            KeyCode::End => page.scroll_to(usize::MAX),
            KeyCode::Up | KeyCode::BackTab | KeyCode::Left => {
                self.selected = self.selected.saturating_sub(1);
            }
            KeyCode::Down | KeyCode::Tab | KeyCode::Right => {
                self.selected = (self.selected + 1).min(count - 1);
            }
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
        if at == last {
            self.reason = Some(Editor::default());
            return Answered::Open;
        }
        // Nobody approves what they could not have read.
        if self.page.seen.is_empty() || self.page.n_unseen() > 0 {
            self.page.is_refused = true;
            return Answered::Open;
        }
        match at {
            0 => self.answer(Consent::Once),
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
            choices.push(match self.short_rule() {
                Some(rule) => format!("yes, always in this project: {rule}"),
                None => String::from("yes, always in this project: the rule above"),
            });
        }
        choices.push(String::from("no, and tell it why"));
        choices
    }

    /// The rule, if all of it stands in the line of its choice.
    fn short_rule(&self) -> Option<String> {
        let rule = reveal(&self.asked.rule);
        let room = self.page.size.0.saturating_sub(columns("  2 yes, always in this project: "));
        let is_plain = !rule.contains(['\n', '\t']) && rule.trim() == rule && !self.page.is_compact;
        (is_plain && columns(&rule) <= room).then_some(rule)
    }

    /// Lays the question out for a region of this size. Another size starts anew: nothing of it has been on screen.
    pub(crate) fn lay_out(&mut self, width: usize, rows: usize, theme: Theme) {
        if self.page.size != (width, rows) {
            let top = self.page.top;
            self.page = Page { size: (width, rows), top, ..Page::default() };
            self.page.is_compact = rows < self.footer(theme).0.len() + 1 + PAGE_MIN;
            let mut document = consent_document(&self.asked, &self.prior, width, theme);
            if !self.asked.rule.is_empty() && self.short_rule().is_none() {
                document.extend(rule_lines(&self.asked, width, theme));
            }
            self.page.seen = vec![false; document.len()];
            self.page.document = document;
        }
        // Where there is no room for both, the document counts: it has to be read, and keys work without the choices in sight.
        let n_footer = self.footer(theme).0.len();
        self.page.is_bare = rows <= n_footer;
        let room = if self.page.is_bare { rows.max(1) } else { rows - n_footer };
        // A document that does not fit has a line below it that says where one is.
        let is_long = self.page.document.len() > room;
        self.page.has_position = is_long && room > 1;
        self.page.rows = room - usize::from(self.page.has_position);
        self.page.top = self.page.top.min(self.page.last_top());
    }

    /// Notes that rows of the document have been on screen: those of the last drawing that `is_visible` says so of.
    pub(crate) fn note_shown(&mut self, is_visible: impl Fn(usize) -> bool) {
        self.shown_at.get_or_insert_with(Instant::now);
        let page = &mut self.page;
        page.drawn_top = page.top;
        for row in 0..page.rows.min(page.document.len().saturating_sub(page.top)) {
            let fits = line_columns(&page.document[page.top + row]) <= page.size.0;
            page.seen[page.top + row] |= fits && is_visible(row);
        }
    }

    /// The question as it was laid out.
    pub(crate) fn drawn(&self, theme: Theme) -> DrawnQuestion {
        let page = &self.page;
        let shown = page.document.iter().skip(page.top).take(page.rows);
        let mut lines: Vec<Line<'static>> = shown.cloned().collect();
        if page.has_position {
            lines.push(page.position(page.size.0, theme));
        }
        if page.is_bare {
            return DrawnQuestion { lines, cursor: None };
        }
        let first = lines.len();
        let (footer, cursor) = self.footer(theme);
        lines.extend(footer);
        DrawnQuestion { lines, cursor: cursor.map(|(row, column)| (first + row, column)) }
    }

    /// The choices and the reason that is typed, and where the cursor stands in them.
    fn footer(&self, theme: Theme) -> (Vec<Line<'static>>, Option<(usize, usize)>) {
        let width = self.page.size.0;
        let mut lines = Vec::new();
        if self.page.is_compact {
            let names = match self.asked.rule.is_empty() {
                true => "y yes · n no",
                false => "y yes · a always (the rule above) · n no",
            };
            lines.push(Line::from(Span::styled(clipped(names, width), theme.accent())));
        } else {
            for (at, choice) in self.choices().iter().enumerate() {
                let is_selected = at == self.selected;
                let (mark, style) =
                    if is_selected { ("❯ ", theme.accent()) } else { ("  ", Default::default()) };
                lines.push(Line::from(vec![
                    Span::styled(mark, style),
                    Span::styled(format!("{} {choice}", at + 1), style),
                ]));
            }
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

/// The plan that was to be approved, if it was one, as it stays in the conversation.
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
    use crate::live::{Parts, composed, note_question_shown, question_rows};
    use crate::screen::Screen;
    use crate::status::Status;
    use crate::transcript::Transcript;

    fn asked(tool: &str, input: &str, rule: &str) -> Asked {
        Asked {
            agent: None,
            call: pal_model::ToolUseId::from("toolu_1"),
            tool: tool.to_owned(),
            input: input.to_owned(),
            why: String::from("no rule allows it"),
            rule: rule.to_owned(),
            marks: Vec::new(),
        }
    }

    fn question_of(asked: Asked) -> (Question, mpsc::Receiver<Consent>) {
        let (sender, receiver) = mpsc::channel();
        (Question::new(asked, sender), receiver)
    }

    fn question(rule: &str) -> (Question, mpsc::Receiver<Consent>) {
        question_of(asked("Bash", r#"{"command":"git push\n\u001b[2Jrm"}"#, rule))
    }

    /// A terminal, and the question on it as the program draws it.
    struct Desktop {
        screen: Screen<Vec<u8>>,
        parser: vt100::Parser,
    }

    impl Desktop {
        fn new(width: u16, height: u16) -> Desktop {
            Desktop {
                screen: Screen::new(Vec::new(), width.into(), height.into(), false),
                parser: vt100::Parser::new(height.try_into().unwrap(), width.try_into().unwrap(), 0),
            }
        }

        fn resize(&mut self, width: u16, height: u16) {
            *self = Desktop::new(width, height);
        }

        /// Draws a frame; what stands on the screen then.
        fn draw(&mut self, question: &mut Question) -> String {
            let (columns, rows) = (self.screen.columns(), self.screen.rows());
            question.lay_out(columns, question_rows(rows), Theme);
            let transcript = Transcript::new(columns, Theme);
            let parts = Parts {
                transcript: &transcript,
                status: &Status::default(),
                editor: &Editor::default(),
                question: Some(question),
                picker: None,
                suggestions: None,
                working: None,
                hint: None,
            };
            let (live, first) = composed(&parts, columns, rows, Theme);
            self.screen.frame(&[], &live).unwrap();
            note_question_shown(question, first.unwrap(), &live, rows);
            question.shown_at = Instant::now().checked_sub(TOO_SOON);
            let bytes = std::mem::take(self.screen.writer());
            self.parser.process(&bytes);
            self.parser.screen().contents()
        }
    }

    fn press_key(question: &mut Question, code: KeyCode) -> Answered {
        question.key(&KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn press(question: &mut Question, keys: &str) -> Answered {
        let key = |character: char| match character {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            other => KeyCode::Char(other),
        };
        keys.chars().map(|character| press_key(question, key(character))).last().unwrap_or(Answered::Open)
    }

    fn heredoc(count: usize) -> String {
        let lines: String = (1..count).map(|number| format!("echo {number}\n")).collect();
        let command = format!("bash <<'END'\n{lines}rm -rf ~/important\nEND");
        serde_json::json!({ "command": command }).to_string()
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
            Desktop::new(80, 24).draw(&mut question);
            assert_eq!(press(&mut question, keys), answered, "{keys:?}");
            assert_eq!(answer.try_recv(), Ok(consent), "{keys:?}");
        }
    }

    #[test]
    fn what_no_rule_covers_is_not_allowed_for_good() {
        let (mut question, answer) = question("");
        Desktop::new(80, 24).draw(&mut question);
        assert_eq!(press(&mut question, "a3"), Answered::Open);
        assert!(answer.try_recv().is_err());
        assert_eq!(press(&mut question, "2no\n"), Answered::Done, "the second of two is a no");
        assert_eq!(answer.try_recv(), Ok(Consent::No(Some(String::from("no")))));
    }

    #[test]
    fn a_key_that_was_already_on_its_way_answers_nothing() {
        let (mut question, answer) = question("Bash");
        assert_eq!(press(&mut question, "y"), Answered::NotMeant, "it was never on screen");
        Desktop::new(80, 24).draw(&mut question);
        question.shown_at = Some(Instant::now());
        assert_eq!(press(&mut question, "y"), Answered::NotMeant);
        assert!(answer.try_recv().is_err());
    }

    #[test]
    fn a_command_is_shown_whole_and_drives_nothing() {
        let (mut question, _answer) = question("Bash");
        let text = Desktop::new(40, 24).draw(&mut question);
        assert!(text.contains("  1│ git push\n") && text.contains("  2│ ⟨U+001B⟩[2Jrm\n"), "{text}");
    }

    #[test]
    fn nothing_is_approved_before_all_of_it_was_on_screen() {
        for keys in ["y", "\n", "a", "1", "2"] {
            let (mut question, answer) = question_of(asked("Bash", &heredoc(60), "Bash(bash:*)"));
            let mut desktop = Desktop::new(80, 24);
            let text = desktop.draw(&mut question);
            assert!(text.contains("bash <<'END'") && !text.contains("rm -rf"), "{text}");
            assert_eq!(press(&mut question, keys), Answered::Open, "{keys:?}");
            let text = desktop.draw(&mut question);
            assert!(text.contains("scroll to the end first"), "{text}");
            // The end alone is not all of it.
            press_key(&mut question, KeyCode::End);
            let text = desktop.draw(&mut question);
            assert!(text.contains("rm -rf ~/important"), "{text}");
            assert_eq!(press(&mut question, keys), Answered::Open, "{keys:?}");
            press_key(&mut question, KeyCode::Home);
            desktop.draw(&mut question);
            for _ in 0..10 {
                // However fast one scrolls, no page is passed over that was not drawn.
                press_key(&mut question, KeyCode::PageDown);
                press_key(&mut question, KeyCode::PageDown);
                desktop.draw(&mut question);
            }
            assert!(answer.try_recv().is_err());
            let text = desktop.draw(&mut question);
            assert!(text.contains("all seen"), "{text}");
            assert_eq!(press(&mut question, keys), Answered::Done, "{keys:?}");
            assert!(answer.try_recv().is_ok());
        }
    }

    #[test]
    fn a_no_is_possible_at_any_time() {
        for (keys, answered) in
            [("n\n", Answered::Done), ("3\n", Answered::Done), ("\u{1b}", Answered::Stopped)]
        {
            let (mut question, answer) = question_of(asked("Bash", &heredoc(60), "Bash"));
            Desktop::new(80, 24).draw(&mut question);
            assert_eq!(press(&mut question, keys), answered);
            assert_eq!(answer.try_recv(), Ok(Consent::No(None)));
        }
    }

    #[test]
    fn another_size_starts_anew() {
        let (mut question, answer) = question_of(asked("Bash", &heredoc(12), "Bash"));
        let mut desktop = Desktop::new(80, 40);
        desktop.draw(&mut question);
        assert_eq!(question.page.n_unseen(), 0, "all of it fits");
        desktop.resize(80, 14);
        desktop.draw(&mut question);
        assert!(question.page.n_unseen() > 0);
        assert_eq!(press(&mut question, "y"), Answered::Open);
        desktop.resize(60, 40);
        desktop.draw(&mut question);
        assert_eq!(press(&mut question, "y"), Answered::Done);
        assert_eq!(answer.try_recv(), Ok(Consent::Once));
    }

    #[test]
    fn every_line_is_reached_on_every_screen() {
        let long = "x".repeat(3_000);
        let input = serde_json::json!({ "command": format!("echo {long} END-OF-LINE") }).to_string();
        for (width, height) in [(200, 50), (80, 24), (40, 10), (20, 6), (10, 4), (6, 3)] {
            let (mut question, answer) = question_of(asked("Bash", &input, "Bash(echo:*)"));
            let mut desktop = Desktop::new(width, height);
            let mut all = desktop.draw(&mut question);
            while question.page.n_unseen() > 0 {
                assert_eq!(press(&mut question, "y"), Answered::Open, "{width}x{height}");
                press_key(&mut question, KeyCode::PageDown);
                all.push_str(&desktop.draw(&mut question));
            }
            let joined: String = all.split_whitespace().collect();
            let end = joined.replace(['┊', '│'], "").contains("END-OF-LINE");
            assert!(end || width < 40, "{width}x{height}: {all}");
            assert_eq!(press(&mut question, "y"), Answered::Done, "{width}x{height}");
            assert_eq!(answer.try_recv(), Ok(Consent::Once));
        }
    }

    #[test]
    fn all_fields_of_any_call_are_shown_and_invisible_characters_are_spelt_out() {
        let text = |tool: &str, input: serde_json::Value| {
            let (mut question, _answer) = question_of(asked(tool, &input.to_string(), ""));
            Desktop::new(100, 60).draw(&mut question)
        };
        let shown = text(
            "mcp__db__query",
            serde_json::json!({"sql": "drop\u{202e} table x", "options": {"force": true}}),
        );
        assert!(shown.contains("sql: drop⟨U+202E⟩ table x") && shown.contains("\"force\": true"), "{shown}");
        let shown =
            text("WebFetch", serde_json::json!({"url": "https://a.example/x?q=1", "prompt": "a\nb\u{200b}"}));
        assert!(shown.contains("url: https://a.example/x?q=1") && shown.contains("2│ b⟨U+200B⟩"), "{shown}");
        let shown = text("Agent", serde_json::json!({"description": "look", "prompt": "one\ntwo\nthree"}));
        assert!(shown.contains("3│ three"), "{shown}");
        let shown = text("Bash", serde_json::json!({"command": "make", "run_in_background": true}));
        assert!(shown.contains("│ make") && shown.contains("run_in_background: true"), "{shown}");
        let edits = serde_json::json!([
            {"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d", "replace_all": true}
        ]);
        let shown = text("Edit", serde_json::json!({"file_path": "x.rs", "edits": edits}));
        for line in ["│ x.rs", "- a", "+ b", "- c", "+ d", "change 2 replaces every occurrence"] {
            assert!(shown.contains(line), "{line}: {shown}");
        }
        let shown = text("ExitPlanMode", serde_json::json!({"plan": "first\nlast"}));
        assert!(shown.contains("2│ last"), "{shown}");
    }

    #[test]
    fn a_file_that_is_written_over_is_compared_with_what_it_holds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept.txt");
        std::fs::write(&path, "one\ntwo\nthree\n").unwrap();
        let input = serde_json::json!({"file_path": path, "content": "one\n2\nthree\n"}).to_string();
        let (mut question, _answer) = question_of(asked("Write", &input, ""));
        let shown = Desktop::new(100, 40).draw(&mut question);
        assert!(shown.contains("- two") && shown.contains("+ 2") && !shown.contains("+ three"), "{shown}");
    }

    #[test]
    fn marks_are_named_in_words_with_their_lines() {
        let mut asked = asked("Bash", &heredoc(3), "Bash");
        let mark = |start: usize, end: usize, is_dangerous: bool, sentence: &str| pal_agent::ConsentMark {
            start,
            end,
            kind: String::from("deletion"),
            is_dangerous,
            sentence: sentence.to_owned(),
        };
        asked.marks = vec![mark(5, 12, false, "feeds a text"), mark(27, 45, true, "deletes files")];
        let (mut question, _answer) = question_of(asked);
        let shown = Desktop::new(80, 40).draw(&mut question);
        let danger = shown.find("! line 4: deletes files").expect(&shown);
        assert!(danger < shown.find("· line 1: feeds a text").expect(&shown), "{shown}");
        let styled = question.page.document.iter().flat_map(|line| &line.spans);
        let marked: Vec<String> = styled
            .filter(|span| span.style.add_modifier.contains(ratatui_core::style::Modifier::UNDERLINED))
            .map(|span| span.content.to_string())
            .collect();
        assert_eq!(marked, ["<<'END'", "rm -rf ~/important"]);
    }

    #[test]
    fn the_rule_that_is_stored_is_shown_to_the_letter() {
        let (mut question, _answer) = question("Bash(git push:*)");
        let shown = Desktop::new(80, 24).draw(&mut question);
        assert!(shown.contains("2 yes, always in this project: Bash(git push:*)"), "{shown}");
        let rule = format!("Bash(one\n  two {})", "y".repeat(100));
        let (mut question, _answer) = question_of(asked("Bash", r#"{"command":"x"}"#, &rule));
        let shown = Desktop::new(80, 24).draw(&mut question);
        assert!(shown.contains("2 yes, always in this project: the rule above"), "{shown}");
        assert!(shown.contains("1│ Bash(one") && shown.contains("2│   two yyy"), "{shown}");
    }
}
