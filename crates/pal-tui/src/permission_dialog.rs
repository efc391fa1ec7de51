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
mod tests;
