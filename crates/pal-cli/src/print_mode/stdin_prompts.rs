//! Prompts of a run: one from the command line, or one a line of `--input-format stream-json`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};

use pal_agent::AgentHandle;
use pal_model::{Content, SharedText};

use super::stream_input::{InputMessage, read_messages};

/// The next thing to do in a run.
pub(super) enum RunStep {
    /// Work on a prompt; numbers count from 1.
    Prompt { number: u64, content: Content },
    /// Report an unreadable input line.
    BadLine { number: u64, why: String },
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

/// Reads messages from standard input on a thread of its own. Prompts are sent as steps; steering messages and
/// interrupts go straight to the agent.
pub(super) fn read_stdin(handle: AgentHandle, progress: &Arc<PromptProgress>, steps: mpsc::Sender<RunStep>) {
    let progress = Arc::clone(progress);
    std::thread::spawn(move || {
        let mut count = 0;
        for line in read_messages(std::io::BufReader::new(std::io::stdin())) {
            let step = match line.message {
                Ok(InputMessage::Interrupt) => {
                    // Prompts that were read and wait are interrupted, too.
                    progress.given_up.store(count, Ordering::SeqCst);
                    handle.interrupt();
                    continue;
                }
                Ok(InputMessage::Prompt { content, is_steering }) => {
                    let content = Content::parse(&SharedText::from(content));
                    if is_steering && progress.is_working.load(Ordering::SeqCst) {
                        handle.steer(content);
                        continue;
                    }
                    count += 1;
                    RunStep::Prompt { number: count, content }
                }
                Err(why) => RunStep::BadLine { number: line.number, why },
            };
            if steps.send(step).is_err() {
                return;
            }
        }
        let _ = steps.send(RunStep::End);
    });
}
