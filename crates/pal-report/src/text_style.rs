//! ANSI colours and weights for terminal text, or none of them.

/// Styles text with ANSI escape codes if enabled; otherwise leaves it as it is.
#[derive(Clone, Copy, Debug)]
pub struct TextStyle {
    is_on: bool,
}

impl TextStyle {
    /// Creates a style that colours text only if `is_on`.
    pub fn new(is_on: bool) -> TextStyle {
        TextStyle { is_on }
    }

    /// Tells whether escape codes are written.
    pub fn is_on(self) -> bool {
        self.is_on
    }

    /// Makes text bold.
    pub fn bold(self, text: &str) -> String {
        self.painted("1", text)
    }

    /// Makes text faint.
    pub fn dim(self, text: &str) -> String {
        self.painted("2", text)
    }

    /// Colours text yellow: warnings and decisions.
    pub fn yellow(self, text: &str) -> String {
        self.painted("33", text)
    }

    /// Colours text cyan: ids and names.
    pub fn cyan(self, text: &str) -> String {
        self.painted("36", text)
    }

    /// Colours text green: people and additions.
    pub fn green(self, text: &str) -> String {
        self.painted("32", text)
    }

    /// Wraps text in the SGR code `code`, such as `"1;33"`. Empty text stays empty.
    pub fn painted(self, code: &str, text: &str) -> String {
        if self.is_on && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
