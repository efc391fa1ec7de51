//! Statistics of recorded sessions, from which the fitted figures follow.

use pal_model::{ActivityStats, EntryBody, LogEntry, MessageOrigin, ToolKind};

use super::FittedFigures;
use super::result_reuse::{FileActivity, ResultAge, observe_reuse};

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

/// Sessions, messages, other requests and bytes that the prior counts as, so that a few sessions do not overrule it.
const PRIOR_SESSIONS: f64 = 4.0;
const PRIOR_TURNS: f64 = 20.0;
const PRIOR_LOOPS: f64 = 400.0;
const PRIOR_BYTES: f64 = 200_000.0;

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

    /// The figures of these sessions, starting from those of `prior`.
    pub fn figures(&self, prior: &FittedFigures) -> FittedFigures {
        let blend = |prior: f64, weight: f64, sum: f64, times: f64| (prior * weight + sum) / (weight + times);
        let shares = |prior: [f64; 4], weight: f64, counts: [u64; 4]| {
            let times = counts.iter().sum::<u64>() as f64;
            ResultAge::ALL.map(|at| blend(prior[at as usize], weight, counts[at as usize] as f64, times))
        };
        let reuse = |prior: [f64; 4], row: usize| {
            ResultAge::ALL.map(|at| {
                let (all, needed) = self.reads[row][at as usize];
                blend(prior[at as usize], PRIOR_BYTES, needed as f64, all as f64)
            })
        };
        let turns = self.turn_pauses.iter().sum::<u64>() as f64;
        let loops = self.loop_pauses.iter().sum::<u64>() as f64;
        FittedFigures {
            requests_to_come: blend(
                prior.requests_to_come,
                PRIOR_SESSIONS,
                self.requests as f64,
                self.sessions as f64,
            )
            .max(1.0),
            turn_share: blend(prior.turn_share, PRIOR_LOOPS, turns, turns + loops),
            turn_pauses: shares(prior.turn_pauses, PRIOR_TURNS, self.turn_pauses),
            loop_pauses: shares(prior.loop_pauses, PRIOR_LOOPS, self.loop_pauses),
            growth: blend(prior.growth, PRIOR_LOOPS, self.grown_tokens as f64, self.grown_times as f64),
            read_reuse: reuse(prior.read_reuse, 0),
            changed_read_reuse: reuse(prior.changed_read_reuse, 1),
        }
    }
}

/// Activity of a recorded session before each of its requests, and at its end.
pub fn recorded_activity(entries: &[LogEntry]) -> Vec<ActivityStats> {
    let mut activity = ActivityStats::default();
    let mut states = Vec::new();
    for entry in entries {
        match &entry.body {
            EntryBody::User(user) if user.origin == MessageOrigin::Person => {
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
