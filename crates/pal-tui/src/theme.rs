//! Styles by what they mean. Whether colours reach the terminal is decided where lines are written.

use ratatui_core::style::{Color, Modifier, Style};

/// The styles of the program. Only the sixteen colours that every terminal has, in the user's own shades.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Theme;

impl Theme {
    /// What stands beside what matters.
    pub fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Headings, and what a person said.
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Words that are leant on.
    pub fn leaning(self) -> Style {
        Style::new().add_modifier(Modifier::ITALIC)
    }

    /// Words that no longer hold.
    pub fn struck(self) -> Style {
        Style::new().add_modifier(Modifier::CROSSED_OUT)
    }

    /// Names, places, what is chosen.
    pub fn accent(self) -> Style {
        Style::new().fg(Color::Cyan)
    }

    /// Code.
    pub fn code(self) -> Style {
        Style::new().fg(Color::Cyan)
    }

    /// Words of a language that stand for themselves.
    pub fn keyword(self) -> Style {
        Style::new().fg(Color::Magenta)
    }

    /// What went well, what was added.
    pub fn good(self) -> Style {
        Style::new().fg(Color::Green)
    }

    /// What went wrong, what was taken away.
    pub fn bad(self) -> Style {
        Style::new().fg(Color::Red)
    }

    /// What wants a look.
    pub fn warning(self) -> Style {
        Style::new().fg(Color::Yellow)
    }
}
