//! Costs of one session under our policies, beside what was paid for it: what a policy saves, or loses, on a session of one's own.
//!
//! The recorded client is replayed, too, with the decisions and compactions in the recording. Savings compare replays with replays,
//! because a replay cannot equal the recording: output that a transcript lacks, such as thinking, is in no replay.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc;

use pal_context::{ContextPolicy, CostLedger, CostTotals};
use pal_model::{ModelCatalog, RequestSource};
use pal_view::{WindowLimits, WindowSettings};
use serde::Serialize;

use crate::comparison::eval_run::{ENDLESS, EvalProgress, FULL, LEFT, most_asked};
use crate::comparison::file_touches::find_touches;
use crate::comparison::loss_model::LossModel;
use crate::comparison::policy_rows::{NONE, THRESHOLD, find_policy_row};
use crate::comparison::replay_meter::{PolicyMeasurement, measure_watched};
use crate::comparison::session_trace::SessionTrace;
use crate::comparison::trace_rates::TraceRates;
use crate::replay::{RecordedSession, ReplayError, ReplayOptions, ReplayPolicy, ReplayTokens, ReplayTotals};

/// Row of the recorded client.
pub const AS_RECORDED: &str = "as recorded";
const COST_AWARE: &str = "cost-aware";
/// Sources of requests that a context policy sends beside the conversation: summaries, notes, keepalives.
const POLICY_SOURCES: [&str; 3] = ["compact", "notes", "ping"];
/// Method of summaries that another client requested.
const IMPORTED: &str = "imported";

/// Settings of the replays.
#[derive(Clone, Debug)]
pub struct SavingsOptions {
    /// The cards of all models.
    pub cards: ModelCatalog,
    /// Window of every model; none for that of the model cards, or a smaller one that the recorded client had.
    pub window: Option<u64>,
    /// Layers of `threshold`.
    pub threshold: ContextPolicy,
    /// Layers of `cost-aware`.
    pub cost_aware: ContextPolicy,
    /// True if a full context is compacted automatically.
    pub auto_compact: bool,
    /// True if the context may be compacted at all.
    pub may_compact: bool,
}

/// Origin of the window of the replays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowBasis {
    /// The caller chose it.
    Chosen,
    /// The model card has it.
    ModelCard,
    /// Another client compacted by itself below the window of the model card: `pal` compacts in this window at the same size.
    Compactions,
}

/// Usage of the recording, as the provider counted it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RecordedCost {
    /// Requests of the conversation and of its context policy.
    pub requests: u64,
    /// Of these, requests without recorded usage: they are in no sum.
    pub unreported: u64,
    /// Of these, requests to models without prices: they are in no sum of dollars.
    pub unpriced: u64,
    /// Of these, requests whose output tokens are estimated.
    pub estimated: u64,
    /// Of these, requests that a simulator answered, which were not paid.
    pub simulated: u64,
    /// Cost in US dollars; none if no price is known. Only a part of it if there are unreported or unpriced requests.
    pub cost_usd: Option<f64>,
    /// Prompt tokens.
    pub prompt_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Share of the prompt tokens that came from the cache.
    pub cache_hit_ratio: Option<f64>,
    /// Compactions.
    pub compactions: u64,
    /// Of these, compactions whose summary came from a request that the recording lacks.
    pub unrecorded_summaries: u64,
    /// Cost in US dollars of requests that belong to no context policy, such as titles; not in `cost_usd`.
    pub other_usd: f64,
}

impl RecordedCost {
    /// Cost of the whole recording in US dollars; none if any part is unknown.
    pub fn whole_usd(&self) -> Option<f64> {
        self.cost_usd.filter(|_| self.unreported + self.unpriced == 0)
    }
}

/// A difference in cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CostSaving {
    /// US dollars saved; negative if more was spent.
    pub usd: f64,
    /// Share of the other cost.
    pub share: f64,
}

impl CostSaving {
    /// Saving of a cost against another one; none without another cost.
    pub fn between(cost: f64, other: f64) -> Option<CostSaving> {
        (other > 0.0).then(|| CostSaving { usd: other - cost, share: (other - cost) / other })
    }
}

/// A replay of the session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SavingsRow {
    /// The policy, or [`AS_RECORDED`].
    pub policy: &'static str,
    /// Usage that the simulator counted, and its cost; no cost if any price is unknown.
    #[serde(flatten)]
    pub totals: ReplayTotals,
    /// Estimated cost in US dollars of reading dropped content again.
    pub rereads_usd: Option<f64>,
    /// Cost with re-reads.
    pub total_usd: Option<f64>,
    /// Compactions.
    pub compactions: u64,
    /// Requests that the simulator refused: they cost nothing, so the sums are too low.
    pub refused: u64,
    /// Saving against `none`, with re-reads; none if either cost is unknown or incomplete.
    pub saved_against_none: Option<CostSaving>,
    /// Saving against the replay of the recorded client, with re-reads; none if either cost is unknown or incomplete.
    pub saved_against_recorded: Option<CostSaving>,
}

impl SavingsRow {
    /// Cost with re-reads of the whole session; none if it is unknown or requests were refused.
    fn whole_usd(&self) -> Option<f64> {
        self.total_usd.filter(|_| self.refused == 0)
    }
}

/// Costs of a session under our policies and as it was recorded.
#[derive(Clone, Debug, Serialize)]
pub struct PolicySavings {
    /// Models, with the number of requests in the replay of the recorded client.
    pub models: BTreeMap<String, u64>,
    /// Models without prices.
    pub unpriced_models: BTreeSet<String>,
    /// Window of the policies; of several models, of the last.
    pub window: u64,
    /// Origin of the window.
    pub window_basis: WindowBasis,
    /// What was recorded.
    pub recorded: RecordedCost,
    /// The replays: the recorded client, `none`, `threshold` and `cost-aware`.
    pub replays: Vec<SavingsRow>,
    /// Notices of the replays.
    pub notices: BTreeSet<String>,
}

impl PolicySavings {
    /// The replay with this name.
    pub fn replay(&self, policy: &str) -> Option<&SavingsRow> {
        self.replays.iter().find(|row| row.policy == policy)
    }
}

/// Replays a session as it was recorded and under our policies. Progress counts requests of all replays.
pub fn measure_savings(
    recorded: &RecordedSession,
    options: &SavingsOptions,
    progress: &mut dyn FnMut(EvalProgress),
) -> Result<PolicySavings, ReplayError> {
    let ledger = CostLedger::from_entries(recorded.entries(), &options.cards);
    let names = [AS_RECORDED, NONE, THRESHOLD, COST_AWARE];
    let base = ReplayOptions {
        cards: options.cards.clone(),
        window: options.window,
        may_compact: options.may_compact,
        ..ReplayOptions::plain()
    };
    let policy = |base: &ReplayOptions, name: &str, layers: Option<&ContextPolicy>| {
        let row = find_policy_row(name).map_or_else(|| base.clone(), |row| row.options(base));
        let policy = if name == COST_AWARE { ReplayPolicy::CostAware } else { ReplayPolicy::Threshold };
        let layers = layers.cloned().unwrap_or_else(|| row.layers.clone());
        ReplayOptions { policy, layers, auto_compact: options.auto_compact, ..row }
    };
    let growth = policy(&base, "birth", None);
    let growth = ReplayOptions { window: Some(ENDLESS), auto_compact: false, ..growth };
    let mut counter =
        RequestCounter { done: 0, count: recorded.call_count() * (names.len() + 1), shown: progress };
    let mut measured = replay_all(recorded, &[growth, base.clone()], &mut counter)?;
    let whole = measured.remove(0);
    let (window, window_basis) = choose_window(recorded, &measured[0], options);
    let base = ReplayOptions { window, ..base };
    let policies = [
        policy(&base, NONE, None),
        policy(&base, THRESHOLD, Some(&options.threshold)),
        policy(&base, COST_AWARE, Some(&options.cost_aware)),
    ];
    measured.extend(replay_all(recorded, &policies, &mut counter)?);
    let unpriced_models = unpriced_models(&measured, &options.cards);
    let rates = TraceRates::of(&most_asked(&whole, &options.cards)).filter(|_| unpriced_models.is_empty());
    let (models, window) = (measured[0].report.models.clone(), measured[1].report.window);
    let touches = find_touches(recorded.entries());
    let trace = rates.map(|rates| SessionTrace::new(&whole.seen, &touches, &rates, window, LEFT));
    let mut rows: Vec<SavingsRow> = Vec::with_capacity(names.len());
    for (name, replay) in names.into_iter().zip(&measured) {
        let loss = rates.zip(trace.as_ref());
        let loss = loss.map(|(rates, trace)| replay.loss_usd(&LossModel::CALIBRATED, trace, &rates));
        let mut totals = replay.report.measured;
        if name == AS_RECORDED {
            // A replay copies recorded summaries without requesting them again.
            let requests = ledger.by_source.iter().filter(|(source, _)| is_policy_source(source));
            requests.for_each(|(_, recorded)| totals.absorb(&replay_totals(recorded)));
        }
        totals.cost_usd = totals.cost_usd.filter(|_| unpriced_models.is_empty());
        rows.push(SavingsRow {
            policy: name,
            totals,
            rereads_usd: loss,
            total_usd: totals.cost_usd.zip(loss).map(|(cost, loss)| cost + loss),
            compactions: replay.report.compactions.len() as u64,
            refused: replay.report.rejected,
            saved_against_none: None,
            saved_against_recorded: None,
        });
    }
    let against = |name: &str| rows.iter().find(|row| row.policy == name).and_then(SavingsRow::whole_usd);
    let (none, client) = (against(NONE), against(AS_RECORDED));
    for row in &mut rows {
        let saved = |other: Option<f64>| CostSaving::between(row.whole_usd()?, other?);
        let (against_none, against_client) = (saved(none), saved(client));
        row.saved_against_none = against_none.filter(|_| row.policy != NONE);
        row.saved_against_recorded = against_client.filter(|_| row.policy != AS_RECORDED);
    }
    let notices = measured.iter().flat_map(|replay| replay.report.notices.iter().cloned()).collect();
    Ok(PolicySavings {
        models,
        unpriced_models,
        window,
        window_basis,
        recorded: recorded_cost(&ledger),
        replays: rows,
        notices,
    })
}

/// Progress of all replays.
struct RequestCounter<'a> {
    done: usize,
    count: usize,
    shown: &'a mut dyn FnMut(EvalProgress),
}

impl RequestCounter<'_> {
    fn count_answer(&mut self) {
        self.done += 1;
        (self.shown)(EvalProgress { done: self.done, count: self.count });
    }
}

/// Message of a replay thread.
enum ReplayMessage {
    /// A request was answered.
    Answered,
    /// The replay with this number ended.
    Ended(usize, Result<Box<PolicyMeasurement>, ReplayError>),
}

/// Replays a session under all options, on as many threads as there are cores; results in the order of the options.
fn replay_all(
    recorded: &RecordedSession,
    replays: &[ReplayOptions],
    counter: &mut RequestCounter<'_>,
) -> Result<Vec<PolicyMeasurement>, ReplayError> {
    let touches = find_touches(recorded.entries());
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(replays.len());
    let (sender, receiver) = mpsc::channel();
    let mut ended = BTreeMap::new();
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (sender, touches) = (sender.clone(), &touches);
            scope.spawn(move || {
                for (at, options) in replays.iter().enumerate().skip(worker).step_by(workers) {
                    // The receiver waits for all results.
                    let mut answered = || drop(sender.send(ReplayMessage::Answered));
                    let result = measure_watched(recorded, touches, options, &mut answered).map(Box::new);
                    let _ = sender.send(ReplayMessage::Ended(at, result));
                }
            });
        }
        drop(sender);
        for message in receiver {
            match message {
                ReplayMessage::Answered => counter.count_answer(),
                ReplayMessage::Ended(at, result) => drop(ended.insert(at, result)),
            }
        }
    });
    ended.into_values().map(|result| result.map(|measured| *measured)).collect()
}

/// True if requests of this source belong to a context policy.
fn is_policy_source(source: &RequestSource) -> bool {
    POLICY_SOURCES.contains(&source.as_str())
}

/// Totals of recorded requests as those of a replay.
fn replay_totals(recorded: &CostTotals) -> ReplayTotals {
    let prompt = &recorded.prompt;
    ReplayTotals {
        responses: recorded.requests,
        tokens: ReplayTokens {
            input: prompt.uncached,
            cache_read: prompt.read,
            cache_write: prompt.written + prompt.written_1h,
            output: recorded.output,
        },
        cost_usd: recorded.known_cost(),
        ..ReplayTotals::default()
    }
}

fn recorded_cost(ledger: &CostLedger) -> RecordedCost {
    let imported = ledger.compactions.iter().filter(|compaction| compaction.method == IMPORTED);
    let mut cost = RecordedCost {
        compactions: ledger.compactions.len() as u64,
        unrecorded_summaries: imported.count() as u64,
        ..RecordedCost::default()
    };
    let mut cache_read = 0;
    for (source, totals) in &ledger.by_source {
        if !source.is_conversation() && !is_policy_source(source) {
            cost.other_usd += totals.cost;
            continue;
        }
        cost.requests += totals.requests;
        cost.unreported += totals.unreported;
        cost.unpriced += totals.unpriced;
        cost.estimated += totals.estimated;
        cost.simulated += totals.simulated;
        cost.prompt_tokens += totals.prompt.total();
        cost.output_tokens += totals.output;
        cache_read += totals.prompt.read;
        if let Some(usd) = totals.known_cost() {
            *cost.cost_usd.get_or_insert(0.0) += usd;
        }
    }
    let has_prompt = cost.prompt_tokens > 0;
    cost.cache_hit_ratio = has_prompt.then(|| cache_read as f64 / cost.prompt_tokens as f64);
    cost
}

/// Window of the policies; none for that of the model cards. A client may use less than the model offers: if another client compacted
/// by itself, the policies get no more room than it had, because a larger window would make `none` look dearer than it could have been.
fn choose_window(
    recorded: &RecordedSession,
    client: &PolicyMeasurement,
    options: &SavingsOptions,
) -> (Option<u64>, WindowBasis) {
    if options.window.is_some() {
        return (options.window, WindowBasis::Chosen);
    }
    let cards = recorded.models().map(|model| options.cards.find(model).card);
    let compactions = client.report.compactions.iter();
    let by_client = compactions.filter(|found| found.how == IMPORTED && found.trigger == "auto");
    let compacted_at = by_client.map(|compaction| compaction.before).max();
    let (Some(card), Some(compacted_at)) = (cards.min_by_key(|card| card.window), compacted_at) else {
        return (None, WindowBasis::ModelCard);
    };
    let limits = WindowLimits::new(&card, &WindowSettings::STANDARD);
    // Tokens between the size at which a context is compacted and its window.
    let reserve = limits.auto_compact.map_or(0, |at| card.window.saturating_sub(at));
    let window = FULL.max(compacted_at + reserve);
    if window < card.window {
        (Some(window), WindowBasis::Compactions)
    } else {
        (None, WindowBasis::ModelCard)
    }
}

/// Models of the replays that have no prices.
fn unpriced_models(measured: &[PolicyMeasurement], cards: &ModelCatalog) -> BTreeSet<String> {
    let asked = measured.iter().flat_map(|replay| replay.report.models.keys());
    asked.filter(|model| cards.find(model).card.prices.is_none()).cloned().collect()
}
