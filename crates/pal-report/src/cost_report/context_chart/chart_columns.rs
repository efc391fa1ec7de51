//! Columns of the chart, each for one request or several in a row.

use pal_context::{CostLedger, LedgerRow};

use super::SEGMENTS;

/// One column: a request, or several in a row.
#[derive(Default)]
pub(super) struct ChartColumn {
    /// Tokens of the largest context among them, by kind.
    pub(super) parts: [f64; SEGMENTS.len()],
    pub(super) compactions: usize,
    pub(super) breaks: usize,
    pub(super) cost: f64,
    pub(super) has_cost: bool,
    /// Tokens of their prompts, cache reads included.
    pub(super) prompt: u64,
    pub(super) read: u64,
}

impl ChartColumn {
    pub(super) fn tokens(&self) -> f64 {
        self.parts.iter().sum()
    }

    fn take(&mut self, row: &LedgerRow) {
        if row.context_tokens() > self.tokens() {
            self.parts = parts(row);
        }
        self.breaks += usize::from(
            row.drop.as_ref().is_some_and(|cache_drop| !cache_drop.cache_break.cause.is_expected()),
        );
        self.cost += row.cost.unwrap_or(0.0);
        self.has_cost |= row.cost.is_some();
        let prompt = row.prompt.unwrap_or_default();
        self.prompt = self.prompt.saturating_add(prompt.total());
        self.read = self.read.saturating_add(prompt.read);
    }
}

/// Spreads the requests over at most `room` columns, the same number in each but the last.
pub(super) fn columns(ledger: &CostLedger, rows: &[&LedgerRow], room: usize) -> Vec<ChartColumn> {
    let each = rows.len().div_ceil(room).max(1);
    let mut columns: Vec<ChartColumn> = rows
        .chunks(each)
        .map(|chunk| {
            let mut column = ChartColumn::default();
            chunk.iter().for_each(|row| column.take(row));
            column
        })
        .collect();
    for compaction in &ledger.compactions {
        // A compaction without a later request belongs to the last column.
        let at = rows.partition_point(|row| row.number < compaction.before_row) / each;
        let last = columns.len().saturating_sub(1);
        if let Some(column) = columns.get_mut(at.min(last)) {
            column.compactions += 1;
        }
    }
    columns
}

/// Context of a row by segment: estimated shares of the reported size.
fn parts(row: &LedgerRow) -> [f64; SEGMENTS.len()] {
    let estimated: f64 = row.by_category.iter().map(|(_, tokens)| tokens).sum();
    let scale = if estimated > 0.0 { row.context_tokens() / estimated } else { 0.0 };
    let mut parts = [0.0; SEGMENTS.len()];
    for (part, kind) in parts.iter_mut().zip(&SEGMENTS) {
        let of_kind = row.by_category.iter().filter(|(category, _)| kind.categories.contains(category));
        *part = scale * of_kind.map(|(_, tokens)| tokens).sum::<f64>();
    }
    parts
}
