//! Usage as the provider reports it.

use pal_model::{BlockType, CacheCreation, ContentBlock, ServerToolUse, SharedText, Usage, UsageIteration};
use serde_json::{Value, json};

use crate::prefix_cache::CacheLookup;

/// Usage of one pass.
pub(crate) fn pass(kind: &str, served: &CacheLookup, output: u64) -> UsageIteration {
    UsageIteration {
        kind: kind.to_owned(),
        input_tokens: served.uncached,
        cache_creation_input_tokens: served.written_5m + served.written_1h,
        cache_read_input_tokens: served.read,
        output_tokens: output,
    }
}

/// Usage totals of a response with this message pass.
pub(crate) fn totals(served: &CacheLookup, output: u64) -> Usage {
    Usage {
        input_tokens: served.uncached,
        cache_creation_input_tokens: served.written_5m + served.written_1h,
        cache_read_input_tokens: served.read,
        output_tokens: output,
        cache_creation: Some(CacheCreation {
            ephemeral_5m_input_tokens: served.written_5m,
            ephemeral_1h_input_tokens: served.written_1h,
        }),
        iterations: None,
        server_tool_use: None,
        basis: Default::default(),
    }
}

/// Billed calls of the provider's own tools in the blocks of a response.
pub(crate) fn server_tool_use(blocks: &[SharedText]) -> Option<ServerToolUse> {
    let is_search = |block: &&SharedText| {
        let block = ContentBlock::parse(SharedText::clone(block));
        block.kind() == BlockType::ServerToolUse && block.string("name").as_deref() == Some("web_search")
    };
    let web_search_requests = blocks.iter().filter(is_search).count() as u64;
    (web_search_requests > 0).then_some(ServerToolUse { web_search_requests })
}

/// Usage members besides the token counts.
pub(crate) struct UsageExtras<'a> {
    pub(crate) model: &'a str,
    pub(crate) thinking_tokens: u64,
    pub(crate) is_fast: bool,
    pub(crate) geo: &'a str,
    /// Tokens deleted in the cache, if the model supports it.
    pub(crate) deleted_tokens: Option<u64>,
}

/// Usage object in wire form.
pub(crate) fn to_json(usage: &Usage, beside: &UsageExtras<'_>) -> String {
    let created = usage.cache_creation.unwrap_or_default();
    let mut json = json!({
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_creation_input_tokens,
        "cache_read_input_tokens": usage.cache_read_input_tokens,
        "cache_creation": {
            "ephemeral_5m_input_tokens": created.ephemeral_5m_input_tokens,
            "ephemeral_1h_input_tokens": created.ephemeral_1h_input_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"thinking_tokens": beside.thinking_tokens},
        "server_tool_use": usage.server_tool_use,
        "service_tier": "standard",
        "inference_geo": beside.geo,
        "speed": if beside.is_fast { "fast" } else { "standard" },
    });
    if let Some(deleted) = beside.deleted_tokens {
        json["cache_deleted_input_tokens"] = json!(deleted);
    }
    if let Some(passes) = &usage.iterations {
        json["iterations"] = passes.iter().map(|pass| iteration(pass, beside.model)).collect();
    }
    json.to_string()
}

fn iteration(pass: &UsageIteration, model: &str) -> Value {
    let mut json = json!({
        "type": pass.kind,
        "input_tokens": pass.input_tokens,
        "cache_creation_input_tokens": pass.cache_creation_input_tokens,
        "cache_read_input_tokens": pass.cache_read_input_tokens,
        "output_tokens": pass.output_tokens,
    });
    if pass.kind == "message" {
        json["model"] = json!(model);
    }
    json
}
