//! The weights that turn structural counts into tokens.

use super::text_counts::TextCounts;

/// Fitted weights of one tokenizer generation; written by `xtask calibrate`.
#[derive(Debug, PartialEq)]
pub(super) struct TokenWeights {
    /// Tokens per structural count.
    pub(super) counts: [f32; TextCounts::LEN],
    /// Tokens of a tool call beyond its name and input.
    pub(super) call: f32,
    /// Tokens of a tool result beyond its text.
    pub(super) result: f32,
}
