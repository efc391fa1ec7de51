//! ANSI colors and weights for terminal text, or none of them.

/// Styles text with ANSI escape codes if enabled; otherwise leaves it as it is.
#[derive(Clone, Copy, Debug)]
pub struct TextStyle {
    is_on: bool,
}

impl TextStyle {
    /// Creates a style that colors text only if `is_on`.
    pub fn new(is_on: bool) -> TextStyle {
        TextStyle { is_on }
    }

    /// Tells whether escape codes are written.
    pub fn is_on(self) -> bool {
        self.is_on
    }

    /// Makes text bold.
    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Makes text faint.
    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// Colors text yellow: warnings and decisions.
    pub fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    /// Colors text cyan: ids and names.
    pub fn cyan(self, text: &str) -> String {
        self.paint("36", text)
    }

    /// Colors text green: people and additions.
    pub fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// Wraps text in the SGR code `code`, such as `"1;33"`. Empty text stays empty.
    pub fn paint(self, code: &str, text: &str) -> String {
        if self.is_on && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
