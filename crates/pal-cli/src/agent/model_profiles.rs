//! Profiles of models that a session uses beside its own: those of agent definitions, and the small model.

use std::sync::Arc;

use pal_agent::{ModelLookup, ModelProfile, cache_settings, run_settings};
use pal_model::{ModelCard, Usage};
use pal_view::{ViewScope, WindowLimits};

use crate::arguments::ProviderArg;
use crate::loaded_session::lens;
use crate::provider::usual_provider;
use crate::settings::{Settings, full_model_name};

/// Question whose price ranks models by size.
const QUESTION: Usage = Usage {
    input_tokens: 1_000,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: 100,
    cache_creation: None,
    iterations: None,
    server_tool_use: None,
    basis: pal_model::UsageBasis::Reported,
};

/// Looks up profiles by model name; no name means the small model. `card` and `provider` are the session's own.
pub(super) fn model_profiles(settings: &Settings, card: &ModelCard, provider: ProviderArg) -> ModelLookup {
    let (settings, own) = (settings.clone(), card.clone());
    Arc::new(move |name| {
        let card = match name {
            Some(name) => find_model(name, &settings, &own)?,
            None => small_model(&settings, &own, provider),
        };
        Some(ModelProfile {
            lens: lens(&card, settings.estimator, ViewScope::Current),
            limits: WindowLimits::new(&card, &settings.window_for(&card.model)),
            cache: cache_settings(&settings, &card),
            run: run_settings(&settings, &card),
        })
    })
}

/// The model of a full name, or the newest of a family such as `opus`; none if it has another provider.
fn find_model(name: &str, settings: &Settings, own: &ModelCard) -> Option<ModelCard> {
    let is_family = !name.contains(|letter: char| letter.is_ascii_digit() || letter == '-');
    let full = match is_family {
        true => settings.cards.names().filter(|known| known.split('-').any(|word| word == name)).last()?,
        false => name,
    };
    let card = settings.cards.find(full).card;
    (usual_provider(&card) == usual_provider(own)).then_some(card)
}

/// The small model: the one in the settings, else the provider's cheapest; on a server of unknown models, the session's own.
fn small_model(settings: &Settings, own: &ModelCard, provider: ProviderArg) -> ModelCard {
    if let Some(name) = &settings.small_model {
        return settings.cards.find(&full_model_name(name, settings)).card;
    }
    if provider == ProviderArg::Chat {
        return own.clone();
    }
    let cards = settings.cards.names().map(|name| settings.cards.find(name).card);
    let priced = cards
        .filter(|card| usual_provider(card) == usual_provider(own))
        .filter_map(|card| Some((card.cost(&QUESTION)?, card)));
    let cheapest = priced.min_by(|(one, _), (other, _)| one.total_cmp(other));
    cheapest.map_or_else(|| own.clone(), |(_, card)| card)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings::read(pal_settings::SettingsInput::default()).unwrap()
    }

    #[test]
    fn family_names_resolve_within_one_provider() {
        let settings = settings();
        let own = settings.cards.find("claude-opus-5-5").card;
        let model = |name: &str| find_model(name, &settings, &own).map(|card| card.model.to_string());
        assert_eq!(model("opus").as_deref(), Some("claude-opus-5-5"));
        assert!(model("haiku").unwrap().starts_with("claude-haiku-"));
        assert_eq!(model("claude-sonnet-4-5").as_deref(), Some("claude-sonnet-4-5"));
        assert_eq!((model("gpt-6-sol"), model("nothing")), (None, None));
        let small = small_model(&settings, &own, ProviderArg::Anthropic);
        assert!(small.model.contains("haiku"), "{}", small.model);
        let local = settings.cards.find("my-own-model").card;
        assert_eq!(small_model(&settings, &local, ProviderArg::Chat).model, "my-own-model");
    }
}
