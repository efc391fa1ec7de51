//! Sizes counted by the provider in a replay: of each call, and of the context after a compaction.

/// A call as the provider counted it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SessionObservation {
    pub(crate) started: i64,
    pub(crate) prompt: f64,
    pub(crate) read: f64,
    pub(crate) output: f64,
    /// Tokens that joined and are no answer.
    pub(crate) waiting: f64,
    /// Of these, results that may be cleared, and how many.
    pub(crate) clearable: f64,
    pub(crate) results: usize,
    /// Tokens before the messages; known of the first call only.
    pub(crate) prefix: f64,
}

/// Sizes that compactions left in replays of a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CompactionResidue {
    /// Tokens of summary and restored files.
    pub(crate) summary: f64,
    /// Tokens that the model wrote for it.
    pub(crate) output: f64,
    /// Tokens that the next call read from the cache.
    pub(crate) cached: f64,
}
