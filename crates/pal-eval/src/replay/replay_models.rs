//! Models of a replay: the recorded one or a replacement, each with a model card.

use std::collections::BTreeSet;

use pal_model::{ModelCard, ModelCatalog};
use pal_view::{Estimator, Lens, ViewScope};

use crate::replay::ReplayError;
use crate::replay::recorded_session::RecordedSession;
use crate::replay::replay_options::{ReplayOptions, ReplayPolicy};

/// Cards for all models that are going to be asked.
pub(crate) struct ReplayModels {
    pub(crate) cards: ModelCatalog,
    /// The model that is asked first.
    pub(crate) first: ModelCard,
    /// Notices about them.
    pub(crate) notices: Vec<String>,
}

impl ReplayModels {
    pub(crate) fn new(
        recorded: &RecordedSession,
        options: &ReplayOptions,
    ) -> Result<ReplayModels, ReplayError> {
        let asked: BTreeSet<&str> = match &options.model {
            Some(model) => BTreeSet::from([model.as_str()]),
            None => recorded.models().collect(),
        };
        let first = options.model.as_deref().or_else(|| recorded.models().next());
        let first = first.ok_or(ReplayError::NoModel)?;
        let mut cards = options.cards.clone();
        let mut notices = Vec::new();
        for model in asked {
            if cards.find(model).notice.is_some() {
                cards = with_stand_in(&cards, model)?;
                notices.push(format!(
                    "`{model}` is not in the model table: taken for one with a window of 200 000 tokens"
                ));
            }
        }
        if let Some(window) = options.window {
            cards = cards.with_window(window);
        }
        Ok(ReplayModels { first: cards.find(first).card, cards, notices })
    }
}

/// The table with a cautious card for a model that it does not know.
fn with_stand_in(cards: &ModelCatalog, model: &str) -> Result<ModelCatalog, ReplayError> {
    let failure = || ReplayError::Model(model.to_owned());
    let name = model.rsplit(['/', ':']).next().unwrap_or(model);
    let card = format!(
        "[models.{name:?}]\nwindow = 200_000\nmax_output = 64_000\nmin_cacheable = 1_024\nthinking = [\"disabled\"]\n"
    );
    let cards = cards.with_overrides(&card).map_err(|_| failure())?;
    if cards.find(model).notice.is_some() { Err(failure()) } else { Ok(cards) }
}

/// Lens of a view for this model. Without a policy the replay imitates the client that was recorded, and those
/// clients put what the system says into reminders.
pub(crate) fn lens(card: &ModelCard, policy: ReplayPolicy) -> Lens {
    let mut card = card.clone();
    card.can.system_messages &= policy != ReplayPolicy::None;
    Lens { estimator: Estimator::shipped(card.generation), card, scope: ViewScope::Current }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_models_get_a_card_under_their_name() {
        let cards = ModelCatalog::built_in();
        for model in ["Qwen/Qwen3-Coder-Next", "gemini-2.5-flash", "nobody", "a \"b\"", "x:y-z"] {
            let card = with_stand_in(&cards, model).unwrap().find(model).card;
            assert_eq!((card.window, card.model.as_str()), (200_000, model));
        }
        assert!(with_stand_in(&cards, "half/").is_err());
    }
}
