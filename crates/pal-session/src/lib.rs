//! The run of an agent as a machine: it is told what happened and says what to do next. It knows no clock, no files, no
//! network, and it never waits.
//!
//! ```
//! use pal_model::Content;
//! use pal_session::{Input, Output, Run, RunSettings};
//!
//! let mut run = Run::new(RunSettings::plain(8_000, 64_000));
//! run.handle(Input::Prompt(Content::of_text("What is 6 × 7?")));
//! assert!(matches!(run.poll(), Some(Output::CheckPrompt(_))), "hooks may have something to say");
//! run.handle(Input::PromptPassed);
//! assert!(matches!(run.poll(), Some(Output::Record(_))), "what was said goes into the log first");
//! assert!(matches!(run.poll(), Some(Output::Ask { max_tokens: 8_000 })));
//! assert!(run.poll().is_none(), "now it is somebody else's turn");
//! ```
//!
//! Whatever it is told and whenever it stops, every call that the model made is answered once in the log: by its result,
//! or by words that it was not carried out. Nothing is carried out twice.

mod calls;
mod data;
mod progress;
mod run;
mod words;

pub use data::{Answer, Broken, Call, End, Input, Output, Record, Returned, Ruling, RunSettings, Said};
pub use progress::{ProgressDetector, ProgressLimits, ProgressVerdict};
pub use run::Run;
