//! Windows of providers that refused a request as too long, by endpoint and model: stated, or bounded by what was accepted
//! and refused.
//!
//! A server may have a smaller window than the model's card says. The next session at the same endpoint starts with what an
//! earlier one found out. The file is kept in the home directory; deleting it forgets everything.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::endpoint_table::EndpointTable;

/// Name of the file in the home directory.
const FILE: &str = "learned-windows.json";

/// A learned window, in tokens.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(from = "StoredWindow", into = "StoredWindow")]
pub struct LearnedWindow {
    /// Window to assume.
    pub window: u64,
    /// Largest context that was accepted, if the provider did not state its window.
    pub accepted: Option<u64>,
    /// Smallest context that was refused, if the provider did not state its window.
    pub refused: Option<u64>,
}

impl LearnedWindow {
    /// A window that the provider stated.
    pub fn stated(window: u64) -> LearnedWindow {
        LearnedWindow { window, ..LearnedWindow::default() }
    }
}

/// A window in the file: a number if the provider stated it.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredWindow {
    Stated(u64),
    Guessed { window: u64, accepted: Option<u64>, refused: Option<u64> },
}

impl From<StoredWindow> for LearnedWindow {
    fn from(stored: StoredWindow) -> LearnedWindow {
        match stored {
            StoredWindow::Stated(window) => LearnedWindow::stated(window),
            StoredWindow::Guessed { window, accepted, refused } => {
                LearnedWindow { window, accepted, refused }
            }
        }
    }
}

impl From<LearnedWindow> for StoredWindow {
    fn from(learned: LearnedWindow) -> StoredWindow {
        match learned {
            LearnedWindow { window, accepted: None, refused: None } => StoredWindow::Stated(window),
            LearnedWindow { window, accepted, refused } => {
                StoredWindow::Guessed { window, accepted, refused }
            }
        }
    }
}

/// The learned windows of a home directory.
#[derive(Clone, Debug)]
pub struct LearnedWindows(EndpointTable<LearnedWindow>);

impl LearnedWindows {
    /// Uses the file of a home directory; it need not exist.
    pub fn in_home(home: &Path) -> LearnedWindows {
        LearnedWindows(EndpointTable::new(home.join(FILE)))
    }

    /// Window of a model at an endpoint, if one was learned. An unreadable file counts as empty.
    pub fn find(&self, endpoint: &str, model: &str) -> Option<LearnedWindow> {
        self.0.find(endpoint, model).filter(|learned| learned.window > 0)
    }

    /// Stores a window; returns whether that is news.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn learn(&self, endpoint: &str, model: &str, window: LearnedWindow) -> std::io::Result<bool> {
        self.0.change(endpoint, model, |known| *known = window)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn windows_are_kept_by_endpoint_and_model() {
        let home = tempfile::tempdir().unwrap();
        let windows = LearnedWindows::in_home(home.path());
        assert_eq!(windows.find("http://a/v1", "m"), None);
        assert!(windows.learn("http://a/v1", "m", LearnedWindow::stated(32_768)).unwrap());
        assert!(!windows.learn("http://a/v1", "m", LearnedWindow::stated(32_768)).unwrap());
        assert!(windows.learn("http://b/v1", "m", LearnedWindow::stated(8_192)).unwrap());
        assert_eq!(
            (windows.find("http://a/v1", "m"), windows.find("http://b/v1", "m")),
            (Some(LearnedWindow::stated(32_768)), Some(LearnedWindow::stated(8_192)))
        );
        assert_eq!(windows.find("http://a/v1", "other"), None);
        let mode = fs::metadata(home.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_damaged_file_counts_as_empty_and_is_replaced() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(FILE), "{\"http://a\": 7").unwrap();
        let windows = LearnedWindows::in_home(home.path());
        assert_eq!(windows.find("http://a", "m"), None);
        assert!(windows.learn("http://a", "m", LearnedWindow::stated(9_000)).unwrap());
        assert_eq!(windows.find("http://a", "m"), Some(LearnedWindow::stated(9_000)));
    }

    #[test]
    fn a_guessed_window_keeps_what_was_accepted_and_refused() {
        let home = tempfile::tempdir().unwrap();
        let windows = LearnedWindows::in_home(home.path());
        let guessed = LearnedWindow { window: 12_000, accepted: Some(2_000), refused: Some(16_000) };
        assert!(windows.learn("http://a", "m", guessed).unwrap());
        assert_eq!(windows.find("http://a", "m"), Some(guessed));
        // Files of earlier versions have numbers only.
        fs::write(home.path().join(FILE), r#"{"http://a":{"m":8192}}"#).unwrap();
        assert_eq!(windows.find("http://a", "m"), Some(LearnedWindow::stated(8_192)));
    }
}
