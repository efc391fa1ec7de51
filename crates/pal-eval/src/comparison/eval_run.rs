//! Runs an evaluation: every row over every session, model and window, on all cores. Each session is read once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use crate::replay::{RecordedSession, ReplayError, ReplayOptions};
use pal_context::cost_aware::FittedFigures;
use pal_model::{ActivityStats, ModelCard, ModelCatalog};
use rustc_hash::FxHashMap;

use crate::comparison::eval_plan::{EvalPlan, EvalSetup};
use crate::comparison::file_touches::{RecordedFileTouch, find_touches};
use crate::comparison::held_out_fit::{FitSample, fit_without_repository};
use crate::comparison::line_uses::{LineUses, count_line_uses};
use crate::comparison::loss_model::LossModel;
use crate::comparison::offline_optimum::{OfflineOptimum, offline_optimum};
use crate::comparison::policy_comparison::{EvalCell, OptimumResult, PolicyComparison, SessionCells};
use crate::comparison::policy_rows::{NONE, PolicyRow, find_policy_row};
use crate::comparison::replay_meter::{PolicyMeasurement, measure};
use crate::comparison::session_observation::{CompactionResidue, SessionObservation};
use crate::comparison::session_trace::SessionTrace;
use crate::comparison::trace_rates::TraceRates;

/// A window in which nothing has to be dropped.
pub(crate) const ENDLESS: u64 = 4_000_000;
/// Below this window budgets are smaller.
pub(crate) const FULL: u64 = 200_000;
/// Size that a compaction leaves where none was seen.
pub(crate) const LEFT: CompactionResidue =
    CompactionResidue { summary: 12_000.0, output: 2_000.0, cached: f64::INFINITY };
/// Price of a page fault on the frontier: that of writing this number of tokens to the cache.
const FAULTS: [f64; 5] = [0.0, 2_000.0, 8_000.0, 32_000.0, 128_000.0];

/// Progress of a run, in sessions; in the replays of one session, in requests.
#[derive(Clone, Copy, Debug)]
pub struct EvalProgress {
    /// How many are done.
    pub done: usize,
    /// All of them.
    pub count: usize,
}

/// Measures. Sessions are read by their number, each once, in the order given: the longest first keeps all cores busy.
pub fn run_evaluation(
    plan: &EvalPlan,
    count: usize,
    read: &(dyn Fn(usize) -> Result<RecordedSession, String> + Sync),
    progress: &mut dyn FnMut(EvalProgress),
) -> PolicyComparison {
    let plan = &plan.sorted();
    progress(EvalProgress { done: 0, count });
    let mut done = 0;
    // Sessions are read twice: what is fitted must be known before the first replay, and not all of them fit into memory.
    let samples = run_on_all_cores(count, &|at| Ok(FitSample::of(&read(at)?)), &mut |_| {});
    let readable: Vec<usize> = (0..count).filter(|at| samples[*at].is_ok()).collect();
    let samples: Vec<FitSample> = samples.into_iter().flatten().collect();
    let (fitted, repositories) = fit_without_repository(&samples);
    let figures = |at: usize| readable.binary_search(&at).map_or(FittedFigures::UNINFORMED, |at| fitted[at]);
    let results = run_on_all_cores(count, &|at| measure_session(plan, figures(at), &read(at)?), &mut |_| {
        done += 1;
        progress(EvalProgress { done, count });
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
    let limits = run_on_all_cores(sessions.len(), &|at| Ok(find_optima(&sessions[at], usual)), &mut |_| {});
    let cells = sessions.into_iter().zip(limits).map(|(session, limits)| SessionCells {
        name: session.name,
        calls: session.whole.first().map_or(0, |(_, _, seen)| seen.len()),
        cells: session.cells,
        clairvoyant: limits.unwrap_or_default(),
        rhythms: session.rhythms,
        figures: session.figures,
        lines: session.lines,
    });
    let cells: Vec<SessionCells> = cells.collect();
    PolicyComparison { repositories, ..PolicyComparison::new(plan, &cells, failures) }
}

/// A session, measured.
struct EvalSession {
    name: String,
    /// Figures fitted without its repository.
    figures: FittedFigures,
    /// By model: prices, used content, and calls of a replay in which nothing was dropped.
    whole: Vec<(Option<TraceRates>, EvalSetup, Vec<SessionObservation>)>,
    touches: Vec<RecordedFileTouch>,
    cells: BTreeMap<(EvalSetup, &'static str), EvalCell>,
    /// Sizes that compactions left.
    left: FxHashMap<EvalSetup, Vec<CompactionResidue>>,
    /// Activity statistics at each call.
    rhythms: Vec<ActivityStats>,
    /// Uses of the lines of its results.
    lines: LineUses,
}

fn measure_session(
    plan: &EvalPlan,
    figures: FittedFigures,
    recorded: &RecordedSession,
) -> Result<EvalSession, String> {
    let failed = |error: ReplayError| format!("{}: {error}", recorded.name());
    let touches = find_touches(recorded.entries());
    let mut session = EvalSession {
        name: recorded.name().to_owned(),
        figures,
        whole: Vec::new(),
        touches,
        cells: BTreeMap::new(),
        left: FxHashMap::default(),
        rhythms: Vec::new(),
        lines: count_line_uses(recorded.entries()),
    };
    for (model_at, model) in plan.models.iter().enumerate() {
        // Growth of the context, with nothing dropped.
        let birth = find_policy_row("birth").map(|row| row.options(&plan.options(model, ENDLESS)));
        let birth = ReplayOptions { auto_compact: false, ..birth.unwrap_or_else(ReplayOptions::plain) };
        let mut whole = measure(recorded, &session.touches, &birth).map_err(failed)?;
        session.rhythms = std::mem::take(&mut whole.rhythms);
        let card = most_asked(&whole, &plan.cards);
        let rates = TraceRates::of(&card);
        let mut kept = ReplayCache::default();
        for window in &plan.windows {
            let setup = EvalSetup { model: model_at, window: *window };
            let card = plan.cards.with_window(*window).find(&card.model).card;
            let trace =
                rates.map(|rates| SessionTrace::new(&whole.seen, &session.touches, &rates, *window, LEFT));
            for row in &plan.rows {
                let source = same_as(row, *window, &card, &kept, &whole);
                let is_shared = source.is_some();
                if source.is_none() {
                    let mut options = row.options(&plan.options(model, *window));
                    options.layers.cost_aware.iter_mut().for_each(|settings| settings.figures = figures);
                    let measured = measure(recorded, &session.touches, &options).map_err(failed)?;
                    session.left.entry(setup).or_default().extend(measured.left(&whole.seen));
                    kept.replays.push(measured);
                }
                let at = source.unwrap_or(kept.replays.len() - 1);
                kept.by_row.insert((row.name, *window), at);
                let measured = &kept.replays[at];
                let loss = rates.zip(trace.as_ref());
                let loss =
                    loss.map(|(rates, trace)| measured.loss_usd(&LossModel::CALIBRATED, trace, &rates));
                session.cells.insert((setup, row.name), EvalCell::of(measured, loss, is_shared));
            }
            session.whole.push((rates, setup, whole.seen.clone()));
        }
    }
    Ok(session)
}

/// The replays of a session that were made, and which of them each row has at each window.
#[derive(Default)]
struct ReplayCache {
    replays: Vec<PolicyMeasurement>,
    by_row: FxHashMap<(&'static str, u64), usize>,
}

/// The replay that a row would repeat: `none` at this window, or its own at a larger one, where no size is reached at which
/// they differ.
fn same_as(
    row: &PolicyRow,
    window: u64,
    card: &ModelCard,
    kept: &ReplayCache,
    whole: &PolicyMeasurement,
) -> Option<usize> {
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
pub(crate) fn most_asked(measured: &PolicyMeasurement, cards: &ModelCatalog) -> ModelCard {
    let most = measured.report.models.iter().max_by_key(|(_, count)| **count);
    cards.find(most.map_or("", |(model, _)| model)).card
}

/// The cheapest observation by cost: an optimum must not cost more than a policy that was seen.
fn typical(left: impl Iterator<Item = CompactionResidue>) -> Option<CompactionResidue> {
    let mut all: Vec<CompactionResidue> = left.collect();
    all.sort_by(|one, other| one.summary.total_cmp(&other.summary));
    let middle = all.get(all.len() / 2)?;
    Some(CompactionResidue { summary: middle.summary, output: middle.output, cached: middle.cached })
}

fn least(left: &[CompactionResidue]) -> Option<CompactionResidue> {
    let least = |of: fn(&CompactionResidue) -> f64| left.iter().map(of).min_by(f64::total_cmp);
    let cached = left.iter().map(|left| left.cached).max_by(f64::total_cmp)?;
    Some(CompactionResidue {
        summary: least(|left| left.summary)?,
        output: least(|left| left.output)?,
        cached,
    })
}

/// Offline optimum of a session, at every setup.
fn find_optima(
    session: &EvalSession,
    usual: Option<CompactionResidue>,
) -> BTreeMap<EvalSetup, OptimumResult> {
    let mut found = BTreeMap::new();
    for (rates, setup, seen) in &session.whole {
        let Some(rates) = rates else { continue };
        let left = session.left.get(setup).and_then(|left| least(left)).or(usual).unwrap_or(LEFT);
        let trace = SessionTrace::new(seen, &session.touches, rates, setup.window, left);
        let bound =
            |loss: &LossModel, fault: f64| offline_optimum(&trace, rates, loss, fault * rates.write_5m);
        let Some(plain) = bound(&LossModel::NONE, 0.0) else { continue };
        let frontier: Vec<OfflineOptimum> =
            FAULTS.iter().filter_map(|fault| bound(&LossModel::CALIBRATED, *fault)).collect();
        let kept_usd = trace.kept_usd(rates).unwrap_or_default();
        found.insert(*setup, OptimumResult { plain, frontier, kept_usd });
    }
    found
}

/// Does something for every number on all cores; results are in order, each is shown when it comes.
pub(crate) fn run_on_all_cores<T: Send>(
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
                    // The receiver waits for all results.
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
