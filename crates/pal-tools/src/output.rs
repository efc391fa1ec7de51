//! What comes of a call.

use pal_model::{Aftermath, Block};

/// What comes of a call.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Output {
    /// What the model reads.
    pub content: Vec<Block>,
    /// Whether it failed.
    pub is_error: bool,
    /// What the session has to remember of it.
    pub aftermath: Aftermath,
    /// Files that it looked at or changed, for rules that wait for them.
    pub touched: Vec<std::path::PathBuf>,
}

impl Output {
    /// A text.
    pub fn text(text: &str) -> Output {
        Output { content: vec![Block::text(text)], ..Output::default() }
    }

    /// What went wrong, in words for the model.
    pub fn error(text: &str) -> Output {
        Output { is_error: true, ..Output::text(text) }
    }
}
