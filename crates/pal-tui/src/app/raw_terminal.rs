//! Raw mode of the terminal, and suspension.

use std::io;
use std::time::{Duration, Instant};

use crossterm::{event, execute, terminal};

use super::App;

/// Maximum delay between a suspension's end and the event that reports it.
const TOLD_WITHIN: Duration = Duration::from_secs(1);

/// Guard of raw mode; restores the terminal on drop and on panic.
pub(super) struct RawTerminal;

impl RawTerminal {
    pub(super) fn enter() -> io::Result<RawTerminal> {
        begin()?;
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            restore();
            usual(info);
        }));
        Ok(RawTerminal)
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        restore();
    }
}

fn begin() -> io::Result<()> {
    terminal::enable_raw_mode()?;
    execute!(io::stdout(), event::EnableBracketedPaste)
}

/// Leaves raw mode; ignores errors, since the terminal may be gone.
fn restore() {
    let _ = execute!(io::stdout(), event::DisableBracketedPaste);
    let _ = terminal::disable_raw_mode();
}

impl App {
    /// Gives the terminal back to the shell until the shell continues the program.
    pub(super) fn suspend(&mut self) {
        // The next frame reports terminal errors.
        let _ = self.display.screen.leave();
        restore();
        (self.programs.suspend)();
        self.take_over();
        self.programs.taken_over = Some(Instant::now());
    }

    /// Lets the user edit a text in their editor; shows why that is not possible.
    pub(super) fn edit_text(&mut self, text: &str) -> Option<String> {
        // The next frame reports terminal errors.
        let _ = self.display.screen.leave();
        self.programs.inbox.stop_reading(self.programs.wake_reader);
        restore();
        let edited = (self.programs.edit_text)(text);
        self.take_over();
        self.programs.inbox.resume_reading();
        match edited {
            Ok(text) => Some(text),
            Err(why) => {
                self.display.transcript.error(&why);
                None
            }
        }
    }

    /// Handles the continue signal; `suspend` has already handled a stop by key.
    pub(super) fn continued(&mut self) {
        if self.programs.taken_over.take().is_none_or(|at| at.elapsed() > TOLD_WITHIN) {
            self.take_over();
        }
    }

    /// Enters raw mode again: another program may have changed the terminal.
    fn take_over(&mut self) {
        restore();
        let _ = begin();
        self.display.screen.forget();
    }
}
