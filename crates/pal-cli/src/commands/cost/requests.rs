//! A row for every request.

use pal_context::{Ledger, LedgerRow};

use crate::table::{Table, duration, harmless, money, thousands};

pub(super) fn table(ledger: &Ledger) -> Table {
    let heading = [
        "#", "start", "idle", "read", "written", "uncached", "output", "cost", "saved", "context", "source",
        "model", "",
    ];
    let mut table = Table::new(&heading, &[10, 11, 12]);
    for row in &ledger.rows {
        let unknown = || String::from("–");
        let tokens = |count: Option<u64>| count.map_or_else(unknown, thousands);
        table.row(vec![
            row.number.to_string(),
            row.started
                .map_or_else(unknown, |at| at.to_string().get(5..19).unwrap_or_default().replace('T', " ")),
            row.idle_ms.map_or_else(String::new, duration),
            tokens(row.prompt.map(|prompt| prompt.read)),
            tokens(row.prompt.map(|prompt| prompt.written + prompt.written_1h)),
            tokens(row.prompt.map(|prompt| prompt.uncached)),
            if row.prompt.is_none() && row.output == 0 { unknown() } else { thousands(row.output) },
            row.cost.map_or_else(unknown, money),
            row.saved.map_or_else(unknown, money),
            tokens(row.context),
            harmless(row.source.as_str()),
            harmless(&row.model),
            events(ledger, row),
        ]);
    }
    table
}

/// What happened before a request, and with it.
fn events(ledger: &Ledger, row: &LedgerRow) -> String {
    let mut words: Vec<String> = Vec::new();
    for (kind, tokens) in &row.decisions {
        let kind = if kind == "boundary" { "compaction" } else { kind };
        let freed = if *tokens > 0 { format!(" −{}", thousands(*tokens)) } else { String::new() };
        words.push(format!("{}{freed}", kind.replace('_', " ")));
    }
    if let Some(fall) = &row.fall {
        let mark = if fall.what.cause.is_expected() { "" } else { "✗ " };
        words.push(format!(
            "{mark}{} −{} read",
            fall.what.cause.name().replace('_', " "),
            thousands(fall.what.tokens)
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
