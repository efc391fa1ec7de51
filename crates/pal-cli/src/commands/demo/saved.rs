//! What each layer saved, from the log and the prices of the model's card.

use std::io::Write;

use pal_context::Ledger;
use pal_model::{Body, Cards, Entry};
use serde_json::{Value, json};

use super::happened::{Happened, Spilled};
use super::stage::MODEL;
use crate::failure::Failure;
use crate::table::{Table, money, thousands};

/// What a layer saved.
pub(super) struct Saved {
    /// The layer.
    pub(super) layer: &'static str,
    /// How often it acted.
    pub(super) times: u64,
    /// Tokens that it kept out of the context; for the cache, tokens that were read from it.
    pub(super) tokens: u64,
    /// The same, summed over all requests that would have carried them.
    pub(super) not_sent: u64,
    /// What that is worth, in US dollars.
    pub(super) worth: f64,
}

/// What every layer saved. Out of sight is worth at least the price of reading it from the cache with every request.
pub(super) fn by_layer(ledger: &Ledger, entries: &[Entry], happened: &Happened, cards: &Cards) -> Vec<Saved> {
    let read = cards.find(MODEL).card.prices.map_or(0.0, |prices| prices.read / 1e6);
    let spilled = |layer, is_condensed| {
        let spills =
            || happened.spills.iter().filter(move |spill: &&Spilled| spill.is_condensed == is_condensed);
        let not_sent: u64 =
            answers_behind(entries, is_condensed).iter().map(|(freed, answers)| freed * answers).sum();
        Saved {
            layer,
            times: spills().count() as u64,
            tokens: spills().map(|spill| spill.tokens_freed).sum(),
            not_sent,
            worth: not_sent as f64 * read,
        }
    };
    let decided = |layer, kind: &str| {
        let saving = ledger.savings.iter().find(|saving| saving.kind == kind);
        let of = |count: fn(&pal_context::Saving) -> u64| saving.map_or(0, count);
        Saved {
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
        // One act is a decision for each way in which results can be read back.
        Saved { times: acts(happened), ..decided("microcompact", "clear") },
        decided("compaction", "boundary"),
        Saved { layer: "cache", times: hits as u64, tokens: all.prompt.read, not_sent: 0, worth: all.saved },
    ]
}

/// How often old results were cleared.
fn acts(happened: &Happened) -> u64 {
    let mut reasons: Vec<&str> = happened.clears.iter().map(|clear| clear.reason.as_str()).collect();
    reasons.dedup();
    reasons.len() as u64
}

/// What each spill freed, and how many answers of the conversation came after it.
fn answers_behind(entries: &[Entry], is_condensed: bool) -> Vec<(u64, u64)> {
    let mut behind: Vec<(u64, u64)> = Vec::new();
    for entry in entries {
        match &entry.body {
            Body::Decision(decision)
                if matches!(decision.kind, pal_model::DecisionKind::Spill { .. })
                    && decision.reason.ends_with("is condensed") == is_condensed =>
            {
                behind.push((decision.cost.tokens_freed, 0));
            }
            Body::Response(response) if response.source.is_conversation() => {
                behind.iter_mut().for_each(|(_, answers)| *answers += 1);
            }
            _ => {}
        }
    }
    behind
}

/// The table for people.
pub(super) fn table(saved: &[Saved], out: &mut dyn Write) -> Result<(), Failure> {
    let heading = ["layer", "acted", "tokens", "not sent", "worth", "what it does"];
    let mut table = Table::new(&heading, &[0, 5]);
    for row in saved {
        let what = match row.layer {
            "spill" => "long results go to disk",
            "condense" => "verbose output is shortened",
            "microcompact" => "old results are cleared",
            "compaction" => "a summary for a full window",
            _ => "read instead of sent anew",
        };
        let not_sent = if row.layer == "cache" { String::from("–") } else { thousands(row.not_sent) };
        table.row(vec![
            row.layer.to_owned(),
            format!("{} ×", row.times),
            thousands(row.tokens),
            not_sent,
            money(row.worth),
            what.to_owned(),
        ]);
    }
    Ok(table.write(out)?)
}

/// The same for programs.
pub(super) fn json(saved: &[Saved]) -> Value {
    let row = |row: &Saved| {
        json!({
            "layer": row.layer, "times": row.times, "tokens": row.tokens, "tokens_not_sent": row.not_sent,
            "worth_usd": row.worth,
        })
    };
    saved.iter().map(row).collect()
}
