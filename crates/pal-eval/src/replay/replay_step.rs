//! One request of a replay, for observers.

use std::time::Duration;

use pal_model::{CacheBreak, Timestamp, Usage};
use pal_sim::CacheOutcome;
use pal_view::View;

/// One request of a replay.
#[derive(Clone, Copy, Debug)]
pub struct ReplayStep<'a> {
    /// Which request, counted from 1.
    pub number: u64,
    /// Number of the recorded request, counted from 1.
    pub call: u64,
    /// The view that it shows.
    pub view: &'a View,
    /// When it started.
    pub started: Timestamp,
    /// Time since the request before.
    pub since_previous: Option<Duration>,
    /// The model that was asked.
    pub model: &'a str,
    /// The body as it was sent.
    pub body: &'a str,
    /// Usage that the recording's provider reported.
    pub recorded: Option<&'a Usage>,
    /// Usage that the simulator reported.
    pub simulated: Option<&'a Usage>,
    /// Effect on its cache.
    pub cache: Option<CacheOutcome>,
    /// Reads that fell, and why, announced ones included.
    pub cache_break: Option<&'a CacheBreak>,
    /// True if it is the conversation's own request that was answered, not one beside it or one that was refused.
    pub is_answer: bool,
    /// True if the view was compacted or shortened since the previous request.
    pub was_cut: bool,
}
