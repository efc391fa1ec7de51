//! The numbers of a refusal because a prompt is too long.

/// Figures that a provider reported when it refused a prompt as too long. Each may be missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ContextOverflow {
    /// Tokens of the prompt, as the provider counts them.
    pub prompt: Option<u64>,
    /// Tokens that prompt and answer may have together; where the provider limits the prompt alone, that limit.
    pub window: Option<u64>,
    /// Tokens requested for the answer, if the provider counts them against the window.
    pub output: Option<u64>,
    /// Maximum tokens of an answer, whatever the prompt, if that is what was exceeded.
    pub output_limit: Option<u64>,
}

impl ContextOverflow {
    /// A refusal without figures.
    pub const UNKNOWN: ContextOverflow =
        ContextOverflow { prompt: None, window: None, output: None, output_limit: None };

    /// Maximum tokens of a prompt with the answer that was requested.
    pub fn prompt_limit(&self) -> Option<u64> {
        Some(self.window?.saturating_sub(self.output.unwrap_or(0)))
    }

    /// Tokens that are left for an answer to the same prompt; none if the provider does not count answers, or did not
    /// say enough.
    pub fn answer_room(&self) -> Option<u64> {
        self.output?;
        self.window?.checked_sub(self.prompt?)
    }
}
