//! The bench: every row over every session, model and window, on all cores; each session is read once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use pal_model::{Card, Cards, Rhythm};
use pal_replay::{Options, Recorded, ReplayError};
use rustc_hash::FxHashMap;

use crate::clairvoyant::{Limit, limit};
use crate::findings::{Cell, Clairvoyant, Findings, SessionCells, Setup};
use crate::lines::{Lines, lines};
use crate::loss::Loss;
use crate::measure::{Measured, Seen, measure};
use crate::rows::{NONE, Row, row};
use crate::touches::{Touch, touches};
use crate::trace::{Left, Rates, Trace};

/// A window in which nothing has to be dropped.
const ENDLESS: u64 = 4_000_000;
/// Below this window budgets are smaller.
const FULL: u64 = 200_000;
/// What a compaction leaves where none was seen.
const LEFT: Left = Left { summary: 12_000.0, output: 2_000.0, cached: f64::INFINITY };
/// What a page fault costs on the frontier: as much as writing so many tokens to the cache.
const FAULTS: [f64; 5] = [0.0, 2_000.0, 8_000.0, 32_000.0, 128_000.0];

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The policies.
    pub rows: Vec<&'static Row>,
    /// The models; none is each session's own.
    pub models: Vec<Option<String>>,
    /// The windows.
    pub windows: Vec<u64>,
    /// The cards of all models.
    pub cards: Cards,
}

/// How far it is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Sessions that are done.
    pub done: usize,
    /// All of them.
    pub count: usize,
}

/// Measures. Sessions are read by their number, each once, in the order given: the longest first keeps all cores busy.
pub fn run(
    plan: &Plan,
    count: usize,
    read: &(dyn Fn(usize) -> Result<Recorded, String> + Sync),
    progress: &mut dyn FnMut(Progress),
) -> Findings {
    let plan = &plan.sorted();
    progress(Progress { done: 0, count });
    let mut done = 0;
    let results = on_all_cores(count, &|at| session(plan, &read(at)?), &mut |_| {
        done += 1;
        progress(Progress { done, count });
    });
    let mut sessions = Vec::new();
    let mut failures = Vec::new();
    for result in results {
        match result {
            Ok(session) => sessions.push(session),
            Err(failure) => failures.push(failure),
        }
    }
    // A session without a compaction is taken to have the usual one.
    let usual = typical(sessions.iter().flat_map(|session| session.left.values().flatten().copied()));
    let limits = on_all_cores(sessions.len(), &|at| Ok(limits(&sessions[at], usual)), &mut |_| {});
    let cells = sessions.into_iter().zip(limits).map(|(session, limits)| SessionCells {
        name: session.name,
        calls: session.whole.first().map_or(0, |(_, _, seen)| seen.len()),
        cells: session.cells,
        clairvoyant: limits.unwrap_or_default(),
        rhythms: session.rhythms,
        lines: session.lines,
    });
    let cells: Vec<SessionCells> = cells.collect();
    Findings::new(plan, &cells, failures)
}

impl Plan {
    /// The same with the largest window first: what fits there without an act is the same in the smaller ones.
    fn sorted(&self) -> Plan {
        let mut plan = self.clone();
        plan.windows.sort_unstable_by(|one, other| other.cmp(one));
        plan.windows.dedup();
        if !plan.rows.iter().any(|row| row.name == NONE) {
            plan.rows.splice(0..0, row(NONE));
        }
        plan
    }

    fn options(&self, model: &Option<String>, window: u64) -> Options {
        Options { cards: self.cards.clone(), model: model.clone(), window: Some(window), ..Options::plain() }
    }
}

/// A session, measured.
struct Session {
    name: String,
    /// By model: prices, what was used, and its calls while nothing was dropped.
    whole: Vec<(Option<Rates>, Setup, Vec<Seen>)>,
    touches: Vec<Touch>,
    cells: BTreeMap<(Setup, &'static str), Cell>,
    /// What compactions left.
    left: FxHashMap<Setup, Vec<Left>>,
    /// What was known of its rhythm at each call.
    rhythms: Vec<Rhythm>,
    /// What the lines of its results come to.
    lines: Lines,
}

fn session(plan: &Plan, recorded: &Recorded) -> Result<Session, String> {
    let failed = |error: ReplayError| format!("{}: {error}", recorded.name());
    let touches = touches(recorded.entries());
    let mut session = Session {
        name: recorded.name().to_owned(),
        whole: Vec::new(),
        touches,
        cells: BTreeMap::new(),
        left: FxHashMap::default(),
        rhythms: Vec::new(),
        lines: lines(recorded.entries()),
    };
    for (model_at, model) in plan.models.iter().enumerate() {
        // What joins the context, with nothing dropped.
        let birth = row("birth").map(|row| row.options(&plan.options(model, ENDLESS)));
        let birth = Options { auto_compact: false, ..birth.unwrap_or_else(Options::plain) };
        let mut whole = measure(recorded, &session.touches, &birth).map_err(failed)?;
        session.rhythms = std::mem::take(&mut whole.rhythms);
        let card = most_asked(&whole, &plan.cards);
        let rates = Rates::of(&card);
        let mut kept = Kept::default();
        for window in &plan.windows {
            let setup = Setup { model: model_at, window: *window };
            let card = plan.cards.with_window(*window).find(&card.model).card;
            let trace = rates.map(|rates| Trace::new(&whole.seen, &session.touches, &rates, *window, LEFT));
            for row in &plan.rows {
                let source = same_as(row, *window, &card, &kept, &whole);
                let is_shared = source.is_some();
                if source.is_none() {
                    let options = row.options(&plan.options(model, *window));
                    let measured = measure(recorded, &session.touches, &options).map_err(failed)?;
                    session.left.entry(setup).or_default().extend(measured.left(&whole.seen));
                    kept.replays.push(measured);
                }
                let at = source.unwrap_or(kept.replays.len() - 1);
                kept.by_row.insert((row.name, *window), at);
                let measured = &kept.replays[at];
                let loss = rates.zip(trace.as_ref());
                let loss = loss.map(|(rates, trace)| measured.loss_usd(&Loss::CALIBRATED, trace, &rates));
                session.cells.insert((setup, row.name), Cell::of(measured, loss, is_shared));
            }
            session.whole.push((rates, setup, whole.seen.clone()));
        }
    }
    Ok(session)
}

/// The replays of a session that were made, and which of them each row has at each window.
#[derive(Default)]
struct Kept {
    replays: Vec<Measured>,
    by_row: FxHashMap<(&'static str, u64), usize>,
}

/// The replay that a row would repeat: `none` at this window, or its own at a larger one, where no size is reached at which
/// they differ.
fn same_as(row: &Row, window: u64, card: &Card, kept: &Kept, whole: &Measured) -> Option<usize> {
    let fits = |at: &usize, from: u64| {
        let report = &kept.replays[*at].report;
        report.rejected == 0 && report.measured.peak_context_tokens * 11 / 10 < from
    };
    let prefix = whole.seen.first().map_or(0.0, |first| first.prefix);
    if window < FULL || prefix * 1.1 > window as f64 / 4.0 {
        return None;
    }
    if row.name != NONE
        && let Some(from) = row.acts_from(card)
        && let Some(none) = kept.by_row.get(&(NONE, window)).filter(|none| fits(none, from))
    {
        return Some(*none);
    }
    // Clearing by the provider begins a little below the compaction.
    let from = row.acts_from(card).unwrap_or(window * 7 / 10);
    let mut larger = kept.by_row.iter().filter(|((name, other), _)| *name == row.name && *other > window);
    larger.find(|(_, at)| fits(at, from)).map(|(_, at)| *at)
}

/// The card of the model that was asked most.
fn most_asked(measured: &Measured, cards: &Cards) -> Card {
    let most = measured.report.models.iter().max_by_key(|(_, count)| **count);
    cards.find(most.map_or("", |(model, _)| model)).card
}

/// The cheapest of what was seen, by what it costs: a limit must not be dearer than what somebody had.
fn typical(left: impl Iterator<Item = Left>) -> Option<Left> {
    let mut all: Vec<Left> = left.collect();
    all.sort_by(|one, other| one.summary.total_cmp(&other.summary));
    let middle = all.get(all.len() / 2)?;
    Some(Left { summary: middle.summary, output: middle.output, cached: middle.cached })
}

fn least(left: &[Left]) -> Option<Left> {
    let least = |of: fn(&Left) -> f64| left.iter().map(of).min_by(f64::total_cmp);
    let cached = left.iter().map(|left| left.cached).max_by(f64::total_cmp)?;
    Some(Left { summary: least(|left| left.summary)?, output: least(|left| left.output)?, cached })
}

/// What the clairvoyant makes of a session, at every setup.
fn limits(session: &Session, usual: Option<Left>) -> BTreeMap<Setup, Clairvoyant> {
    let mut found = BTreeMap::new();
    for (rates, setup, seen) in &session.whole {
        let Some(rates) = rates else { continue };
        let left = session.left.get(setup).and_then(|left| least(left)).or(usual).unwrap_or(LEFT);
        let trace = Trace::new(seen, &session.touches, rates, setup.window, left);
        let bound = |loss: &Loss, fault: f64| limit(&trace, rates, loss, fault * rates.write_5m);
        let Some(plain) = bound(&Loss::NONE, 0.0) else { continue };
        let frontier: Vec<Limit> =
            FAULTS.iter().filter_map(|fault| bound(&Loss::CALIBRATED, *fault)).collect();
        let kept_usd = trace.kept_usd(rates).unwrap_or_default();
        found.insert(*setup, Clairvoyant { plain, frontier, kept_usd });
    }
    found
}

/// Does something for every number on all cores; results are in order, each is shown when it comes.
fn on_all_cores<T: Send>(
    count: usize,
    work: &(dyn Fn(usize) -> Result<T, String> + Sync),
    shown: &mut dyn FnMut(usize),
) -> Vec<Result<T, String>> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(count);
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    // Whoever takes the results waits for all of them.
                    if at >= count || sender.send((at, work(at))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut results: BTreeMap<usize, Result<T, String>> = BTreeMap::new();
        for (at, result) in receiver {
            results.insert(at, result);
            shown(at);
        }
        results.into_values().collect()
    })
}
