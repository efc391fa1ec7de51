//! The user's command for the status line: it runs on a thread of its own, at most a few times a second.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use ratatui_core::text::Line;

use crate::ansi;
use crate::ui_events::StatusCommandFn;

/// Minimum time between two runs.
const INTERVAL: Duration = Duration::from_millis(300);

/// Maximum lines of its output that are shown.
const LINES_MAX: usize = 2;

/// The command, its next input and its last output.
pub(crate) struct StatusCommand {
    shared: Arc<(Mutex<CommandState>, Condvar)>,
    /// The last input that was handed over.
    last_input: String,
}

#[derive(Default)]
struct CommandState {
    input: Option<String>,
    output: String,
    is_closed: bool,
}

impl StatusCommand {
    /// Starts the thread of the command. `on_output` is called when the output changes.
    pub(crate) fn start(command: StatusCommandFn, on_output: impl Fn() + Send + 'static) -> StatusCommand {
        let shared: Arc<(Mutex<CommandState>, Condvar)> = Arc::default();
        let worker = Arc::clone(&shared);
        std::thread::spawn(move || {
            while let Some(input) = next_input(&worker) {
                let output = command(&input).unwrap_or_default();
                let is_new = {
                    let mut state = worker.0.lock().unwrap_or_else(PoisonError::into_inner);
                    std::mem::replace(&mut state.output, output.clone()) != output
                };
                if is_new {
                    on_output();
                }
                std::thread::sleep(INTERVAL);
            }
        });
        StatusCommand { shared, last_input: String::new() }
    }

    /// Runs the command on an input, unless it is the last one.
    pub(crate) fn update(&mut self, input: String) {
        if input == self.last_input {
            return;
        }
        let (state, bell) = &*self.shared;
        state.lock().unwrap_or_else(PoisonError::into_inner).input = Some(input.clone());
        bell.notify_one();
        self.last_input = input;
    }

    /// The last output, with its colors.
    pub(crate) fn lines(&self) -> Vec<Line<'static>> {
        let output = self.shared.0.lock().unwrap_or_else(PoisonError::into_inner).output.clone();
        ansi::lines(output.trim_end()).into_iter().take(LINES_MAX).collect()
    }
}

impl Drop for StatusCommand {
    fn drop(&mut self) {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner).is_closed = true;
        self.shared.1.notify_one();
    }
}

/// Waits for the next input; `None` when the terminal ends.
fn next_input(shared: &(Mutex<CommandState>, Condvar)) -> Option<String> {
    let guard = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
    let is_idle = |state: &mut CommandState| state.input.is_none() && !state.is_closed;
    let mut state = shared.1.wait_while(guard, is_idle).unwrap_or_else(PoisonError::into_inner);
    if state.is_closed { None } else { state.input.take() }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Instant;

    use super::*;

    #[test]
    fn the_output_of_the_last_input_is_shown() {
        let (sender, receiver) = mpsc::channel();
        let command: StatusCommandFn = Arc::new(|input| Some(format!("\u{1b}[32m<{input}>\u{1b}[0m\nb\nc")));
        let mut status = StatusCommand::start(command, move || {
            let _ = sender.send(());
        });
        assert_eq!(status.lines(), []);
        for input in ["one", "one", "two"] {
            status.update(input.to_owned());
        }
        let until = Instant::now() + Duration::from_secs(20);
        while status.lines().first().is_none_or(|line| line.to_string() != "<two>") {
            assert!(Instant::now() < until, "{:?}", status.lines());
            let _ = receiver.recv_timeout(Duration::from_millis(50));
        }
        assert_eq!(status.lines().len(), LINES_MAX);
    }
}
