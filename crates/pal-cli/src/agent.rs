//! The agent as it is seen from outside: what it is given on standard input, and what happens as text or JSON.

mod input;
mod json;
mod line;
mod models;
mod seam;
mod servers;
mod signals;
mod stream_json;
mod teammate;
mod text;

use std::process::ExitCode;

use pal_agent::{End, Event};

use crate::failure::Failure;

pub(crate) use json::Json;
pub(crate) use line::Lines;
pub(crate) use seam::{Task, dream_gates, options, options_at, settings_rules, work};
pub(crate) use signals::{INTERRUPTED, on_wishes_to_end};
pub(crate) use stream_json::StreamJson;
pub(crate) use teammate::work_as_teammate;
pub(crate) use text::Text;

/// Somebody who shows what happens.
pub(crate) trait Show {
    /// Something happened.
    fn event(&mut self, event: &Event) -> Result<(), Failure>;

    /// A line of standard input makes no sense; the session goes on.
    fn bad_line(&mut self, number: u64, why: &str) -> Result<(), Failure>;

    /// Nothing more will happen, perhaps because something failed. What the program exits with.
    fn finish(&mut self, failure: Option<&Failure>) -> Result<ExitCode, Failure>;
}

/// What the program exits with when its last prompt ended so.
pub(crate) fn exit_code(end: &End) -> u8 {
    match end {
        End::Done => 0,
        End::Refused(_) | End::Failed(_) => 1,
        End::Limit(_) => 3,
        End::Interrupted => 130,
    }
}

/// What kept a prompt from being worked off, in one sentence.
fn error_of(end: &End) -> Option<&str> {
    match end {
        End::Done => None,
        End::Refused(why) | End::Limit(why) | End::Failed(why) => Some(why),
        End::Interrupted => Some("interrupted"),
    }
}
