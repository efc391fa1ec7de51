//! Prices of the models of an overview, as they were at the time of each response.

use pal_import::UsageRow;
use pal_model::{CacheCreation, FormerPrices, ModelCard, ModelCatalog, Usage};
use rustc_hash::FxHashMap;

/// Models by index, each looked up once.
pub(super) struct PricedModels<'a> {
    cards: &'a ModelCatalog,
    models: Vec<PricedModel>,
    ids: FxHashMap<String, usize>,
}

struct PricedModel {
    /// Name without its release date.
    name: String,
    /// Cards by the time until which their prices applied, oldest first; the last one without an end.
    cards: Vec<(i64, ModelCard)>,
}

/// Cost of one response in US dollars.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseCost {
    pub(super) total: f64,
    /// Part for output tokens that the transcript does not record.
    pub(super) added_output: f64,
    /// Cost of the same tokens without any cache.
    pub(super) without_cache: f64,
}

impl<'a> PricedModels<'a> {
    pub(super) fn new(cards: &'a ModelCatalog) -> PricedModels<'a> {
        PricedModels { cards, models: Vec::new(), ids: FxHashMap::default() }
    }

    pub(super) fn index(&mut self, model: &str) -> usize {
        if let Some(index) = self.ids.get(model) {
            return *index;
        }
        let card = self.cards.find(model).card;
        let former = self.cards.former_prices(model);
        let then = |former: &FormerPrices| {
            let card = ModelCard { prices: Some(former.prices), price_tier: former.cliff, ..card.clone() };
            (former.until.milliseconds(), card)
        };
        let mut cards: Vec<(i64, ModelCard)> = former.iter().map(then).collect();
        cards.push((i64::MAX, card));
        let name = if model.is_empty() { "(unknown)".to_owned() } else { without_date(model).to_owned() };
        self.models.push(PricedModel { name, cards });
        self.ids.insert(model.to_owned(), self.models.len() - 1);
        self.models.len() - 1
    }

    pub(super) fn name(&self, index: usize) -> &str {
        &self.models[index].name
    }

    /// Card with the prices of a time; those of today if the time is unknown.
    pub(super) fn card(&self, index: usize, at_ms: i64) -> &ModelCard {
        let cards = &self.models[index].cards;
        let now = cards.len() - 1;
        let at =
            if at_ms == 0 { now } else { cards.iter().position(|(until, _)| at_ms < *until).unwrap_or(now) };
        &cards[at].1
    }

    /// Cost of a response; `None` if no price is known. A cost recorded at the time goes before a computed one.
    pub(super) fn cost(&self, row: &UsageRow, index: usize) -> Option<ResponseCost> {
        let card = self.card(index, row.at_ms);
        let usage = usage_of(row);
        let computed = card.cost(&usage);
        let total = row.cost_recorded().or(computed)?;
        let recorded = Usage { output_tokens: u64::from(row.output), ..usage.clone() };
        let added_output =
            if row.is_estimated() { total - card.cost(&recorded).unwrap_or(total) } else { 0.0 };
        let plain = Usage {
            input_tokens: usage.prompt_tokens(),
            output_tokens: usage.output_tokens,
            ..Usage::default()
        };
        let without_cache = match (card.cost(&plain), computed) {
            (Some(plain), Some(computed)) => total + plain - computed,
            _ => total,
        };
        Some(ResponseCost { total, added_output: added_output.max(0.0), without_cache })
    }
}

/// Usage of a row, as cards price it.
pub(super) fn usage_of(row: &UsageRow) -> Usage {
    Usage {
        input_tokens: u64::from(row.uncached),
        cache_creation_input_tokens: u64::from(row.written),
        cache_read_input_tokens: u64::from(row.read),
        output_tokens: row.output_tokens(),
        cache_creation: (row.written_1h > 0).then(|| CacheCreation {
            ephemeral_5m_input_tokens: u64::from(row.written.saturating_sub(row.written_1h)),
            ephemeral_1h_input_tokens: u64::from(row.written_1h),
        }),
        ..Usage::default()
    }
}

/// Model name without its release date.
fn without_date(model: &str) -> &str {
    let (name, date) = model.rsplit_once('-').unwrap_or((model, ""));
    let is_date = date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit());
    if is_date { name } else { model }
}

#[cfg(test)]
mod tests {
    use pal_model::Timestamp;

    use super::*;

    fn day_ms(day: &str) -> i64 {
        format!("{day}T12:00:00Z").parse::<Timestamp>().unwrap().milliseconds()
    }

    #[test]
    fn a_response_is_priced_as_of_its_day() {
        let cards = ModelCatalog::built_in();
        let mut models = PricedModels::new(&cards);
        let sol = models.index("gpt-5.6-sol");
        let row = UsageRow { uncached: 100_000, output: 10_000, ..UsageRow::default() };
        let cost = |day: &str| models.cost(&UsageRow { at_ms: day_ms(day), ..row }, sol).unwrap().total;
        assert!((cost("2026-07-20") - 0.8).abs() < 1e-9, "5 and 30 dollars per million");
        assert!((cost("2026-08-20") - 0.8).abs() < 1e-9);
        assert!((cost("2026-08-21") - 0.6).abs() < 1e-9, "4 and 20 dollars from that day on");
        let unknown = models.index("gpt-5.3-codex-spark");
        assert!(models.cost(&row, unknown).is_none());
    }
}
