//! Recorded sessions through the engine, turn by turn, with the simulator as the provider and the recorded times as
//! the clock.
//!
//! What was said is copied into a log of its own, entry by entry; before each recorded request the view is rendered and
//! sent to the simulator, whose model says what the recording's model said. So one recording shows what a policy would
//! have cost, kept and lost, and whether the simulator's cache does what the provider's did.
//!
//! ```
//! use pal_model::{Entry, Text};
//! use pal_replay::{Options, Recorded, replay};
//!
//! let line = |number: u32, parent: &str, rest: &str| {
//!     let id = format!("01890000-0000-7000-8000-00000000000{number}");
//!     let at = format!("2026-11-15T09:00:0{number}.000Z");
//!     Entry::parse(Text::from(format!(r#"{{"v":1,"id":"{id}","parent":{parent},"at":"{at}",{rest}}}"#))).unwrap()
//! };
//! let entries = vec![
//!     line(1, "null", r#""kind":"user","origin":"person","content":"Is it done?""#),
//!     line(2, r#""01890000-0000-7000-8000-000000000001""#, r#""kind":"request","source":"main","last":null,"model":"claude-opus-5-5""#),
//!     line(3, r#""01890000-0000-7000-8000-000000000002""#, r#""kind":"assistant","response":"msg_1","content":"It is.""#),
//!     line(4, r#""01890000-0000-7000-8000-000000000003""#, r#""kind":"response","response":"msg_1""#),
//! ];
//! let report = replay(&Recorded::new("done", entries), &Options::plain()).unwrap();
//! assert_eq!((report.requests, report.rejected, report.lost.len()), (1, 0, 0));
//! assert!(report.measured.tokens.output > 0);
//! ```

mod audit;
mod breaks;
mod by_engine;
mod desk;
mod error;
mod lost;
mod marks;
mod models;
mod notes;
mod notices;
mod options;
mod pings;
mod place;
mod provider;
mod recital;
mod recorded;
mod report;
mod run;
mod unseen;

pub use audit::Audit;
pub use breaks::Break;
pub use error::ReplayError;
pub use notes::{Kept, NotesTaken};
pub use notices::grouped_notices;
pub use options::{Before, CompactWith, NoteTaking, NotesBy, Options, Policy, Restart};
pub use recorded::Recorded;
pub use report::{Compaction, EngineTimes, Layer, Lost, Measured, Rejection, Report, Tokens};
pub use run::{Step, replay, replay_watched};
