//! Disk limit on spilled results and command outputs, enforced while a session runs.

use std::path::{Path, PathBuf};

use pal_model::Timestamp;
use pal_store::{
    OutputFile, choose_outputs_to_remove, list_outputs, list_session_outputs, remove_outputs, total_bytes,
};

/// Growth of a session's own outputs, as 1/N of the limit, that triggers a new scan.
const GROWTH_SHARE: u64 = 32;

/// Enforces the limit over all sessions. A full scan is slow, so it happens at the start and when the session's
/// own outputs have grown.
pub(crate) struct OutputLimit {
    home: PathBuf,
    session: PathBuf,
    bytes_max: u64,
    /// Size of the session's own outputs at the last scan; none before the first.
    own_bytes: Option<u64>,
}

impl OutputLimit {
    pub(crate) fn new(home: &Path, session: &Path, bytes_max: u64) -> OutputLimit {
        OutputLimit { home: home.to_owned(), session: session.to_owned(), bytes_max, own_bytes: None }
    }

    /// Removes the oldest outputs above the limit, except those `in_use`. Returns a line for the user if any
    /// were removed.
    pub(crate) fn enforce(&mut self, in_use: &[PathBuf], now: Timestamp) -> Option<String> {
        let own_bytes = total_bytes(&list_session_outputs(&self.session));
        if self.own_bytes.is_some_and(|known| own_bytes < known + self.bytes_max / GROWTH_SHARE) {
            return None;
        }
        let mut files = list_outputs(&self.home);
        let is_removable = |file: &OutputFile| !in_use.contains(&file.path);
        let kept: u64 = files.iter().filter(|file| !is_removable(file)).map(|file| file.bytes).sum();
        files.retain(is_removable);
        let chosen = choose_outputs_to_remove(&files, self.bytes_max.saturating_sub(kept));
        let cleanup = remove_outputs(chosen, Some(&self.session), now);
        for (file, error) in &cleanup.failed {
            tracing::warn!(path = %file.path.display(), %error, "an output cannot be removed");
        }
        self.own_bytes = Some(total_bytes(&list_session_outputs(&self.session)));
        (!cleanup.removed.is_empty()).then(|| {
            format!(
                "disk limit: removed the {} oldest outputs of commands and spilled results ({} MB); max_outputs_mb sets the \
                 limit, `pal sessions` shows sizes",
                cleanup.removed.len(),
                cleanup.freed().div_ceil(1 << 20)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, bytes: usize) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, vec![b'x'; bytes]).unwrap();
    }

    #[test]
    fn outputs_stay_within_the_limit_while_a_session_runs() {
        let home = tempfile::tempdir().unwrap();
        let sessions = home.path().join("projects/p/sessions");
        let (own, other) = (sessions.join("own"), sessions.join("other"));
        write(&other.join("outputs/1.txt"), 600_000);
        let mut limit = OutputLimit::new(home.path(), &own, 1_000_000);
        assert_eq!(limit.enforce(&[], Timestamp::default()), None, "there is room");
        let running = own.join("background/task_1.txt");
        write(&running, 300_000);
        write(&own.join("outputs/2.txt"), 300_000);
        let told = limit.enforce(std::slice::from_ref(&running), Timestamp::default()).unwrap();
        assert!(told.contains("the 1 oldest") && told.contains("max_outputs_mb"), "{told}");
        assert_eq!(total_bytes(&list_outputs(home.path())), 600_000);
        write(&own.join("outputs/3.txt"), 900_000);
        limit.enforce(std::slice::from_ref(&running), Timestamp::default()).unwrap();
        let left: Vec<PathBuf> = list_outputs(home.path()).into_iter().map(|file| file.path).collect();
        assert_eq!(left, [running], "what still runs stays, whatever else has to go");
        let text = std::fs::read_to_string(own.join("outputs/3.txt")).unwrap();
        assert!(text.contains("disk limit") && text.contains("Run the call again"), "{text}");
    }
}
