//! Pairs of call and result that later calls made redundant.

use std::collections::BTreeMap;

use pal_model::ToolKind;
use rustc_hash::{FxHashMap, FxHashSet};

use super::call_pairs::{CallPair, CallPairs};

/// Reason why a pair is redundant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RedundancyReason {
    /// The file was read again or rewritten.
    Superseded,
    /// The same call returned the same result again.
    Repeated,
    /// It failed and succeeded later.
    Retried,
    /// One of a run of polling calls, not the last.
    Polled,
}

impl RedundancyReason {
    pub(super) const ALL: [RedundancyReason; 4] = [
        RedundancyReason::Superseded,
        RedundancyReason::Repeated,
        RedundancyReason::Retried,
        RedundancyReason::Polled,
    ];

    /// Noun for reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            RedundancyReason::Superseded => "superseded read",
            RedundancyReason::Repeated => "repeated call",
            RedundancyReason::Retried => "failed attempt",
            RedundancyReason::Polled => "poll",
        }
    }
}

/// Minimum length of a polling run.
const RUN_MIN: usize = 3;
/// Below this many tokens a read may be a note that nothing changed, not the file.
const STUB_TOKENS: f64 = 100.0;

/// Finds the redundant old pairs, by index.
pub(super) fn redundant(pairs: &CallPairs<'_>) -> BTreeMap<usize, RedundancyReason> {
    let mut found: BTreeMap<usize, RedundancyReason> =
        polls(&pairs.list).map(|at| (at, RedundancyReason::Polled)).collect();
    let mut later = LaterCalls::default();
    for (at, pair) in pairs.list.iter().enumerate().rev() {
        if let Some(why) = later.makes_redundant(pair) {
            found.insert(at, why);
        }
        later.take(pair);
    }
    found.retain(|at, _| pairs.list[*at].is_old);
    found
}

/// All but the last pair of each polling run.
fn polls(list: &[CallPair<'_>]) -> impl Iterator<Item = usize> {
    let mut start = 0;
    list.chunk_by(is_same_call).flat_map(move |run| {
        let from = start;
        start += run.len();
        let n_polls = if run.len() >= RUN_MIN { run.len() - 1 } else { 0 };
        from..from + n_polls
    })
}

fn is_same_call(one: &CallPair<'_>, other: &CallPair<'_>) -> bool {
    one.call.name == other.call.name && one.call.input == other.call.input
}

/// Later pairs, while going backwards.
#[derive(Default)]
struct LaterCalls<'a> {
    /// Files read whole or written, with the tokens of the largest such read.
    files: FxHashMap<String, f64>,
    /// Results of calls by name and input.
    calls: FxHashMap<(String, &'a str), &'a str>,
    /// Successful calls by tool and target.
    successes: FxHashSet<(String, String)>,
}

impl<'a> LaterCalls<'a> {
    fn makes_redundant(&self, pair: &CallPair<'a>) -> Option<RedundancyReason> {
        let call = &pair.call;
        let name = call.name.to_string();
        if failed(pair) {
            return self.successes.contains(&(name, target(pair))).then_some(RedundancyReason::Retried);
        }
        if self.calls.get(&(name, call.input)) == Some(&returned(pair)) {
            return Some(RedundancyReason::Repeated);
        }
        let path = call.path().filter(|_| call.kind == Some(ToolKind::Read) && !call.reads_memory())?;
        let shown = self.files.get(path.as_ref())?;
        (*shown > STUB_TOKENS || *shown >= pair.result.tokens / 2.0).then_some(RedundancyReason::Superseded)
    }

    fn take(&mut self, pair: &CallPair<'a>) {
        let call = &pair.call;
        if failed(pair) || pair.result.is_cleared {
            return;
        }
        let name = call.name.to_string();
        let is_whole = ["offset", "limit", "view_range"].iter().all(|part| call.member(part).is_none());
        if let Some(path) = call.path() {
            let shown = match call.kind {
                Some(ToolKind::Read) if is_whole => pair.result.tokens,
                Some(ToolKind::Write) => f64::INFINITY,
                _ => 0.0,
            };
            if shown > 0.0 {
                let known = self.files.entry(path.into_owned()).or_default();
                *known = known.max(shown);
            }
        }
        self.successes.insert((name.clone(), target(pair)));
        self.calls.entry((name, call.input)).or_insert(returned(pair));
    }
}

fn failed(pair: &CallPair<'_>) -> bool {
    pair.result.block.field("is_error") == Some("true")
}

/// Raw result of a pair.
fn returned<'a>(pair: &CallPair<'a>) -> &'a str {
    pair.result.block.field("content").unwrap_or("")
}

/// Target of a call: a file, a command, or its whole input.
fn target(pair: &CallPair<'_>) -> String {
    let call = &pair.call;
    let about = call.path().or_else(|| call.command());
    about.map_or_else(|| call.input.to_owned(), |about| about.into_owned())
}
