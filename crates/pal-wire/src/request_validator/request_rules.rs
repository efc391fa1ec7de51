//! Rules of a model and endpoint, built from a model card and the request's headers.

use pal_model::{ModelCard, ThinkingModes};

/// Inputs of a check besides the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRules {
    /// Endpoint that the body is for.
    pub endpoint: MessagesEndpoint,
    /// Value of the `anthropic-version` header.
    pub version: ApiVersion,
    /// Values of the `anthropic-beta` headers.
    pub betas: BetaSet,
    /// Maximum of `max_tokens`.
    pub max_output: u64,
    /// Thinking modes that the model supports.
    pub thinking: ThinkingModes,
    /// Accepts messages of the role `system`.
    pub system_messages: bool,
    /// Accepts an assistant message as the last one.
    pub prefill: bool,
    /// Accepts sampling parameters other than the neutral ones.
    pub sampling: bool,
    /// Accepts `any` and `tool` as `tool_choice`.
    pub forced_tool_choice: bool,
    /// Maximum body size in bytes.
    pub max_body_bytes: usize,
}

impl RequestRules {
    /// Returns the rules of `claude-opus-5-5` on the newest API version with all public betas.
    pub fn newest() -> RequestRules {
        RequestRules {
            endpoint: MessagesEndpoint::Messages,
            version: ApiVersion::V2026_10_21,
            betas: BetaSet::public(),
            max_output: 128_000,
            thinking: ThinkingModes { adaptive: true, enabled: false, disabled: false, between_tools: false },
            system_messages: true,
            prefill: false,
            sampling: false,
            forced_tool_choice: false,
            max_body_bytes: 32 * 1024 * 1024,
        }
    }
}

impl From<&ModelCard> for RequestRules {
    /// Returns the rules of the card's model without betas, on the newest API version, or on the previous one if the model
    /// accepts sampling.
    fn from(card: &ModelCard) -> RequestRules {
        RequestRules {
            endpoint: MessagesEndpoint::Messages,
            version: if card.can.sampling { ApiVersion::V2023_06_01 } else { ApiVersion::V2026_10_21 },
            betas: BetaSet::none(),
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

/// Endpoint that accepts a Messages body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessagesEndpoint {
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

/// API feature behind a beta header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beta {
    /// Context-management edits.
    ContextManagement,
    /// Compaction edit with a threshold.
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
    /// Conversations stored by the server.
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
    /// Parses a value of `anthropic-beta`; none if it is unknown.
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
pub struct BetaSet(u32);

impl BetaSet {
    /// Returns the empty set.
    pub const fn none() -> BetaSet {
        BetaSet(0)
    }

    /// Returns all betas of public endpoints.
    pub const fn public() -> BetaSet {
        BetaSet(u32::MAX).without(Beta::CacheEdits).without(Beta::CacheScopes)
    }

    /// Returns this set with `beta`.
    #[must_use]
    pub const fn with(self, beta: Beta) -> BetaSet {
        BetaSet(self.0 | 1 << beta as u32)
    }

    /// Returns this set without `beta`.
    #[must_use]
    pub const fn without(self, beta: Beta) -> BetaSet {
        BetaSet(self.0 & !(1 << beta as u32))
    }

    /// Returns true if `beta` is in the set.
    pub const fn has(self, beta: Beta) -> bool {
        self.0 & 1 << beta as u32 != 0
    }

    /// Returns true if any of `betas` is in the set.
    pub(crate) fn has_any(self, betas: &[Beta]) -> bool {
        betas.iter().any(|&beta| self.has(beta))
    }
}
