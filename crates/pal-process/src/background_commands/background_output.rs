//! New output of a background command since the last read.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::CancelToken;

use super::{BackgroundCommand, BackgroundCommands, BackgroundState};

/// New output of a background command since the last read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BackgroundOutput {
    /// Snapshot of the command.
    pub task: BackgroundCommand,
    /// Newest part of the new output.
    pub output: Vec<u8>,
    /// New bytes before it, which are only in the file.
    pub left_out: u64,
    /// Error if the file could not be read.
    pub failed: Option<String>,
}

/// Interval between checks for new output.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

impl BackgroundCommands {
    /// Waits until a command has ended or printed something new, the time is up, or `cancel` is triggered.
    pub fn wait_for_output(&self, id: &str, time: Duration, cancel: &CancelToken) {
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let task = self.wait(id, left.min(POLL_INTERVAL), cancel);
            let is_running = task.is_some_and(|task| task.state == BackgroundState::Running);
            if !is_running || left.is_zero() || cancel.is_cancelled() || self.has_new_output(id) {
                return;
            }
        }
    }

    fn has_new_output(&self, id: &str) -> bool {
        let tasks = self.shared.tasks();
        let known = tasks.values().find(|known| known.task.id == id);
        let bytes = |file: &Path| std::fs::metadata(file).map_or(0, |file| file.len());
        known.is_some_and(|known| bytes(&known.task.file) > known.read)
    }

    /// Reads the output since the last read, at most the newest `bytes_max` bytes.
    pub fn read_new_output(&self, id: &str, bytes_max: usize) -> Option<BackgroundOutput> {
        let mut tasks = self.shared.tasks();
        let known = tasks.values_mut().find(|known| known.task.id == id)?;
        let is_running = known.task.state == BackgroundState::Running;
        known.is_told = known.is_told || !is_running;
        let mut news = BackgroundOutput { task: known.now(), output: Vec::new(), left_out: 0, failed: None };
        match read_since(&known.task.file, known.read, bytes_max) {
            Ok((output, left_out)) => (news.output, news.left_out) = (output, left_out),
            Err(error) => news.failed = Some(error.to_string()),
        }
        if is_running {
            // The rest of a character comes with the next read.
            news.output.truncate(whole_characters(&news.output));
        }
        known.read += news.left_out + news.output.len() as u64;
        Some(news)
    }
}

fn read_since(file: &Path, from: u64, bytes_max: usize) -> std::io::Result<(Vec<u8>, u64)> {
    let file = File::open(file)?;
    let new = file.metadata()?.len().saturating_sub(from);
    let left_out = new.saturating_sub(bytes_max as u64);
    let mut output = vec![0; usize::try_from(new - left_out).unwrap_or(bytes_max)];
    let mut read = 0;
    while read < output.len() {
        match file.read_at(&mut output[read..], from + left_out + read as u64)? {
            0 => break,
            count => read += count,
        }
    }
    output.truncate(read);
    Ok((output, left_out))
}

/// Length without an incomplete character at the end.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        // Other invalid UTF-8 is replaced in place.
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_characters_wait_for_the_next_read() {
        assert_eq!(whole_characters("naïve".as_bytes()), 6);
        assert_eq!(whole_characters(&"naï".as_bytes()[..3]), 2);
        assert_eq!(whole_characters(b"a\xffb"), 3);
    }
}
