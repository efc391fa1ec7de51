//! Signatures of thinking blocks and summaries, by which the simulator recognizes them and detects changes.
//! The hash is keyed by the seed and is not cryptographic: it detects mistakes, not attacks.

use pal_model::Role;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::media_tokens::{decode, encode};

/// Claims in the signature of a thinking block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThinkingClaims {
    /// Id of the block.
    pub(crate) id: u64,
    /// Id of the previous thinking block, or 0.
    pub(crate) previous: u64,
    /// Hash of the model.
    pub(crate) model: u64,
    /// True if that model binds its thinking.
    pub(crate) is_bound: bool,
    /// Hash of the client's key.
    pub(crate) scope: u64,
    /// Tokens, including hidden ones.
    pub(crate) tokens: u32,
}

/// Claims in the signature of a summary: the position of the summarized conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SummaryClaims {
    /// Hash of everything up to there, if the model binds thinking.
    pub(crate) prefix: Option<u128>,
    /// Hash of tools and system prompt.
    pub(crate) head: u128,
    /// Id of the last thinking block, or 0.
    pub(crate) last_thought: u64,
    /// Role of the last message, if the summary replaces it.
    pub(crate) last_role: Option<Role>,
    /// Hash of the client's key.
    pub(crate) scope: u64,
}

/// Creates and verifies signatures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockSigner {
    key: u64,
}

const THOUGHT: &[u8; 4] = b"PTh1";
const SUMMARY: &[u8; 4] = b"PSu1";

impl BlockSigner {
    pub(crate) fn new(seed: u64) -> BlockSigner {
        BlockSigner { key: seed ^ 0x5ea1_ed00_5ea1_ed00 }
    }

    fn tag(&self, parts: &[&[u8]]) -> u128 {
        let mut joined = Vec::with_capacity(parts.iter().map(|part| part.len() + 8).sum());
        for part in parts {
            joined.extend_from_slice(&(part.len() as u64).to_le_bytes());
            joined.extend_from_slice(part);
        }
        xxh3_128_with_seed(&joined, self.key)
    }

    /// Signs thinking with this visible text and prefix.
    pub(crate) fn sign_thinking(&self, thought: &ThinkingClaims, shown: &str, prefix: u128) -> String {
        let body = thought_bytes(thought);
        let own = self.tag(&[&body, shown.as_bytes()]).to_le_bytes();
        let bound = self.tag(&[&own, &prefix.to_le_bytes()]).to_le_bytes();
        encode(&[&body[..], &own, &bound].concat())
    }

    /// Claims of a signature, and true if it matches the prefix; `None` if it is foreign or the text changed.
    pub(crate) fn verify_thinking(
        &self,
        signature: &str,
        shown: &str,
        prefix: u128,
    ) -> Option<(ThinkingClaims, bool)> {
        let bytes = decode(signature.as_bytes());
        let (body, tags) = bytes.split_at_checked(THOUGHT_BYTES)?;
        let thought = read_thought_bytes(body)?;
        let own = self.tag(&[body, shown.as_bytes()]).to_le_bytes();
        if tags.len() != 32 || tags.get(..16) != Some(&own) {
            return None;
        }
        let bound = self.tag(&[&own, &prefix.to_le_bytes()]).to_le_bytes();
        Some((thought, tags.get(16..) == Some(&bound)))
    }

    /// Signs a summary with this text and these tool changes.
    pub(crate) fn summary(&self, state: &SummaryClaims, words: &str, tool_changes: &str) -> String {
        let body = summary_bytes(state);
        let text = self.tag(&[&body, words.as_bytes()]).to_le_bytes();
        let tools = self.tag(&[&text, tool_changes.as_bytes()]).to_le_bytes();
        let own = self.tag(&[&body]).to_le_bytes();
        encode(&[&body[..], &own, &text, &tools].concat())
    }

    /// Verifies the signature of a summary and returns its claims.
    pub(crate) fn verify_summary(
        &self,
        signature: &str,
        words: &str,
        tool_changes: &str,
    ) -> Result<SummaryClaims, SummaryDefect> {
        let bytes = decode(signature.as_bytes());
        let (body, tags) = bytes.split_at_checked(SUMMARY_BYTES).ok_or(SummaryDefect::Signature)?;
        let state = read_summary_bytes(body).ok_or(SummaryDefect::Signature)?;
        let own = self.tag(&[body]).to_le_bytes();
        if tags.len() != 48 || tags.get(..16) != Some(&own) {
            return Err(SummaryDefect::Signature);
        }
        let text = self.tag(&[body, words.as_bytes()]).to_le_bytes();
        if tags.get(16..32) != Some(&text) {
            return Err(SummaryDefect::Words);
        }
        let tools = self.tag(&[&text, tool_changes.as_bytes()]).to_le_bytes();
        if tags.get(32..) == Some(&tools) { Ok(state) } else { Err(SummaryDefect::ToolChanges) }
    }
}

/// Defect of a signed summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SummaryDefect {
    /// Invalid signature.
    Signature,
    /// The text changed.
    Words,
    /// The tool changes changed.
    ToolChanges,
}

/// Tokens of a thinking block, from its signature; `None` if it is foreign.
pub(crate) fn signed_tokens(signature: &str) -> Option<u32> {
    let head = signature.get(..THOUGHT_BYTES.div_ceil(3) * 4)?;
    let bytes = decode(head.as_bytes());
    read_thought_bytes(bytes.get(..THOUGHT_BYTES)?).map(|thought| thought.tokens)
}

const THOUGHT_BYTES: usize = 4 + 8 * 4 + 4 + 1;
const SUMMARY_BYTES: usize = 4 + 16 + 16 + 8 + 8 + 2;

fn thought_bytes(thought: &ThinkingClaims) -> Vec<u8> {
    let mut bytes = THOUGHT.to_vec();
    for number in [thought.id, thought.previous, thought.model, thought.scope] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(&thought.tokens.to_le_bytes());
    bytes.push(u8::from(thought.is_bound));
    bytes
}

fn read_thought_bytes(bytes: &[u8]) -> Option<ThinkingClaims> {
    let mut rest = bytes.strip_prefix(THOUGHT)?;
    let thought = ThinkingClaims {
        id: number(&mut rest)?,
        previous: number(&mut rest)?,
        model: number(&mut rest)?,
        scope: number(&mut rest)?,
        tokens: u32::from_le_bytes(take(&mut rest)?),
        is_bound: take::<1>(&mut rest)? == [1],
    };
    rest.is_empty().then_some(thought)
}

fn summary_bytes(state: &SummaryClaims) -> Vec<u8> {
    let mut bytes = SUMMARY.to_vec();
    bytes.extend_from_slice(&state.prefix.unwrap_or(0).to_le_bytes());
    bytes.extend_from_slice(&state.head.to_le_bytes());
    bytes.extend_from_slice(&state.last_thought.to_le_bytes());
    bytes.extend_from_slice(&state.scope.to_le_bytes());
    bytes.push(u8::from(state.prefix.is_some()));
    bytes.push(match state.last_role {
        None => 0,
        Some(Role::User) => 1,
        Some(Role::Assistant) => 2,
        Some(Role::System) => 3,
    });
    bytes
}

fn read_summary_bytes(bytes: &[u8]) -> Option<SummaryClaims> {
    let mut rest = bytes.strip_prefix(SUMMARY)?;
    let prefix = u128::from_le_bytes(take(&mut rest)?);
    let head = u128::from_le_bytes(take(&mut rest)?);
    let (last_thought, scope) = (number(&mut rest)?, number(&mut rest)?);
    let [is_bound, role] = take(&mut rest)?;
    let last_role = match role {
        0 => None,
        1 => Some(Role::User),
        2 => Some(Role::Assistant),
        _ => Some(Role::System),
    };
    Some(SummaryClaims { prefix: (is_bound == 1).then_some(prefix), head, last_thought, last_role, scope })
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    take(rest).map(u64::from_le_bytes)
}

fn take<const LENGTH: usize>(rest: &mut &[u8]) -> Option<[u8; LENGTH]> {
    let (taken, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinking_signature_verifies_text_and_prefix() {
        let sealer = BlockSigner::new(7);
        let thought = ThinkingClaims { id: 1, previous: 2, model: 3, is_bound: true, scope: 4, tokens: 500 };
        let signature = sealer.sign_thinking(&thought, "hm", 99);
        assert_eq!(signed_tokens(&signature), Some(500));
        assert_eq!(sealer.verify_thinking(&signature, "hm", 99), Some((thought, true)));
        assert_eq!(sealer.verify_thinking(&signature, "hm", 98), Some((thought, false)));
        assert_eq!(sealer.verify_thinking(&signature, "hm!", 99), None);
        assert_eq!(BlockSigner::new(8).verify_thinking(&signature, "hm", 99), None);
        for foreign in ["", "EqQBCkYIARgCIkD", "漢字", &signature[..40]] {
            assert_eq!(sealer.verify_thinking(foreign, "hm", 99), None);
        }
        assert_eq!(signed_tokens("EqQBCkYIARgCIkD"), None);
    }

    #[test]
    fn summary_signature_names_the_defect() {
        let sealer = BlockSigner::new(7);
        let state = SummaryClaims {
            prefix: Some(5),
            head: 6,
            last_thought: 7,
            last_role: Some(Role::User),
            scope: 8,
        };
        let signature = sealer.summary(&state, "all of it", "[]");
        assert_eq!(sealer.verify_summary(&signature, "all of it", "[]"), Ok(state));
        assert_eq!(sealer.verify_summary(&signature, "some of it", "[]"), Err(SummaryDefect::Words));
        assert_eq!(sealer.verify_summary(&signature, "all of it", "[1]"), Err(SummaryDefect::ToolChanges));
        assert_eq!(sealer.verify_summary(&signature[1..], "all of it", "[]"), Err(SummaryDefect::Signature));
        assert_eq!(
            BlockSigner::new(9).verify_summary(&signature, "all of it", "[]"),
            Err(SummaryDefect::Signature)
        );
    }
}
