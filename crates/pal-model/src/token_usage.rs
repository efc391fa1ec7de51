//! Token usage of responses, as the provider counts it.

use serde::{Deserialize, Deserializer, Serialize};

/// Token counts of one response. Missing and null fields count as zero.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Prompt tokens after the last cache breakpoint, neither read from nor written to the cache.
    #[serde(deserialize_with = "or_zero")]
    pub input_tokens: u64,
    /// Prompt tokens written to the cache.
    #[serde(deserialize_with = "or_zero")]
    pub cache_creation_input_tokens: u64,
    /// Prompt tokens read from the cache.
    #[serde(deserialize_with = "or_zero")]
    pub cache_read_input_tokens: u64,
    /// Output tokens, including thinking.
    #[serde(deserialize_with = "or_zero")]
    pub output_tokens: u64,
    /// Cache-write tokens by TTL, if reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_creation: Option<CacheCreation>,
    /// Passes of this response, if reported. A `compaction` pass is billed in addition to the totals above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<Vec<UsageIteration>>,
    /// Calls of the provider's own tools that are billed one by one, if there were any.
    #[serde(deserialize_with = "billed_calls", skip_serializing_if = "Option::is_none")]
    pub server_tool_use: Option<ServerToolUse>,
    /// Source of the counts.
    #[serde(deserialize_with = "known_basis", skip_serializing_if = "UsageBasis::is_reported")]
    pub basis: UsageBasis,
}

/// Source of token counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageBasis {
    /// The provider counted and billed them.
    #[default]
    Reported,
    /// The transcript has a placeholder for the output tokens, so they are estimated from the content.
    Estimated,
    /// The simulator counted them: no money was spent.
    Simulated,
}

impl UsageBasis {
    /// Returns true if the provider counted the tokens.
    pub fn is_reported(&self) -> bool {
        *self == UsageBasis::Reported
    }
}

/// Reads a basis. A provider may use the name for something else.
fn known_basis<'de, D: Deserializer<'de>>(from: D) -> Result<UsageBasis, D::Error> {
    let name = serde_json::Value::deserialize(from)?;
    Ok(match name.as_str() {
        Some("estimated") => UsageBasis::Estimated,
        Some("simulated") => UsageBasis::Simulated,
        _ => UsageBasis::Reported,
    })
}

/// Tokens written to the cache, by TTL.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheCreation {
    /// Tokens written with a TTL of five minutes.
    #[serde(deserialize_with = "or_zero")]
    pub ephemeral_5m_input_tokens: u64,
    /// Tokens written with a TTL of one hour.
    #[serde(deserialize_with = "or_zero")]
    pub ephemeral_1h_input_tokens: u64,
}

/// Calls of the provider's own tools.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerToolUse {
    /// Web searches.
    #[serde(deserialize_with = "or_zero")]
    pub web_search_requests: u64,
}

/// Reads calls of the provider's tools; none if there were none. Another shape counts as none.
fn billed_calls<'de, D: Deserializer<'de>>(from: D) -> Result<Option<ServerToolUse>, D::Error> {
    let value = serde_json::Value::deserialize(from)?;
    let calls = serde_json::from_value(value).unwrap_or_default();
    Ok((calls != ServerToolUse::default()).then_some(calls))
}

/// One pass of a response.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageIteration {
    /// `message`, `compaction`, `advisor_message` or `fallback_message`.
    #[serde(rename = "type")]
    pub kind: String,
    /// As in [`Usage`].
    #[serde(deserialize_with = "or_zero")]
    pub input_tokens: u64,
    /// As in [`Usage`].
    #[serde(deserialize_with = "or_zero")]
    pub cache_creation_input_tokens: u64,
    /// As in [`Usage`].
    #[serde(deserialize_with = "or_zero")]
    pub cache_read_input_tokens: u64,
    /// As in [`Usage`].
    #[serde(deserialize_with = "or_zero")]
    pub output_tokens: u64,
}

impl Usage {
    /// Returns the prompt tokens: uncached, cache write and cache read.
    pub fn prompt_tokens(&self) -> u64 {
        self.input_tokens
            .saturating_add(self.cache_creation_input_tokens)
            .saturating_add(self.cache_read_input_tokens)
    }

    /// Returns the context size including the response. If passes are reported, the last `message` pass counts, because
    /// a compaction pass has a different prompt.
    pub fn context_tokens(&self) -> u64 {
        match self.last_message_pass() {
            Some(pass) => pass.prompt_tokens().saturating_add(pass.output_tokens),
            None => self.prompt_tokens().saturating_add(self.output_tokens),
        }
    }

    /// Returns true if the provider reported any tokens; an answer without them cannot be.
    pub fn is_reported(&self) -> bool {
        self.context_tokens() > 0
    }

    /// Returns true if the prompt size was reported. Some agents record only output tokens.
    pub fn has_prompt(&self) -> bool {
        match self.last_message_pass() {
            Some(pass) => pass.prompt_tokens() > 0,
            None => self.prompt_tokens() > 0,
        }
    }

    fn last_message_pass(&self) -> Option<&UsageIteration> {
        self.iterations.iter().flatten().rev().find(|iteration| iteration.kind == "message")
    }
}

impl UsageIteration {
    /// Returns the prompt tokens of this pass: uncached, cache write and cache read.
    pub fn prompt_tokens(&self) -> u64 {
        self.input_tokens
            .saturating_add(self.cache_creation_input_tokens)
            .saturating_add(self.cache_read_input_tokens)
    }
}

/// Deserializes a count that may be null, negative or a float, since gateways send all of these.
fn or_zero<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum LenientCount {
        Whole(u64),
        Fraction(f64),
        Other(serde::de::IgnoredAny),
    }
    Ok(match LenientCount::deserialize(deserializer)? {
        LenientCount::Whole(count) => count,
        LenientCount::Fraction(count) if count > 0.0 && count < 1e15 => count as u64,
        LenientCount::Fraction(_) | LenientCount::Other(_) => 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_counts_are_zero() {
        let usage: Usage = serde_json::from_str(
            r#"{"input_tokens":null,"cache_read_input_tokens":-4,"cache_creation_input_tokens":7.0,"output_tokens":3,"speed":"fast"}"#,
        )
        .unwrap();
        assert_eq!((usage.prompt_tokens(), usage.context_tokens()), (7, 10));
    }

    #[test]
    fn context_size_is_that_of_the_last_message_pass() {
        let usage: Usage = serde_json::from_str(
            r#"{"input_tokens":1,"output_tokens":2,"iterations":[{"type":"message","input_tokens":5,"output_tokens":6},{"type":"compaction","input_tokens":900,"output_tokens":90}]}"#,
        )
        .unwrap();
        assert_eq!(usage.context_tokens(), 11);
    }
}
