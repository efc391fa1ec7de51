//! Prompts of a run: one from the command line, or one a line of `--input-format stream-json`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pal_model::{Content, SharedText};
use serde_json::json;

use super::control_requests::RequestHandler;
use super::stream_input::{InputLine, InputMessage};

/// The next thing to do in a run.
pub(super) enum RunStep {
    /// Work on a prompt; numbers count from 1.
    Prompt { number: u64, content: Content },
    /// Report an unreadable input line.
    BadLine { number: u64, why: String },
    /// Continue with another model; none for that of the settings.
    SetModel(Option<String>),
    /// End the run.
    End,
}

/// Progress of a run through its prompts, shared with the threads that read input and signals.
#[derive(Default)]
pub(super) struct PromptProgress {
    is_working: AtomicBool,
    /// Last prompt that was read before an interrupt: it and all before it are given up.
    given_up: AtomicU64,
}

impl PromptProgress {
    pub(super) fn set_working(&self, is_working: bool) {
        self.is_working.store(is_working, Ordering::SeqCst);
    }

    pub(super) fn is_given_up(&self, number: u64) -> bool {
        number <= self.given_up.load(Ordering::SeqCst)
    }

    /// Gives up all prompts, those to come included.
    pub(super) fn give_up_all(&self) {
        self.given_up.store(u64::MAX, Ordering::SeqCst);
    }
}

/// Reads the lines of standard input on a thread of its own. Prompts are sent as steps; steering messages, interrupts and
/// requests of a driving program are handled at once.
pub(super) fn read_stdin(
    lines: impl Iterator<Item = InputLine> + Send + 'static,
    progress: &Arc<PromptProgress>,
    requests: RequestHandler,
) {
    let progress = Arc::clone(progress);
    std::thread::spawn(move || {
        let mut count = 0;
        for line in lines {
            if let Some(step) = step_of(line, &mut count, &progress, &requests)
                && requests.steps.send(step).is_err()
            {
                return;
            }
        }
        requests.control.close();
        let _ = requests.steps.send(RunStep::End);
    });
}

/// Handles a line; returns the step that is left to the run.
fn step_of(
    line: InputLine,
    count: &mut u64,
    progress: &PromptProgress,
    requests: &RequestHandler,
) -> Option<RunStep> {
    let interrupt = |given_up: u64| {
        // Prompts that were read and wait are interrupted, too.
        progress.given_up.store(given_up, Ordering::SeqCst);
        requests.control.interrupt();
        requests.live.interrupt();
    };
    match line.message {
        Ok(InputMessage::Interrupt) => {
            interrupt(*count);
            None
        }
        Ok(InputMessage::Request { id, subtype, .. }) if subtype == "interrupt" => {
            interrupt(*count);
            requests.control.respond(&id, Ok(json!({})));
            None
        }
        Ok(InputMessage::Request { id, subtype, request }) => {
            requests.handle(&id, &subtype, &request);
            None
        }
        Ok(InputMessage::Reply(response)) => {
            requests.control.resolve(&response);
            None
        }
        Ok(InputMessage::Ignored) => None,
        Ok(InputMessage::Prompt { content, is_steering }) => {
            let content = Content::parse(&SharedText::from(content));
            if is_steering
                && progress.is_working.load(Ordering::SeqCst)
                && let Some(handle) = requests.live.handle()
            {
                handle.steer(content);
                return None;
            }
            *count += 1;
            Some(RunStep::Prompt { number: *count, content })
        }
        Err(why) => Some(RunStep::BadLine { number: line.number, why }),
    }
}
