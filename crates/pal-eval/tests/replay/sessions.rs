//! Reads the recorded sessions.

use std::path::Path;

use pal_eval::replay::{RecordedSession, ReplayOptions as Replay, ReplayPolicy};
use pal_model::ModelCatalog;
use pal_view::CardEstimator;

/// A replay under the threshold policy, at a window of its own or that of the recording's models.
pub(crate) fn threshold(window: Option<u64>) -> Replay {
    let layers = pal_context::ContextPolicy::threshold();
    Replay { window, policy: ReplayPolicy::Threshold, layers, auto_compact: true, ..Replay::plain() }
}

/// A replay under the policy that goes by price.
pub(crate) fn cost_aware(window: Option<u64>) -> Replay {
    let layers = pal_context::ContextPolicy::cost_aware(pal_context::cost_aware::CostAwareSettings::STANDARD);
    Replay { policy: ReplayPolicy::CostAware, layers, ..threshold(window) }
}

/// A recorded session.
pub(crate) fn recorded(file: &Path) -> RecordedSession {
    let name = file.file_name().unwrap().to_string_lossy();
    RecordedSession::new(
        name,
        pal_testkit::read_entries(file, &CardEstimator { cards: &ModelCatalog::built_in() }).unwrap(),
    )
}
