//! What a response reports that it took: tokens by kind, as the provider counts them.

use serde::{Deserialize, Serialize};

/// Token counts of one response. Fields that a gateway leaves out or sends as null count as zero.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Prompt tokens after the last cache mark, neither read from nor written to the cache.
    #[serde(deserialize_with = "or_zero")]
    pub input_tokens: u64,
    /// Prompt tokens written to the cache.
    #[serde(deserialize_with = "or_zero")]
    pub cache_creation_input_tokens: u64,
    /// Prompt tokens read from the cache.
    #[serde(deserialize_with = "or_zero")]
    pub cache_read_input_tokens: u64,
    /// Tokens that the model wrote, thinking included.
    #[serde(deserialize_with = "or_zero")]
    pub output_tokens: u64,
    /// The written tokens by lifetime, where reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_creation: Option<CacheCreation>,
    /// The passes behind this response, where reported. A `compaction` pass is billed beside the totals above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<Vec<Iteration>>,
}

/// Tokens written to the cache, by lifetime.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheCreation {
    /// Written for five minutes.
    #[serde(deserialize_with = "or_zero")]
    pub ephemeral_5m_input_tokens: u64,
    /// Written for an hour.
    #[serde(deserialize_with = "or_zero")]
    pub ephemeral_1h_input_tokens: u64,
}

/// One pass of a response.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Iteration {
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
    /// Tokens of the prompt: uncached, written and read.
    pub fn prompt_tokens(&self) -> u64 {
        self.input_tokens
            .saturating_add(self.cache_creation_input_tokens)
            .saturating_add(self.cache_read_input_tokens)
    }

    /// Size of the context once the response is part of it. The last `message` pass speaks for it where passes
    /// are reported, because a compaction pass has another prompt.
    pub fn context_tokens(&self) -> u64 {
        match self.last_message_pass() {
            Some(pass) => pass.prompt_tokens().saturating_add(pass.output_tokens),
            None => self.prompt_tokens().saturating_add(self.output_tokens),
        }
    }

    /// Whether the size of the prompt was reported. Some agents record only what the model wrote.
    pub fn has_prompt(&self) -> bool {
        match self.last_message_pass() {
            Some(pass) => pass.prompt_tokens() > 0,
            None => self.prompt_tokens() > 0,
        }
    }

    fn last_message_pass(&self) -> Option<&Iteration> {
        self.iterations.iter().flatten().rev().find(|iteration| iteration.kind == "message")
    }
}

impl Iteration {
    /// Tokens of this pass's prompt: uncached, written and read.
    pub fn prompt_tokens(&self) -> u64 {
        self.input_tokens
            .saturating_add(self.cache_creation_input_tokens)
            .saturating_add(self.cache_read_input_tokens)
    }
}

/// A count that may be null, missing, negative or a float: gateways send all of these.
fn or_zero<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Count {
        Whole(u64),
        Fraction(f64),
        Other(serde::de::IgnoredAny),
    }
    Ok(match Count::deserialize(deserializer)? {
        Count::Whole(count) => count,
        Count::Fraction(count) if count > 0.0 && count < 1e15 => count as u64,
        Count::Fraction(_) | Count::Other(_) => 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_and_oddities_are_zero() {
        let usage: Usage = serde_json::from_str(
            r#"{"input_tokens":null,"cache_read_input_tokens":-4,"cache_creation_input_tokens":7.0,"output_tokens":3,"speed":"fast"}"#,
        )
        .unwrap();
        assert_eq!((usage.prompt_tokens(), usage.context_tokens()), (7, 10));
    }

    #[test]
    fn context_is_the_last_message_pass() {
        let usage: Usage = serde_json::from_str(
            r#"{"input_tokens":1,"output_tokens":2,"iterations":[{"type":"message","input_tokens":5,"output_tokens":6},{"type":"compaction","input_tokens":900,"output_tokens":90}]}"#,
        )
        .unwrap();
        assert_eq!(usage.context_tokens(), 11);
    }
}
