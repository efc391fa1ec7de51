//! Prompts of a run: one from the command line, or one a line of `--input-format stream-json`.

use std::sync::Arc;

use pal_model::{Content, SharedText};
use serde_json::json;

use super::control_requests::RequestHandler;
use super::run_step::{PromptProgress, RunStep};
use super::stream_input::{InputLine, InputMessage};

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
        progress.give_up(given_up);
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
                && progress.is_working()
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
