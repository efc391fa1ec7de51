//! What a command in the background printed since somebody last looked.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::Cancel;

use super::{Background, State, Task};

/// What a command in the background printed since somebody last looked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct News {
    /// The command as it is.
    pub task: Task,
    /// The end of what is new.
    pub output: Vec<u8>,
    /// Bytes before it that are new as well; they stand in the file.
    pub left_out: u64,
    /// Why the file could not be read.
    pub failed: Option<String>,
}

/// How often a file is looked at that somebody waits for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

impl Background {
    /// Waits until a command has ended or printed something new, the time is over, or a wish to stop comes.
    pub fn wait_for_news(&self, id: &str, time: Duration, cancel: &Cancel) {
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let task = self.wait(id, left.min(LOOK_EVERY), cancel);
            let is_running = task.is_some_and(|task| task.state == State::Running);
            if !is_running || left.is_zero() || cancel.is_cancelled() || self.has_news(id) {
                return;
            }
        }
    }

    fn has_news(&self, id: &str) -> bool {
        let tasks = self.shared.tasks();
        let known = tasks.values().find(|known| known.task.id == id);
        let bytes = |file: &Path| std::fs::metadata(file).map_or(0, |file| file.len());
        known.is_some_and(|known| bytes(&known.task.file) > known.read)
    }

    /// What a command printed since the last look: no more than `bytes_max`, the newest of it.
    pub fn news(&self, id: &str, bytes_max: usize) -> Option<News> {
        let mut tasks = self.shared.tasks();
        let known = tasks.values_mut().find(|known| known.task.id == id)?;
        let is_running = known.task.state == State::Running;
        known.is_told = known.is_told || !is_running;
        let mut news = News { task: known.now(), output: Vec::new(), left_out: 0, failed: None };
        match read_since(&known.task.file, known.read, bytes_max) {
            Ok((output, left_out)) => (news.output, news.left_out) = (output, left_out),
            Err(error) => news.failed = Some(error.to_string()),
        }
        if is_running {
            // The rest of a character comes with the next look.
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

/// Bytes up to a character at the end that has only begun.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        // Something else is no UTF-8 either: it is replaced where it stands.
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_that_has_only_begun_waits() {
        assert_eq!(whole_characters("naïve".as_bytes()), 6);
        assert_eq!(whole_characters(&"naï".as_bytes()[..3]), 2);
        assert_eq!(whole_characters(b"a\xffb"), 3);
    }
}
