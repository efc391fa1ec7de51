//! Bound thinking: a thinking block is valid only on the prefix on which it was thought.
//!
//! The prefix is everything that was sent before it but thinking itself, marks and parameters, with JSON compared by
//! value. Thinking knows the thinking before it, so that a gap in the middle is seen, while the oldest may go. What the
//! provider itself clears or summarises does not count: the hash is over what the client sends, and a summary carries
//! the hash of what it stands for.

use std::borrow::Cow;

use pal_model::{Role, fields};
use pal_wire::{ApiError, ErrorKind};
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64;

use crate::facts::{Kind, by_value, mix};
use crate::prompt::{Layer, Piece, Prompt};
use crate::seal::{Broken, Sealer, Summarized};

/// Where a conversation stands: the hash of all that was sent, thinking left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    hash: u128,
    role: Option<Role>,
    last_thought: u64,
}

impl Chain {
    /// The beginning of the messages, after these tools and this system prompt.
    pub(crate) fn after_head(head: u128) -> Chain {
        Chain { hash: head, role: None, last_thought: 0 }
    }

    /// After a summary. What follows a summary that replaced messages goes on where these ended; what follows one
    /// that stands in the answer itself is the same message. With other tools or another system prompt than then,
    /// or after a model that binds nothing, it is a new conversation.
    pub(crate) fn after_summary(state: &Summarized, head: u128, summary: u128) -> Chain {
        let hash = match state.prefix {
            Some(prefix) if state.head == head => prefix,
            Some(prefix) => mix(prefix, head),
            None => mix(head, summary),
        };
        Chain {
            hash,
            role: state.last_role.or(Some(Role::Assistant)),
            last_thought: if state.prefix.is_some() { state.last_thought } else { 0 },
        }
    }

    /// Where a summary of everything up to here would stand.
    pub(crate) fn summarized(&self, head: u128, is_bound: bool, scope: u64) -> Summarized {
        Summarized {
            prefix: is_bound.then_some(self.hash),
            head,
            last_thought: self.last_thought,
            last_role: self.role,
            scope,
        }
    }

    /// Makes a message of this role begin, if the last one had another; the hash up to here.
    pub(crate) fn enter(&mut self, role: Role) -> u128 {
        if self.role != Some(role) {
            self.hash = mix(self.hash, role_number(role));
            self.role = Some(role);
        }
        self.hash
    }

    /// Goes on with a block.
    pub(crate) fn push(&mut self, role: Role, binding: u128) {
        self.hash = mix(self.enter(role), binding);
    }

    /// Goes on with thinking.
    pub(crate) fn think(&mut self, thought: u64) {
        self.last_thought = thought;
    }

    /// The thinking before this, or 0.
    pub(crate) fn last_thought(&self) -> u64 {
        self.last_thought
    }

    /// The first message after a summary is merged with the last one before it if it is of the same role, or the
    /// system's; the thinking after it was thought on something else.
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

/// The hash of the tools and the system prompt.
pub(crate) fn head(prompt: &Prompt<'_>) -> u128 {
    let pieces = prompt.pieces.iter().take_while(|piece| piece.layer != Layer::Messages);
    pieces.fold(0, |hash, piece| {
        mix(hash, mix(piece.facts.binding, u128::from(piece.facts.kind == Kind::Tool)))
    })
}

/// Thinking of others, bound to the prefix with which it was first seen. Bounded: the older half goes when the newer
/// half is full.
#[derive(Default)]
pub(crate) struct Learned {
    newer: FxHashMap<u64, (u128, u64)>,
    older: FxHashMap<u64, (u128, u64)>,
}

/// Blocks in each half of what is [`Learned`].
const HALF: usize = 1 << 15;

impl Learned {
    /// The prefix and the thinking before it with which this thinking was first seen.
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

/// Who judges thinking, and how strictly.
pub(crate) struct Judge<'a> {
    /// What signed it.
    pub(crate) sealer: Sealer,
    /// Where thinking of others is remembered; none where it is refused.
    pub(crate) learned: Option<&'a mut Learned>,
    /// The model that shall read it.
    pub(crate) model: u64,
    /// Whether that model binds thinking.
    pub(crate) is_bound: bool,
    /// Who sends it.
    pub(crate) scope: u64,
    /// Whether what does not fit is dropped instead of refused.
    pub(crate) drops: bool,
}

/// Thinking that was dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dropped {
    /// Where it stood.
    pub(crate) path: String,
    /// Why it went.
    pub(crate) reason: &'static str,
}

/// Checks all thinking and all summaries; where the conversation stands at its end, and what was dropped. What lies
/// before the last summary is not rendered and not looked at.
pub(crate) fn bind(
    prompt: &mut Prompt<'_>,
    head: u128,
    judge: &mut Judge<'_>,
) -> Result<(Chain, Vec<Dropped>), ApiError> {
    let mut chain = Chain::after_head(head);
    let mut dropped = Vec::new();
    let mut first_after_summary = false;
    let mut dropping: Option<(usize, usize)> = None;
    let pieces = prompt.pieces.iter_mut().skip_while(|piece| piece.layer != Layer::Messages);
    let mut pieces: Vec<&mut Piece<'_>> = pieces.collect();
    let is_summary = |piece: &&mut Piece<'_>| piece.facts.kind == Kind::Compaction && !piece.name.is_empty();
    let last_summary = pieces.iter().rposition(is_summary);
    for (at, piece) in pieces.iter_mut().enumerate() {
        if last_summary.is_some_and(|last| at < last) {
            piece.is_rendered = false;
            continue;
        }
        if last_summary == Some(at) {
            let state = judge.summary(piece)?;
            chain = Chain::after_summary(&state, head, piece.facts.binding);
            first_after_summary = state.last_role.is_some();
            continue;
        }
        if std::mem::take(&mut first_after_summary) {
            chain.merge(piece.role);
        }
        match piece.facts.kind {
            Kind::Thinking | Kind::RedactedThinking => {
                let follows = dropping.is_some_and(|place| place == (piece.message, at));
                let prefix = chain.enter(piece.role);
                let judged = if follows {
                    Err(dropped_with(&dropped))
                } else {
                    judge.thought(piece, prefix, chain)?
                };
                match judged {
                    Ok(id) => chain.think(id),
                    Err(reason) => {
                        dropping = Some((piece.message, at + 1));
                        piece.is_rendered = false;
                        dropped.push(Dropped { path: piece.path(), reason });
                    }
                }
            }
            // A summary without words is nothing at all.
            Kind::Compaction => piece.is_rendered = false,
            _ => chain.push(piece.role, piece.facts.binding),
        }
    }
    Ok((chain, dropped))
}

/// The rest of a run of thinking goes for the reason for which its first went.
fn dropped_with(dropped: &[Dropped]) -> &'static str {
    dropped.last().map_or(PREFIX, |dropped| dropped.reason)
}

const PREFIX: &str = "prefix_binding_mismatch";

impl Judge<'_> {
    /// The identity of a thinking block that is valid here, or why it is not; an error where that is not to be borne.
    fn thought(
        &mut self,
        piece: &Piece<'_>,
        prefix: u128,
        chain: Chain,
    ) -> Result<Result<u64, &'static str>, ApiError> {
        let is_next = |previous: u64| chain.last_thought == 0 || chain.last_thought == previous;
        let ours = self.sealer.read_thought(&piece.id, &piece.name, prefix);
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
            // A model that binds nothing only wants something that looks like a signature.
            (None, _) if !self.is_bound && is_well_formed(&piece.id) => (xxh3_64(piece.id.as_bytes()), None),
            (None, _) => return Err(invalid_signature(piece)),
        };
        match reason {
            None => Ok(Ok(id)),
            Some(reason) if self.drops => Ok(Err(reason)),
            Some(reason) => Err(mismatch(piece, reason)),
        }
    }

    /// What a summary says of what it stands for.
    fn summary(&mut self, piece: &Piece<'_>) -> Result<Summarized, ApiError> {
        let read = self.sealer.read_summary(&piece.id, &piece.name, &tool_changes_of(&piece.raw));
        let broken = match read {
            Ok(state) if state.scope == self.scope => return Ok(state),
            Ok(_) => Broken::Signature,
            Err(broken) => broken,
        };
        if broken == Broken::Signature && self.learned.is_some() {
            return Ok(Summarized {
                prefix: None,
                head: 0,
                last_thought: 0,
                last_role: None,
                scope: self.scope,
            });
        }
        let (code, message) = match broken {
            Broken::Signature => {
                ("compaction_signature_invalid", "the signature of the `compaction` block is invalid")
            }
            Broken::Words => ("compaction_content_mismatch", "`content` is not what was signed"),
            Broken::ToolChanges => {
                ("compaction_tool_changes_mismatch", "`tool_changes` is not what was signed")
            }
        };
        let error = ApiError::new(ErrorKind::InvalidRequest, format!("{}: {message}", piece.path()));
        Err(error.with_code(code))
    }
}

/// The changes of tools that a summary carries, in a form that does not depend on how they are written.
pub(crate) fn tool_changes_of(raw: &str) -> String {
    let members = fields(raw).unwrap_or_default();
    let changes = members.iter().find(|(name, _)| name == "tool_changes").map(|(_, value)| *value);
    changes
        .filter(|changes| *changes != "null")
        .map_or(String::new(), |changes| by_value(changes).to_string())
}

fn is_well_formed(signature: &str) -> bool {
    let is_digit =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_');
    !signature.is_empty() && signature.bytes().all(is_digit)
}

fn block_name(piece: &Piece<'_>) -> (&'static str, &'static str) {
    match piece.facts.kind {
        Kind::RedactedThinking => ("data", "redacted_thinking"),
        _ => ("signature", "thinking"),
    }
}

fn invalid_signature(piece: &Piece<'_>) -> ApiError {
    let (field, block) = block_name(piece);
    ApiError::new(
        ErrorKind::InvalidRequest,
        format!("{}: Invalid `{field}` in `{block}` block", piece.path()),
    )
}

fn mismatch(piece: &Piece<'_>, reason: &str) -> ApiError {
    let (field, block) = block_name(piece);
    let bound: Cow<'_, str> = match reason {
        PREFIX => "a different conversation".into(),
        "model_binding_mismatch" => "a different model".into(),
        _ => "a different organization".into(),
    };
    ApiError::new(
        ErrorKind::InvalidRequest,
        format!(
            "{}: Invalid `{field}` in `{block}` block: the block is bound to {bound}. Remove the block, or set \
             `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".",
            piece.path()
        ),
    )
}
