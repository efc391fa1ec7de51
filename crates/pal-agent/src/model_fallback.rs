//! The fallback model: it answers the rest of a prompt if the model of the session is overloaded.

use pal_provider::ExchangeEnd;
use pal_wire::FailureKind;

use crate::options::{ModelOptions, ModelProfile};

/// Model of a session and the one that takes its place while it is overloaded.
pub(crate) struct ModelFallback {
    main: ModelProfile,
    other: ModelProfile,
    /// Whether the fallback model answers now.
    is_active: bool,
    /// Whether the last exchange failed because the provider has no capacity.
    is_overloaded: bool,
}

impl ModelFallback {
    /// Returns the fallback of a session; none if it has none, or if both models are the same.
    pub(crate) fn of_options(options: &ModelOptions) -> Option<ModelFallback> {
        let other = options.fallback.clone()?;
        let main = ModelProfile {
            lens: options.lens.clone(),
            limits: options.limits,
            cache: options.cache.clone(),
            run: options.run.clone(),
        };
        (main.lens.card.model != other.lens.card.model).then_some(ModelFallback {
            main,
            other,
            is_active: false,
            is_overloaded: false,
        })
    }

    /// Takes the fallback model into use and returns both models; none if the last exchange did not fail for lack of
    /// capacity, or if the fallback model answers already.
    pub(crate) fn activate(&mut self) -> Option<(&ModelProfile, &ModelProfile)> {
        if !self.is_overloaded || self.is_active {
            return None;
        }
        self.is_active = true;
        Some((&self.main, &self.other))
    }

    /// Returns to the model of the session; none if it answers already.
    pub(crate) fn deactivate(&mut self) -> Option<ModelProfile> {
        std::mem::take(&mut self.is_active).then(|| self.main.clone())
    }

    /// Notes how an exchange ended, after all retries.
    pub(crate) fn observe(&mut self, end: &ExchangeEnd) {
        self.is_overloaded = match end {
            ExchangeEnd::Failed(failure) => {
                matches!(failure.kind, FailureKind::Overloaded | FailureKind::Server)
            }
            _ => false,
        };
    }

    /// Maximum tokens of an answer: that of the model which answers now.
    pub(crate) fn output_limit(&self, max_tokens: u64) -> u64 {
        match self.is_active {
            true => max_tokens.min(self.other.run.output_tokens_max),
            false => max_tokens,
        }
    }
}
