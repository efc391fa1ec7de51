//! Notices: remarks for the user beside the output of a command.

use std::cell::RefCell;
use std::fmt::Display;

/// Receives the notices of a command: standard error, or a list for a front end that draws the screen itself.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    /// Collected lines; none if they go to standard error.
    lines: Option<RefCell<Vec<String>>>,
}

impl Notices {
    /// Writes notices to standard error.
    pub(crate) const fn to_stderr() -> Notices {
        Notices { lines: None }
    }

    /// Collects notices for [`Notices::into_lines`].
    pub(crate) fn collected() -> Notices {
        Notices { lines: Some(RefCell::default()) }
    }

    /// Adds a notice; on standard error it starts with the program's name.
    pub(crate) fn add(&self, notice: impl Display) {
        match &self.lines {
            Some(lines) => lines.borrow_mut().push(notice.to_string()),
            None => print_notice(notice),
        }
    }

    /// Adds a line that is complete without the program's name.
    pub(crate) fn add_plain(&self, line: impl Display) {
        match &self.lines {
            Some(lines) => lines.borrow_mut().push(line.to_string()),
            None => print_plain(line),
        }
    }

    /// Whether progress may be drawn on standard error meanwhile.
    pub(crate) fn allows_progress(&self) -> bool {
        self.lines.is_none()
    }

    /// Collected notices in order; empty if they went to standard error.
    pub(crate) fn into_lines(self) -> Vec<String> {
        self.lines.map(RefCell::into_inner).unwrap_or_default()
    }
}

/// Prints a notice to standard error, after the program's name.
pub(crate) fn print_notice(notice: impl Display) {
    eprintln!("pal: {notice}");
}

/// Prints a line to standard error.
pub(crate) fn print_plain(line: impl Display) {
    eprintln!("{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collected_notices_keep_their_order() {
        let notices = Notices::collected();
        notices.add("one");
        notices.add_plain(2);
        assert!(!notices.allows_progress());
        assert_eq!(notices.into_lines(), ["one", "2"]);
        assert!(Notices::to_stderr().allows_progress());
    }
}
