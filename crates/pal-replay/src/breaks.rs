//! Where the cache was lost: reads that fell, and why.

use pal_model::{BreakCause, CacheBreak};
use serde::Serialize;
use smol_str::SmolStr;

/// Reads that fell without an announcement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Break {
    /// Which request of the recording, counted from 1.
    pub request: u64,
    /// Why.
    pub cause: BreakCause,
    /// By how many tokens the reads fell.
    pub tokens: u64,
    /// What it cost, in US dollars.
    pub cost_usd: Option<f64>,
    /// What the provider says of it.
    pub provider: Option<SmolStr>,
}

impl Break {
    /// A fall at a request, unless a decision announced it.
    pub(crate) fn of(request: u64, found: &CacheBreak) -> Option<Break> {
        (!found.cause.is_expected()).then(|| Break {
            request,
            cause: found.cause.clone(),
            tokens: found.tokens,
            cost_usd: found.cost,
            provider: found.provider.clone(),
        })
    }
}
