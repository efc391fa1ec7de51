//! The run of an agent as a pure state machine: it receives events and returns instructions. It has no access to
//! clock, files or network, and never blocks.
//!
//! ```
//! use pal_model::Content;
//! use pal_run::{Run, RunInput, RunOutput, RunSettings};
//!
//! let mut run = Run::new(RunSettings::plain(8_000, 64_000));
//! run.handle(RunInput::Prompt(Content::from_text("What is 6 × 7?")));
//! assert!(matches!(run.poll(), Some(RunOutput::CheckPrompt(_))), "hooks may object");
//! run.handle(RunInput::PromptPassed);
//! assert!(matches!(run.poll(), Some(RunOutput::Record(_))), "the prompt goes into the log first");
//! assert!(matches!(run.poll(), Some(RunOutput::RequestModel { max_tokens: 8_000 })));
//! assert!(run.poll().is_none(), "now the run waits for the answer");
//! ```
//!
//! Whatever happens, every tool call of the model is answered exactly once in the log: by its result, or by a text that
//! it was not executed. No call is executed twice.

mod call_queue;
mod model_texts;
mod progress_detector;
mod run;
mod run_events;

pub use progress_detector::ProgressLimits;
pub use run::Run;
pub use run_events::{
    BrokenAnswer, CallRuling, DayBudget, IncomingMessage, ModelAnswer, RunEnd, RunInput, RunOutput,
    RunRecord, RunSettings, ToolCall, ToolCallResult,
};
