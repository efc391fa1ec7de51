//! Token usage of OpenAI's dialects.
//!
//! Their prompt tokens include cache reads and writes; [`Usage`] counts these separately.

use pal_model::{CacheCreation, Usage};
use serde::Deserialize;

/// Token counts of either dialect; missing, null and malformed counts are zero.
#[derive(Default, Deserialize)]
#[serde(default)]
struct OpenAiUsage {
    #[serde(alias = "prompt_tokens", deserialize_with = "lenient")]
    input_tokens: u64,
    #[serde(alias = "completion_tokens", deserialize_with = "lenient")]
    output_tokens: u64,
    #[serde(alias = "prompt_tokens_details", deserialize_with = "lenient")]
    input_tokens_details: PromptTokenDetails,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PromptTokenDetails {
    #[serde(deserialize_with = "lenient")]
    cached_tokens: u64,
    #[serde(deserialize_with = "lenient")]
    cache_write_tokens: u64,
    #[serde(deserialize_with = "lenient")]
    cache_write_tokens_details: Option<CacheWriteDetails>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CacheWriteDetails {
    #[serde(deserialize_with = "lenient")]
    ttl_30m_tokens: u64,
    #[serde(deserialize_with = "lenient")]
    ttl_12h_tokens: u64,
}

/// Deserializes a value; a value of another type counts as missing.
fn lenient<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum LenientValue<T> {
        Fits(T),
        Other(serde::de::IgnoredAny),
    }
    Ok(match LenientValue::deserialize(deserializer)? {
        LenientValue::Fits(value) => value,
        LenientValue::Other(_) => T::default(),
    })
}

/// Parses a raw `usage` member.
pub(crate) fn parse_usage(raw: &str) -> Usage {
    let counts: OpenAiUsage = serde_json::from_str(raw).unwrap_or_default();
    let details = &counts.input_tokens_details;
    let read = details.cached_tokens.min(counts.input_tokens);
    let written = details.cache_write_tokens.min(counts.input_tokens - read);
    Usage {
        input_tokens: counts.input_tokens - read - written,
        cache_creation_input_tokens: written,
        cache_read_input_tokens: read,
        output_tokens: counts.output_tokens,
        // The shorter and the longer TTL, although their lengths differ from Anthropic's.
        cache_creation: details.cache_write_tokens_details.as_ref().map(|lifetimes| CacheCreation {
            ephemeral_5m_input_tokens: lifetimes.ttl_30m_tokens,
            ephemeral_1h_input_tokens: lifetimes.ttl_12h_tokens,
        }),
        iterations: None,
        server_tool_use: None,
        basis: Default::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(raw: &str, expected: (u64, u64, u64, u64)) {
        let usage = parse_usage(raw);
        let counts = (
            usage.input_tokens,
            usage.cache_creation_input_tokens,
            usage.cache_read_input_tokens,
            usage.output_tokens,
        );
        assert_eq!(counts, expected, "{raw}");
    }

    #[test]
    fn the_prompt_is_counted_apart() {
        check(
            r#"{"input_tokens":1000,"input_tokens_details":{"cached_tokens":600,"cache_write_tokens":300},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":1007}"#,
            (100, 300, 600, 7),
        );
        check(
            r#"{"prompt_tokens":50,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":20}}"#,
            (30, 0, 20, 4),
        );
        check(r#"{"prompt_tokens":50,"completion_tokens":null,"prompt_tokens_details":null}"#, (50, 0, 0, 0));
        // More cached than there is cannot be.
        check(
            r#"{"input_tokens":5,"input_tokens_details":{"cached_tokens":9,"cache_write_tokens":9}}"#,
            (0, 0, 5, 0),
        );
        check(r#"{"input_tokens":-5,"input_tokens_details":[],"output_tokens":"x"}"#, (0, 0, 0, 0));
        check("null", (0, 0, 0, 0));
        let lifetimes = parse_usage(
            r#"{"input_tokens":9,"input_tokens_details":{"cache_write_tokens":5,"cache_write_tokens_details":{"ttl_30m_tokens":2,"ttl_12h_tokens":3}}}"#,
        );
        assert_eq!(lifetimes.cache_creation.unwrap().ephemeral_1h_input_tokens, 3);
    }
}
