//! Configuration of a replay's session.

use pal_context::cache::TtlPreference;
use pal_engine::{CacheSettings, SessionConfig};
use pal_model::ModelCard;
use pal_view::{CacheTtl, WindowLimits, WindowSettings};
use smol_str::SmolStr;

use crate::replay::replay_options::ReplayOptions;

/// Maximum tokens of an answer: enough for every recorded one.
pub(crate) const TOKENS_MAX: u64 = 64_000;

/// Configuration of a session of this model.
pub(crate) fn session_config(options: &ReplayOptions, card: &ModelCard, lifetime: CacheTtl) -> SessionConfig {
    let limits = WindowLimits::new(
        card,
        &WindowSettings {
            auto_compact: options.auto_compact && options.may_compact,
            threshold: options.threshold,
            ..WindowSettings::STANDARD
        },
    );
    let limits = WindowLimits {
        warning: options.warning.map_or(limits.warning, |at| at.min(limits.warning)),
        ..limits
    };
    let cache = CacheSettings {
        // The cost-aware policy chooses; all others repeat the recorded one.
        ttl_preference: TtlPreference {
            fixed: options.cache_ttl.or(Some(lifetime).filter(|_| options.layers.cost_aware.is_none())),
            is_in_overage: false,
        },
        effort: None,
        betas: pal_wire::beta_headers(card).into_iter().map(SmolStr::new_static).collect(),
        ..CacheSettings::default()
    };
    // The same path wherever the replay keeps its files.
    let log = std::path::Path::new("session/log.jsonl");
    let config = SessionConfig::for_log(log, options.layers.clone(), limits, TOKENS_MAX).with_cache(cache);
    if options.may_compact { config } else { config.without_summaries() }
}
