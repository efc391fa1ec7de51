//! The ledger as one JSON object.

use pal_context::{CostTotals, DecisionSaving, DropTotals, LedgerCompaction, LedgerRow, PromptTokens};
use serde_json::{Map, Value, json};

use super::CostReport;

pub(super) fn cost_object(report: &CostReport<'_>) -> Value {
    let ledger = report.ledger;
    let sources: Map<String, Value> =
        ledger.by_source.iter().map(|(source, totals)| (source.as_str().to_owned(), sums(totals))).collect();
    let causes: Map<String, Value> = ledger
        .drops_by_cause()
        .iter()
        .map(|(name, totals)| ((*name).to_owned(), cache_drops(totals)))
        .collect();
    let models: Map<String, Value> =
        ledger.by_model.iter().map(|(model, totals)| (model.to_string(), sums(totals))).collect();
    json!({
        "session": report.path.to_string_lossy(),
        "name": report.name,
        "all": sums(&ledger.all),
        "by_source": sources,
        "by_model": models,
        "falls_by_cause": causes,
        "savings": ledger.savings.iter().map(saving).collect::<Vec<_>>(),
        "compactions": ledger.compactions.iter().map(compaction).collect::<Vec<_>>(),
        "requests": ledger.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

/// Sums; money is null if no price is known.
fn sums(totals: &CostTotals) -> Value {
    let cost = totals.known_cost();
    json!({
        "requests": totals.requests, "unreported": totals.unreported, "unpriced": totals.unpriced,
        "estimated": totals.estimated, "simulated": totals.simulated,
        "prompt": prompt(&totals.prompt), "output": totals.output, "beside": totals.additional,
        "share_read": totals.share_read(), "cost": cost, "saved": cost.map(|_| totals.saved),
        "cost_without_cache": cost.map(|cost| cost + totals.saved),
    })
}

fn prompt(tokens: &PromptTokens) -> Value {
    json!({
        "read": tokens.read, "written": tokens.written, "written_1h": tokens.written_1h, "uncached": tokens.uncached,
    })
}

fn cache_drops(totals: &DropTotals) -> Value {
    json!({"falls": totals.drops, "tokens": totals.tokens, "cost": totals.cost, "unpriced": totals.unpriced})
}

fn saving(saving: &DecisionSaving) -> Value {
    json!({
        "kind": saving.kind, "decisions": saving.decisions, "tokens_freed": saving.tokens_freed,
        "tokens_not_sent": saving.tokens_not_sent, "cost": saving.cost,
    })
}

fn compaction(compaction: &LedgerCompaction) -> Value {
    json!({
        "before_request": compaction.before_row, "at": compaction.at, "trigger": compaction.trigger,
        "how": compaction.method, "tokens_before": compaction.tokens_before, "tokens_after": compaction.tokens_after,
    })
}

fn row(row: &LedgerRow) -> Value {
    let categories: Map<String, Value> = row
        .by_category
        .iter()
        .map(|(category, tokens)| (category.name().replace(' ', "_"), json!(tokens.round())))
        .collect();
    json!({
        "number": row.number, "source": row.source, "model": row.model, "started": row.started, "idle_ms": row.idle_ms,
        "prompt": row.prompt.as_ref().map(prompt), "output": row.output, "beside": row.additional, "cost": row.cost,
        "saved": row.saved, "cost_without_cache": row.cost_without_cache(), "context": row.context,
        "by_category": categories, "layers": row.layers,
        "decisions": row.decisions.iter().map(|(kind, freed)| json!({"kind": kind, "tokens_freed": freed}))
            .collect::<Vec<_>>(),
        "fall": row.drop.as_ref().map(|cache_drop| json!({"what": cache_drop.cache_break, "recorded": cache_drop.is_recorded})),
    })
}
