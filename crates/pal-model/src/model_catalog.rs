//! The catalog of model cards: the built-in table, overridden field by field by the user's.

use std::collections::BTreeMap;

use serde::Deserialize;
use smol_str::SmolStr;

use crate::Timestamp;
use crate::model_card::{
    CacheMode, FormerPrices, ModelCapabilities, ModelCard, PriceTier, ThinkingModes, TokenGeneration,
    TokenPrices,
};

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

    /// Returns this catalog with the given context window for every model: a server whose cards promise more than it
    /// accepts. Answers are as long as before, except where they would leave half of the window for the prompt.
    pub fn with_server_window(&self, window: u64) -> ModelCatalog {
        let narrowed = |card: &RawCard| RawCard { window: Some(window), ..card.clone() };
        let outputs = self.with_window(window);
        let models = outputs.models.into_iter().map(|(name, card)| {
            let own = self.find(&name).card;
            match own.caching {
                CacheMode::Explicit => (name, RawCard { max_output: Some(own.max_output), ..card }),
                CacheMode::Automatic | CacheMode::Hybrid => (name, card),
            }
        });
        ModelCatalog {
            claude_defaults: narrowed(&self.claude_defaults),
            other_defaults: narrowed(&self.other_defaults),
            models: models.collect(),
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
    fn with_server_window_leaves_room_for_prompts() {
        let cards = ModelCatalog::built_in().with_server_window(8_000);
        for name in cards.names() {
            let (with, without) = (cards.find(name).card, ModelCatalog::built_in().find(name).card);
            let max_output = match without.caching {
                CacheMode::Explicit => without.max_output,
                CacheMode::Automatic | CacheMode::Hybrid => 1_000,
            };
            assert_eq!(with, ModelCard { window: 8_000, max_output, ..without }, "{name}");
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
