//! Figures fitted to recorded sessions, and the statistics they are fitted from. `cargo run --release -p xtask -- fit` prints what
//! recorded sessions say beside the shipped figures; `pal eval` fits them anew without the repository that it judges.

use pal_model::{ActivityStats, EntryBody, LogEntry, ToolKind};
use serde::Serialize;

use super::result_reuse::{FileActivity, ResultAge, observe_reuse};

/// Figures fitted to recorded sessions: what a session is expected to do before it has shown it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct FittedFigures {
    /// Mean number of remaining requests of a session. It does not depend on the number so far: the mean is the same after 1, 10,
    /// 50, 100 and 150 requests.
    pub requests_to_come: f64,
    /// Share of requests that open a user turn.
    pub turn_share: f64,
    /// Shares of the pauses before a person's message: up to 5 minutes, up to 15, up to an hour, longer.
    pub turn_pauses: [f64; 4],
    /// The same before all other requests: responses, tool calls and permission prompts that take long.
    pub loop_pauses: [f64; 4],
    /// Mean growth of the context between two responses, in tokens.
    pub growth: f64,
    /// Probability that a file read is needed again, by age of the result.
    pub read_reuse: [f64; 4],
    /// The same for a file that is being worked on: it stays needed at any age.
    pub changed_read_reuse: [f64; 4],
}

impl FittedFigures {
    /// Figures of the recorded Claude sessions that this project is developed on.
    pub const SHIPPED: FittedFigures = FittedFigures {
        requests_to_come: 106.0,
        turn_share: 0.11,
        turn_pauses: [0.741, 0.122, 0.065, 0.072],
        loop_pauses: [0.990, 0.0065, 0.0020, 0.0015],
        growth: 1_320.0,
        read_reuse: [0.57, 0.45, 0.35, 0.14],
        changed_read_reuse: [0.58, 0.58, 0.47, 0.49],
    };
}

impl Default for FittedFigures {
    fn default() -> FittedFigures {
        FittedFigures::SHIPPED
    }
}

/// Sums over recorded sessions, from which the figures follow.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FitStatistics {
    sessions: u64,
    requests: u64,
    turn_pauses: [u64; 4],
    loop_pauses: [u64; 4],
    grown_tokens: u64,
    grown_times: u64,
    /// Bytes of file reads and of those needed again, by age; of files not worked on, and of files that are.
    reads: [[(u64, u64); 4]; 2],
}

/// Requests, bytes and sessions that the shipped figures count as, so that a few sessions do not overrule them.
const SHIPPED_SESSIONS: f64 = 4.0;
const SHIPPED_TURNS: f64 = 20.0;
const SHIPPED_LOOPS: f64 = 400.0;
const SHIPPED_BYTES: f64 = 200_000.0;

impl FitStatistics {
    /// Statistics of one session.
    pub fn of_session(entries: &[LogEntry]) -> FitStatistics {
        let activity = recorded_activity(entries).pop().unwrap_or_default();
        let mut statistics = FitStatistics {
            sessions: u64::from(activity.requests > 0),
            requests: activity.requests,
            turn_pauses: activity.turn_pauses,
            loop_pauses: activity.loop_pauses(),
            grown_tokens: activity.grown_tokens,
            grown_times: activity.grown_times,
            reads: [[(0, 0); 4]; 2],
        };
        for observed in observe_reuse(entries) {
            let row = match (observed.kind, observed.since) {
                (ToolKind::Read, FileActivity::Nothing) => 0,
                (ToolKind::Read, FileActivity::Changed) => 1,
                _ => continue,
            };
            let (all, needed) = &mut statistics.reads[row][observed.age as usize];
            *all += observed.bytes as u64;
            *needed += if observed.is_needed { observed.bytes as u64 } else { 0 };
        }
        statistics
    }

    /// Adds the statistics of other sessions.
    pub fn add(&mut self, other: &FitStatistics) {
        self.sessions += other.sessions;
        self.requests += other.requests;
        self.grown_tokens += other.grown_tokens;
        self.grown_times += other.grown_times;
        for at in 0..4 {
            self.turn_pauses[at] += other.turn_pauses[at];
            self.loop_pauses[at] += other.loop_pauses[at];
            for row in 0..2 {
                self.reads[row][at].0 += other.reads[row][at].0;
                self.reads[row][at].1 += other.reads[row][at].1;
            }
        }
    }

    /// The figures of these sessions. The shipped ones count as much as a few sessions; `prior` replaces them where the shipped ones
    /// must not be known.
    pub fn figures(&self, prior: &FittedFigures) -> FittedFigures {
        let blend = |prior: f64, weight: f64, sum: f64, times: f64| (prior * weight + sum) / (weight + times);
        let shares = |prior: [f64; 4], weight: f64, counts: [u64; 4]| {
            let times = counts.iter().sum::<u64>() as f64;
            ResultAge::ALL.map(|at| blend(prior[at as usize], weight, counts[at as usize] as f64, times))
        };
        let reuse = |prior: [f64; 4], row: usize| {
            ResultAge::ALL.map(|at| {
                let (all, needed) = self.reads[row][at as usize];
                blend(prior[at as usize], SHIPPED_BYTES, needed as f64, all as f64)
            })
        };
        let turns = self.turn_pauses.iter().sum::<u64>() as f64;
        let loops = self.loop_pauses.iter().sum::<u64>() as f64;
        FittedFigures {
            requests_to_come: blend(
                prior.requests_to_come,
                SHIPPED_SESSIONS,
                self.requests as f64,
                self.sessions as f64,
            )
            .max(1.0),
            turn_share: blend(prior.turn_share, SHIPPED_LOOPS, turns, turns + loops),
            turn_pauses: shares(prior.turn_pauses, SHIPPED_TURNS, self.turn_pauses),
            loop_pauses: shares(prior.loop_pauses, SHIPPED_LOOPS, self.loop_pauses),
            growth: blend(prior.growth, SHIPPED_LOOPS, self.grown_tokens as f64, self.grown_times as f64),
            read_reuse: reuse(prior.read_reuse, 0),
            changed_read_reuse: reuse(prior.changed_read_reuse, 1),
        }
    }
}

impl FittedFigures {
    /// Round figures that no recorded session has influenced: the start of a fit that must not know the shipped ones.
    pub const UNINFORMED: FittedFigures = FittedFigures {
        requests_to_come: 100.0,
        turn_share: 0.1,
        turn_pauses: [0.7, 0.1, 0.1, 0.1],
        loop_pauses: [0.99, 0.005, 0.003, 0.002],
        growth: 1_500.0,
        read_reuse: [0.5, 0.4, 0.3, 0.2],
        changed_read_reuse: [0.5, 0.5, 0.5, 0.5],
    };
}

/// Activity of a recorded session before each of its requests, and at its end.
pub fn recorded_activity(entries: &[LogEntry]) -> Vec<ActivityStats> {
    let mut activity = ActivityStats::default();
    let mut states = Vec::new();
    for entry in entries {
        match &entry.body {
            EntryBody::User(user) if user.origin == pal_model::MessageOrigin::Person => {
                activity.record_user_message();
            }
            EntryBody::Request(request) if request.source.is_conversation() => {
                states.push(activity.clone());
                activity.record_request(entry.at);
            }
            EntryBody::Response(got) if got.source.is_conversation() => activity.record_response(&got.usage),
            EntryBody::Boundary(boundary) if boundary.has_summary() => activity.reset_context(),
            _ => {}
        }
    }
    states.push(activity);
    states
}

/// Weight of the expected pauses before a person's message against the session's own, in messages.
pub(super) const PRIOR_TURNS: f64 = 4.0;

/// Weight of the expected pauses before other requests, in requests.
pub(super) const PRIOR_LOOPS: f64 = 60.0;

/// Weight of the expected growth and turn length, in requests.
pub(super) const PRIOR_REQUESTS: f64 = 10.0;

/// Rent to pay before a compaction, as a multiple of its price. 1 would be right if all costs were known; the cost is flat between 1
/// and 1.5, and fewer compactions lose less.
pub(super) const RENT: f64 = 1.25;

/// Output tokens of a model's summary where none was seen yet: 20 recorded ones have 5,000 in the mean.
pub(super) const SUMMARY_TOKENS: f64 = 5_000.0;

/// Tokens that a compaction leaves behind the fixed prefix on a full window where none was seen yet: summary, user words, last files.
pub(super) const COMPACTED_TOKENS: f64 = 15_000.0;

/// Output tokens of reading something again: the call and the text around it.
pub(super) const CALL_TOKENS: f64 = 150.0;

/// Mean tokens read again per call.
pub(super) const READ_AGAIN_TOKENS: f64 = 3_000.0;

/// Share of compacted content that is read again although the summary mentions it: recorded compactions
/// reduced the context from 155,000 to 54,000 tokens, and in the next 30 calls agents read 31,000 characters
/// again instead of the usual 5,000, at 2.75 characters per token.
pub(super) const COMPACTED_NEEDED: f64 = 0.095;

/// Probability that any other result is needed again. Results of other tools almost never recur verbatim (0 to
/// 0.5%); but use without a call leaves no trace in a recording, so a small value is assumed for them, and for
/// content that is shown twice.
pub(super) const OTHER_REUSE: f64 = 0.03;
