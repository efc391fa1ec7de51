//! Report of one replay: totals, compactions, cache breaks, and content that was lost.

use std::collections::BTreeMap;

use pal_model::EntryId;
use serde::Serialize;

use crate::replay::audit_totals::AuditTotals;
use crate::replay::notes_report::NotesReport;
use crate::replay::replay_breaks::ReplayBreak;
use crate::replay::replay_totals::ReplayTotals;

/// Results of a replay.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ReplayReport {
    /// Name of the session.
    pub file: String,
    /// Policy.
    pub policy: &'static str,
    /// The models that were asked, with the number of requests.
    pub models: BTreeMap<String, u64>,
    /// Requests that left.
    pub requests: u64,
    /// Requests that the provider refused.
    pub rejected: u64,
    /// The first refusals.
    pub rejections: Vec<Rejection>,
    /// Usage that the provider counted.
    #[serde(flatten)]
    pub measured: ReplayTotals,
    /// The window of the model; of several, of the last.
    pub window: u64,
    /// Layers that shortened the context, by name.
    pub layers: BTreeMap<String, ReplayLayerReport>,
    /// Compactions, in order.
    pub compactions: Vec<ReplayedCompaction>,
    /// Results of session notes; none if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<NotesReport>,
    /// Keep-alive requests; none if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pings: Option<ReplayTotals>,
    /// Where the cache was lost without a reason that was announced.
    pub breaks: Vec<ReplayBreak>,
    /// Engine time of a turn in microseconds.
    pub engine_us: EngineTimes,
    /// User messages that cannot be found any more.
    pub lost: Vec<LostContent>,
    /// The same as the recording reports it, where it does.
    pub recorded: ReplayTotals,
    /// Notices.
    pub notices: Vec<String>,
}

/// Effect of one layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReplayLayerReport {
    /// Number of times.
    pub times: u64,
    /// Tokens that it took out of the context.
    pub tokens_freed: u64,
}

/// A compaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplayedCompaction {
    /// Trigger.
    pub trigger: String,
    /// Summary method.
    pub how: String,
    /// Tokens of the last context before it.
    pub before: u64,
    /// Tokens of the first prompt after it; none if no request followed.
    pub after: Option<u64>,
    /// Messages that the summary replaces.
    pub messages: u64,
    /// Audit of the summary.
    pub audit: AuditTotals,
}

/// Engine time of turns in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EngineTimes {
    /// Half of the turns took at most this.
    pub p50: u64,
    /// Ninety-nine of a hundred took at most this.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

impl EngineTimes {
    pub(crate) fn of(mut turns: Vec<u64>) -> EngineTimes {
        turns.sort_unstable();
        let at = |share: f64| {
            let place = (share * turns.len() as f64).ceil() as usize;
            turns.get(place.saturating_sub(1)).copied().unwrap_or(0)
        };
        EngineTimes { p50: at(0.5), p99: at(0.99), max: at(1.0) }
    }
}

/// A request that the provider refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rejection {
    /// Which request of the recording, counted from 1.
    pub request: u64,
    /// The HTTP status.
    pub status: u16,
    /// Message of the provider.
    pub message: String,
}

/// A user message that is neither visible nor referenced any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LostContent {
    /// The entry.
    pub id: EntryId,
    /// Start of the text.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_ranked() {
        assert_eq!(EngineTimes::of(vec![]), EngineTimes::default());
        assert_eq!(EngineTimes::of(vec![7]), EngineTimes { p50: 7, p99: 7, max: 7 });
        let turns = (1..=200).rev().collect();
        assert_eq!(EngineTimes::of(turns), EngineTimes { p50: 100, p99: 198, max: 200 });
    }
}
