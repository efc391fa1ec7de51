//! Savings of each layer, from the log and the prices of the model card.

use std::io::Write;

use pal_context::CostLedger;
use pal_model::text::group_digits;
use pal_model::{EntryBody, LogEntry, ModelCatalog};
use pal_report::{TextTable, format_usd};
use serde_json::{Value, json};

use super::scratch_dir::MODEL;
use super::session_events::{SessionEvents, SpillEvent};
use crate::failure::Failure;
use crate::terminal_style::auto_style;

/// Savings of a layer.
pub(super) struct LayerSavings {
    /// Name of the layer.
    pub(super) layer: &'static str,
    /// Number of actions.
    pub(super) times: u64,
    /// Tokens kept out of the context; for the cache, tokens read from it.
    pub(super) tokens: u64,
    /// The same, summed over all requests that would have contained them.
    pub(super) not_sent: u64,
    /// Value in US dollars.
    pub(super) worth: f64,
}

/// Computes the savings of each layer. Removed content is worth at least its cache-read price in every later request.
pub(super) fn by_layer(
    ledger: &CostLedger,
    entries: &[LogEntry],
    events: &SessionEvents,
    cards: &ModelCatalog,
) -> Vec<LayerSavings> {
    let read = cards.find(MODEL).card.prices.map_or(0.0, |prices| prices.read / 1e6);
    let spilled = |layer, is_condensed| {
        let spills =
            || events.spills.iter().filter(move |spill: &&SpillEvent| spill.is_condensed == is_condensed);
        let not_sent: u64 =
            answers_after_spills(entries, is_condensed).iter().map(|(freed, answers)| freed * answers).sum();
        LayerSavings {
            layer,
            times: spills().count() as u64,
            tokens: spills().map(|spill| spill.tokens_freed).sum(),
            not_sent,
            worth: not_sent as f64 * read,
        }
    };
    let decided = |layer, kind: &str| {
        let saving = ledger.savings.iter().find(|saving| saving.kind == kind);
        let of = |count: fn(&pal_context::DecisionSaving) -> u64| saving.map_or(0, count);
        LayerSavings {
            layer,
            times: of(|saving| saving.decisions),
            tokens: of(|saving| saving.tokens_freed),
            not_sent: of(|saving| saving.tokens_not_sent),
            worth: saving.map_or(0.0, |saving| saving.cost),
        }
    };
    let hits = ledger.rows.iter().filter(|row| row.prompt.is_some_and(|prompt| prompt.read > 0)).count();
    let all = &ledger.all;
    vec![
        spilled("spill", false),
        spilled("condense", true),
        // One action is several decisions: one for each way to read the results back.
        LayerSavings { times: count_clears(events), ..decided("microcompact", "clear") },
        decided("compaction", "boundary"),
        LayerSavings {
            layer: "cache",
            times: hits as u64,
            tokens: all.prompt.read,
            not_sent: 0,
            worth: all.saved,
        },
    ]
}

/// Counts how often old results were cleared.
fn count_clears(events: &SessionEvents) -> u64 {
    let mut reasons: Vec<&str> = events.clears.iter().map(|clear| clear.reason.as_str()).collect();
    reasons.dedup();
    reasons.len() as u64
}

/// Returns the freed tokens of each spill, and the number of answers after it.
fn answers_after_spills(entries: &[LogEntry], is_condensed: bool) -> Vec<(u64, u64)> {
    let mut behind: Vec<(u64, u64)> = Vec::new();
    for entry in entries {
        match &entry.body {
            EntryBody::Decision(decision)
                if matches!(decision.kind, pal_model::DecisionKind::Spill { .. })
                    && decision.reason.ends_with("is condensed") == is_condensed =>
            {
                behind.push((decision.cost.tokens_freed, 0));
            }
            EntryBody::Response(response) if response.source.is_conversation() => {
                behind.iter_mut().for_each(|(_, answers)| *answers += 1);
            }
            _ => {}
        }
    }
    behind
}

/// Prints the savings as a table.
pub(super) fn table(saved: &[LayerSavings], out: &mut dyn Write) -> Result<(), Failure> {
    let heading = ["layer", "acted", "tokens", "not sent", "saved", "effect"];
    let mut table = TextTable::new(&heading, &[0, 5]);
    for row in saved {
        let what = match row.layer {
            "spill" => "long results on disk",
            "condense" => "verbose output shortened",
            "microcompact" => "old results cleared",
            "compaction" => "summary for a full window",
            _ => "prompts read from cache",
        };
        let not_sent = if row.layer == "cache" { String::from("–") } else { group_digits(row.not_sent) };
        table.push_row(vec![
            row.layer.to_owned(),
            format!("{} ×", row.times),
            group_digits(row.tokens),
            not_sent,
            format_usd(row.worth),
            what.to_owned(),
        ]);
    }
    Ok(table.write(auto_style(), out)?)
}

/// Converts the savings to JSON.
pub(super) fn json(saved: &[LayerSavings]) -> Value {
    let row = |row: &LayerSavings| {
        json!({
            "layer": row.layer, "times": row.times, "tokens": row.tokens, "tokens_not_sent": row.not_sent,
            "worth_usd": row.worth,
        })
    };
    saved.iter().map(row).collect()
}
