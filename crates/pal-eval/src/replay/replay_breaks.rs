//! Cache breaks of a replay: cache-read drops and their causes.

use pal_model::{BreakCause, CacheBreak};
use serde::Serialize;
use smol_str::SmolStr;

/// Reads that fell without an announcement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayBreak {
    /// Which request of the recording, counted from 1.
    pub request: u64,
    /// First cause.
    pub cause: BreakCause,
    /// All causes, for people.
    pub reason: String,
    /// By how many tokens the reads fell.
    pub tokens: u64,
    /// Cost in US dollars.
    pub cost_usd: Option<f64>,
    /// Message of the provider.
    pub provider: Option<SmolStr>,
}

impl ReplayBreak {
    /// A fall at a request, unless a decision announced it.
    pub(crate) fn of(request: u64, found: &CacheBreak) -> Option<ReplayBreak> {
        (!found.cause.is_expected()).then(|| ReplayBreak {
            request,
            cause: found.cause.clone(),
            reason: found.reason(),
            tokens: found.tokens,
            cost_usd: found.cost,
            provider: found.provider.clone(),
        })
    }
}
