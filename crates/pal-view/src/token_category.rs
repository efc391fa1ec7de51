//! Token categories of the context.

use std::ops::Index;

macro_rules! categories {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Category of context tokens.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Category {
            $($(#[$doc])* $name,)*
        }

        impl Category {
            /// All categories, in display order.
            pub const ALL: [Category; 10] = [$(Category::$name,)*];

            /// Display name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Category::$name => $text,)*
                }
            }
        }
    };
}

categories! {
    /// Text of people.
    UserText = "user text",
    /// Text of the model.
    AssistantText = "assistant text",
    /// Thinking of the model.
    Thinking = "thinking",
    /// Tool calls.
    ToolCalls = "tool calls",
    /// Tool results.
    ToolResults = "tool results",
    /// Reminders, memories, notices.
    Attachments = "attachments",
    /// Summaries of compactions and folds.
    Summaries = "summaries",
    /// The system prompt.
    SystemPrompt = "system prompt",
    /// The tools' descriptions.
    ToolSchemas = "tool schemas",
    /// The part of the prompt that an imported transcript does not hold.
    UnseenPrefix = "unseen prefix",
}

/// Estimated tokens by category, as fractions; round for display.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct CategoryTokens([f64; Category::ALL.len()]);

impl CategoryTokens {
    /// Adds `tokens` to a category.
    pub(crate) fn add(&mut self, category: Category, tokens: f64) {
        self.0[category as usize] += tokens;
    }

    /// The sum over all categories.
    pub(crate) fn total(&self) -> f64 {
        self.0.iter().fold(0.0, |sum, tokens| sum + tokens)
    }
}

impl Index<Category> for CategoryTokens {
    type Output = f64;

    fn index(&self, category: Category) -> &f64 {
        &self.0[category as usize]
    }
}
