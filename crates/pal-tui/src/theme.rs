//! Styles by meaning. The screen decides whether colors are written.

use ratatui_core::style::{Color, Modifier, Style};

/// Styles of the program. They use only the sixteen standard colors, in the user's own palette.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Theme;

impl Theme {
    /// Secondary text.
    pub fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Headings and the user's prompts.
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Emphasis, in italics.
    pub fn leaning(self) -> Style {
        Style::new().add_modifier(Modifier::ITALIC)
    }

    /// Strikethrough.
    pub fn struck(self) -> Style {
        Style::new().add_modifier(Modifier::CROSSED_OUT)
    }

    /// Names, paths and selections.
    pub fn accent(self) -> Style {
        Style::new().fg(Color::Cyan)
    }

    /// Inline code.
    pub fn code(self) -> Style {
        Style::new().fg(Color::Cyan)
    }

    /// Keywords of a programming language.
    pub fn keyword(self) -> Style {
        Style::new().fg(Color::Magenta)
    }

    /// Success and additions.
    pub fn good(self) -> Style {
        Style::new().fg(Color::Green)
    }

    /// Errors and removals.
    pub fn bad(self) -> Style {
        Style::new().fg(Color::Red)
    }

    /// Warnings.
    pub fn warning(self) -> Style {
        Style::new().fg(Color::Yellow)
    }
}
