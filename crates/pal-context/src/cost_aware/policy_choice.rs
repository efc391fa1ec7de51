//! Choice of the cheapest move, with a one-line reason.
//!
//! While the cache is warm, a rewrite is never urgent: the question is when to stop paying rent. The rent is
//! the cost so far of carrying more tokens than a compaction would leave; once it clearly exceeds the price
//! of a compaction, re-reads included, the moves are compared (for steady growth the optimal rhythm lies near
//! that point, and the optimum is flat). When the cache is cold everything is written again, so a clear is
//! considered at once.

use pal_model::EntryBody;
use pal_view::{CacheTtl, View};

use super::expected_cost::{CachedContext, ContextChange, ExpectedCost, TokenRates, weigh};
use super::{CostAwareSettings, SessionForecast, fitted_figures};
use crate::LayerContext;
use crate::cache_ttl::latched_cache_ttl;
use pal_model::text::group_digits;

/// Possible moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PolicyMove {
    /// Leave the context as it is.
    Nothing,
    /// Clear old results.
    Clear,
    /// Compact the conversation.
    Compact,
}

/// The chosen move.
#[derive(Clone, Debug)]
pub struct PolicyChoice {
    /// The move.
    pub chosen: PolicyMove,
    /// Its expected cost.
    pub expected_cost: ExpectedCost,
    /// Expected cost of leaving the context as it is.
    pub unchanged_cost: ExpectedCost,
    /// One-line reason.
    pub reason: String,
}

/// Minimum and maximum planning horizon, in requests.
const CYCLE: (f64, f64) = (10.0, 200.0);
/// Minimum share of the context that a move must free.
const FREED_MIN: f64 = 0.05;

/// Results worth clearing.
pub(crate) struct ClearableTokens {
    /// Tokens freed.
    pub(crate) freed: f64,
    /// Of these, tokens expected to be needed again.
    pub(crate) needed: f64,
}

/// Inputs for comparing moves.
struct MoveComparison<'a> {
    cached_context: CachedContext<'a>,
    forecast: SessionForecast,
    weight: f64,
    /// Tokens left by a compaction.
    compacted: f64,
    /// Output tokens of its summary.
    summary: f64,
    /// Cost of a compaction beyond leaving the context as it is.
    price: f64,
    /// Planning horizon in requests.
    horizon: f64,
}

/// Picks the cheapest move. `clearable` is called only if it matters.
pub(crate) fn choose(
    context: &LayerContext<'_>,
    settings: CostAwareSettings,
    clearable: impl FnOnce(&dyn Fn(f64, f64) -> bool) -> ClearableTokens,
) -> PolicyChoice {
    let weighing = MoveComparison::of(context, settings);
    let nothing = weighing.weigh(&ContextChange::nothing(&weighing.cached_context));
    let rent = weighing.rent(context);
    let is_cold = context.is_cold();
    let is_paid = rent >= fitted_figures::RENT * weighing.price;
    if !is_cold && !is_paid {
        let reason = format!(
            "{} tokens: carrying them has cost {}% of what makes compacting worth it",
            group_digits(context.size),
            percent(rent, fitted_figures::RENT * weighing.price)
        );
        return PolicyChoice {
            chosen: PolicyMove::Nothing,
            expected_cost: nothing,
            unchanged_cost: nothing,
            reason,
        };
    }
    let moment = match is_cold {
        true => format!("cold after {} minutes", context.idle().unwrap_or_default().as_secs() / 60),
        false => format!("{} tokens have cost enough to carry", group_digits(context.size)),
    };
    let mut acts = vec![(PolicyMove::Nothing, nothing)];
    if context.may_rewrite() {
        let found = clearable(&|tokens, needed| worth(&weighing, is_cold, tokens, needed));
        if found.freed > FREED_MIN * weighing.cached_context.size {
            let change = ContextChange::clearing(&weighing.cached_context, found.freed, found.needed);
            acts.push((PolicyMove::Clear, weighing.weigh(&change)));
        }
    }
    let may_compact = context.limits.auto_compact.is_some() && context.blocked_by.is_none();
    if may_compact && is_paid && weighing.compacted < (1.0 - FREED_MIN) * weighing.cached_context.size {
        let change =
            ContextChange::compaction(&weighing.cached_context, weighing.compacted, weighing.summary);
        acts.push((PolicyMove::Compact, weighing.weigh(&change)));
    }
    let cheapest = acts.into_iter().min_by(|one, other| one.1.total().total_cmp(&other.1.total()));
    let (deed, weighed) = cheapest.unwrap_or((PolicyMove::Nothing, nothing));
    let horizon = weighing.horizon.round();
    let reason = match deed {
        PolicyMove::Nothing => {
            format!("{moment}, but leaving the context as it is stays the cheapest over {horizon} requests")
        }
        PolicyMove::Clear | PolicyMove::Compact => format!(
            "{moment}: {} costs {}% of leaving the context as it is over {horizon} requests (${:.2}, not ${:.2})",
            if deed == PolicyMove::Clear { "clearing old results" } else { "compacting" },
            percent(weighed.total(), nothing.total()),
            weighed.total(),
            nothing.total(),
        ),
    };
    PolicyChoice { chosen: deed, expected_cost: weighed, unchanged_cost: nothing, reason }
}

/// Returns a predicate for results worth clearing, by their tokens and their probability of reuse.
pub(crate) fn worth_clearing(
    context: &LayerContext<'_>,
    settings: CostAwareSettings,
) -> impl Fn(f64, f64) -> bool {
    let weighing = MoveComparison::of(context, settings);
    let is_cold = context.is_cold();
    move |tokens, needed| worth(&weighing, is_cold, tokens, needed)
}

/// Returns true if carrying a result costs more than the expected cost of reading it again.
fn worth(weighing: &MoveComparison<'_>, is_cold: bool, tokens: f64, needed: f64) -> bool {
    let cached_context = &weighing.cached_context;
    let rates = TokenRates::for_prompt(cached_context.card, cached_context.ttl, cached_context.size);
    let carry = rates.read * weighing.horizon;
    let saved = tokens * (carry + if is_cold { rates.write } else { 0.0 });
    let again = tokens * (rates.write + carry / 2.0)
        + rates.read * cached_context.size
        + rates.output * fitted_figures::CALL_TOKENS;
    saved > weighing.weight * needed * again
}

impl<'a> MoveComparison<'a> {
    fn of(context: &LayerContext<'a>, settings: CostAwareSettings) -> MoveComparison<'a> {
        let view = context.view;
        let cached_context = cached_context(context);
        let forecast = SessionForecast::at_request(&view.state().activity, context.now, &settings.figures);
        let weight = settings.weight();
        let compacted = compacted(context, &cached_context);
        let summary = summary_tokens(view);
        let rates = TokenRates::for_prompt(cached_context.card, cached_context.ttl, cached_context.size);
        let change = ContextChange::compaction(&cached_context, compacted, summary);
        let beyond = |horizon: f64| {
            let nothing =
                weigh(&cached_context, &ContextChange::nothing(&cached_context), &forecast, 0.0, weight);
            let compaction = weigh(&cached_context, &change, &forecast, 0.0, weight);
            let again = weight * change.needed_again * rates.read * horizon / 2.0;
            (compaction.total() + again - nothing.total()).max(0.0)
        };
        // Optimal compaction rhythm for steady growth and a fixed compaction price.
        let cycle = |price: f64| {
            (2.0 * price / (rates.read * forecast.growth).max(f64::MIN_POSITIVE))
                .sqrt()
                .clamp(CYCLE.0, CYCLE.1)
        };
        let price = beyond(cycle(beyond(0.0)));
        let horizon = forecast.requests_within(cycle(price));
        MoveComparison { cached_context, forecast, weight, compacted, summary, price, horizon }
    }

    fn weigh(&self, change: &ContextChange) -> ExpectedCost {
        weigh(&self.cached_context, change, &self.forecast, self.horizon, self.weight)
    }

    /// Cost since the last compaction of carrying more tokens than a compaction would leave.
    fn rent(&self, context: &LayerContext<'_>) -> f64 {
        let rhythm = &context.view.state().activity;
        let carried = rhythm.prompt_tokens as f64 - rhythm.prompts as f64 * self.compacted;
        TokenRates::for_prompt(self.cached_context.card, self.cached_context.ttl, self.cached_context.size)
            .read
            * carried.max(0.0)
    }
}

/// Cache state before the current request.
fn cached_context<'a>(context: &LayerContext<'a>) -> CachedContext<'a> {
    let view = context.view;
    let ttl = latched_cache_ttl(view.state()).unwrap_or_default();
    let size = context.size as f64;
    let prefix = view.fixed_tokens().min(size);
    let known = view.size();
    let cached = match known.anchor {
        _ if context.is_cold() => match ttl {
            CacheTtl::Hour1ThenMinutes5 if context.idle() <= Some(HOUR) => prefix,
            _ => 0.0,
        },
        // The change lies somewhere behind the prefix.
        _ if known.freed > 0 => prefix,
        Some(anchor) => anchor.usage.prompt_tokens() as f64,
        None => 0.0,
    };
    CachedContext { card: &view.lens().card, ttl, size, cached: cached.min(size), prefix }
}

const HOUR: std::time::Duration = std::time::Duration::from_secs(60 * 60);

/// Tokens left by a compaction: those of the last one, or the usual number.
pub(super) fn compacted(context: &LayerContext<'_>, cached_context: &CachedContext<'_>) -> f64 {
    let last = match context.view.boundary().map(|entry| &entry.body) {
        Some(EntryBody::Boundary(boundary)) => boundary.tokens_after,
        _ => None,
    };
    let usual =
        context.view.fixed_tokens() + context.budgets().scale(fitted_figures::COMPACTED_TOKENS as u64) as f64;
    last.map_or(usual, |tokens| tokens as f64).min(cached_context.size)
}

/// Output tokens of the next summary: those of the last one, or the usual number.
pub(super) fn summary_tokens(view: &View) -> f64 {
    const BYTES_PER_TOKEN: f64 = 3.0;
    match view.boundary().map(|entry| &entry.body) {
        Some(EntryBody::Boundary(boundary)) if boundary.has_summary() => {
            let bytes: usize = boundary.summary.blocks().iter().map(|block| block.raw().len()).sum();
            bytes as f64 / BYTES_PER_TOKEN
        }
        _ => fitted_figures::SUMMARY_TOKENS,
    }
}

fn percent(part: f64, whole: f64) -> u64 {
    if whole > 0.0 { (100.0 * part / whole).round() as u64 } else { 100 }
}
