//! Progress on standard error: countdowns between retries, elapsed time of summaries, bytes read.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pal_model::text::group_digits;
use pal_provider::RetryWait;
use pal_report::{DEFAULT_COLUMNS, clip_line, sanitize};

/// Countdown to the next attempt: redrawn on a terminal, one line per wait elsewhere.
#[derive(Default)]
pub(crate) struct Countdown {
    /// Number of the next attempt.
    attempt: Option<u32>,
}

impl Countdown {
    pub(crate) fn show(&mut self, wait: &RetryWait) {
        self.show_wait(&wait.failure.message, wait.attempt, wait.max_attempts, wait.remaining);
    }

    /// Shows why an attempt failed, and the time until the next one.
    pub(crate) fn show_wait(&mut self, why: &str, attempt: u32, of: u32, left: Duration) {
        let seconds = left.as_secs_f64().ceil();
        let line = format!("{}: attempt {attempt} of {of} in {seconds} s", sanitize(why));
        if std::io::stderr().is_terminal() {
            // A line that wraps could not be redrawn.
            eprint!("\r\x1b[2K{}", clip_line(&line, terminal_columns().saturating_sub(1)));
        } else if self.attempt != Some(attempt) {
            eprintln!("pal: {line}");
        }
        self.attempt = Some(attempt);
    }

    /// Clears the countdown.
    pub(crate) fn end(&mut self) {
        if self.attempt.take().is_some() && std::io::stderr().is_terminal() {
            eprint!("\r\x1b[2K");
        }
    }
}

/// Columns of the terminal that standard error goes to.
fn terminal_columns() -> usize {
    let size = terminal_size::terminal_size_of(std::io::stderr());
    size.map_or(DEFAULT_COLUMNS, |(columns, _)| usize::from(columns.0).max(20))
}

/// Interval of progress lines where standard error is not a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(15);

/// Elapsed time of an operation: each second on a terminal, every [`LINE_INTERVAL`] elsewhere.
pub(crate) struct Elapsed {
    what: String,
    is_terminal: bool,
    reported_at: Duration,
}

impl Elapsed {
    pub(crate) fn new(what: String) -> Elapsed {
        let elapsed =
            Elapsed { what, is_terminal: std::io::stderr().is_terminal(), reported_at: Duration::ZERO };
        if !elapsed.is_terminal {
            eprintln!("pal: {}", elapsed.what);
        }
        elapsed
    }

    /// Shows the elapsed time and the characters received, if a line is due.
    pub(crate) fn show(&mut self, elapsed: Duration, characters: usize) {
        if let Some(line) = self.line(elapsed, characters) {
            match self.is_terminal {
                true => eprint!("\r\x1b[2K{}", clip_line(&line, DEFAULT_COLUMNS - 1)),
                false => eprintln!("pal: {line}"),
            }
        }
    }

    fn line(&mut self, elapsed: Duration, characters: usize) -> Option<String> {
        if !self.is_terminal && elapsed < self.reported_at + LINE_INTERVAL {
            return None;
        }
        self.reported_at = elapsed;
        let came = match characters {
            0 => String::from("nothing yet"),
            _ => format!("{} characters so far", group_digits(characters as u64)),
        };
        Some(format!("{}: {} s, {came}", self.what, elapsed.as_secs()))
    }

    /// Clears the line.
    pub(crate) fn end(self) {
        if self.is_terminal {
            eprint!("\r\x1b[2K");
        }
    }
}

/// Operations that take longer show progress.
const PROGRESS_DELAY: Duration = Duration::from_secs(1);

/// Bytes read of a long input, shown after [`PROGRESS_DELAY`].
pub(crate) struct BytesProgress {
    what: &'static str,
    is_terminal: bool,
    begun: Instant,
    reported_at: Option<Instant>,
}

impl BytesProgress {
    pub(crate) fn new(what: &'static str) -> BytesProgress {
        let is_terminal = std::io::stderr().is_terminal();
        BytesProgress { what, is_terminal, begun: Instant::now(), reported_at: None }
    }

    /// Shows the bytes read, if a line is due. Returns true, which continues the operation.
    pub(crate) fn show(&mut self, done: u64, total: u64) -> bool {
        let every = if self.is_terminal { PROGRESS_DELAY / 5 } else { LINE_INTERVAL };
        let is_time = self.reported_at.is_none_or(|reported_at| reported_at.elapsed() >= every);
        if self.begun.elapsed() >= PROGRESS_DELAY && is_time {
            self.reported_at = Some(Instant::now());
            let line = format!("{}: {} of {} MB", self.what, megabytes(done), megabytes(total));
            match self.is_terminal {
                true => eprint!("\r\x1b[2K{line} …"),
                false => eprintln!("pal: {line}"),
            }
        }
        true
    }

    /// Clears the line.
    pub(crate) fn end(&self) {
        if self.is_terminal && self.reported_at.is_some() {
            eprint!("\r\x1b[2K");
        }
    }
}

/// A line about a log that is being read, shown after [`PROGRESS_DELAY`] and cleared on drop.
pub(crate) struct ReadingLog {
    ended: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ReadingLog {
    pub(crate) fn new(log: &Path) -> ReadingLog {
        let bytes = log.metadata().map_or(0, |metadata| metadata.len());
        let (ended, is_ended) = channel();
        let tell = move || {
            if is_ended.recv_timeout(PROGRESS_DELAY) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let line = format!("reading a log of {} MB", megabytes(bytes));
            if !std::io::stderr().is_terminal() {
                eprintln!("pal: {line}");
                return;
            }
            eprint!("\r\x1b[2K{line} …");
            let _ = is_ended.recv();
            eprint!("\r\x1b[2K");
        };
        let thread = std::thread::Builder::new().name(String::from("progress")).spawn(tell).ok();
        ReadingLog { ended: Some(ended), thread }
    }
}

impl Drop for ReadingLog {
    fn drop(&mut self) {
        self.ended.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds with a line, when asked each second for two minutes.
    fn seconds_with_a_line(is_terminal: bool) -> Vec<u64> {
        let mut elapsed = Elapsed { what: String::from("writing"), is_terminal, reported_at: Duration::ZERO };
        (1..=120).filter(|&second| elapsed.line(Duration::from_secs(second), 7).is_some()).collect()
    }

    #[test]
    fn a_line_is_shown_at_least_every_half_minute() {
        let gaps = |reported_at: Vec<u64>| {
            let ends: Vec<u64> = [0].into_iter().chain(reported_at).collect();
            ends.windows(2).map(|pair| pair[1] - pair[0]).max()
        };
        assert_eq!(gaps(seconds_with_a_line(true)), Some(1), "each second on a terminal");
        assert!(gaps(seconds_with_a_line(false)) <= Some(30) && seconds_with_a_line(false).len() < 12);
        let mut elapsed =
            Elapsed { what: String::from("writing"), is_terminal: true, reported_at: Duration::ZERO };
        assert_eq!(
            elapsed.line(Duration::from_secs(61), 4_200).as_deref(),
            Some("writing: 61 s, 4,200 characters so far")
        );
    }
}
