//! Which pairs of call and result are redundant, because of what came later.

use std::collections::BTreeMap;

use pal_model::ToolKind;
use rustc_hash::{FxHashMap, FxHashSet};

use super::pairs::{Pair, Pairs};

/// Why a pair is redundant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Why {
    /// The file was read again, or written anew.
    Superseded,
    /// The same call had the same result again.
    Repeated,
    /// It failed, and was done again with success.
    Retried,
    /// It asked what the next one asked again.
    Polled,
}

impl Why {
    pub(super) const ALL: [Why; 4] = [Why::Superseded, Why::Repeated, Why::Retried, Why::Polled];

    /// What such a pair is called.
    pub(super) fn name(self) -> &'static str {
        match self {
            Why::Superseded => "superseded read",
            Why::Repeated => "repeated call",
            Why::Retried => "failed attempt",
            Why::Polled => "poll",
        }
    }
}

/// Calls of one kind in a row that make a polling run.
const RUN_LEAST: usize = 3;
/// Tokens below which a read may be a note that nothing changed, not the file.
const STUB_TOKENS: f64 = 100.0;

/// The old pairs that are redundant, by their place among the pairs.
pub(super) fn redundant(pairs: &Pairs<'_>) -> BTreeMap<usize, Why> {
    let mut found: BTreeMap<usize, Why> = polls(&pairs.list).map(|at| (at, Why::Polled)).collect();
    let mut later = Later::default();
    for (at, pair) in pairs.list.iter().enumerate().rev() {
        if let Some(why) = later.makes_redundant(pair) {
            found.insert(at, why);
        }
        later.take(pair);
    }
    found.retain(|at, _| pairs.list[*at].is_old);
    found
}

/// Of each run of one call, all but the last.
fn polls(list: &[Pair<'_>]) -> impl Iterator<Item = usize> {
    let mut start = 0;
    list.chunk_by(is_same_call).flat_map(move |run| {
        let from = start;
        start += run.len();
        let n_polls = if run.len() >= RUN_LEAST { run.len() - 1 } else { 0 };
        from..from + n_polls
    })
}

fn is_same_call(one: &Pair<'_>, other: &Pair<'_>) -> bool {
    one.call.name == other.call.name && one.call.input == other.call.input
}

/// What came later than the pair that is looked at.
#[derive(Default)]
struct Later<'a> {
    /// Files that were read whole or written, with the tokens of the largest such read.
    files: FxHashMap<String, f64>,
    /// Calls by name and input, with what they returned last.
    calls: FxHashMap<(String, &'a str), &'a str>,
    /// What succeeded, by tool and target.
    successes: FxHashSet<(String, String)>,
}

impl<'a> Later<'a> {
    fn makes_redundant(&self, pair: &Pair<'a>) -> Option<Why> {
        let call = &pair.call;
        let name = call.name.to_string();
        if failed(pair) {
            return self.successes.contains(&(name, target(pair))).then_some(Why::Retried);
        }
        if self.calls.get(&(name, call.input)) == Some(&returned(pair)) {
            return Some(Why::Repeated);
        }
        let path = call.path().filter(|_| call.kind == Some(ToolKind::Read) && !call.reads_memory())?;
        let shown = self.files.get(path.as_ref())?;
        (*shown > STUB_TOKENS || *shown >= pair.result.tokens / 2.0).then_some(Why::Superseded)
    }

    fn take(&mut self, pair: &Pair<'a>) {
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

fn failed(pair: &Pair<'_>) -> bool {
    pair.result.block.field("is_error") == Some("true")
}

/// What came back, as it stands in the log.
fn returned<'a>(pair: &Pair<'a>) -> &'a str {
    pair.result.block.field("content").unwrap_or("")
}

/// What a call is about: a file, a command, or all that it was given.
fn target(pair: &Pair<'_>) -> String {
    let call = &pair.call;
    let about = call.path().or_else(|| call.command());
    about.map_or_else(|| call.input.to_owned(), |about| about.into_owned())
}
