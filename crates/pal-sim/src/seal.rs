//! Signatures: what the simulator puts into a thinking block or a summary, so that it knows it again and sees what was
//! done to it. The hash is keyed by the seed and is not cryptography; nobody here needs protection, only honesty.

use pal_model::Role;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::media::{decode, encode};

/// What a signature of thinking says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Thought {
    /// Which thinking this is.
    pub(crate) id: u64,
    /// The thinking before it, or 0.
    pub(crate) previous: u64,
    /// The model that thought.
    pub(crate) model: u64,
    /// Whether that model binds its thinking.
    pub(crate) is_bound: bool,
    /// For whom.
    pub(crate) scope: u64,
    /// Tokens, shown or not.
    pub(crate) tokens: u32,
}

/// Where a conversation stands when it is summarised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summarized {
    /// The hash of everything up to there, if the model binds its thinking.
    pub(crate) prefix: Option<u128>,
    /// The hash of the tools and the system prompt.
    pub(crate) head: u128,
    /// The last thinking up to there, or 0.
    pub(crate) last_thought: u64,
    /// Whose message was the last, if the summary replaces it.
    pub(crate) last_role: Option<Role>,
    /// For whom.
    pub(crate) scope: u64,
}

/// Makes and reads signatures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sealer {
    key: u64,
}

const THOUGHT: &[u8; 4] = b"PTh1";
const SUMMARY: &[u8; 4] = b"PSu1";

impl Sealer {
    pub(crate) fn new(seed: u64) -> Sealer {
        Sealer { key: seed ^ 0x5ea1_ed00_5ea1_ed00 }
    }

    fn tag(&self, parts: &[&[u8]]) -> u128 {
        let mut joined = Vec::with_capacity(parts.iter().map(|part| part.len() + 8).sum());
        for part in parts {
            joined.extend_from_slice(&(part.len() as u64).to_le_bytes());
            joined.extend_from_slice(part);
        }
        xxh3_128_with_seed(&joined, self.key)
    }

    /// The signature of thinking that shows these words and follows on this prefix.
    pub(crate) fn thought(&self, thought: &Thought, shown: &str, prefix: u128) -> String {
        let body = thought_bytes(thought);
        let own = self.tag(&[&body, shown.as_bytes()]).to_le_bytes();
        let bound = self.tag(&[&own, &prefix.to_le_bytes()]).to_le_bytes();
        encode(&[&body[..], &own, &bound].concat())
    }

    /// What a signature says, and whether it was made on this prefix; none if it is not ours or the words changed.
    pub(crate) fn read_thought(&self, signature: &str, shown: &str, prefix: u128) -> Option<(Thought, bool)> {
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

    /// The signature of a summary with these words and these changes of tools.
    pub(crate) fn summary(&self, state: &Summarized, words: &str, tool_changes: &str) -> String {
        let body = summary_bytes(state);
        let text = self.tag(&[&body, words.as_bytes()]).to_le_bytes();
        let tools = self.tag(&[&text, tool_changes.as_bytes()]).to_le_bytes();
        let own = self.tag(&[&body]).to_le_bytes();
        encode(&[&body[..], &own, &text, &tools].concat())
    }

    /// What the signature of a summary says.
    pub(crate) fn read_summary(
        &self,
        signature: &str,
        words: &str,
        tool_changes: &str,
    ) -> Result<Summarized, Broken> {
        let bytes = decode(signature.as_bytes());
        let (body, tags) = bytes.split_at_checked(SUMMARY_BYTES).ok_or(Broken::Signature)?;
        let state = read_summary_bytes(body).ok_or(Broken::Signature)?;
        let own = self.tag(&[body]).to_le_bytes();
        if tags.len() != 48 || tags.get(..16) != Some(&own) {
            return Err(Broken::Signature);
        }
        let text = self.tag(&[body, words.as_bytes()]).to_le_bytes();
        if tags.get(16..32) != Some(&text) {
            return Err(Broken::Words);
        }
        let tools = self.tag(&[&text, tool_changes.as_bytes()]).to_le_bytes();
        if tags.get(32..) == Some(&tools) { Ok(state) } else { Err(Broken::ToolChanges) }
    }
}

/// What is wrong with a signed summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The signature itself.
    Signature,
    /// The words are not those that were signed.
    Words,
    /// The changes of tools are not those that were signed.
    ToolChanges,
}

/// Tokens of the thinking behind one of our signatures.
pub(crate) fn thought_tokens(signature: &str) -> Option<u32> {
    let head = signature.get(..THOUGHT_BYTES.div_ceil(3) * 4)?;
    let bytes = decode(head.as_bytes());
    read_thought_bytes(bytes.get(..THOUGHT_BYTES)?).map(|thought| thought.tokens)
}

const THOUGHT_BYTES: usize = 4 + 8 * 4 + 4 + 1;
const SUMMARY_BYTES: usize = 4 + 16 + 16 + 8 + 8 + 2;

fn thought_bytes(thought: &Thought) -> Vec<u8> {
    let mut bytes = THOUGHT.to_vec();
    for number in [thought.id, thought.previous, thought.model, thought.scope] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(&thought.tokens.to_le_bytes());
    bytes.push(u8::from(thought.is_bound));
    bytes
}

fn read_thought_bytes(bytes: &[u8]) -> Option<Thought> {
    let mut rest = bytes.strip_prefix(THOUGHT)?;
    let thought = Thought {
        id: number(&mut rest)?,
        previous: number(&mut rest)?,
        model: number(&mut rest)?,
        scope: number(&mut rest)?,
        tokens: u32::from_le_bytes(take(&mut rest)?),
        is_bound: take::<1>(&mut rest)? == [1],
    };
    rest.is_empty().then_some(thought)
}

fn summary_bytes(state: &Summarized) -> Vec<u8> {
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

fn read_summary_bytes(bytes: &[u8]) -> Option<Summarized> {
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
    Some(Summarized { prefix: (is_bound == 1).then_some(prefix), head, last_thought, last_role, scope })
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
    fn a_thought_is_known_again_and_its_prefix_counts() {
        let sealer = Sealer::new(7);
        let thought = Thought { id: 1, previous: 2, model: 3, is_bound: true, scope: 4, tokens: 500 };
        let signature = sealer.thought(&thought, "hm", 99);
        assert_eq!(thought_tokens(&signature), Some(500));
        assert_eq!(sealer.read_thought(&signature, "hm", 99), Some((thought, true)));
        assert_eq!(sealer.read_thought(&signature, "hm", 98), Some((thought, false)));
        assert_eq!(sealer.read_thought(&signature, "hm!", 99), None);
        assert_eq!(Sealer::new(8).read_thought(&signature, "hm", 99), None);
        for foreign in ["", "EqQBCkYIARgCIkD", "漢字", &signature[..40]] {
            assert_eq!(sealer.read_thought(foreign, "hm", 99), None);
        }
        assert_eq!(thought_tokens("EqQBCkYIARgCIkD"), None);
    }

    #[test]
    fn a_summary_says_what_broke() {
        let sealer = Sealer::new(7);
        let state =
            Summarized { prefix: Some(5), head: 6, last_thought: 7, last_role: Some(Role::User), scope: 8 };
        let signature = sealer.summary(&state, "all of it", "[]");
        assert_eq!(sealer.read_summary(&signature, "all of it", "[]"), Ok(state));
        assert_eq!(sealer.read_summary(&signature, "some of it", "[]"), Err(Broken::Words));
        assert_eq!(sealer.read_summary(&signature, "all of it", "[1]"), Err(Broken::ToolChanges));
        assert_eq!(sealer.read_summary(&signature[1..], "all of it", "[]"), Err(Broken::Signature));
        assert_eq!(Sealer::new(9).read_summary(&signature, "all of it", "[]"), Err(Broken::Signature));
    }
}
