//! The cost ledger (§5.12, §10.10): tokens and cost of every request of a log, savings by the cache and by
//! decisions, and every cache-read drop with its cause and price.
//!
//! One pass over the entries of a log in order. Unreported values stay unknown: they are counted, and never
//! treated as zero.

mod cache_lane;
mod cost_totals;
mod ledger_builder;
mod ledger_row;

use pal_model::{CacheBreak, LayerReport, LogEntry, ModelCatalog, RequestSource, Timestamp, UsageBasis};
use pal_view::Category;
use smol_str::SmolStr;

pub use cost_totals::{CostTotals, DecisionSaving, DropTotals};

/// Cost of a session, by request and in total.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CostLedger {
    /// Answered requests, in log order.
    pub rows: Vec<LedgerRow>,
    /// Totals of all rows.
    pub all: CostTotals,
    /// Totals by source, in the order of the first request.
    pub by_source: Vec<(RequestSource, CostTotals)>,
    /// Totals by model, in the order of the first response.
    pub by_model: Vec<(SmolStr, CostTotals)>,
    /// Savings by kind of decision; `boundary` for compactions.
    pub savings: Vec<DecisionSaving>,
    /// Compactions in log order, undone ones included.
    pub compactions: Vec<LedgerCompaction>,
}

/// One answered request.
#[derive(Clone, PartialEq, Debug)]
pub struct LedgerRow {
    /// Row number, from 1.
    pub number: usize,
    /// Source of the request.
    pub source: RequestSource,
    /// Model that answered.
    pub model: SmolStr,
    /// Start time; `None` if the log does not state it.
    pub started: Option<Timestamp>,
    /// Milliseconds since the previous request that shares its cache.
    pub idle_ms: Option<u64>,
    /// Prompt tokens by kind; `None` if unreported.
    pub prompt: Option<PromptTokens>,
    /// Output tokens.
    pub output: u64,
    /// Source of the counts.
    pub basis: UsageBasis,
    /// Tokens billed besides prompt and output, such as a compaction by the provider.
    pub additional: u64,
    /// Cost in US dollars; `None` if the prompt was not reported or the model has no prices.
    pub cost: Option<f64>,
    /// Saving by the cache, against the same prompt without any cache; negative if writes cost more than
    /// reads gained.
    pub saved: Option<f64>,
    /// Reported context size including the response.
    pub context: Option<u64>,
    /// Estimated tokens of the context by category; empty for requests outside the conversation.
    pub by_category: Vec<(Category, f64)>,
    /// Layer reports before the request.
    pub layers: Vec<LayerReport>,
    /// Decisions since the previous row that change the sent content: kind and freed tokens.
    pub decisions: Vec<(SmolStr, u64)>,
    /// Cache-read drop of this request.
    pub drop: Option<LedgerDrop>,
}

/// Prompt tokens by price.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PromptTokens {
    /// Cache reads.
    pub read: u64,
    /// Cache writes with a one-hour TTL.
    pub written_1h: u64,
    /// Cache writes with a shorter or unreported TTL.
    pub written: u64,
    /// Uncached input.
    pub uncached: u64,
}

/// A cache-read drop.
#[derive(Clone, PartialEq, Debug)]
pub struct LedgerDrop {
    /// Size, cause and cost.
    pub cache_break: CacheBreak,
    /// True if the cause was recorded with the response; otherwise it was inferred from the log.
    pub is_recorded: bool,
}

/// A compaction in the ledger.
#[derive(Clone, PartialEq, Debug)]
pub struct LedgerCompaction {
    /// Number of the first row behind it; one more than the number of rows if there is none.
    pub before_row: usize,
    /// Time of the compaction.
    pub at: Timestamp,
    /// Trigger, as in the log.
    pub trigger: SmolStr,
    /// Summary method, as in the log.
    pub method: SmolStr,
    /// Context size before.
    pub tokens_before: u64,
    /// Context size after.
    pub tokens_after: u64,
}

impl CostLedger {
    /// Builds the ledger of a log. `entries` are all its entries in order, abandoned branches included,
    /// because they were paid for, too.
    pub fn from_entries<'a>(
        entries: impl IntoIterator<Item = &'a LogEntry>,
        cards: &ModelCatalog,
    ) -> CostLedger {
        let mut booking = ledger_builder::LedgerBuilder::new(cards);
        for entry in entries {
            booking.take(entry);
        }
        booking.finish()
    }

    /// Unexpected cache-read drops, with their rows.
    pub fn breaks(&self) -> impl Iterator<Item = (&LedgerRow, &LedgerDrop)> {
        self.drops().filter(|(_, fall)| !fall.cache_break.cause.is_expected())
    }

    /// All cache-read drops, expected ones included.
    pub fn drops(&self) -> impl Iterator<Item = (&LedgerRow, &LedgerDrop)> {
        self.rows.iter().filter_map(|row| row.drop.as_ref().map(|fall| (row, fall)))
    }

    /// Cache-read drops by cause, most tokens first.
    pub fn drops_by_cause(&self) -> Vec<(&'static str, DropTotals)> {
        DropTotals::by_cause(self.drops().map(|(_, fall)| &fall.cache_break))
    }
}

impl PromptTokens {
    /// Total of all kinds.
    pub fn total(&self) -> u64 {
        [self.read, self.written_1h, self.written, self.uncached].into_iter().fold(0, u64::saturating_add)
    }
}

impl LedgerRow {
    /// Cost without any cache.
    pub fn cost_without_cache(&self) -> Option<f64> {
        Some(self.cost? + self.saved?)
    }

    /// Returns true for a request of the conversation itself.
    pub fn is_conversation(&self) -> bool {
        self.source.is_conversation()
    }

    /// Context size: as reported, else as estimated.
    pub fn context_tokens(&self) -> f64 {
        match self.context {
            Some(tokens) => tokens as f64,
            None => self.by_category.iter().map(|(_, tokens)| tokens).sum(),
        }
    }
}
