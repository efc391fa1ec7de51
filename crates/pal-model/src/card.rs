//! Model cards: what a model can do and costs. Every mechanism asks the card, never the model's name.

use std::collections::BTreeMap;

use serde::Deserialize;
use smol_str::SmolStr;

use crate::Usage;

/// What the program knows of a model.
#[derive(Clone, PartialEq, Debug)]
pub struct Card {
    /// The name that is sent.
    pub model: SmolStr,
    /// Context window in tokens.
    pub window: u64,
    /// Most tokens that one response may hold.
    pub max_output: u64,
    /// How its tokenizer counts.
    pub generation: TokenGeneration,
    /// Prices, where known.
    pub prices: Option<Prices>,
    /// A price step, where there is one.
    pub cliff: Option<Cliff>,
    /// Smallest cacheable prefix in tokens; a mark below it is ignored by the provider.
    pub min_cacheable: u64,
    /// How many positions the provider looks back from a mark.
    pub look_back: u64,
    /// Who decides what its endpoint caches.
    pub caching: Caching,
    /// Which thinking settings it takes.
    pub thinking: ThinkingKinds,
    /// The effort that a request without one gets.
    pub default_effort: SmolStr,
    /// What else it can do.
    pub can: Capabilities,
    /// Block types and block fields that this endpoint takes beyond those that the program knows.
    pub extra: Vec<SmolStr>,
}

impl Card {
    /// Most tokens that a prompt may have. Where the cache is not marked by us, the vendor sets the answer's tokens
    /// aside from the window.
    pub fn prompt_limit(&self) -> u64 {
        match self.caching {
            Caching::Marks => self.window,
            Caching::Automatic | Caching::Breakpoints => self.window.saturating_sub(self.max_output),
        }
    }

    /// What a response cost in US dollars: every kind of token by its price, passes billed beside the totals
    /// included, the step in price applied by the size of the prompt. None where the card has no prices.
    pub fn cost(&self, usage: &Usage) -> Option<f64> {
        let total = self.pass_cost(&Pass {
            input: usage.input_tokens,
            written: usage.cache_creation_input_tokens,
            written_1h: usage.cache_creation.map_or(0, |written| written.ephemeral_1h_input_tokens),
            read: usage.cache_read_input_tokens,
            output: usage.output_tokens,
        })?;
        let beside = usage.iterations.iter().flatten().filter(|pass| pass.kind == "compaction");
        beside
            .map(|pass| {
                self.pass_cost(&Pass {
                    input: pass.input_tokens,
                    written: pass.cache_creation_input_tokens,
                    written_1h: 0,
                    read: pass.cache_read_input_tokens,
                    output: pass.output_tokens,
                })
            })
            .try_fold(total, |sum, cost| Some(sum + cost?))
    }

    fn pass_cost(&self, pass: &Pass) -> Option<f64> {
        let prompt = pass.input.saturating_add(pass.written).saturating_add(pass.read);
        let prices = match self.cliff {
            Some(cliff) if prompt > cliff.above => cliff.prices,
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

/// The tokens of one pass of a model, by kind.
struct Pass {
    input: u64,
    written: u64,
    written_1h: u64,
    read: u64,
    output: u64,
}

/// How a model counts tokens: counts are never reused across generations.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenGeneration {
    /// Claude up to 4.6.
    Claude46,
    /// Claude from 4.7 on.
    Claude47,
    /// OpenAI's o200k vocabulary.
    O200k,
}

impl TokenGeneration {
    /// All generations, oldest first.
    pub const ALL: [TokenGeneration; 3] =
        [TokenGeneration::Claude46, TokenGeneration::Claude47, TokenGeneration::O200k];

    /// The name in logs and settings.
    pub fn name(self) -> &'static str {
        match self {
            TokenGeneration::Claude46 => "claude46",
            TokenGeneration::Claude47 => "claude47",
            TokenGeneration::O200k => "o200k",
        }
    }
}

/// Who decides what an endpoint caches of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Caching {
    /// The request: only what it marks with `cache_control`, as in the Messages dialect.
    Marks,
    /// The provider: whatever two requests begin with, without being asked and without a price for writing.
    Automatic,
    /// Both: the provider at the end of a prompt, and the request at the content parts that it marks with
    /// `prompt_cache_breakpoint`. Writing costs.
    Breakpoints,
}

/// US dollars per million tokens.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
pub struct Prices {
    /// Uncached prompt tokens.
    pub input: f64,
    /// Tokens that the model writes.
    pub output: f64,
    /// Prompt tokens cached for five minutes.
    pub write_5m: f64,
    /// Prompt tokens cached for an hour.
    pub write_1h: f64,
    /// Prompt tokens read from the cache.
    pub read: f64,
}

/// Prices of the whole request once the prompt is larger than `above`.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
pub struct Cliff {
    /// Prompt tokens, cached ones included.
    pub above: u64,
    /// Prices behind the step.
    #[serde(flatten)]
    pub prices: Prices,
}

/// Which values of `thinking.type` a model takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ThinkingKinds {
    /// The model decides how much to think.
    pub adaptive: bool,
    /// A fixed budget.
    pub enabled: bool,
    /// None at all.
    pub disabled: bool,
    /// Only between tool calls.
    pub between_tools: bool,
}

impl ThinkingKinds {
    /// Whether the model thinks at all, and thus takes thinking blocks back.
    pub fn any(self) -> bool {
        self.adaptive || self.enabled || self.between_tools
    }
}

/// What a model and its endpoint can do.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Capabilities {
    /// Thinking blocks are valid only while everything before them is unchanged.
    pub bound_thinking: bool,
    /// The thinking of earlier turns is left out of the prompt as soon as the user says something new.
    pub forgets_thinking: bool,
    /// System messages inside the conversation.
    pub system_messages: bool,
    /// Which clearing edits the provider runs.
    pub context_management: Vec<SmolStr>,
    /// The provider summarises on demand.
    pub provider_compaction: bool,
    /// Deferred tools and references to them.
    pub tool_search: bool,
    /// Tools added and removed in the middle of a conversation.
    pub tool_changes: bool,
    /// The provider explains cache misses.
    pub cache_diagnostics: bool,
    /// Cache marks with a scope; private to one vendor's client.
    pub cache_scopes: bool,
    /// Cached results deleted in place; private to one vendor's client.
    pub cache_edits: bool,
    /// Takes images.
    pub images: bool,
    /// Takes documents.
    pub documents: bool,
    /// `tool_choice` may be `any` or `tool`.
    pub forced_tool_choice: bool,
    /// The last message may be the assistant's.
    pub prefill: bool,
    /// Takes sampling parameters.
    pub sampling: bool,
}

/// A card that was looked up.
#[derive(Clone, PartialEq, Debug)]
pub struct Found {
    /// The card.
    pub card: Card,
    /// What the user should know about it: the model was unknown, or its name asked for another window.
    pub notice: Option<String>,
}

/// All cards: the shipped table with the user's on top.
#[derive(Clone, Debug)]
pub struct Cards {
    defaults: RawCard,
    models: BTreeMap<SmolStr, RawCard>,
}

/// A table of cards that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("the model table could not be read: {0}")]
pub struct CardError(String);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Table {
    defaults: RawCard,
    models: BTreeMap<SmolStr, RawCard>,
}

macro_rules! raw_card {
    ($($field:ident: $type:ty,)*) => {
        /// A card as a table writes it: what is absent comes from the card it is like, then from the defaults.
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        struct RawCard {
            like: Option<SmolStr>,
            $($field: Option<$type>,)*
        }

        impl RawCard {
            fn over(&self, base: &RawCard) -> RawCard {
                RawCard {
                    like: None,
                    $($field: self.$field.clone().or_else(|| base.$field.clone()),)*
                }
            }
        }
    };
}

raw_card! {
    family: SmolStr,
    window: u64,
    max_output: u64,
    generation: TokenGeneration,
    prices: Prices,
    cliff: Cliff,
    min_cacheable: u64,
    look_back: u64,
    caching: Caching,
    thinking: Vec<SmolStr>,
    default_effort: SmolStr,
    bound_thinking: bool,
    forgets_thinking: bool,
    system_messages: bool,
    context_management: Vec<SmolStr>,
    provider_compaction: bool,
    tool_search: bool,
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

impl Cards {
    /// The table that the program ships.
    pub fn shipped() -> Cards {
        // The table is compiled in and a test reads it, so the fallback is never taken.
        Cards::parse(include_str!("../cards.toml"))
            .unwrap_or(Cards { defaults: RawCard::default(), models: BTreeMap::new() })
    }

    /// This table with a user's table (the text of a `models.toml`) on top, field by field.
    pub fn overridden(&self, toml: &str) -> Result<Cards, CardError> {
        let user = Cards::parse(toml)?;
        let mut models = self.models.clone();
        for (name, card) in user.models {
            let merged = match models.get(&name) {
                Some(base) => RawCard { like: card.like.clone().or(base.like.clone()), ..card.over(base) },
                None => card,
            };
            models.insert(name, merged);
        }
        Ok(Cards { defaults: user.defaults.over(&self.defaults), models })
    }

    fn parse(toml: &str) -> Result<Cards, CardError> {
        let table: Table = toml::from_str(toml).map_err(|error| CardError(error.to_string()))?;
        Ok(Cards { defaults: table.defaults, models: table.models })
    }

    /// The card of a model. Provider prefixes, dates and a `[1m]` suffix are understood; an unknown model gets a
    /// cautious card and a notice.
    pub fn find(&self, model: &str) -> Found {
        let (sent, wants_million) = match model.strip_suffix("[1m]") {
            Some(name) => (name, true),
            None => (model, false),
        };
        let mut found = match self.alias_of(sent) {
            Some(alias) => Found { card: self.card(alias, sent), notice: None },
            None => Found {
                card: Card { model: SmolStr::new(sent), ..cautious() },
                notice: Some(format!(
                    "`{sent}` is not in the model table: taking a window of 200 000 tokens, 8 192 output tokens, no special abilities, and counting tokens as Claude 4.7 does. Describe it in models.toml."
                )),
            },
        };
        if wants_million {
            found.card.window = 1_000_000;
        }
        found
    }

    /// This table as if every model had this window. In a narrower one answers are shorter, too, an eighth of it at most:
    /// where they are set aside from the window, they would leave no room to ask.
    pub fn with_window(&self, window: u64) -> Cards {
        let narrowed = |name: &SmolStr, card: &RawCard| {
            let own = self.find(name).card;
            let most = if window < own.window { own.max_output.min(window / 8) } else { own.max_output };
            (name.clone(), RawCard { window: Some(window), max_output: Some(most), ..card.clone() })
        };
        Cards {
            defaults: RawCard { window: Some(window), ..self.defaults.clone() },
            models: self.models.iter().map(|(name, card)| narrowed(name, card)).collect(),
        }
    }

    /// The names in the table.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.models.keys().map(SmolStr::as_str)
    }

    /// The longest name in the table that the model's name is, or begins with at a word's end.
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

    fn card(&self, alias: &SmolStr, sent: &str) -> Card {
        let mut raw = RawCard::default();
        let mut next = Some(alias);
        // A card may be like another one; a ring of likes ends after as many steps as there are cards.
        for _ in 0..=self.models.len() {
            let Some(card) = next.and_then(|name| self.models.get(name)) else { break };
            raw = raw.over(card);
            next = card.like.as_ref();
        }
        let base = if raw.family.is_some() { RawCard::default() } else { self.defaults.clone() };
        raw.over(&base).resolve(sent)
    }
}

impl RawCard {
    fn resolve(self, sent: &str) -> Card {
        let cautious = cautious();
        let thinking = self.thinking.unwrap_or_default();
        let takes = |name: &str| thinking.iter().any(|kind| kind == name);
        let window = self.window.unwrap_or(cautious.window);
        let max_output =
            self.max_output.unwrap_or(if self.family.is_some() { 128_000 } else { cautious.max_output });
        Card {
            model: SmolStr::new(sent),
            window,
            max_output,
            generation: self.generation.unwrap_or(cautious.generation),
            prices: self.prices,
            cliff: self.cliff,
            min_cacheable: self.min_cacheable.unwrap_or(cautious.min_cacheable),
            look_back: self.look_back.unwrap_or(cautious.look_back),
            caching: self.caching.unwrap_or(cautious.caching),
            thinking: ThinkingKinds {
                adaptive: takes("adaptive"),
                enabled: takes("enabled"),
                disabled: takes("disabled"),
                between_tools: takes("between_tools"),
            },
            default_effort: self.default_effort.unwrap_or(cautious.default_effort),
            can: Capabilities {
                bound_thinking: self.bound_thinking.unwrap_or(false),
                forgets_thinking: self.forgets_thinking.unwrap_or(false),
                system_messages: self.system_messages.unwrap_or(false),
                context_management: self.context_management.unwrap_or_default(),
                provider_compaction: self.provider_compaction.unwrap_or(false),
                tool_search: self.tool_search.unwrap_or(false),
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

/// The card of a model that nobody described: a small window and no special abilities.
fn cautious() -> Card {
    Card {
        model: SmolStr::default(),
        window: 200_000,
        max_output: 8_192,
        generation: TokenGeneration::Claude47,
        prices: None,
        cliff: None,
        min_cacheable: 4_096,
        look_back: 20,
        caching: Caching::Marks,
        thinking: ThinkingKinds { disabled: true, ..ThinkingKinds::default() },
        default_effort: SmolStr::new_static("high"),
        can: Capabilities { images: true, forced_tool_choice: true, ..Capabilities::default() },
        extra: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_table_reads_and_is_whole() {
        let cards = Cards::parse(include_str!("../cards.toml")).unwrap();
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
        assert_eq!(cards.find("claude-haiku-5-5").card.cliff.unwrap().above, 100_000);
        assert_eq!(cards.find("claude-mythos-5-1").card.prices.unwrap().read, 0.25);
        let caching = |name: &str| cards.find(name).card.caching;
        assert_eq!(caching("claude-opus-5-5"), Caching::Marks);
        assert_eq!(caching("gpt-5.5-codex"), Caching::Automatic);
        assert_eq!(caching("gpt-5.6-terra"), Caching::Breakpoints);
        assert_eq!(caching("gpt-6.1-sol"), Caching::Breakpoints);
        let sol = cards.find("gpt-6-sol").card;
        assert_eq!((sol.window, sol.min_cacheable, sol.can.documents), (1_050_000, 1024, true));
    }

    #[test]
    fn a_response_costs_by_kind_and_by_the_step_in_price() {
        let cards = Cards::shipped();
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
        assert_eq!(cards.find("nobody-knows-it").card.cost(&small), None);
    }

    #[test]
    fn names_are_found_with_dates_prefixes_and_suffixes() {
        let cards = Cards::shipped();
        let model = |name: &str| {
            let found = cards.find(name);
            (found.notice.is_none(), found.card.min_cacheable, found.card.window)
        };
        assert_eq!(model("claude-opus-4-5-20251101"), (true, 4096, 200_000));
        assert_eq!(model("us.anthropic.claude-opus-4-6-v1:0"), (true, 4096, 1_000_000));
        assert_eq!(model("anthropic/claude-sonnet-4.6"), (true, 1024, 1_000_000));
        assert_eq!(model("claude-opus-4-5[1m]"), (true, 4096, 1_000_000));
        assert_eq!(cards.find("claude-opus-4-5[1m]").card.model, "claude-opus-4-5");
        assert_eq!(cards.find("gpt-5.3-codex-spark").card.generation, TokenGeneration::O200k);
        // The next version is not the one before it.
        assert!(!model("claude-opus-5-9").0);
        assert!(!model("nobody-knows-me").0);
        assert_eq!(model("nobody-knows-me").2, 200_000);
    }

    #[test]
    fn a_window_can_be_given_to_all() {
        let cards = Cards::shipped().with_window(50_000);
        for name in cards.names() {
            let (with, without) = (cards.find(name).card, Cards::shipped().find(name).card);
            let max_output = without.max_output.min(50_000 / 8);
            assert_eq!(with, Card { window: 50_000, max_output, ..without }, "{name}");
        }
    }

    #[test]
    fn a_user_overrides_fields_and_adds_models() {
        let cards = Cards::shipped()
            .overridden("[models.claude-opus-5-5]\nwindow = 500_000\n[models.mine]\nlike = \"claude-opus-5-5\"\ncache_edits = true\n")
            .unwrap();
        let opus = cards.find("claude-opus-5-5").card;
        assert_eq!((opus.window, opus.min_cacheable, opus.can.cache_edits), (500_000, 512, false));
        let mine = cards.find("mine").card;
        assert!(mine.can.cache_edits && mine.can.bound_thinking);
        assert_eq!(mine.window, 500_000);
        let wrong = Cards::shipped().overridden("[models.x]\nwindw = 1").unwrap_err().to_string();
        assert!(wrong.contains("windw"), "{wrong}");
        let ring =
            Cards::shipped().overridden("[models.a]\nlike = \"b\"\n[models.b]\nlike = \"a\"\n").unwrap();
        assert_eq!(ring.find("a").card.window, 1_000_000);
    }
}
