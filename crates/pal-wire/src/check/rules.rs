//! What the addressed model and endpoint allow. The caller makes it from a model card and the request's headers.

use pal_model::{Card, ThinkingKinds};

/// Everything a check depends on besides the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Which endpoint the body is for.
    pub endpoint: Endpoint,
    /// The `anthropic-version` header.
    pub version: ApiVersion,
    /// The `anthropic-beta` headers.
    pub betas: Betas,
    /// The most output tokens that may be asked for.
    pub max_output: u64,
    /// The kinds of thinking that the model knows.
    pub thinking: ThinkingKinds,
    /// Whether messages of the role `system` are understood.
    pub system_messages: bool,
    /// Whether the last message may be the beginning of the answer.
    pub prefill: bool,
    /// Whether sampling parameters other than the neutral ones are accepted.
    pub sampling: bool,
    /// Whether `tool_choice` may be `any` or `tool`.
    pub forced_tool_choice: bool,
    /// The most bytes that a body may have.
    pub max_body_bytes: usize,
}

impl Rules {
    /// The rules of `claude-opus-5-5` on the newest API version, with every public beta switched on.
    pub fn newest() -> Rules {
        Rules {
            endpoint: Endpoint::Messages,
            version: ApiVersion::V2026_10_21,
            betas: Betas::public(),
            max_output: 128_000,
            thinking: ThinkingKinds { adaptive: true, enabled: false, disabled: false, between_tools: false },
            system_messages: true,
            prefill: false,
            sampling: false,
            forced_tool_choice: false,
            max_body_bytes: 32 * 1024 * 1024,
        }
    }
}

impl From<&Card> for Rules {
    /// What the card's model takes on the newest API version, or on the one before if it takes sampling, without
    /// any beta.
    fn from(card: &Card) -> Rules {
        Rules {
            endpoint: Endpoint::Messages,
            version: if card.can.sampling { ApiVersion::V2023_06_01 } else { ApiVersion::V2026_10_21 },
            betas: Betas::none(),
            max_output: card.max_output,
            thinking: card.thinking,
            system_messages: card.can.system_messages,
            prefill: card.can.prefill,
            sampling: card.can.sampling,
            forced_tool_choice: card.can.forced_tool_choice,
            max_body_bytes: 32 * 1024 * 1024,
        }
    }
}

/// An endpoint that takes a Messages body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// `/v1/messages`.
    Messages,
    /// `/v1/messages/count_tokens`: the same body without `max_tokens` and `stream`.
    CountTokens,
}

/// A published version of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApiVersion {
    /// `2023-06-01`.
    V2023_06_01,
    /// `2026-10-21`: no sampling, no documents in assistant messages, no citations in user text.
    V2026_10_21,
}

/// A surface that exists only behind a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beta {
    /// Clearing edits.
    ContextManagement,
    /// The compaction edit with a threshold.
    ThresholdCompaction,
    /// Compaction on demand, and its signed block.
    Compaction,
    /// `thinking.block_binding`.
    BlockBinding,
    /// Tools added and removed by reference.
    ToolChanges,
    /// Tools defined inside messages.
    InlineTools,
    /// Effort per message.
    MessageOutputConfig,
    /// Turn-scoped system messages.
    ClearAt,
    /// Conversations held by the server.
    Threads,
    /// The MCP connector.
    McpClient,
    /// The MCP connector with pinned listings.
    McpListing,
    /// Token budgets.
    TaskBudgets,
    /// `thinking.display: "updates"`.
    DisplayUpdates,
    /// Fallback models after a refusal.
    Fallbacks,
    /// Credit for a fallback.
    FallbackCredit,
    /// The adviser tool.
    Advisor,
    /// Private to one vendor's client: deletion of cached results in place.
    CacheEdits,
    /// Private to one vendor's client: `cache_control.scope`.
    CacheScopes,
}

impl Beta {
    /// The surface that a value of `anthropic-beta` switches on, if we know it.
    pub fn from_header(value: &str) -> Option<Beta> {
        Some(match value.trim() {
            "context-management-2025-06-27" => Beta::ContextManagement,
            "compact-2026-01-12" => Beta::ThresholdCompaction,
            "compact-2026-09-04" => Beta::Compaction,
            "thinking-binding-controls-2026-08-01" => Beta::BlockBinding,
            "mid-conversation-tool-changes-2026-07-01" => Beta::ToolChanges,
            "inline-tools-2026-09-15" => Beta::InlineTools,
            "mid-conversation-output-config-2026-07-01" => Beta::MessageOutputConfig,
            "mid-conversation-system-clear-at-2026-08-21" => Beta::ClearAt,
            "message-threads-2026-08-12" => Beta::Threads,
            "mcp-client-2025-11-20" => Beta::McpClient,
            "mcp-client-2026-09-15" => Beta::McpListing,
            "task-budgets-2026-03-13" => Beta::TaskBudgets,
            "thinking-display-updates-2026-08-18" => Beta::DisplayUpdates,
            "server-side-fallback-2026-07-01" => Beta::Fallbacks,
            "fallback-credit-2026-07-01" => Beta::FallbackCredit,
            "advisor-tool-2026-03-01" => Beta::Advisor,
            "prompt-caching-scope-2026-01-05" => Beta::CacheScopes,
            _ => return None,
        })
    }
}

/// A set of betas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Betas(u32);

impl Betas {
    /// No beta at all.
    pub const fn none() -> Betas {
        Betas(0)
    }

    /// Every beta that a public endpoint offers.
    pub const fn public() -> Betas {
        Betas(u32::MAX).without(Beta::CacheEdits).without(Beta::CacheScopes)
    }

    /// This set and one more.
    #[must_use]
    pub const fn with(self, beta: Beta) -> Betas {
        Betas(self.0 | 1 << beta as u32)
    }

    /// This set and one less.
    #[must_use]
    pub const fn without(self, beta: Beta) -> Betas {
        Betas(self.0 & !(1 << beta as u32))
    }

    /// Whether the beta is in the set.
    pub const fn has(self, beta: Beta) -> bool {
        self.0 & 1 << beta as u32 != 0
    }

    /// Whether one of them is in the set.
    pub(crate) fn has_any(self, betas: &[Beta]) -> bool {
        betas.iter().any(|&beta| self.has(beta))
    }
}
