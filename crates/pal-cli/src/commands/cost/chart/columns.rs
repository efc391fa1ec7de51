//! Requests to columns: each as it is, or several as one.

use pal_context::{Ledger, LedgerRow};

use super::KINDS;

/// One column: a request, or several in a row.
#[derive(Default)]
pub(super) struct Column {
    /// Tokens of the largest context among them, by kind.
    pub(super) parts: [f64; KINDS.len()],
    pub(super) compactions: usize,
    pub(super) breaks: usize,
    pub(super) cost: f64,
    pub(super) has_cost: bool,
    /// Tokens of their prompts, and how many of these were read from the cache.
    pub(super) prompt: u64,
    pub(super) read: u64,
}

impl Column {
    pub(super) fn tokens(&self) -> f64 {
        self.parts.iter().sum()
    }

    fn take(&mut self, row: &LedgerRow) {
        if row.context_tokens() > self.tokens() {
            self.parts = parts(row);
        }
        self.breaks += usize::from(row.fall.as_ref().is_some_and(|fall| !fall.what.cause.is_expected()));
        self.cost += row.cost.unwrap_or(0.0);
        self.has_cost |= row.cost.is_some();
        let prompt = row.prompt.unwrap_or_default();
        self.prompt = self.prompt.saturating_add(prompt.total());
        self.read = self.read.saturating_add(prompt.read);
    }
}

/// The requests in at most `room` columns, as many in each as in any other but the last.
pub(super) fn columns(ledger: &Ledger, rows: &[&LedgerRow], room: usize) -> Vec<Column> {
    let each = rows.len().div_ceil(room).max(1);
    let mut columns: Vec<Column> = rows
        .chunks(each)
        .map(|chunk| {
            let mut column = Column::default();
            chunk.iter().for_each(|row| column.take(row));
            column
        })
        .collect();
    for compaction in &ledger.compactions {
        // One that nothing was asked after stands at the end.
        let at = rows.partition_point(|row| row.number < compaction.before_row) / each;
        let last = columns.len().saturating_sub(1);
        if let Some(column) = columns.get_mut(at.min(last)) {
            column.compactions += 1;
        }
    }
    columns
}

/// The context of a row by kind: the estimated shares of the size that was reported.
fn parts(row: &LedgerRow) -> [f64; KINDS.len()] {
    let estimated: f64 = row.by_category.iter().map(|(_, tokens)| tokens).sum();
    let scale = if estimated > 0.0 { row.context_tokens() / estimated } else { 0.0 };
    let mut parts = [0.0; KINDS.len()];
    for (part, kind) in parts.iter_mut().zip(&KINDS) {
        let of_kind = row.by_category.iter().filter(|(category, _)| kind.categories.contains(category));
        *part = scale * of_kind.map(|(_, tokens)| tokens).sum::<f64>();
    }
    parts
}
