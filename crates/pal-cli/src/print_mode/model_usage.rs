//! Usage and cost by model, over all prompts of a run.

use std::collections::BTreeMap;

use pal_events::ExchangeReport;
use pal_model::{ModelCatalog, UsageBasis, UsageTotals};
use serde_json::{Map, Value, json};
use smol_str::SmolStr;

/// Usage by model, background work and subagents included.
pub(super) struct ModelUsage {
    cards: ModelCatalog,
    totals: BTreeMap<SmolStr, UsageTotals>,
    /// Windows of the models in use, where they are not those of the name.
    windows: BTreeMap<SmolStr, u64>,
    /// Web searches by the provider.
    searches: BTreeMap<SmolStr, u64>,
}

impl ModelUsage {
    pub(super) fn new(cards: ModelCatalog) -> ModelUsage {
        ModelUsage { cards, totals: BTreeMap::new(), windows: BTreeMap::new(), searches: BTreeMap::new() }
    }

    /// Adds an exchange with a provider.
    pub(super) fn add(&mut self, report: &ExchangeReport) {
        // A server that reports no usage is not shown with zeros.
        let Some(usage) = report.usage.as_ref().filter(|usage| usage.is_reported()) else { return };
        if let Some(window) = report.window {
            self.windows.insert(report.model.clone(), window);
        }
        let searches = usage.server_tool_use.map_or(0, |calls| calls.web_search_requests);
        *self.searches.entry(report.model.clone()).or_default() += searches;
        let totals = self.totals.entry(report.model.clone()).or_default();
        totals.add_totals(&UsageTotals {
            responses: 1,
            simulated: u64::from(usage.basis == UsageBasis::Simulated),
            input_tokens: usage.input_tokens,
            cache_creation_input_tokens: usage.cache_creation_input_tokens,
            cache_read_input_tokens: usage.cache_read_input_tokens,
            output_tokens: usage.output_tokens,
            cost: report.cost.unwrap_or(0.0),
        });
    }

    /// The member `modelUsage` of a result.
    pub(super) fn to_json(&self) -> Value {
        let entry = |(model, totals): (&SmolStr, &UsageTotals)| {
            let card = self.cards.find(model).card;
            let usage = json!({
                "inputTokens": totals.input_tokens, "outputTokens": totals.output_tokens,
                "cacheReadInputTokens": totals.cache_read_input_tokens,
                "cacheCreationInputTokens": totals.cache_creation_input_tokens,
                "webSearchRequests": self.searches.get(model).copied().unwrap_or_default(), "costUSD": totals.cost,
                "contextWindow": self.windows.get(model).copied().unwrap_or(card.window),
                 "maxOutputTokens": card.max_output,
            });
            (model.to_string(), usage)
        };
        Value::Object(self.totals.iter().map(entry).collect::<Map<_, _>>())
    }
}
