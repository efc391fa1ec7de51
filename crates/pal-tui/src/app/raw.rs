//! The state of the terminal: ours while we talk, as it was before whenever we do not.

use std::io;
use std::time::{Duration, Instant};

use crossterm::{event, execute, terminal};

use super::App;

/// How soon the system tells that we go on.
const TOLD_WITHIN: Duration = Duration::from_secs(1);

/// A terminal that gives us every key; as it was before, when this is gone.
pub(super) struct Raw;

impl Raw {
    pub(super) fn enter() -> io::Result<Raw> {
        begin()?;
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            restore();
            usual(info);
        }));
        Ok(Raw)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        restore();
    }
}

fn begin() -> io::Result<()> {
    terminal::enable_raw_mode()?;
    execute!(io::stdout(), event::EnableBracketedPaste)
}

/// Nothing can be done where the terminal is gone.
fn restore() {
    let _ = execute!(io::stdout(), event::DisableBracketedPaste);
    let _ = terminal::disable_raw_mode();
}

impl App {
    /// Gives the terminal back to the shell until that lets us go on.
    pub(super) fn suspend(&mut self) {
        // What goes wrong with the terminal is seen at the next frame.
        let _ = self.screen.leave();
        restore();
        (self.suspend)();
        self.take_over();
        self.taken_over = Some(Instant::now());
    }

    /// We are told that we go on after we were stopped. Who stopped us with a key knows already.
    pub(super) fn continued(&mut self) {
        if self.taken_over.take().is_none_or(|at| at.elapsed() > TOLD_WITHIN) {
            self.take_over();
        }
    }

    /// Whoever had the terminal meanwhile has left it as they wanted it.
    fn take_over(&mut self) {
        restore();
        let _ = begin();
        self.screen.forget();
    }
}
