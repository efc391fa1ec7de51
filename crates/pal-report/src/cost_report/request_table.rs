//! Table with a row for each request.

use crate::text_layout::sanitize;
use crate::text_table::TextTable;
use crate::units::{format_duration, format_usd};
use pal_context::{CostLedger, LedgerRow};
use pal_model::text::group_digits;

pub(super) fn request_table(ledger: &CostLedger) -> TextTable {
    let heading = [
        "#", "start", "idle", "read", "written", "uncached", "output", "cost", "saved", "context", "source",
        "model", "",
    ];
    let mut table = TextTable::new(&heading, &[10, 11, 12]);
    for row in &ledger.rows {
        let unknown = || String::from("–");
        let tokens = |count: Option<u64>| count.map_or_else(unknown, group_digits);
        table.push_row(vec![
            row.number.to_string(),
            row.started
                .map_or_else(unknown, |at| at.to_string().get(5..19).unwrap_or_default().replace('T', " ")),
            row.idle_ms.map_or_else(String::new, format_duration),
            tokens(row.prompt.map(|prompt| prompt.read)),
            tokens(row.prompt.map(|prompt| prompt.written + prompt.written_1h)),
            tokens(row.prompt.map(|prompt| prompt.uncached)),
            if row.prompt.is_none() && row.output == 0 { unknown() } else { group_digits(row.output) },
            row.cost.map_or_else(unknown, format_usd),
            row.saved.map_or_else(unknown, format_usd),
            tokens(row.context),
            sanitize(row.source.as_str()),
            sanitize(&row.model),
            events(ledger, row),
        ]);
    }
    table
}

/// Decisions before a request, and its cache-read drop.
fn events(ledger: &CostLedger, row: &LedgerRow) -> String {
    let mut words: Vec<String> = Vec::new();
    for (kind, tokens) in &row.decisions {
        let kind = if kind == "boundary" { "compaction" } else { kind };
        let freed = if *tokens > 0 { format!(" −{}", group_digits(*tokens)) } else { String::new() };
        words.push(format!("{}{freed}", kind.replace('_', " ")));
    }
    if let Some(cache_drop) = &row.drop {
        let mark = if cache_drop.cache_break.cause.is_expected() { "" } else { "✗ " };
        words.push(format!(
            "{mark}{} −{} read",
            cache_drop.cache_break.cause.name().replace('_', " "),
            group_digits(cache_drop.cache_break.tokens)
        ));
    }
    let repeats = ledger.rows.len() > 1 && words.len() > 6;
    if repeats {
        let more = words.len() - 5;
        words.truncate(5);
        words.push(format!("and {more} more"));
    }
    words.join(", ")
}
