//! A list to choose from, filtered by typing.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::text::{Line, Span};

use crate::styled_text::{columns, sanitize_line, truncate_columns};
use crate::theme::Theme;
use crate::ui_events::PickerChoice;

/// A list to choose from.
pub(crate) struct Picker {
    title: String,
    choices: Vec<PickerChoice>,
    /// Filter words.
    query: String,
    selected: usize,
}

/// Effect of a key.
pub(crate) enum PickerOutcome {
    /// Not decided yet.
    Open,
    /// The user chose this one.
    Chosen(PickerChoice),
    /// The user closed the list.
    Closed,
}

impl Picker {
    pub(crate) fn new(title: String, choices: Vec<PickerChoice>) -> Picker {
        Picker { title, choices, query: String::new(), selected: 0 }
    }

    /// Handles a key.
    pub(crate) fn key(&mut self, key: &KeyEvent) -> PickerOutcome {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let count = self.found().count();
        match key.code {
            KeyCode::Esc => return PickerOutcome::Closed,
            KeyCode::Char('c' | 'd') if is_control => return PickerOutcome::Closed,
            KeyCode::Enter => {
                let chosen = self.found().nth(self.selected).cloned();
                return chosen.map_or(PickerOutcome::Open, PickerOutcome::Chosen);
            }
            KeyCode::Up => self.selected = self.selected.saturating_sub(1),
            KeyCode::Char('p') if is_control => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down => self.selected = (self.selected + 1).min(count.saturating_sub(1)),
            KeyCode::Char('n') if is_control => {
                self.selected = (self.selected + 1).min(count.saturating_sub(1));
            }
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(10),
            KeyCode::PageDown => self.selected = (self.selected + 10).min(count.saturating_sub(1)),
            KeyCode::Backspace => {
                self.query.pop();
                self.selected = 0;
            }
            KeyCode::Char(character) if !is_control => {
                self.query.push(character);
                self.selected = 0;
            }
            _ => {}
        }
        PickerOutcome::Open
    }

    /// Choices that contain every filter word.
    fn found(&self) -> impl Iterator<Item = &PickerChoice> {
        let query = self.query.to_lowercase();
        let words: Vec<String> = query.split_whitespace().map(str::to_owned).collect();
        self.choices.iter().filter(move |choice| {
            let text = format!("{} {}", choice.label, choice.detail).to_lowercase();
            words.iter().all(|word| text.contains(word.as_str()))
        })
    }

    /// The list in at most `rows` lines, and the cursor.
    pub(crate) fn lines(
        &self,
        width: usize,
        rows: usize,
        theme: Theme,
    ) -> (Vec<Line<'static>>, (usize, usize)) {
        let query = format!("{}: {}", self.title, self.query);
        let cursor = (0, columns(&query).min(width));
        let mut lines = vec![Line::from(Span::styled(truncate_columns(&query, width), theme.strong()))];
        let found: Vec<&PickerChoice> = self.found().collect();
        let each = if found.iter().any(|choice| !choice.detail.is_empty()) { 2 } else { 1 };
        let room = (rows.saturating_sub(2) / each).max(1);
        let from = (self.selected + 1).saturating_sub(room);
        for (at, choice) in found.iter().enumerate().skip(from).take(room) {
            let is_selected = at == self.selected;
            let (mark, style) =
                if is_selected { ("❯ ", theme.accent()) } else { ("  ", Default::default()) };
            let label = truncate_columns(&sanitize_line(&choice.label), width.saturating_sub(2));
            lines.push(Line::from(vec![Span::styled(mark, style), Span::styled(label, style)]));
            if each == 2 {
                let detail = truncate_columns(&sanitize_line(&choice.detail), width.saturating_sub(4));
                lines.push(Line::from(Span::styled(format!("    {detail}"), theme.dim())));
            }
        }
        let hint = match found.len() {
            0 => String::from("no match · Esc to close"),
            count => {
                format!("{} of {count} · type to search · Enter to select · Esc to close", self.selected + 1)
            }
        };
        lines.push(Line::from(Span::styled(truncate_columns(&hint, width), theme.dim())));
        (lines, cursor)
    }
}
