//! Values of a session that follow from the settings and a model card alone, the same for every front end and for tests.

use std::path::Path;

use pal_context::cache::TtlPreference;
use pal_engine::CacheSettings;
use pal_model::ModelCard;
use pal_run::{ProgressLimits, RunSettings};
use pal_settings::{LearnedWindows, Settings};
use pal_view::WindowLimits;
use smol_str::SmolStr;

/// Output limit of a retry after `max_tokens` (§2.10).
const RAISED_OUTPUT_TOKENS: u64 = 64_000;

/// Limits of a model's window, lowered to what earlier sessions learned about it at an endpoint.
pub fn learned_limits(home: &Path, settings: &Settings, card: &ModelCard, endpoint: &str) -> WindowLimits {
    let limits = WindowLimits::new(card, &settings.window_for(&card.model));
    let learned = LearnedWindows::in_home(home).find(endpoint, &card.model);
    // A guess gives way to a window that the user has set since: one below what was refused.
    let learned = learned.filter(|learned| learned.refused.is_none_or(|refused| refused <= limits.window));
    learned.map_or(limits, |learned| limits.lowered_to(learned.window))
}

/// Cache settings for a model.
pub fn cache_settings(settings: &Settings, card: &ModelCard) -> CacheSettings {
    let mut betas = pal_wire::beta_headers(card);
    let task_budget = settings.spending.task_budget.filter(|_| card.can.task_budgets);
    betas.extend(task_budget.map(|_| pal_wire::TASK_BUDGET_BETA));
    CacheSettings {
        ttl_preference: ttl_preference(settings),
        effort: settings.effort.clone(),
        task_budget,
        betas: betas.into_iter().map(SmolStr::new_static).collect(),
        ..CacheSettings::default()
    }
}

/// TTL of cache breakpoints as the settings want it.
pub fn ttl_preference(settings: &Settings) -> TtlPreference {
    TtlPreference { fixed: settings.cache_ttl, is_in_overage: settings.is_in_overage }
}

/// Output and spending limits of a run with a model.
pub fn run_settings(settings: &Settings, card: &ModelCard) -> RunSettings {
    let spending = &settings.spending;
    let output_tokens = spending.output_tokens_max.min(card.max_output);
    RunSettings {
        output_tokens,
        output_tokens_max: RAISED_OUTPUT_TOKENS.max(output_tokens).min(card.max_output),
        turns_max: spending.turns_max,
        tokens_max: spending.tokens_max,
        cost_max: spending.cost_usd_max,
        day: None,
        progress: ProgressLimits {
            stalled_turns_max: spending.stalled_turns_max,
            fruitless_turns_max: spending.fruitless_turns_max,
        },
        adds_notes: true,
    }
}
