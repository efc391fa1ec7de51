//! Bound thinking: a thinking block is valid only after the prefix it was generated with.
//!
//! The prefix is everything sent before it except thinking, cache breakpoints and parameters, with JSON
//! compared by value. Each thinking block names the one before it, so a gap in the middle is detected while
//! the oldest blocks may be dropped. Content that the provider itself clears or summarizes does not count:
//! the hash covers what the client sends, and a summary carries the hash of what it replaces.

use std::borrow::Cow;

use pal_model::{Role, object_fields};
use pal_wire::{ApiError, ApiErrorKind};
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64;

use crate::block_facts::BlockKind;
use crate::block_identity::{hash_by_value, mix};
use crate::block_signatures::{BlockSigner, SummaryClaims, SummaryDefect};
use crate::parsed_prompt::{ParsedPrompt, PromptBlock, PromptLayer};

/// Running hash of everything sent so far, thinking excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PrefixChain {
    hash: u128,
    role: Option<Role>,
    last_thought: u64,
}

impl PrefixChain {
    /// Starts the messages, after these tools and this system prompt.
    pub(crate) fn after_head(head: u128) -> PrefixChain {
        PrefixChain { hash: head, role: None, last_thought: 0 }
    }

    /// Continues after a summary. A summary that replaced messages continues where they ended; a summary
    /// inside the answer belongs to the same message. With different tools or a different system prompt, or
    /// after a model that does not bind thinking, a new conversation starts.
    pub(crate) fn after_summary(state: &SummaryClaims, head: u128, summary: u128) -> PrefixChain {
        let hash = match state.prefix {
            Some(prefix) if state.head == head => prefix,
            Some(prefix) => mix(prefix, head),
            None => mix(head, summary),
        };
        PrefixChain {
            hash,
            role: state.last_role.or(Some(Role::Assistant)),
            last_thought: if state.prefix.is_some() { state.last_thought } else { 0 },
        }
    }

    /// Claims for a summary of everything up to here.
    pub(crate) fn summary_claims(&self, head: u128, is_bound: bool, scope: u64) -> SummaryClaims {
        SummaryClaims {
            prefix: is_bound.then_some(self.hash),
            head,
            last_thought: self.last_thought,
            last_role: self.role,
            scope,
        }
    }

    /// Starts a message of this role if the last one had another role. Returns the hash up to here.
    pub(crate) fn start_message(&mut self, role: Role) -> u128 {
        if self.role != Some(role) {
            self.hash = mix(self.hash, role_number(role));
            self.role = Some(role);
        }
        self.hash
    }

    /// Appends a block.
    pub(crate) fn push(&mut self, role: Role, binding: u128) {
        self.hash = mix(self.start_message(role), binding);
    }

    /// Appends a thinking block.
    pub(crate) fn push_thinking(&mut self, thought: u64) {
        self.last_thought = thought;
    }

    /// Id of the previous thinking block, or 0.
    pub(crate) fn last_thought(&self) -> u64 {
        self.last_thought
    }

    /// Merges the first message after a summary into the last one before it if both have the same role or it
    /// is a system message; thinking after it then no longer matches.
    fn merge(&mut self, role: Role) {
        if self.role == Some(role) || role == Role::System {
            self.hash = mix(self.hash, u128::MAX);
        }
    }
}

fn role_number(role: Role) -> u128 {
    match role {
        Role::User => 1,
        Role::Assistant => 2,
        Role::System => 3,
    }
}

/// Hash of tools and system prompt.
pub(crate) fn head(prompt: &ParsedPrompt<'_>) -> u128 {
    let pieces = prompt.pieces.iter().take_while(|piece| piece.layer != PromptLayer::Messages);
    pieces.fold(0, |hash, piece| {
        mix(hash, mix(piece.facts.binding, u128::from(piece.facts.kind == BlockKind::Tool)))
    })
}

/// Thinking signed elsewhere, bound to the prefix it was first seen with. Bounded: the older half is dropped
/// when the newer half is full.
#[derive(Default)]
pub(crate) struct LearnedSignatures {
    newer: FxHashMap<u64, (u128, u64)>,
    older: FxHashMap<u64, (u128, u64)>,
}

/// Blocks in each half of [`LearnedSignatures`].
const HALF: usize = 1 << 15;

impl LearnedSignatures {
    /// Prefix and previous thinking block that this block was first seen with.
    fn first_seen(&mut self, id: u64, prefix: u128, previous: u64) -> (u128, u64) {
        if let Some(seen) = self.newer.get(&id) {
            return *seen;
        }
        let seen = self.older.get(&id).copied().unwrap_or((prefix, previous));
        if self.newer.len() >= HALF {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(id, seen);
        seen
    }
}

/// Validates thinking blocks and summaries of a request.
pub(crate) struct ThinkingValidator<'a> {
    pub(crate) sealer: BlockSigner,
    /// Signatures made elsewhere; `None` refuses them.
    pub(crate) learned: Option<&'a mut LearnedSignatures>,
    /// Hash of the requested model.
    pub(crate) model: u64,
    /// True if that model binds thinking.
    pub(crate) is_bound: bool,
    /// Hash of the client's key.
    pub(crate) scope: u64,
    /// Drop blocks that do not match, instead of refusing the request.
    pub(crate) drops: bool,
}

/// A thinking block dropped from a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DroppedThinking {
    /// Path of the block, as errors write it.
    pub(crate) path: String,
    pub(crate) reason: &'static str,
}

/// Checks all thinking blocks and summaries. Returns the chain at the end of the conversation and the dropped
/// blocks. Content before the last summary is neither rendered nor checked.
pub(crate) fn validate_thinking(
    prompt: &mut ParsedPrompt<'_>,
    head: u128,
    judge: &mut ThinkingValidator<'_>,
) -> Result<(PrefixChain, Vec<DroppedThinking>), ApiError> {
    let mut chain = PrefixChain::after_head(head);
    let mut dropped = Vec::new();
    let mut first_after_summary = false;
    let mut dropping: Option<(usize, usize)> = None;
    let pieces = prompt.pieces.iter_mut().skip_while(|piece| piece.layer != PromptLayer::Messages);
    let mut pieces: Vec<&mut PromptBlock<'_>> = pieces.collect();
    let is_summary =
        |piece: &&mut PromptBlock<'_>| piece.facts.kind == BlockKind::Compaction && !piece.name.is_empty();
    let last_summary = pieces.iter().rposition(is_summary);
    for (at, piece) in pieces.iter_mut().enumerate() {
        if last_summary.is_some_and(|last| at < last) {
            piece.is_rendered = false;
            continue;
        }
        if last_summary == Some(at) {
            let state = judge.summary(piece)?;
            chain = PrefixChain::after_summary(&state, head, piece.facts.binding);
            first_after_summary = state.last_role.is_some();
            continue;
        }
        if std::mem::take(&mut first_after_summary) {
            chain.merge(piece.role);
        }
        match piece.facts.kind {
            BlockKind::Thinking | BlockKind::RedactedThinking => {
                let follows = dropping.is_some_and(|place| place == (piece.message, at));
                let prefix = chain.start_message(piece.role);
                let judged = if follows {
                    Err(dropped_with(&dropped))
                } else {
                    judge.thought(piece, prefix, chain)?
                };
                match judged {
                    Ok(id) => chain.push_thinking(id),
                    Err(reason) => {
                        dropping = Some((piece.message, at + 1));
                        piece.is_rendered = false;
                        dropped.push(DroppedThinking { path: piece.path(), reason });
                    }
                }
            }
            // An empty summary renders nothing.
            BlockKind::Compaction => piece.is_rendered = false,
            _ => chain.push(piece.role, piece.facts.binding),
        }
    }
    Ok((chain, dropped))
}

/// Later blocks of a run of thinking share the reason of the first.
fn dropped_with(dropped: &[DroppedThinking]) -> &'static str {
    dropped.last().map_or(PREFIX, |dropped| dropped.reason)
}

const PREFIX: &str = "prefix_binding_mismatch";

impl ThinkingValidator<'_> {
    /// Id of a thinking block that is valid here, or the reason why it is not. Fails if a mismatch refuses
    /// the request.
    fn thought(
        &mut self,
        piece: &PromptBlock<'_>,
        prefix: u128,
        chain: PrefixChain,
    ) -> Result<Result<u64, &'static str>, ApiError> {
        let is_next = |previous: u64| chain.last_thought == 0 || chain.last_thought == previous;
        let ours = self.sealer.verify_thinking(&piece.id, &piece.name, prefix);
        let (id, reason) = match (ours, &mut self.learned) {
            (Some((thought, fits)), _) => {
                let reason = if !self.is_bound {
                    None
                } else if thought.scope != self.scope {
                    Some("organization_binding_mismatch")
                } else if thought.is_bound && thought.model != self.model {
                    Some("model_binding_mismatch")
                } else if thought.is_bound && !(fits && is_next(thought.previous)) {
                    Some(PREFIX)
                } else {
                    None
                };
                (thought.id, reason)
            }
            (None, Some(learned)) if self.is_bound => {
                let id = xxh3_64(piece.id.as_bytes()) ^ self.scope;
                let (seen, previous) = learned.first_seen(id, prefix, chain.last_thought);
                (id, (seen != prefix || !is_next(previous)).then_some(PREFIX))
            }
            // A model that does not bind thinking only checks the signature's form.
            (None, _) if !self.is_bound && is_well_formed(&piece.id) => (xxh3_64(piece.id.as_bytes()), None),
            (None, _) => return Err(invalid_signature(piece)),
        };
        match reason {
            None => Ok(Ok(id)),
            Some(reason) if self.drops => Ok(Err(reason)),
            Some(reason) => Err(mismatch(piece, reason)),
        }
    }

    /// Verified claims of a summary.
    fn summary(&mut self, piece: &PromptBlock<'_>) -> Result<SummaryClaims, ApiError> {
        let read = self.sealer.verify_summary(&piece.id, &piece.name, &canonical_tool_changes(&piece.raw));
        let broken = match read {
            Ok(state) if state.scope == self.scope => return Ok(state),
            Ok(_) => SummaryDefect::Signature,
            Err(broken) => broken,
        };
        if broken == SummaryDefect::Signature && self.learned.is_some() {
            return Ok(SummaryClaims {
                prefix: None,
                head: 0,
                last_thought: 0,
                last_role: None,
                scope: self.scope,
            });
        }
        let (code, message) = match broken {
            SummaryDefect::Signature => {
                ("compaction_signature_invalid", "the signature of the `compaction` block is invalid")
            }
            SummaryDefect::Words => ("compaction_content_mismatch", "`content` is not what was signed"),
            SummaryDefect::ToolChanges => {
                ("compaction_tool_changes_mismatch", "`tool_changes` is not what was signed")
            }
        };
        let error = ApiError::new(ApiErrorKind::InvalidRequest, format!("{}: {message}", piece.path()));
        Err(error.with_code(code))
    }
}

/// Tool changes carried by a summary, in a canonical form.
pub(crate) fn canonical_tool_changes(raw: &str) -> String {
    let members = object_fields(raw).unwrap_or_default();
    let changes = members.iter().find(|(name, _)| name == "tool_changes").map(|(_, value)| *value);
    changes
        .filter(|changes| *changes != "null")
        .map_or(String::new(), |changes| hash_by_value(changes).to_string())
}

fn is_well_formed(signature: &str) -> bool {
    let is_digit =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_');
    !signature.is_empty() && signature.bytes().all(is_digit)
}

fn block_name(piece: &PromptBlock<'_>) -> (&'static str, &'static str) {
    match piece.facts.kind {
        BlockKind::RedactedThinking => ("data", "redacted_thinking"),
        _ => ("signature", "thinking"),
    }
}

fn invalid_signature(piece: &PromptBlock<'_>) -> ApiError {
    let (field, block) = block_name(piece);
    ApiError::new(
        ApiErrorKind::InvalidRequest,
        format!("{}: Invalid `{field}` in `{block}` block", piece.path()),
    )
}

fn mismatch(piece: &PromptBlock<'_>, reason: &str) -> ApiError {
    let (field, block) = block_name(piece);
    let bound: Cow<'_, str> = match reason {
        PREFIX => "a different conversation".into(),
        "model_binding_mismatch" => "a different model".into(),
        _ => "a different organization".into(),
    };
    ApiError::new(
        ApiErrorKind::InvalidRequest,
        format!(
            "{}: Invalid `{field}` in `{block}` block: the block is bound to {bound}. Remove the block, or set \
             `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".",
            piece.path()
        ),
    )
}
