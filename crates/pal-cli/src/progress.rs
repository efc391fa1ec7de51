//! What a waiting person is told on standard error: a countdown between attempts, the time that a summary takes, how far long
//! files are read.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pal_provider::Waiting;

use crate::colour::{COLUMNS, clipped};
use crate::table::{harmless, thousands};

/// A countdown on a terminal; elsewhere one line a wait.
#[derive(Default)]
pub(crate) struct Countdown {
    /// The attempt that is being waited for.
    attempt: Option<u32>,
}

impl Countdown {
    pub(crate) fn show(&mut self, wait: &Waiting) {
        self.tell(&wait.failure.message, wait.attempt, wait.of, wait.left);
    }

    /// Tells why an attempt failed, and how long it takes until the next one.
    pub(crate) fn tell(&mut self, why: &str, attempt: u32, of: u32, left: Duration) {
        let seconds = left.as_secs_f64().ceil();
        let line = format!("{}: attempt {attempt} of {of} in {seconds} s", harmless(why));
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[2K{line} ");
        } else if self.attempt != Some(attempt) {
            eprintln!("pal: {line}");
        }
        self.attempt = Some(attempt);
    }

    /// Takes the countdown off the terminal.
    pub(crate) fn end(&mut self) {
        if self.attempt.take().is_some() && std::io::stderr().is_terminal() {
            eprint!("\r\x1b[2K");
        }
    }
}

/// How often somebody who does not look at a terminal is told that work goes on.
const TOLD_EVERY: Duration = Duration::from_secs(15);

/// The time that something takes: each second on a terminal, elsewhere a line now and then.
pub(crate) struct Elapsed {
    what: String,
    is_terminal: bool,
    told: Duration,
}

impl Elapsed {
    pub(crate) fn new(what: String) -> Elapsed {
        let elapsed = Elapsed { what, is_terminal: std::io::stderr().is_terminal(), told: Duration::ZERO };
        if !elapsed.is_terminal {
            eprintln!("pal: {}", elapsed.what);
        }
        elapsed
    }

    /// Tells how long it took so far and how much has come, if it is time to.
    pub(crate) fn show(&mut self, elapsed: Duration, characters: usize) {
        if let Some(line) = self.line(elapsed, characters) {
            match self.is_terminal {
                true => eprint!("\r\x1b[2K{}", clipped(&line, COLUMNS - 1)),
                false => eprintln!("pal: {line}"),
            }
        }
    }

    fn line(&mut self, elapsed: Duration, characters: usize) -> Option<String> {
        if !self.is_terminal && elapsed < self.told + TOLD_EVERY {
            return None;
        }
        self.told = elapsed;
        let came = match characters {
            0 => String::from("nothing yet"),
            _ => format!("{} characters so far", thousands(characters as u64)),
        };
        Some(format!("{}: {} s, {came}", self.what, elapsed.as_secs()))
    }

    /// Takes the line off the terminal.
    pub(crate) fn end(self) {
        if self.is_terminal {
            eprint!("\r\x1b[2K");
        }
    }
}

/// After this time, a waiting person is told what the program is doing.
const PATIENCE: Duration = Duration::from_secs(1);

/// How much of something long was read, told once it takes more than a second.
pub(crate) struct BytesProgress {
    what: &'static str,
    is_terminal: bool,
    begun: Instant,
    told: Option<Instant>,
}

impl BytesProgress {
    pub(crate) fn new(what: &'static str) -> BytesProgress {
        let is_terminal = std::io::stderr().is_terminal();
        BytesProgress { what, is_terminal, begun: Instant::now(), told: None }
    }

    /// Tells how far it is, if it is time to. Always true: who does not want to wait interrupts, and nothing is lost.
    pub(crate) fn tell(&mut self, done: u64, total: u64) -> bool {
        let every = if self.is_terminal { PATIENCE / 5 } else { TOLD_EVERY };
        let is_time = self.told.is_none_or(|told| told.elapsed() >= every);
        if self.begun.elapsed() >= PATIENCE && is_time {
            self.told = Some(Instant::now());
            let line = format!("{}: {} of {} MB", self.what, megabytes(done), megabytes(total));
            match self.is_terminal {
                true => eprint!("\r\x1b[2K{line} …"),
                false => eprintln!("pal: {line}"),
            }
        }
        true
    }

    /// Takes the line off the terminal.
    pub(crate) fn end(&self) {
        if self.is_terminal && self.told.is_some() {
            eprint!("\r\x1b[2K");
        }
    }
}

/// A line about a log that is being read, told once it takes more than a second and taken back with this value.
pub(crate) struct ReadingLog {
    ended: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ReadingLog {
    pub(crate) fn new(log: &Path) -> ReadingLog {
        let bytes = log.metadata().map_or(0, |metadata| metadata.len());
        let (ended, is_ended) = channel();
        let tell = move || {
            if is_ended.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
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

    /// Seconds at which something is told, when asked every second of two minutes.
    fn told(is_terminal: bool) -> Vec<u64> {
        let mut elapsed = Elapsed { what: String::from("writing"), is_terminal, told: Duration::ZERO };
        (1..=120).filter(|&second| elapsed.line(Duration::from_secs(second), 7).is_some()).collect()
    }

    #[test]
    fn nobody_waits_half_a_minute_without_a_word() {
        let gaps = |told: Vec<u64>| {
            let ends: Vec<u64> = [0].into_iter().chain(told).collect();
            ends.windows(2).map(|pair| pair[1] - pair[0]).max()
        };
        assert_eq!(gaps(told(true)), Some(1), "each second on a terminal");
        assert!(gaps(told(false)) <= Some(30) && told(false).len() < 12);
        let mut elapsed = Elapsed { what: String::from("writing"), is_terminal: true, told: Duration::ZERO };
        assert_eq!(
            elapsed.line(Duration::from_secs(61), 4_200).as_deref(),
            Some("writing: 61 s, 4 200 characters so far")
        );
    }
}
