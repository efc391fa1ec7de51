//! Windows that providers stated when they refused a request as too long, by endpoint and model.
//!
//! A server may have a smaller window than the model's card says. The next session at the same endpoint starts with what an
//! earlier one found out. The file is kept in the home directory; deleting it forgets everything.

use std::path::Path;

use crate::endpoint_table::EndpointTable;

/// Name of the file in the home directory.
const FILE: &str = "learned-windows.json";

/// The learned windows of a home directory, in tokens.
#[derive(Clone, Debug)]
pub struct LearnedWindows(EndpointTable<u64>);

impl LearnedWindows {
    /// Uses the file of a home directory; it need not exist.
    pub fn in_home(home: &Path) -> LearnedWindows {
        LearnedWindows(EndpointTable::new(home.join(FILE)))
    }

    /// Window of a model at an endpoint, if a provider stated one. An unreadable file counts as empty.
    pub fn find(&self, endpoint: &str, model: &str) -> Option<u64> {
        self.0.find(endpoint, model).filter(|window| *window > 0)
    }

    /// Stores a window; returns whether that is news.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn learn(&self, endpoint: &str, model: &str, window: u64) -> std::io::Result<bool> {
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
        assert!(windows.learn("http://a/v1", "m", 32_768).unwrap());
        assert!(!windows.learn("http://a/v1", "m", 32_768).unwrap());
        assert!(windows.learn("http://b/v1", "m", 8_192).unwrap());
        assert_eq!(
            (windows.find("http://a/v1", "m"), windows.find("http://b/v1", "m")),
            (Some(32_768), Some(8_192))
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
        assert!(windows.learn("http://a", "m", 9_000).unwrap());
        assert_eq!(windows.find("http://a", "m"), Some(9_000));
    }
}
