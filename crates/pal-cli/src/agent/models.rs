//! The models that can be asked beside the session's own, over the same line: those of agents' definitions, and the smallest.

use std::sync::Arc;

use pal_agent::{Known, Models};
use pal_model::{Card, Usage};
use pal_view::{Limits, Scope};

use super::seam::run_settings;
use crate::arguments::ProviderName;
use crate::provider::usual_provider;
use crate::session::lens;
use crate::settings::Settings;
use crate::stored::cache_settings;

/// Which of two models is the smaller is told by the price of such a question.
const QUESTION: Usage = Usage {
    input_tokens: 1_000,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: 100,
    cache_creation: None,
    iterations: None,
};

/// What holds for other models where the session asks this one of this provider.
pub(super) fn models(settings: &Settings, card: &Card, provider: ProviderName) -> Models {
    let (settings, own) = (settings.clone(), card.clone());
    Arc::new(move |name| {
        let card = match name {
            Some(name) => named(name, &settings, &own)?,
            None => smallest(&settings, &own, provider),
        };
        Some(Known {
            lens: lens(&card, settings.estimator, Scope::Current),
            limits: Limits::new(&card, &settings.window_for(&card.model)),
            cache: cache_settings(&settings, &card),
            run: run_settings(&settings, &card),
        })
    })
}

/// The model of this name, or the newest one of a family that is named alone; none if it is asked of another provider.
fn named(name: &str, settings: &Settings, own: &Card) -> Option<Card> {
    let is_family = !name.contains(|letter: char| letter.is_ascii_digit() || letter == '-');
    let full = match is_family {
        true => settings.cards.names().filter(|known| known.split('-').any(|word| word == name)).last()?,
        false => name,
    };
    let card = settings.cards.find(full).card;
    (usual_provider(&card) == usual_provider(own)).then_some(card)
}

/// The smallest model: the one that is set, else the cheapest of the provider; on a server of unknown models, the session's own.
fn smallest(settings: &Settings, own: &Card, provider: ProviderName) -> Card {
    if let Some(name) = &settings.small_model {
        return settings.cards.find(name).card;
    }
    if provider == ProviderName::Chat {
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
        Settings::read(pal_settings::Sources::default()).unwrap()
    }

    #[test]
    fn families_are_known_by_their_name_and_providers_are_kept_apart() {
        let settings = settings();
        let own = settings.cards.find("claude-opus-5-5").card;
        let model = |name: &str| named(name, &settings, &own).map(|card| card.model.to_string());
        assert_eq!(model("opus").as_deref(), Some("claude-opus-5-5"));
        assert!(model("haiku").unwrap().starts_with("claude-haiku-"));
        assert_eq!(model("claude-sonnet-4-5").as_deref(), Some("claude-sonnet-4-5"));
        assert_eq!((model("gpt-6-sol"), model("nothing")), (None, None));
        let small = smallest(&settings, &own, ProviderName::Anthropic);
        assert!(small.model.contains("haiku"), "{}", small.model);
        let local = settings.cards.find("my-own-model").card;
        assert_eq!(smallest(&settings, &local, ProviderName::Chat).model, "my-own-model");
    }
}
