//! Replay of recorded sessions through the engine, turn by turn, with the simulator as the provider and the recorded times as the clock.
//!
//! Messages are copied into a new log, entry by entry. Before each recorded request the view is rendered and sent to the simulator, whose
//! model gives the recorded answer. So one recording shows what a policy would have cost, kept and lost, and whether the simulator's
//! cache behaves like the provider's.
//!
//! ```
//! use pal_model::{LogEntry, SharedText};
//! use pal_eval::replay::{RecordedSession, ReplayOptions, replay};
//!
//! let line = |number: u32, parent: &str, rest: &str| {
//!     let id = format!("01890000-0000-7000-8000-00000000000{number}");
//!     let at = format!("2026-11-15T09:00:0{number}.000Z");
//!     LogEntry::parse(SharedText::from(format!(r#"{{"v":1,"id":"{id}","parent":{parent},"at":"{at}",{rest}}}"#))).unwrap()
//! };
//! let entries = vec![
//!     line(1, "null", r#""kind":"user","origin":"person","content":"Is it done?""#),
//!     line(2, r#""01890000-0000-7000-8000-000000000001""#, r#""kind":"request","source":"main","last":null,"model":"claude-opus-5-5""#),
//!     line(3, r#""01890000-0000-7000-8000-000000000002""#, r#""kind":"assistant","response":"msg_1","content":"It is.""#),
//!     line(4, r#""01890000-0000-7000-8000-000000000003""#, r#""kind":"response","response":"msg_1""#),
//! ];
//! let report = replay(&RecordedSession::new("done", entries), &ReplayOptions::plain()).unwrap();
//! assert_eq!((report.requests, report.rejected, report.lost.len()), (1, 0, 0));
//! assert!(report.measured.tokens.output > 0);
//! ```

mod audit_totals;
mod breakpoint_positions;
mod engine_requests;
mod error;
mod idle_compactions;
mod keepalive_requests;
mod lost_content;
mod note_keeper;
mod notes_report;
mod notice_groups;
mod recorded_answers;
mod recorded_session;
mod replay_breaks;
mod replay_dir;
mod replay_host;
mod replay_models;
mod replay_options;
mod replay_provider;
mod replay_report;
mod replay_run;
mod replay_state;
mod replay_step;
mod replay_totals;
mod session_setup;
mod unseen_prefix;

pub use audit_totals::AuditTotals;
pub use error::ReplayError;
pub(crate) use note_keeper::extracted_notes;
pub use notes_report::{NotesAudit, NotesReport};
pub use notice_groups::group_notices;
pub use recorded_session::RecordedSession;
pub(crate) use recorded_session::texts;
pub use replay_breaks::ReplayBreak;
pub(crate) use replay_host::recorded_file;
pub(crate) use replay_models::lens as replay_lens;
pub use replay_options::{
    ExtraLayer, ReplayNoteWriter, ReplayNotes, ReplayOptions, ReplayPolicy, ReplaySummarizer, RestartPoint,
};
pub use replay_report::{
    EngineTimes, LostContent, Rejection, ReplayLayerReport, ReplayReport, ReplayedCompaction,
};
pub use replay_run::{replay, replay_watched};
pub use replay_step::ReplayStep;
pub use replay_totals::{ReplayTokens, ReplayTotals};
