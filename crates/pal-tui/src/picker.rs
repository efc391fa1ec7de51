//! One of several: a list that what is typed narrows down.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::text::{Line, Span};

use crate::paint::{clipped, columns, harmless_line};
use crate::theme::Theme;
use crate::told::Choice;

/// A list to choose from.
pub(crate) struct Picker {
    title: String,
    choices: Vec<Choice>,
    /// What was typed to narrow it down.
    query: String,
    selected: usize,
}

/// What a key did.
pub(crate) enum Picked {
    /// Nothing is decided.
    Open,
    /// This one.
    Chosen(Choice),
    /// None of them.
    Closed,
}

impl Picker {
    pub(crate) fn new(title: String, choices: Vec<Choice>) -> Picker {
        Picker { title, choices, query: String::new(), selected: 0 }
    }

    /// A key was pressed.
    pub(crate) fn key(&mut self, key: &KeyEvent) -> Picked {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let count = self.found().count();
        match key.code {
            KeyCode::Esc => return Picked::Closed,
            KeyCode::Char('c' | 'd') if is_control => return Picked::Closed,
            KeyCode::Enter => {
                let chosen = self.found().nth(self.selected).cloned();
                return chosen.map_or(Picked::Open, Picked::Chosen);
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
        Picked::Open
    }

    /// The choices that hold every word that was typed.
    fn found(&self) -> impl Iterator<Item = &Choice> {
        let query = self.query.to_lowercase();
        let words: Vec<String> = query.split_whitespace().map(str::to_owned).collect();
        self.choices.iter().filter(move |choice| {
            let text = format!("{} {}", choice.label, choice.detail).to_lowercase();
            words.iter().all(|word| text.contains(word.as_str()))
        })
    }

    /// The list in at most so many lines, and where the cursor stands.
    pub(crate) fn lines(
        &self,
        width: usize,
        rows: usize,
        theme: Theme,
    ) -> (Vec<Line<'static>>, (usize, usize)) {
        let query = format!("{}: {}", self.title, self.query);
        let cursor = (0, columns(&query).min(width));
        let mut lines = vec![Line::from(Span::styled(clipped(&query, width), theme.strong()))];
        let found: Vec<&Choice> = self.found().collect();
        let each = if found.iter().any(|choice| !choice.detail.is_empty()) { 2 } else { 1 };
        let room = (rows.saturating_sub(2) / each).max(1);
        let from = (self.selected + 1).saturating_sub(room);
        for (at, choice) in found.iter().enumerate().skip(from).take(room) {
            let is_selected = at == self.selected;
            let (mark, style) =
                if is_selected { ("❯ ", theme.accent()) } else { ("  ", Default::default()) };
            let label = clipped(&harmless_line(&choice.label), width.saturating_sub(2));
            lines.push(Line::from(vec![Span::styled(mark, style), Span::styled(label, style)]));
            if each == 2 {
                let detail = clipped(&harmless_line(&choice.detail), width.saturating_sub(4));
                lines.push(Line::from(Span::styled(format!("    {detail}"), theme.dim())));
            }
        }
        let hint = match found.len() {
            0 => String::from("nothing fits · Esc goes back"),
            count => {
                format!("{} of {count} · type to search · Enter takes it · Esc goes back", self.selected + 1)
            }
        };
        lines.push(Line::from(Span::styled(clipped(&hint, width), theme.dim())));
        (lines, cursor)
    }
}
