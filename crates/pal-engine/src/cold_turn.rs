//! Lifetime of a session's cached messages, and the price of the next request after it.

use pal_context::cache::{self, ColdTurn};
use pal_context::{ActionKind, LAYERS};
use pal_model::Timestamp;

use crate::{Session, SessionConfig};

/// Layer that clears old results when the cache is cold.
const CLEARS: &str = "microcompact";
/// Stands for the prompt that is about to be sent.
const PROMPT: &str = "Go on.";

impl Session {
    /// Time at which the messages leave the provider's cache; `None` if it is unknown.
    pub fn cache_expiry(&self, config: &SessionConfig) -> Option<Timestamp> {
        if config.cache.breakpoints_off {
            return None;
        }
        cache::cache_expiry(self.view())
    }

    /// Price of a prompt sent now, if the cache has expired: without the old results that are cleared first, and
    /// with the TTL that the request will have.
    pub fn cold_turn(&self, config: &SessionConfig, now: Timestamp) -> Option<ColdTurn> {
        self.cache_expiry(config).filter(|expiry| *expiry < now)?;
        let mut fork = self.fork(config, now);
        fork.push_user_text(PROMPT);
        let view = fork.view();
        let layer = LAYERS.into_iter().find(|layer| layer.name() == CLEARS)?;
        let freed: u64 = match config.plan(layer, view, now).kind {
            ActionKind::Decide(proposals) => {
                proposals.iter().map(|proposal| proposal.decision.cost.tokens_freed).sum()
            }
            _ => 0,
        };
        let size = view.size().tokens.saturating_sub(freed);
        let (ttl, _) = cache::choose_ttl(view, &config.policy, config.cache.ttl_preference, Some(now));
        cache::cold_turn(view, now, size, ttl)
    }
}
