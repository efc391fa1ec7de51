//! Model cards: limits, prices and capabilities of models. Code consults the card, never the model's name.

use serde::Deserialize;
use smol_str::SmolStr;

use crate::{Timestamp, Usage};

/// Limits, prices and capabilities of a model.
#[derive(Clone, PartialEq, Debug)]
pub struct ModelCard {
    /// Model name sent to the provider.
    pub model: SmolStr,
    /// Name that finds this card again: the model with the `[1m]` suffix, if that chose the window. Logs record it.
    pub name: SmolStr,
    /// Context window in tokens.
    pub window: u64,
    /// Maximum output tokens of one response.
    pub max_output: u64,
    /// Tokenizer generation.
    pub generation: TokenGeneration,
    /// Prices, if known.
    pub prices: Option<TokenPrices>,
    /// Higher prices for long prompts, if any.
    pub price_tier: Option<PriceTier>,
    /// Smallest cacheable prefix in tokens; the provider ignores a cache breakpoint below it.
    pub min_cacheable: u64,
    /// Number of blocks that the provider looks back from a cache breakpoint.
    pub look_back: u64,
    /// Cache control of the endpoint.
    pub caching: CacheMode,
    /// Supported thinking modes.
    pub thinking: ThinkingModes,
    /// Effort of requests that set none.
    pub default_effort: SmolStr,
    /// Optional features of the model and its endpoint.
    pub can: ModelCapabilities,
    /// Block types and fields that this endpoint accepts beyond the built-in ones.
    pub extra: Vec<SmolStr>,
}

impl ModelCard {
    /// Returns the maximum prompt tokens. Providers without explicit cache control reserve the output tokens from the
    /// window.
    pub fn prompt_limit(&self) -> u64 {
        match self.caching {
            CacheMode::Explicit => self.window,
            // A card may promise answers as long as its window; half of it is left for the prompt.
            CacheMode::Automatic | CacheMode::Hybrid => {
                self.window.saturating_sub(self.max_output).max(self.window / 2)
            }
        }
    }

    /// Returns the cost of a response in US dollars, including passes billed in addition to the totals and the fees of
    /// web searches. The price tier is chosen by prompt size. None if the card has no prices.
    pub fn cost(&self, usage: &Usage) -> Option<f64> {
        let total = self.pass_cost(&PassTokens {
            input: usage.input_tokens,
            written: usage.cache_creation_input_tokens,
            written_1h: usage.cache_creation.map_or(0, |written| written.ephemeral_1h_input_tokens),
            read: usage.cache_read_input_tokens,
            output: usage.output_tokens,
        })?;
        let beside = usage.iterations.iter().flatten().filter(|pass| pass.kind == "compaction");
        let total = total + self.search_fees(usage);
        beside
            .map(|pass| {
                self.pass_cost(&PassTokens {
                    input: pass.input_tokens,
                    written: pass.cache_creation_input_tokens,
                    written_1h: 0,
                    read: pass.cache_read_input_tokens,
                    output: pass.output_tokens,
                })
            })
            .try_fold(total, |sum, cost| Some(sum + cost?))
    }

    /// Returns the fees of the provider's own web searches.
    fn search_fees(&self, usage: &Usage) -> f64 {
        let searches = usage.server_tool_use.map_or(0, |calls| calls.web_search_requests);
        searches as f64 * self.prices.map_or(0.0, |prices| prices.searches) / 1e3
    }

    /// Replaces the prices by those of a time. `former` are the model's former prices, oldest first.
    pub fn set_prices_at(&mut self, former: &[FormerPrices], at: Timestamp) {
        if let Some(then) = former.iter().find(|former| at < former.until) {
            self.prices = Some(then.prices);
            self.price_tier = then.cliff;
        }
    }

    fn pass_cost(&self, pass: &PassTokens) -> Option<f64> {
        let prompt = pass.input.saturating_add(pass.written).saturating_add(pass.read);
        let prices = match self.price_tier {
            Some(tier) if prompt > tier.above => tier.prices,
            _ => self.prices?,
        };
        let long = pass.written_1h.min(pass.written);
        let dollars = pass.input as f64 * prices.input
            + (pass.written - long) as f64 * prices.write_5m
            + long as f64 * prices.write_1h
            + pass.read as f64 * prices.read
            + pass.output as f64 * prices.output;
        Some(dollars / 1e6)
    }
}

/// Token counts of one pass.
struct PassTokens {
    input: u64,
    written: u64,
    written_1h: u64,
    read: u64,
    output: u64,
}

/// Tokenizer generation of a model. Token counts are never reused across generations.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenGeneration {
    /// Claude up to 4.6.
    Claude46,
    /// Claude from 4.7 on.
    Claude47,
    /// OpenAI's o200k encoding.
    O200k,
    /// Unknown tokenizer, counted like a typical vocabulary of 65,000 to 100,000 tokens.
    Neutral,
}

impl TokenGeneration {
    /// All generations, the unknown one last.
    pub const ALL: [TokenGeneration; 4] = [
        TokenGeneration::Claude46,
        TokenGeneration::Claude47,
        TokenGeneration::O200k,
        TokenGeneration::Neutral,
    ];

    /// Returns the name in logs and settings.
    pub fn name(self) -> &'static str {
        match self {
            TokenGeneration::Claude46 => "claude46",
            TokenGeneration::Claude47 => "claude47",
            TokenGeneration::O200k => "o200k",
            TokenGeneration::Neutral => "neutral",
        }
    }
}

/// Cache control of an endpoint: by the request, by the provider, or both.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheMode {
    /// The request decides with `cache_control`, as in the Messages dialect.
    #[serde(rename = "marks")]
    Explicit,
    /// The provider caches common prefixes by itself; cache writes are free.
    Automatic,
    /// The provider caches at the end of a prompt, and at content parts with `prompt_cache_breakpoint`. Cache writes are
    /// billed.
    #[serde(rename = "breakpoints")]
    Hybrid,
}

/// Price of 1,000 web searches where a table names none, in US dollars.
const SEARCHES_PRICE: f64 = 10.0;

/// Prices in US dollars, per million tokens unless said otherwise.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
pub struct TokenPrices {
    /// Uncached prompt tokens.
    pub input: f64,
    /// Output tokens.
    pub output: f64,
    /// Cache-write tokens with a TTL of five minutes.
    pub write_5m: f64,
    /// Cache-write tokens with a TTL of one hour.
    pub write_1h: f64,
    /// Cache-read tokens.
    pub read: f64,
    /// 1,000 web searches by the provider.
    #[serde(default = "usual_searches_price")]
    pub searches: f64,
}

fn usual_searches_price() -> f64 {
    SEARCHES_PRICE
}

/// Prices of a whole request whose prompt is larger than `above`.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
pub struct PriceTier {
    /// Prompt size in tokens, including cached ones.
    pub above: u64,
    /// Prices above that size.
    #[serde(flatten)]
    pub prices: TokenPrices,
}

/// Prices that a model had before a date.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
pub struct FormerPrices {
    /// First day, in UTC, on which these prices no longer apply.
    #[serde(deserialize_with = "day_start")]
    pub until: Timestamp,
    /// Prices before that day.
    #[serde(flatten)]
    pub prices: TokenPrices,
    /// Prices of long prompts before that day.
    #[serde(default)]
    pub cliff: Option<PriceTier>,
}

/// Reads a date such as `2026-08-21` as the start of that day.
fn day_start<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    let day = SmolStr::deserialize(deserializer)?;
    format!("{day}T00:00:00Z")
        .parse()
        .map_err(|_| serde::de::Error::custom(format!("`{day}` is not a date; write it like \"2026-08-21\"")))
}

/// Values of `thinking.type` that a model accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ThinkingModes {
    /// The model decides how much to think.
    pub adaptive: bool,
    /// Thinking with a fixed budget.
    pub enabled: bool,
    /// Thinking can be switched off.
    pub disabled: bool,
    /// Thinking only between tool calls.
    pub between_tools: bool,
}

impl ThinkingModes {
    /// Returns true if the model can think and thus accepts thinking blocks.
    pub fn is_supported(self) -> bool {
        self.adaptive || self.enabled || self.between_tools
    }
}

/// Optional features of a model and its endpoint.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ModelCapabilities {
    /// Thinking blocks are valid only while everything before them is unchanged.
    pub bound_thinking: bool,
    /// The provider drops the thinking of earlier turns from the prompt at each new user message.
    pub forgets_thinking: bool,
    /// Accepts system messages inside the conversation.
    pub system_messages: bool,
    /// Context-management edits that the provider runs.
    pub context_management: Vec<SmolStr>,
    /// The provider summarizes on demand.
    pub provider_compaction: bool,
    /// Accepts deferred tools and tool references.
    pub tool_search: bool,
    /// The provider searches the web for the model.
    pub web_search: bool,
    /// Shows the model a token budget that the request states.
    pub task_budgets: bool,
    /// Accepts tools added and removed in the middle of a conversation.
    pub tool_changes: bool,
    /// The provider explains cache misses.
    pub cache_diagnostics: bool,
    /// Accepts cache breakpoints with a scope; private to one vendor's client.
    pub cache_scopes: bool,
    /// Deletes cached results in place; private to one vendor's client.
    pub cache_edits: bool,
    /// Accepts images.
    pub images: bool,
    /// Accepts documents.
    pub documents: bool,
    /// Accepts `any` and `tool` as `tool_choice`.
    pub forced_tool_choice: bool,
    /// Accepts an assistant message as the last one.
    pub prefill: bool,
    /// Accepts sampling parameters.
    pub sampling: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModelCatalog;

    #[test]
    fn cost_depends_on_token_kind_and_price_tier() {
        let cards = ModelCatalog::built_in();
        let usage: Usage = serde_json::from_str(
            r#"{"input_tokens":1000,"cache_creation_input_tokens":3000,"cache_read_input_tokens":10000,"output_tokens":100,"cache_creation":{"ephemeral_5m_input_tokens":1000,"ephemeral_1h_input_tokens":2000},"iterations":[{"type":"compaction","input_tokens":500,"output_tokens":10}]}"#,
        )
        .unwrap();
        let cost = cards.find("claude-opus-5-5").card.cost(&usage).unwrap();
        let by_hand = (1000.0 * 4.0
            + 1000.0 * 5.0
            + 2000.0 * 8.0
            + 10000.0 * 0.2
            + 100.0 * 20.0
            + 500.0 * 4.0
            + 10.0 * 20.0)
            / 1e6;
        assert!((cost - by_hand).abs() < 1e-12, "{cost} {by_hand}");
        let searched: Usage =
            serde_json::from_str(r#"{"server_tool_use":{"web_search_requests":3,"web_fetch_requests":1}}"#)
                .unwrap();
        assert_eq!(cards.find("claude-opus-5-5").card.cost(&searched), Some(0.03));
        let haiku = cards.find("claude-haiku-5-5").card;
        let small = Usage { input_tokens: 100_000, ..Usage::default() };
        let large = Usage { input_tokens: 100_001, ..Usage::default() };
        assert!(haiku.cost(&large).unwrap() > 4.9 * haiku.cost(&small).unwrap());
        assert_eq!(cards.find("unknown-model").card.cost(&small), None);
    }
}
