//! Output of a tool call.

use pal_model::{ContentBlock, ToolEffects};

/// Output of a tool call.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ToolOutput {
    /// Content for the model.
    pub content: Vec<ContentBlock>,
    /// True if the call failed.
    pub is_error: bool,
    /// Effects that the session must remember.
    pub aftermath: ToolEffects,
    /// Files that it read or changed, for path-dependent instructions.
    pub touched: Vec<std::path::PathBuf>,
}

impl ToolOutput {
    /// Output with a text.
    pub fn text(text: &str) -> ToolOutput {
        ToolOutput { content: vec![ContentBlock::text(text)], ..ToolOutput::default() }
    }

    /// Error for the model.
    pub fn error(text: &str) -> ToolOutput {
        ToolOutput { is_error: true, ..ToolOutput::text(text) }
    }
}
