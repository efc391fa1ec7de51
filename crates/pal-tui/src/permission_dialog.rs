//! The dialog that asks for permission to run a tool call.
//!
//! The call is shown in full, page by page if it is longer than the screen. No key approves it before every line has been on
//! screen at the current size; it can be refused at any time.

use std::sync::mpsc;
use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use pal_events::PermissionQuestion;
use pal_permissions::reveal;
use ratatui_core::text::{Line, Span};
use serde_json::Value;

use crate::consent_document::{PriorContent, consent_document, plan_lines, rule_lines};
use crate::dialog::{Dialog, DialogLines, DialogOutcome};
use crate::dialog_page::DialogPage;
use crate::editor::{Editor, lay_out_text};
use crate::styled_text::{columns, line_columns, truncate_line};
use crate::theme::Theme;
use crate::ui_events::Consent;

/// Minimum rows of the document; with fewer, the choices shrink to one line.
const PAGE_MIN: usize = 4;

/// A permission question that waits for its answer.
pub(crate) struct PermissionDialog {
    asked: PermissionQuestion,
    answer: mpsc::Sender<Consent>,
    selected: usize,
    /// Reason of a refusal, while it is typed.
    reason: Option<Editor>,
    /// Time of the first frame that showed it.
    shown_at: Option<Instant>,
    prior: PriorContent,
    /// Plan that the user has changed.
    changed_plan: Option<String>,
    page: DialogPage,
}

/// An answer that can be chosen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DialogChoice {
    Once,
    Always,
    /// Carry out the plan and ask before changes.
    ApprovePlan,
    /// Carry out the plan and change files without asking.
    ApproveWithEdits,
    EditPlan,
    No,
}

/// Tool whose call is a plan to approve.
const EXIT_PLAN: &str = "ExitPlanMode";

impl PermissionDialog {
    pub(crate) fn new(asked: PermissionQuestion, answer: mpsc::Sender<Consent>) -> PermissionDialog {
        let prior = PriorContent::read(&asked);
        PermissionDialog {
            asked,
            answer,
            selected: 0,
            reason: None,
            shown_at: None,
            prior,
            changed_plan: None,
            page: DialogPage::default(),
        }
    }

    fn choice_key(&mut self, key: &KeyEvent) -> DialogOutcome {
        let count = self.choices().len();
        let is_long = self.page.is_long();
        let page = &mut self.page;
        match key.code {
            KeyCode::Esc => return self.stop(),
            KeyCode::Up if is_long => page.scroll_to(page.top.saturating_sub(1)),
            KeyCode::Down if is_long => page.scroll_down(1),
            KeyCode::PageUp => page.scroll_to(page.top.saturating_sub(page.rows)),
            KeyCode::Char(' ') if !is_long => return DialogOutcome::NotForDialog,
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
            KeyCode::Char(digit @ '1'..='9') if (digit as usize - '1' as usize) < count => {
                return self.choose(digit as usize - '1' as usize);
            }
            _ => return DialogOutcome::NotForDialog,
        }
        DialogOutcome::Open
    }

    fn reason_key(&mut self, key: &KeyEvent) -> DialogOutcome {
        let Some(reason) = &mut self.reason else { return DialogOutcome::Open };
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
        DialogOutcome::Open
    }

    fn is_plan(&self) -> bool {
        self.asked.tool == EXIT_PLAN
    }

    fn choose(&mut self, at: usize) -> DialogOutcome {
        self.selected = at;
        let choice = self.choices().get(at).map_or(DialogChoice::No, |(choice, _)| *choice);
        match choice {
            DialogChoice::No => {
                self.reason = Some(Editor::default());
                return DialogOutcome::Open;
            }
            DialogChoice::EditPlan => return DialogOutcome::Edit,
            _ => {}
        }
        // Unread lines cannot be approved.
        if self.page.seen.is_empty() || self.page.n_unseen() > 0 {
            self.page.is_refused = true;
            return DialogOutcome::Open;
        }
        let changed = self.changed_plan.clone();
        match choice {
            DialogChoice::Once => self.answer(Consent::Once),
            DialogChoice::ApprovePlan => self.answer(Consent::Plan { changed, accepts_edits: false }),
            DialogChoice::ApproveWithEdits => self.answer(Consent::Plan { changed, accepts_edits: true }),
            _ => self.answer(Consent::Project),
        }
    }

    fn answer(&mut self, consent: Consent) -> DialogOutcome {
        // The asker may have been stopped.
        let _ = self.answer.send(consent);
        DialogOutcome::Done
    }

    fn stop(&mut self) -> DialogOutcome {
        let _ = self.answer.send(Consent::No(None));
        DialogOutcome::Stopped
    }

    /// Choices with their labels. "Always" is missing if no rule covers the call.
    fn choices(&self) -> Vec<(DialogChoice, String)> {
        if self.is_plan() {
            return vec![
                (DialogChoice::ApprovePlan, String::from("yes, and ask before each change")),
                (DialogChoice::ApproveWithEdits, String::from("yes, and change files without asking")),
                (DialogChoice::EditPlan, String::from("edit the plan first")),
                (DialogChoice::No, String::from("no, keep planning, and tell it why")),
            ];
        }
        let mut choices = vec![(DialogChoice::Once, String::from("yes, this once"))];
        if !self.asked.rule.is_empty() {
            let label = match self.short_rule() {
                Some(rule) => format!("yes, always in this project: {rule}"),
                None => String::from("yes, always in this project: the rule above"),
            };
            choices.push((DialogChoice::Always, label));
        }
        choices.push((DialogChoice::No, String::from("no, and tell it why")));
        choices
    }

    /// The rule, if it fits in the line of its choice.
    fn short_rule(&self) -> Option<String> {
        let rule = reveal(&self.asked.rule);
        let room = self.page.size.0.saturating_sub(columns("  2 yes, always in this project: "));
        let is_plain = !rule.contains(['\n', '\t']) && rule.trim() == rule && !self.page.is_compact;
        (is_plain && columns(&rule) <= room).then_some(rule)
    }

    /// The choices in one line, as on a small screen; the selected one stands out.
    fn compact_choices(&self, width: usize, theme: Theme) -> Line<'static> {
        let (long, short): (&[&str], &[&str]) = match self.asked.rule.is_empty() {
            _ if self.is_plan() => {
                (&["1 yes", "2 yes, without asking", "3 edit", "4 no"], &["1 yes", "2 all", "3 edit", "4 no"])
            }
            true => (&["1 yes", "2 no"], &["1 yes", "2 no"]),
            false => (&["1 yes", "2 always (the rule above)", "3 no"], &["1 yes", "2 always", "3 no"]),
        };
        // With the narrow separator, the short names fit into 23 columns.
        let (names, separator) = [(long, " · "), (short, " · "), (short, "·")]
            .into_iter()
            .find(|(names, separator)| columns(&names.join(separator)) <= width)
            .unwrap_or((short, "·"));
        let mut spans = Vec::new();
        for (at, name) in names.iter().enumerate() {
            if at > 0 {
                spans.push(Span::styled(separator, theme.dim()));
            }
            let is_selected = at == self.selected;
            let style = if is_selected { theme.accent().patch(theme.strong()) } else { theme.accent() };
            spans.push(Span::styled(*name, style));
        }
        truncate_line(&Line::from(spans), width)
    }

    /// Choices and typed reason, with the cursor.
    fn footer(&self, theme: Theme) -> (Vec<Line<'static>>, Option<(usize, usize)>) {
        let width = self.page.size.0;
        let mut lines = Vec::new();
        if self.page.is_compact {
            lines.push(self.compact_choices(width, theme));
        } else {
            for (at, (_, choice)) in self.choices().iter().enumerate() {
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
        let laid = lay_out_text(reason.text(), reason.cursor(), room);
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

impl Dialog for PermissionDialog {
    fn key(&mut self, key: &KeyEvent) -> DialogOutcome {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return self.stop();
        }
        match &mut self.reason {
            Some(_) => self.reason_key(key),
            None => self.choice_key(key),
        }
    }

    fn shown_at(&self) -> Option<Instant> {
        self.shown_at
    }

    fn n_answers(&self) -> usize {
        self.choices().len()
    }

    fn has_text_field(&self) -> bool {
        self.reason.is_some()
    }

    fn paste(&mut self, text: &str) {
        if let Some(reason) = &mut self.reason {
            reason.insert(&text.replace(['\r', '\n'], " "));
        }
    }

    /// A new size resets the seen lines.
    fn lay_out(&mut self, width: usize, rows: usize, theme: Theme) {
        if self.page.size != (width, rows) {
            let top = self.page.top;
            self.page = DialogPage { size: (width, rows), top, ..DialogPage::default() };
            self.page.is_compact = rows < self.footer(theme).0.len() + 1 + PAGE_MIN;
            let mut document = consent_document(&self.asked, &self.prior, width, theme);
            if !self.asked.rule.is_empty() && self.short_rule().is_none() {
                document.extend(rule_lines(&self.asked, width, theme));
            }
            self.page.seen = vec![false; document.len()];
            self.page.document = document;
        }
        // Without room for both, show the document: it must be read, and the keys work without visible choices.
        let n_footer = self.footer(theme).0.len();
        self.page.is_bare = rows <= n_footer;
        let room = if self.page.is_bare { rows.max(1) } else { rows - n_footer };
        // A document that does not fit has a position line.
        let is_long = self.page.document.len() > room;
        self.page.has_position = is_long && room > 1;
        self.page.rows = room - usize::from(self.page.has_position);
        self.page.top = self.page.top.min(self.page.last_top());
    }

    fn note_shown(&mut self, is_visible: &dyn Fn(usize) -> bool) {
        self.shown_at.get_or_insert_with(Instant::now);
        let page = &mut self.page;
        page.drawn_top = page.top;
        for row in 0..page.rows.min(page.document.len().saturating_sub(page.top)) {
            let fits = line_columns(&page.document[page.top + row]) <= page.size.0;
            page.seen[page.top + row] |= fits && is_visible(row);
        }
    }

    fn drawn(&self, theme: Theme) -> DialogLines {
        let page = &self.page;
        let shown = page.document.iter().skip(page.top).take(page.rows);
        let mut lines: Vec<Line<'static>> = shown.cloned().collect();
        if page.has_position {
            lines.push(page.position(page.size.0, theme));
        }
        if page.is_bare {
            return DialogLines { lines, cursor: None };
        }
        let first = lines.len();
        let (footer, cursor) = self.footer(theme);
        lines.extend(footer);
        DialogLines { lines, cursor: cursor.map(|(row, column)| (first + row, column)) }
    }

    fn text_to_edit(&self) -> Option<String> {
        plan_of(&self.asked)
    }

    fn set_edited(&mut self, text: String) {
        if text.trim().is_empty() || plan_of(&self.asked).as_ref() == Some(&text) {
            return;
        }
        self.asked.input = serde_json::json!({ "plan": text }).to_string();
        self.changed_plan = Some(text);
        self.selected = 0;
        // The changed plan is laid out and read anew.
        self.page = DialogPage::default();
    }

    fn record(&self, width: usize, theme: Theme) -> Option<Vec<Line<'static>>> {
        let mut lines = vec![Line::from(Span::styled("The plan:", theme.strong()))];
        lines.extend(plan_lines(&plan_of(&self.asked)?, width, theme));
        Some(lines)
    }
}

/// The plan, if the question is about one.
pub(crate) fn plan_of(asked: &PermissionQuestion) -> Option<String> {
    let input: Value = serde_json::from_str(&asked.input).ok()?;
    let plan = input.get("plan").and_then(Value::as_str).filter(|_| asked.tool == EXIT_PLAN)?;
    Some(plan.to_owned())
}

/// A question of the main agent about a call, for tests.
#[cfg(test)]
pub(crate) fn question_about(tool: &str, input: &str, rule: &str) -> PermissionQuestion {
    PermissionQuestion {
        agent: None,
        call: pal_model::ToolUseId::from("toolu_1"),
        tool: tool.to_owned(),
        input: input.to_owned(),
        why: String::from("no rule allows it"),
        rule: rule.to_owned(),
        marks: Vec::new(),
        directory: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live_region::{LiveParts, compose, note_question_shown, question_rows};
    use crate::screen::Screen;
    use crate::status_line::StatusLine;
    use crate::transcript::Transcript;

    fn question_of(asked: PermissionQuestion) -> (PermissionDialog, mpsc::Receiver<Consent>) {
        let (sender, receiver) = mpsc::channel();
        (PermissionDialog::new(asked, sender), receiver)
    }

    fn question(rule: &str) -> (PermissionDialog, mpsc::Receiver<Consent>) {
        question_of(question_about("Bash", r#"{"command":"git push\n\u001b[2Jrm"}"#, rule))
    }

    /// Emulated terminal with a dialog on it.
    struct DialogTerminal {
        screen: Screen<Vec<u8>>,
        parser: vt100::Parser,
    }

    impl DialogTerminal {
        fn new(width: u16, height: u16) -> DialogTerminal {
            DialogTerminal {
                screen: Screen::new(Vec::new(), width.into(), height.into(), false),
                parser: vt100::Parser::new(height.try_into().unwrap(), width.try_into().unwrap(), 0),
            }
        }

        fn resize(&mut self, width: u16, height: u16) {
            *self = DialogTerminal::new(width, height);
        }

        /// Draws a frame and returns the screen's text.
        fn draw(&mut self, question: &mut PermissionDialog) -> String {
            let (columns, rows) = (self.screen.columns(), self.screen.rows());
            question.lay_out(columns, question_rows(rows), Theme::default());
            let transcript = Transcript::new(columns, Theme::default());
            let parts = LiveParts {
                transcript: &transcript,
                status: &StatusLine::default(),
                editor: &Editor::default(),
                suggestion: None,
                question: Some(question),
                picker: None,
                suggestions: None,
                working: None,
                hint: None,
                status_lines: Vec::new(),
                vi_mode: None,
                has_key_help: false,
                is_on_dialog: false,
            };
            let (live, first) = compose(&parts, columns, rows, Theme::default());
            self.screen.frame(&[], &live).unwrap();
            note_question_shown(question, first.unwrap(), &live, rows);
            let bytes = std::mem::take(self.screen.writer());
            self.parser.process(&bytes);
            self.parser.screen().contents()
        }
    }

    fn press_key(question: &mut PermissionDialog, code: KeyCode) -> DialogOutcome {
        question.key(&KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn press(question: &mut PermissionDialog, keys: &str) -> DialogOutcome {
        let key = |character: char| match character {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            other => KeyCode::Char(other),
        };
        keys.chars()
            .map(|character| press_key(question, key(character)))
            .last()
            .unwrap_or(DialogOutcome::Open)
    }

    fn heredoc(count: usize) -> String {
        let lines: String = (1..count).map(|number| format!("echo {number}\n")).collect();
        let command = format!("bash <<'END'\n{lines}rm -rf ~/important\nEND");
        serde_json::json!({ "command": command }).to_string()
    }

    #[test]
    fn every_answer_reaches_the_asker() {
        for (keys, consent, answered) in [
            ("1", Consent::Once, DialogOutcome::Done),
            ("\n", Consent::Once, DialogOutcome::Done),
            ("2", Consent::Project, DialogOutcome::Done),
            ("3\n", Consent::No(None), DialogOutcome::Done),
            ("3not so\n", Consent::No(Some(String::from("not so"))), DialogOutcome::Done),
            ("\u{1b}", Consent::No(None), DialogOutcome::Stopped),
        ] {
            let (mut question, answer) = question("Bash(git push:*)");
            DialogTerminal::new(80, 24).draw(&mut question);
            assert_eq!(press(&mut question, keys), answered, "{keys:?}");
            assert_eq!(answer.try_recv(), Ok(consent), "{keys:?}");
        }
    }

    #[test]
    fn always_is_missing_without_a_rule() {
        let (mut question, answer) = question("");
        DialogTerminal::new(80, 24).draw(&mut question);
        assert_eq!(press(&mut question, "3"), DialogOutcome::NotForDialog);
        assert!(answer.try_recv().is_err());
        assert_eq!(press(&mut question, "2no\n"), DialogOutcome::Done, "the second of two is a no");
        assert_eq!(answer.try_recv(), Ok(Consent::No(Some(String::from("no")))));
    }

    #[test]
    fn a_small_screen_names_the_same_keys() {
        let input = serde_json::json!({ "command": "ls ".repeat(60) }).to_string();
        for (width, height) in [(24, 6), (40, 10), (80, 7)] {
            let (mut question, _answer) = question_of(question_about("Bash", &input, "Bash(ls:*)"));
            let shown = DialogTerminal::new(width, height).draw(&mut question);
            for name in ["1 yes", "2 always", "3 no"] {
                assert!(shown.contains(name), "{width}x{height}, {name}: {shown}");
            }
            let plan = serde_json::json!({ "plan": "do it

".repeat(20) })
            .to_string();
            let (mut question, _answer) = question_of(question_about(EXIT_PLAN, &plan, ""));
            let shown = DialogTerminal::new(width, height).draw(&mut question);
            for name in ["1 yes", "2 ", "3 edit", "4 no"] {
                assert!(shown.contains(name), "{width}x{height}, {name}: {shown}");
            }
        }
    }

    #[test]
    fn a_command_is_shown_in_full_and_sanitized() {
        let (mut question, _answer) = question("Bash");
        let text = DialogTerminal::new(40, 24).draw(&mut question);
        assert!(text.contains("  1│ git push\n") && text.contains("  2│ ⟨U+001B⟩[2Jrm\n"), "{text}");
    }

    #[test]
    fn approval_needs_every_line_on_screen() {
        for keys in ["\n", "1", "2"] {
            let (mut question, answer) = question_of(question_about("Bash", &heredoc(60), "Bash(bash:*)"));
            let mut desktop = DialogTerminal::new(80, 24);
            let text = desktop.draw(&mut question);
            assert!(text.contains("bash <<'END'") && !text.contains("rm -rf"), "{text}");
            assert_eq!(press(&mut question, keys), DialogOutcome::Open, "{keys:?}");
            let text = desktop.draw(&mut question);
            assert!(text.contains("scroll to the end first"), "{text}");
            // The end alone is not all of it.
            press_key(&mut question, KeyCode::End);
            let text = desktop.draw(&mut question);
            assert!(text.contains("rm -rf ~/important"), "{text}");
            assert_eq!(press(&mut question, keys), DialogOutcome::Open, "{keys:?}");
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
            assert_eq!(press(&mut question, keys), DialogOutcome::Done, "{keys:?}");
            assert!(answer.try_recv().is_ok());
        }
    }

    #[test]
    fn a_call_can_be_refused_at_any_time() {
        for (keys, answered) in [("3\n", DialogOutcome::Done), ("\u{1b}", DialogOutcome::Stopped)] {
            let (mut question, answer) = question_of(question_about("Bash", &heredoc(60), "Bash"));
            DialogTerminal::new(80, 24).draw(&mut question);
            assert_eq!(press(&mut question, keys), answered);
            assert_eq!(answer.try_recv(), Ok(Consent::No(None)));
        }
    }

    #[test]
    fn a_new_size_resets_the_seen_lines() {
        let (mut question, answer) = question_of(question_about("Bash", &heredoc(12), "Bash"));
        let mut desktop = DialogTerminal::new(80, 40);
        desktop.draw(&mut question);
        assert_eq!(question.page.n_unseen(), 0, "all of it fits");
        desktop.resize(80, 14);
        desktop.draw(&mut question);
        assert!(question.page.n_unseen() > 0);
        assert_eq!(press(&mut question, "1"), DialogOutcome::Open);
        desktop.resize(60, 40);
        desktop.draw(&mut question);
        assert_eq!(press(&mut question, "1"), DialogOutcome::Done);
        assert_eq!(answer.try_recv(), Ok(Consent::Once));
    }

    #[test]
    fn every_line_can_be_scrolled_to_on_every_screen() {
        let long = "x".repeat(3_000);
        let input = serde_json::json!({ "command": format!("echo {long} END-OF-LINE") }).to_string();
        for (width, height) in [(200, 50), (80, 24), (40, 10), (20, 6), (10, 4), (6, 3)] {
            let (mut question, answer) = question_of(question_about("Bash", &input, "Bash(echo:*)"));
            let mut desktop = DialogTerminal::new(width, height);
            let mut all = desktop.draw(&mut question);
            while question.page.n_unseen() > 0 {
                assert_eq!(press(&mut question, "1"), DialogOutcome::Open, "{width}x{height}");
                press_key(&mut question, KeyCode::PageDown);
                all.push_str(&desktop.draw(&mut question));
            }
            let joined: String = all.split_whitespace().collect();
            let end = joined.replace(['┊', '│'], "").contains("END-OF-LINE");
            assert!(end || width < 40, "{width}x{height}: {all}");
            assert_eq!(press(&mut question, "1"), DialogOutcome::Done, "{width}x{height}");
            assert_eq!(answer.try_recv(), Ok(Consent::Once));
        }
    }

    #[test]
    fn all_fields_are_shown_and_invisible_characters_are_spelled_out() {
        let text = |tool: &str, input: serde_json::Value| {
            let (mut question, _answer) = question_of(question_about(tool, &input.to_string(), ""));
            DialogTerminal::new(100, 60).draw(&mut question)
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
        assert!(shown.contains("first last"), "{shown}");
    }

    #[test]
    fn a_plan_is_markdown_and_can_be_edited_approved_or_rejected() {
        let plan = serde_json::json!({"plan": "# Steps\n\n1. **read** it\n2. change it"}).to_string();
        for (keys, consent) in [
            ("1", Consent::Plan { changed: None, accepts_edits: false }),
            ("2", Consent::Plan { changed: None, accepts_edits: true }),
            ("4too much\n", Consent::No(Some(String::from("too much")))),
        ] {
            let (mut question, answer) = question_of(question_about(EXIT_PLAN, &plan, ""));
            let shown = DialogTerminal::new(80, 24).draw(&mut question);
            assert!(shown.contains("1. read it") && !shown.contains("**"), "{shown}");
            assert_eq!(press(&mut question, keys), DialogOutcome::Done, "{keys:?}");
            assert_eq!(answer.try_recv(), Ok(consent), "{keys:?}");
        }
        let (mut question, answer) = question_of(question_about(EXIT_PLAN, &plan, ""));
        let mut desktop = DialogTerminal::new(80, 24);
        desktop.draw(&mut question);
        assert_eq!(press(&mut question, "3"), DialogOutcome::Edit);
        assert_eq!(question.text_to_edit().as_deref(), Some("# Steps\n\n1. **read** it\n2. change it"));
        question.set_edited(String::from("only read it"));
        assert_eq!(press(&mut question, "1"), DialogOutcome::Open, "the new plan was not on screen yet");
        assert!(desktop.draw(&mut question).contains("only read it"));
        assert_eq!(press(&mut question, "1"), DialogOutcome::Done);
        let changed = Some(String::from("only read it"));
        assert_eq!(answer.try_recv(), Ok(Consent::Plan { changed, accepts_edits: false }));
    }

    #[test]
    fn an_edit_is_shown_in_its_file_with_line_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let lines: String = (1..=40).map(|number| format!("line {number}\n")).collect();
        std::fs::write(folder.path().join("a.rs"), lines).unwrap();
        let input =
            serde_json::json!({"file_path": "a.rs", "old_string": "line 20", "new_string": "line xx"});
        let mut question = question_about("Edit", &input.to_string(), "");
        question.directory = folder.path().display().to_string();
        let (mut question, _answer) = question_of(question);
        let shown = DialogTerminal::new(80, 40).draw(&mut question);
        for line in ["19   line 19", "20 - line 20", "20 + line xx", "21   line 21"] {
            assert!(shown.contains(line), "{line}: {shown}");
        }
        assert!(!shown.contains("line 30"), "{shown}");
    }

    #[test]
    fn an_overwritten_file_is_shown_as_a_diff() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept.txt");
        std::fs::write(&path, "one\ntwo\nthree\n").unwrap();
        let input = serde_json::json!({"file_path": path, "content": "one\n2\nthree\n"}).to_string();
        let (mut question, _answer) = question_of(question_about("Write", &input, ""));
        let shown = DialogTerminal::new(100, 40).draw(&mut question);
        assert!(shown.contains("- two") && shown.contains("+ 2") && !shown.contains("+ three"), "{shown}");
    }

    #[test]
    fn marks_are_described_with_their_line_numbers() {
        let mut asked = question_about("Bash", &heredoc(3), "Bash");
        let mark = |start: usize, end: usize, is_dangerous: bool, sentence: &str| pal_events::ConsentMark {
            start,
            end,
            kind: String::from("deletion"),
            is_dangerous,
            sentence: sentence.to_owned(),
        };
        asked.marks = vec![mark(5, 12, false, "feeds a text"), mark(27, 45, true, "deletes files")];
        let (mut question, _answer) = question_of(asked);
        let shown = DialogTerminal::new(80, 40).draw(&mut question);
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
    fn the_stored_rule_is_shown_verbatim() {
        let (mut question, _answer) = question("Bash(git push:*)");
        let shown = DialogTerminal::new(80, 24).draw(&mut question);
        assert!(shown.contains("2 yes, always in this project: Bash(git push:*)"), "{shown}");
        let rule = format!("Bash(one\n  two {})", "y".repeat(100));
        let (mut question, _answer) = question_of(question_about("Bash", r#"{"command":"x"}"#, &rule));
        let shown = DialogTerminal::new(80, 24).draw(&mut question);
        assert!(shown.contains("2 yes, always in this project: the rule above"), "{shown}");
        assert!(shown.contains("1│ Bash(one") && shown.contains("2│   two yyy"), "{shown}");
    }
}
