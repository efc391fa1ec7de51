//! The overview as one JSON object.

use pal_context::DropTotals;
use serde_json::{Map, Value, json};

use super::{CostOverview, OverviewKey, OverviewTotals};

impl CostOverview {
    /// Returns the overview as one JSON object. Money is in US dollars, and null where no price is known.
    pub fn to_json(&self) -> Value {
        let sources = &self.sources;
        let causes: Map<String, Value> =
            self.misses.iter().map(|(cause, drops)| ((*cause).to_owned(), drop_object(drops))).collect();
        json!({
            "by": self.keys.iter().map(|key| key.name()).collect::<Vec<_>>(),
            "groups": self.groups.iter().map(|group| group_object(&self.keys, &group.values, &group.totals)).collect::<Vec<_>>(),
            "all": totals_object(&self.all),
            "misses_by_cause": causes,
            "unpriced_models": self.unpriced_models,
            "sessions": sources.sessions,
            "repeated_responses": sources.repeated, "undated_responses": sources.undated,
            "deleted_files": sources.deleted_files, "unknown_files": sources.unknown_files, "bad_lines": sources.bad_lines,
            "first_day": sources.days.as_ref().map(|(first, _)| first), "last_day": sources.days.as_ref().map(|(_, last)| last),
        })
    }
}

fn group_object(keys: &[OverviewKey], values: &[String], totals: &OverviewTotals) -> Value {
    let mut object: Map<String, Value> =
        keys.iter().zip(values).map(|(key, value)| (key.name().to_owned(), json!(value))).collect();
    if let Value::Object(figures) = totals_object(totals) {
        object.extend(figures);
    }
    Value::Object(object)
}

fn totals_object(totals: &OverviewTotals) -> Value {
    let cost = totals.known_cost();
    json!({
        "requests": totals.requests, "unreported": totals.unreported, "unpriced": totals.unpriced,
        "estimated": totals.estimated, "simulated": totals.simulated,
        "cache_read_tokens": totals.prompt.read, "cache_write_tokens": totals.prompt.written + totals.prompt.written_1h,
        "cache_write_1h_tokens": totals.prompt.written_1h, "input_tokens": totals.prompt.uncached,
        "output_tokens": totals.output, "output_tokens_recorded": totals.output - totals.output_added,
        "cost_usd": cost, "cost_usd_recorded": cost.map(|cost| cost - totals.cost_added),
        "simulated_cost_usd": (totals.simulated > 0).then_some(totals.cost_simulated),
        "saved_by_cache_usd": cost.map(|_| totals.saved), "misses": drop_object(&totals.misses),
    })
}

fn drop_object(drops: &DropTotals) -> Value {
    json!({"count": drops.drops, "tokens": drops.tokens, "cost_usd": drops.cost, "unpriced": drops.unpriced})
}
