//! Tokens by category: what fills the context.

use std::ops::Index;

macro_rules! categories {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// What tokens are spent on.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Category {
            $($(#[$doc])* $name,)*
        }

        impl Category {
            /// All categories, in the order in which they are shown.
            pub const ALL: [Category; 10] = [$(Category::$name,)*];

            /// The name that people read.
            pub fn name(self) -> &'static str {
                match self {
                    $(Category::$name => $text,)*
                }
            }
        }
    };
}

categories! {
    /// What people said.
    UserText = "user text",
    /// What the model said.
    AssistantText = "assistant text",
    /// What the model thought.
    Thinking = "thinking",
    /// Calls of tools.
    ToolCalls = "tool calls",
    /// Answers of tools.
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

/// Estimated tokens by category. Sums are kept as fractions; rounding happens when they are shown.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Sums([f64; Category::ALL.len()]);

impl Sums {
    /// Counts `tokens` under a category.
    pub fn add(&mut self, category: Category, tokens: f64) {
        self.0[category as usize] += tokens;
    }

    /// The sum over all categories.
    pub fn total(&self) -> f64 {
        self.0.iter().fold(0.0, |sum, tokens| sum + tokens)
    }
}

impl Index<Category> for Sums {
    type Output = f64;

    fn index(&self, category: Category) -> &f64 {
        &self.0[category as usize]
    }
}
