//! The ledger (§5.12, §10.10): what every request of a log took and cost, what the cache and the decisions saved, and
//! every fall of the reads with its cause and price.
//!
//! One pass over the entries of a log, in their order. What was not reported stays unknown: it is counted, and never
//! taken for nothing.

mod booking;
mod fall;
mod row;
mod totals;

use pal_model::{CacheBreak, Cards, Entry, LayerReport, Source, Timestamp};
use pal_view::Category;
use smol_str::SmolStr;

pub use totals::{FallTotals, Saving, Totals};

/// What a session took, request by request, and in all.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Ledger {
    /// The requests that were answered, in the order of the log.
    pub rows: Vec<LedgerRow>,
    /// The sums of all rows.
    pub all: Totals,
    /// The sums by who asked, in the order of their first request.
    pub by_source: Vec<(Source, Totals)>,
    /// The sums by the model that answered, in the order of their first answer.
    pub by_model: Vec<(SmolStr, Totals)>,
    /// What decisions took out of sight, by their kind; `boundary` for compactions.
    pub savings: Vec<Saving>,
    /// The compactions that stand or stood, in the order of the log.
    pub compactions: Vec<Compacting>,
}

/// One request that was answered.
#[derive(Clone, PartialEq, Debug)]
pub struct LedgerRow {
    /// Its number, from 1.
    pub number: usize,
    /// Who asked.
    pub source: Source,
    /// The model that answered.
    pub model: SmolStr,
    /// When the request left; none if the log does not say.
    pub started: Option<Timestamp>,
    /// Milliseconds since the request before it left that shares its cache.
    pub idle_ms: Option<u64>,
    /// The tokens of its prompt by kind; none if they were not reported.
    pub prompt: Option<PromptTokens>,
    /// Tokens that the model wrote.
    pub output: u64,
    /// Tokens of passes that are billed beside the prompt and the output, such as a compaction by the provider.
    pub beside: u64,
    /// What it cost, in US dollars; none if its prompt was not reported or the model has no prices.
    pub cost: Option<f64>,
    /// What the cache saved of that, against the same prompt without any cache; less than nothing where more was paid
    /// for writing than was gained by reading.
    pub saved: Option<f64>,
    /// The size of the context with the answer, as reported.
    pub context: Option<u64>,
    /// Estimated tokens of that context by category; empty for requests beside the conversation.
    pub by_category: Vec<(Category, f64)>,
    /// What the layers said before it left.
    pub layers: Vec<LayerReport>,
    /// Decisions since the row before that change what is sent: their kinds, and the tokens that each freed.
    pub decisions: Vec<(SmolStr, u64)>,
    /// Reads from the cache that fell with it.
    pub fall: Option<Fall>,
}

/// The tokens of a prompt by how they were paid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PromptTokens {
    /// Read from the cache.
    pub read: u64,
    /// Written to the cache for an hour.
    pub written_1h: u64,
    /// Written to the cache for less, or for a time that was not reported.
    pub written: u64,
    /// Neither read nor written.
    pub uncached: u64,
}

/// A fall of the reads.
#[derive(Clone, PartialEq, Debug)]
pub struct Fall {
    /// What is known of it.
    pub what: CacheBreak,
    /// Whether the verdict was recorded with the response. Otherwise it was drawn from what the log holds.
    pub is_recorded: bool,
}

/// A compaction.
#[derive(Clone, PartialEq, Debug)]
pub struct Compacting {
    /// The number of the first row behind it; one more than there are rows if none is.
    pub before_row: usize,
    /// When.
    pub at: Timestamp,
    /// What set it off.
    pub trigger: SmolStr,
    /// How its summary came about.
    pub how: SmolStr,
    /// The size of the context before.
    pub tokens_before: u64,
    /// The size of the context after.
    pub tokens_after: u64,
}

impl Ledger {
    /// The ledger of a log: all its entries in their order, those of branches that were left included, because they were
    /// paid for, too.
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>, cards: &Cards) -> Ledger {
        let mut booking = booking::Booking::new(cards);
        for entry in entries {
            booking.take(entry);
        }
        booking.finish()
    }

    /// The falls of the reads that nothing announced, with their rows.
    pub fn breaks(&self) -> impl Iterator<Item = (&LedgerRow, &Fall)> {
        self.falls().filter(|(_, fall)| !fall.what.cause.is_expected())
    }

    /// All falls of the reads, expected ones included.
    pub fn falls(&self) -> impl Iterator<Item = (&LedgerRow, &Fall)> {
        self.rows.iter().filter_map(|row| row.fall.as_ref().map(|fall| (row, fall)))
    }

    /// The falls by the name of their cause, most tokens first.
    pub fn falls_by_cause(&self) -> Vec<(&'static str, FallTotals)> {
        FallTotals::by_cause(self.falls().map(|(_, fall)| &fall.what))
    }
}

impl PromptTokens {
    /// All of them.
    pub fn total(&self) -> u64 {
        [self.read, self.written_1h, self.written, self.uncached].into_iter().fold(0, u64::saturating_add)
    }
}

impl LedgerRow {
    /// What it would have cost without any cache.
    pub fn cost_without_cache(&self) -> Option<f64> {
        Some(self.cost? + self.saved?)
    }

    /// Whether it carries the conversation itself.
    pub fn is_conversation(&self) -> bool {
        self.source.is_conversation()
    }

    /// The size of the context: as reported, else as estimated.
    pub fn context_tokens(&self) -> f64 {
        match self.context {
            Some(tokens) => tokens as f64,
            None => self.by_category.iter().map(|(_, tokens)| tokens).sum(),
        }
    }
}
