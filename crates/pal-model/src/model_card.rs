//! Model cards: limits, prices and capabilities of models. Code consults the card, never the model's name.

use std::collections::BTreeMap;

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

    /// Returns the cost of a response in US dollars, including passes billed in addition to the totals. The price tier
    /// is chosen by prompt size. None if the card has no prices.
    pub fn cost(&self, usage: &Usage) -> Option<f64> {
        let total = self.pass_cost(&PassTokens {
            input: usage.input_tokens,
            written: usage.cache_creation_input_tokens,
            written_1h: usage.cache_creation.map_or(0, |written| written.ephemeral_1h_input_tokens),
            read: usage.cache_read_input_tokens,
            output: usage.output_tokens,
        })?;
        let beside = usage.iterations.iter().flatten().filter(|pass| pass.kind == "compaction");
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

/// Prices in US dollars per million tokens.
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

/// Result of a card lookup.
#[derive(Clone, PartialEq, Debug)]
pub struct CardLookup {
    /// Card of the model; a conservative default if the model is unknown.
    pub card: ModelCard,
    /// Notice for the user: the model is not in the table.
    pub notice: Option<String>,
}

/// Suffix of a model name that chooses a window of 1,000,000 tokens.
const MILLION_SUFFIX: &str = "[1m]";

/// Returns the name that is sent to the provider: without the suffix that chooses the window.
pub fn sent_model_name(name: &str) -> &str {
    name.strip_suffix(MILLION_SUFFIX).unwrap_or(name)
}

/// All model cards: the built-in table overridden by the user's.
#[derive(Clone, Debug)]
pub struct ModelCatalog {
    /// Fields of Claude's cards that the card itself does not have.
    claude_defaults: RawCard,
    /// The same for all other cards: only what the user's table says.
    other_defaults: RawCard,
    models: BTreeMap<SmolStr, RawCard>,
}

/// Error of reading a model table.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the model table: {0}")]
pub struct CatalogError(String);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct CardTable {
    defaults: RawCard,
    models: BTreeMap<SmolStr, RawCard>,
}

macro_rules! raw_card {
    ($($field:ident: $type:ty,)*) => {
        /// A card as written in a table. Missing fields come from the card named by `like`, then from the defaults.
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        struct RawCard {
            like: Option<SmolStr>,
            $($field: Option<$type>,)*
        }

        impl RawCard {
            /// Fills missing fields from `base`.
            fn with_fallback(&self, base: &RawCard) -> RawCard {
                let merged = RawCard {
                    like: None,
                    $($field: self.$field.clone().or_else(|| base.$field.clone()),)*
                };
                // The price history of another card, or of an older table, does not belong to these prices.
                let former_prices = match self.prices {
                    Some(_) => self.former_prices.clone(),
                    None => merged.former_prices.clone(),
                };
                RawCard { former_prices, ..merged }
            }
        }
    };
}

raw_card! {
    family: SmolStr,
    window: u64,
    max_output: u64,
    generation: TokenGeneration,
    prices: TokenPrices,
    cliff: PriceTier,
    former_prices: Vec<FormerPrices>,
    min_cacheable: u64,
    look_back: u64,
    caching: CacheMode,
    thinking: Vec<SmolStr>,
    default_effort: SmolStr,
    bound_thinking: bool,
    forgets_thinking: bool,
    system_messages: bool,
    context_management: Vec<SmolStr>,
    provider_compaction: bool,
    tool_search: bool,
    web_search: bool,
    task_budgets: bool,
    tool_changes: bool,
    cache_diagnostics: bool,
    cache_scopes: bool,
    cache_edits: bool,
    images: bool,
    documents: bool,
    forced_tool_choice: bool,
    prefill: bool,
    sampling: bool,
    extra: Vec<SmolStr>,
}

impl ModelCatalog {
    /// Returns the built-in catalog.
    pub fn built_in() -> ModelCatalog {
        // The table is compiled in and covered by a test, so the fallback is never used.
        let table = CardTable::parse(include_str!("../cards.toml")).unwrap_or_default();
        ModelCatalog {
            claude_defaults: table.defaults,
            other_defaults: RawCard::default(),
            models: table.models,
        }
    }

    /// Returns this catalog overridden field by field by a user's table (the text of a `models.toml`).
    pub fn with_overrides(&self, toml: &str) -> Result<ModelCatalog, CatalogError> {
        let user = CardTable::parse(toml)?;
        let mut models = self.models.clone();
        for (name, card) in user.models {
            let merged = match models.get(&name) {
                Some(base) => {
                    RawCard { like: card.like.clone().or(base.like.clone()), ..card.with_fallback(base) }
                }
                None => card,
            };
            models.insert(name, merged);
        }
        Ok(ModelCatalog {
            claude_defaults: user.defaults.with_fallback(&self.claude_defaults),
            other_defaults: user.defaults.with_fallback(&self.other_defaults),
            models,
        })
    }

    /// Finds the card of a model. Accepts provider prefixes, dates and a `[1m]` suffix; an unknown model gets a
    /// conservative card and a notice.
    pub fn find(&self, model: &str) -> CardLookup {
        let sent = sent_model_name(model);
        let mut found = match self.alias_of(sent) {
            Some(alias) => CardLookup { card: self.card(alias, sent), notice: None },
            None => CardLookup {
                card: ModelCard { model: SmolStr::new(sent), ..unknown_model_card() },
                notice: Some(format!(
                    "model `{sent}` is not in the model table; assuming a window of 200,000 tokens, 8,192 output tokens, no optional features and a neutral token estimate. Describe it in models.toml."
                )),
            },
        };
        found.card.name = SmolStr::new(model);
        if sent != model {
            found.card.window = 1_000_000;
        }
        found
    }

    /// Finds the card of a model with the prices that it had at a time.
    pub fn find_at(&self, model: &str, at: Timestamp) -> CardLookup {
        let mut found = self.find(model);
        found.card.set_prices_at(&self.former_prices(model), at);
        found
    }

    /// Returns the former prices of a model, oldest first.
    pub fn former_prices(&self, model: &str) -> Vec<FormerPrices> {
        let alias = self.alias_of(sent_model_name(model));
        let mut former = alias.and_then(|alias| self.raw_card(alias).former_prices).unwrap_or_default();
        former.sort_by_key(|prices| prices.until);
        former
    }

    /// Returns this catalog with the given context window for every model. A smaller window limits the output to an
    /// eighth of it, since providers that reserve output tokens would otherwise leave no room for the prompt.
    pub fn with_window(&self, window: u64) -> ModelCatalog {
        let narrowed = |name: &SmolStr, card: &RawCard| {
            let own = self.find(name).card;
            let most = if window < own.window { own.max_output.min(window / 8) } else { own.max_output };
            (name.clone(), RawCard { window: Some(window), max_output: Some(most), ..card.clone() })
        };
        ModelCatalog {
            claude_defaults: RawCard { window: Some(window), ..self.claude_defaults.clone() },
            other_defaults: RawCard { window: Some(window), ..self.other_defaults.clone() },
            models: self.models.iter().map(|(name, card)| narrowed(name, card)).collect(),
        }
    }

    /// Iterates over the model names in the table.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.models.keys().map(SmolStr::as_str)
    }

    /// Returns the name in the table that describes a model: its own, or that of the model without date or variant.
    pub fn table_name(&self, model: &str) -> Option<&str> {
        self.alias_of(sent_model_name(model)).map(SmolStr::as_str)
    }

    /// Returns the longest name in the table that equals the model's name or is a prefix of it at a word boundary.
    fn alias_of(&self, model: &str) -> Option<&SmolStr> {
        let plain = model.rsplit(['/', ':']).find(|part| part.contains('-')).unwrap_or(model);
        let plain = plain.strip_prefix("us.").or(plain.strip_prefix("eu.")).unwrap_or(plain);
        let plain = plain.strip_prefix("anthropic.").unwrap_or(plain);
        // Some agents write `claude-sonnet-4.6` for `claude-sonnet-4-6`.
        let dashed = if plain.starts_with("claude") { plain.replace('.', "-") } else { plain.to_owned() };
        self.models
            .keys()
            .filter(|name| {
                dashed.strip_prefix(name.as_str()).is_some_and(|rest| match rest.as_bytes() {
                    [] => true,
                    // A date or a variant, but not the next version: `claude-opus-5` is not `claude-opus-5-9`.
                    [b'-' | b'@', rest @ ..] => {
                        !rest.first().is_some_and(u8::is_ascii_digit) || rest.len() >= 8
                    }
                    _ => false,
                })
            })
            .max_by_key(|name| name.len())
    }

    fn card(&self, alias: &SmolStr, sent: &str) -> ModelCard {
        self.raw_card(alias).resolve(sent)
    }

    fn raw_card(&self, alias: &SmolStr) -> RawCard {
        let mut raw = RawCard::default();
        let mut next = Some(alias);
        // A card may refer to another by `like`; a cycle ends after as many steps as there are cards.
        let mut is_claude = false;
        for _ in 0..=self.models.len() {
            let Some((name, card)) = next.and_then(|name| self.models.get_key_value(name)) else { break };
            raw = raw.with_fallback(card);
            is_claude |= name.starts_with("claude");
            next = card.like.as_ref();
        }
        // A card that refers to no known model describes a model of which nothing else is known.
        let base = match (&raw.family, is_claude) {
            (Some(_), _) => &RawCard::default(),
            (None, true) => &self.claude_defaults,
            (None, false) => &self.other_defaults,
        };
        raw.with_fallback(base)
    }
}

impl CardTable {
    fn parse(toml: &str) -> Result<CardTable, CatalogError> {
        toml::from_str(toml).map_err(|error| CatalogError(error.to_string()))
    }
}

impl RawCard {
    fn resolve(self, sent: &str) -> ModelCard {
        let cautious = unknown_model_card();
        let thinking = self.thinking.unwrap_or_default();
        let takes = |name: &str| thinking.iter().any(|kind| kind == name);
        let window = self.window.unwrap_or(cautious.window);
        let usual_output =
            if self.family.is_some() { 128_000 } else { cautious.max_output.min(window / 4).max(1) };
        let max_output = self.max_output.unwrap_or(usual_output);
        ModelCard {
            model: SmolStr::new(sent),
            name: SmolStr::new(sent),
            window,
            max_output,
            generation: self.generation.unwrap_or(cautious.generation),
            prices: self.prices,
            price_tier: self.cliff,
            min_cacheable: self.min_cacheable.unwrap_or(cautious.min_cacheable),
            look_back: self.look_back.unwrap_or(cautious.look_back),
            caching: self.caching.unwrap_or(cautious.caching),
            thinking: ThinkingModes {
                adaptive: takes("adaptive"),
                enabled: takes("enabled"),
                disabled: takes("disabled"),
                between_tools: takes("between_tools"),
            },
            default_effort: self.default_effort.unwrap_or(cautious.default_effort),
            can: ModelCapabilities {
                bound_thinking: self.bound_thinking.unwrap_or(false),
                forgets_thinking: self.forgets_thinking.unwrap_or(false),
                system_messages: self.system_messages.unwrap_or(false),
                context_management: self.context_management.unwrap_or_default(),
                provider_compaction: self.provider_compaction.unwrap_or(false),
                tool_search: self.tool_search.unwrap_or(false),
                web_search: self.web_search.unwrap_or(false),
                task_budgets: self.task_budgets.unwrap_or(false),
                tool_changes: self.tool_changes.unwrap_or(false),
                cache_diagnostics: self.cache_diagnostics.unwrap_or(false),
                cache_scopes: self.cache_scopes.unwrap_or(false),
                cache_edits: self.cache_edits.unwrap_or(false),
                images: self.images.unwrap_or(true),
                documents: self.documents.unwrap_or(false),
                forced_tool_choice: self.forced_tool_choice.unwrap_or(true),
                prefill: self.prefill.unwrap_or(false),
                sampling: self.sampling.unwrap_or(false),
            },
            extra: self.extra.unwrap_or_default(),
        }
    }
}

/// Conservative card of an unknown model: a small window and no optional features.
fn unknown_model_card() -> ModelCard {
    ModelCard {
        model: SmolStr::default(),
        name: SmolStr::default(),
        window: 200_000,
        max_output: 8_192,
        generation: TokenGeneration::Neutral,
        prices: None,
        price_tier: None,
        min_cacheable: 4_096,
        look_back: 20,
        caching: CacheMode::Explicit,
        thinking: ThinkingModes { disabled: true, ..ThinkingModes::default() },
        default_effort: SmolStr::new_static("high"),
        can: ModelCapabilities { images: true, forced_tool_choice: true, ..ModelCapabilities::default() },
        extra: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_follow_the_date_and_the_users_table() {
        let cards = ModelCatalog::built_in();
        let day = |day: &str| format!("{day}T12:00:00Z").parse().unwrap();
        let input = |cards: &ModelCatalog, model: &str, at: &str| {
            cards.find_at(model, day(at)).card.prices.map(|prices| prices.input)
        };
        assert_eq!(input(&cards, "gpt-5.6-sol", "2026-08-20"), Some(5.0));
        assert_eq!(input(&cards, "gpt-5.6-sol", "2026-08-21"), Some(4.0));
        assert_eq!(input(&cards, "gpt-5.6", "2026-07-09"), Some(5.0), "an alias of sol");
        assert_eq!(input(&cards, "gpt-5.6-luna", "2026-07-29"), Some(1.0));
        assert_eq!(
            input(&cards, "gpt-6-sol", "2026-07-01"),
            Some(2.0),
            "prices of another card's past are not its own"
        );
        let tier = cards.find_at("gpt-5.6-sol", day("2026-08-01")).card.price_tier.unwrap();
        assert_eq!((tier.above, tier.prices.output), (272_000, 45.0));
        for unpriced in ["gpt-5.3-codex-spark", "gpt-5.5-pro", "gpt-5.2-pro"] {
            assert_eq!(cards.find(unpriced).card.prices, None, "{unpriced}");
        }
        let prices =
            |input: u32| format!("input = {input}, output = 1, write_5m = 1, write_1h = 1, read = 1");
        let own =
            cards.with_overrides(&format!("[models.\"gpt-5.6-sol\"]\nprices = {{ {} }}", prices(7))).unwrap();
        assert_eq!(input(&own, "gpt-5.6-sol", "2026-08-01"), Some(7.0), "new prices replace the history");
        let dated = format!(
            "[models.mine]\nprices = {{ {} }}\nformer_prices = [{{ until = \"2026-02-01\", {} }}, {{ until = \"2026-01-01\", {} }}]",
            prices(3),
            prices(2),
            prices(1)
        );
        let own = cards.with_overrides(&dated).unwrap();
        let of = ["2025-12-31", "2026-01-15", "2026-02-01"].map(|at| input(&own, "mine", at));
        assert_eq!(of, [Some(1.0), Some(2.0), Some(3.0)]);
        let wrong = format!("[models.mine]\nformer_prices = [{{ until = \"soon\", {} }}]", prices(1));
        assert!(cards.with_overrides(&wrong).unwrap_err().to_string().contains("`soon` is not a date"));
    }

    #[test]
    fn built_in_table_is_complete() {
        CardTable::parse(include_str!("../cards.toml")).unwrap();
        let cards = ModelCatalog::built_in();
        assert!(cards.names().count() >= 20);
        for name in cards.names() {
            let found = cards.find(name);
            assert_eq!(found.notice, None, "{name}");
            assert!(found.card.window >= 200_000 && found.card.max_output >= 64_000, "{name}");
            assert!(found.card.prices.is_some() || !name.starts_with("claude"), "{name}");
        }
        let opus = cards.find("claude-opus-5-5").card;
        assert!(opus.can.bound_thinking && opus.can.system_messages && !opus.thinking.disabled);
        assert_eq!(opus.prices.unwrap().read, 0.2);
        let forgetful: Vec<&str> =
            cards.names().filter(|name| cards.find(name).card.can.forgets_thinking).collect();
        assert_eq!(forgetful, ["claude-haiku-4-5", "claude-sonnet-4-5"]);
        assert_eq!(
            (opus.default_effort.as_str(), &*cards.find("claude-opus-5").card.default_effort),
            ("medium", "high")
        );
        assert_eq!(cards.find("claude-haiku-5-5").card.price_tier.unwrap().above, 100_000);
        assert_eq!(cards.find("claude-mythos-5-1").card.prices.unwrap().read, 0.25);
        let caching = |name: &str| cards.find(name).card.caching;
        assert_eq!(caching("claude-opus-5-5"), CacheMode::Explicit);
        assert_eq!(caching("gpt-5.5-codex"), CacheMode::Automatic);
        assert_eq!(caching("gpt-5.6-terra"), CacheMode::Hybrid);
        assert_eq!(caching("gpt-6.1-sol"), CacheMode::Hybrid);
        let sol = cards.find("gpt-6-sol").card;
        assert_eq!((sol.window, sol.min_cacheable, sol.can.documents), (1_050_000, 1024, true));
    }

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
        let haiku = cards.find("claude-haiku-5-5").card;
        let small = Usage { input_tokens: 100_000, ..Usage::default() };
        let large = Usage { input_tokens: 100_001, ..Usage::default() };
        assert!(haiku.cost(&large).unwrap() > 4.9 * haiku.cost(&small).unwrap());
        assert_eq!(cards.find("unknown-model").card.cost(&small), None);
    }

    #[test]
    fn lookup_accepts_dates_prefixes_and_suffixes() {
        let cards = ModelCatalog::built_in();
        let model = |name: &str| {
            let found = cards.find(name);
            (found.notice.is_none(), found.card.min_cacheable, found.card.window)
        };
        assert_eq!(model("claude-opus-4-5-20251101"), (true, 4096, 200_000));
        assert_eq!(model("us.anthropic.claude-opus-4-6-v1:0"), (true, 4096, 1_000_000));
        assert_eq!(model("anthropic/claude-sonnet-4.6"), (true, 1024, 1_000_000));
        assert_eq!(model("claude-opus-4-5[1m]"), (true, 4096, 1_000_000));
        let suffixed = cards.find("claude-opus-4-5[1m]").card;
        assert_eq!((&*suffixed.model, &*suffixed.name), ("claude-opus-4-5", "claude-opus-4-5[1m]"));
        assert_eq!(cards.find(&suffixed.name).card, suffixed);
        assert_eq!(cards.find("gpt-5.3-codex-spark").card.generation, TokenGeneration::O200k);
        // A newer version does not match the older one.
        assert!(!model("claude-opus-5-9").0);
        assert!(!model("unknown-model").0);
        assert_eq!(model("unknown-model").2, 200_000);
    }

    #[test]
    fn with_window_changes_every_card() {
        let cards = ModelCatalog::built_in().with_window(50_000);
        for name in cards.names() {
            let (with, without) = (cards.find(name).card, ModelCatalog::built_in().find(name).card);
            let max_output = without.max_output.min(50_000 / 8);
            assert_eq!(with, ModelCard { window: 50_000, max_output, ..without }, "{name}");
        }
    }

    #[test]
    fn user_table_overrides_fields_and_adds_models() {
        let cards = ModelCatalog::built_in()
            .with_overrides("[models.claude-opus-5-5]\nwindow = 500_000\n[models.mine]\nlike = \"claude-opus-5-5\"\ncache_edits = true\n")
            .unwrap();
        let opus = cards.find("claude-opus-5-5").card;
        assert_eq!((opus.window, opus.min_cacheable, opus.can.cache_edits), (500_000, 512, false));
        let mine = cards.find("mine").card;
        assert!(mine.can.cache_edits && mine.can.bound_thinking);
        assert_eq!(mine.window, 500_000);
        let wrong = ModelCatalog::built_in().with_overrides("[models.x]\nwindw = 1").unwrap_err().to_string();
        assert!(wrong.contains("windw"), "{wrong}");
        let ring = ModelCatalog::built_in()
            .with_overrides("[models.a]\nlike = \"b\"\n[models.b]\nlike = \"a\"\n")
            .unwrap();
        assert_eq!(ring.find("a").card.window, 200_000);
    }

    #[test]
    fn a_card_of_an_unknown_model_has_nothing_of_claude() {
        let cards = ModelCatalog::built_in()
            .with_overrides("[models.local]\nwindow = 8_192\n[models.claude-opus-9]\nwindow = 500_000\n")
            .unwrap();
        let local = cards.find("local").card;
        assert_eq!((local.window, local.max_output, local.prompt_limit()), (8_192, 2_048, 8_192));
        assert_eq!(local.generation, TokenGeneration::Neutral);
        assert!(!local.can.tool_search && !local.can.documents && !local.thinking.is_supported());
        let automatic = ModelCard { caching: CacheMode::Automatic, max_output: 8_192, ..local };
        assert_eq!(automatic.prompt_limit(), 4_096);
        let claude = cards.find("claude-opus-9").card;
        assert_eq!((claude.generation, claude.max_output), (TokenGeneration::Claude47, 128_000));
        assert_eq!(cards.find("never-heard-of").card.generation, TokenGeneration::Neutral);
    }
}
