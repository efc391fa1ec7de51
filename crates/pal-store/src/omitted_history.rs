//! What a session that goes on leaves out of a log which was never compacted and is longer than any context window.
//!
//! Such a log was made by another program, or its compaction was switched off. No request can carry all of it, so a resume takes
//! the newest messages, as many as the greatest window could hold several times over. Of what lies before, it takes what
//! people said and what is in force, found by the beginnings of the lines. What was used up is summed.

use std::fmt;

use pal_model::{Block, BlockType, Body, DecisionKind, Entry, EntryId, Origin, Text, ToolUseId, Totals};
use rustc_hash::FxHashSet;

use crate::error::FileError;
use crate::segment::{Located, Source, read_entry};
use crate::skim::{HeadText, SkimmedLine, skim_ancestors_of};
use crate::walk::{Stop, Walk};

/// Bytes of messages in sight that no context window holds: about three million tokens.
const VISIBLE_BYTES_MAX: u64 = 12 << 20;

/// A stretch does not begin in the middle of a turn, unless the turn is longer than this.
const TURN_BYTES_MAX: u64 = 4 << 20;

/// Bytes of entries that are taken of what is left out.
const TAKEN_BYTES_MAX: u64 = 8 << 20;

/// What a picture or a document counts for.
const MEDIA_BYTES: u64 = 8 << 10;

/// Kinds of entries that say what is in force, whatever became of the messages around them.
const STANDING_KINDS: [&str; 10] =
    ["session", "pin", "latch", "announce", "model", "title", "factors", "undo", "strip", "spill"];

/// What a branch is too long for.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct OmittedHistory {
    /// Entries that were left out.
    pub entries: u64,
    /// How many of them are messages.
    pub messages: u64,
    /// How many people said: only where they said more than a window holds.
    pub by_people: u64,
    /// Bytes of the entries in the log.
    pub bytes: u64,
    /// What was used up by them.
    pub totals: Totals,
}

impl fmt::Display for OmittedHistory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} messages ({} MB) from the beginning of this session are left out, because no context window holds them. \
             They stay in the log, and `pal recall` finds them",
            self.messages,
            self.bytes >> 20
        )
    }
}

/// How much of a branch is in sight, taken in from its newest entry on.
#[derive(Default)]
pub(crate) struct Visible {
    bytes: u64,
    /// Results that a text stands for.
    replaced: FxHashSet<ToolUseId>,
    hidden: FxHashSet<EntryId>,
    /// The first entries of folded stretches that the walk is in.
    folded_to: FxHashSet<EntryId>,
    /// First entries of folded stretches by their last.
    folds: Vec<(EntryId, EntryId)>,
}

impl Visible {
    /// Takes in the next entry, unless it is undone.
    pub(crate) fn add(&mut self, entry: &Entry) {
        match &entry.body {
            Body::Decision(decision) => self.decide(&decision.kind),
            Body::User(user) => self.add_blocks(entry.id, user.content.blocks()),
            Body::Assistant(assistant) => self.add_blocks(entry.id, assistant.content.blocks()),
            Body::Attachment(attachment) => self.add_blocks(entry.id, attachment.content.blocks()),
            _ => {}
        }
    }

    /// Whether the branch may begin with this entry, because what lies before it fits in no window.
    pub(crate) fn is_enough(&self, entry: &Entry) -> bool {
        let starts_turn = matches!(&entry.body, Body::User(user) if user.origin == Origin::Person);
        let is_long = self.bytes > VISIBLE_BYTES_MAX;
        is_long && (starts_turn || self.bytes > VISIBLE_BYTES_MAX + TURN_BYTES_MAX)
    }

    fn decide(&mut self, kind: &DecisionKind) {
        match kind {
            DecisionKind::Clear { tool_use_ids, .. } => self.replaced.extend(tool_use_ids.iter().cloned()),
            DecisionKind::Spill { tool_use_id, entry, .. } => {
                self.replaced.extend(tool_use_id.clone());
                self.hidden.extend(entry);
            }
            DecisionKind::Snip { entries } => self.hidden.extend(entries),
            DecisionKind::Fold { head, tail, .. } => self.folds.push((*tail, *head)),
            _ => {}
        }
    }

    fn add_blocks(&mut self, id: EntryId, blocks: &[Block]) {
        let begun = self.folds.iter().filter(|(tail, _)| *tail == id).map(|(_, head)| *head);
        self.folded_to.extend(begun);
        let is_folded = !self.folded_to.is_empty();
        self.folded_to.remove(&id);
        if is_folded || self.hidden.contains(&id) {
            return;
        }
        for block in blocks {
            let is_replaced = block.kind() == BlockType::ToolResult
                && block.tool_use_id().is_some_and(|call| self.replaced.contains(call));
            if !is_replaced {
                self.bytes += visible_bytes(block);
            }
        }
    }
}

fn visible_bytes(block: &Block) -> u64 {
    let bytes = block.raw().len() as u64;
    let has_media = bytes > MEDIA_BYTES && block.raw().contains(r#""base64""#);
    if has_media { MEDIA_BYTES } else { bytes }
}

/// Takes what is in force before the first entry that is kept, newest first. `has_prefix` tells whether a prefix is kept.
pub(crate) fn leave_out(
    walk: &mut Walk<'_>,
    first: &Located,
    has_prefix: bool,
) -> Result<(Vec<Located>, OmittedHistory), Stop> {
    let mut taking = Taking { has_prefix, ..Taking::default() };
    if walk.follows_the_file() {
        let source = Source { end: first.offset, ..walk.source() };
        if let Some(parent) = first.entry.parent {
            skim_ancestors_of(source, parent, &mut |head, line| taking.take_line(source, head, line))?;
        }
    } else {
        let mut at = first.clone();
        while let Some(located) = walk.parent_of(&at)? {
            taking.take(&located);
            at = located;
        }
    }
    Ok((taking.taken, taking.left_out))
}

/// What is taken of what is left out.
#[derive(Default)]
struct Taking {
    taken: Vec<Located>,
    taken_bytes: u64,
    has_prefix: bool,
    left_out: OmittedHistory,
}

impl Taking {
    fn take_line(
        &mut self,
        source: Source<'_>,
        head: &HeadText<'_>,
        line: &SkimmedLine<'_>,
    ) -> Result<(), FileError> {
        let kind = head.kind;
        let is_said =
            kind == "user" && head.origin.is_none_or(|origin| Origin::from_name(origin) == Origin::Person);
        let is_standing = STANDING_KINDS.contains(&kind) || (kind == "prefix" && !self.has_prefix);
        let is_response = kind == "response";
        if !is_response && !is_said && !is_standing {
            self.skip(kind, head.bytes);
            return Ok(());
        }
        let read = line.read(source)?;
        let text = std::str::from_utf8(&read).ok().map(|text| text.trim_end_matches('\n'));
        if is_response {
            text.into_iter().for_each(|text| self.left_out.totals.add_line(text));
            self.skip(kind, head.bytes);
            return Ok(());
        }
        let located = text.and_then(|text| read_entry(line.offset, &Text::from(text)).ok());
        match located {
            Some(located) => self.take(&located),
            None => self.skip(kind, head.bytes),
        }
        Ok(())
    }

    fn take(&mut self, located: &Located) {
        let entry = &located.entry;
        let bytes = located.bytes();
        let is_taken = match &entry.body {
            Body::User(user) => user.origin == Origin::Person && self.taken_bytes + bytes <= TAKEN_BYTES_MAX,
            Body::Prefix(_) => !std::mem::replace(&mut self.has_prefix, true),
            Body::Response(response) => {
                self.left_out.totals.add(&response.usage, response.cost);
                false
            }
            Body::Decision(decision) => !matches!(
                &decision.kind,
                DecisionKind::Keep { .. }
                    | DecisionKind::Clear { .. }
                    | DecisionKind::Snip { .. }
                    | DecisionKind::Fold { .. }
                    | DecisionKind::CacheEdit { .. }
                    | DecisionKind::ProviderClear { .. }
                    | DecisionKind::Failure { .. }
                    | DecisionKind::Spill { entry: None, .. }
            ),
            Body::Session(_) => true,
            _ => false,
        };
        if is_taken {
            self.taken_bytes += bytes;
            self.taken.push(located.clone());
        } else {
            let is_said = matches!(&entry.body, Body::User(user) if user.origin == Origin::Person);
            self.left_out.by_people += u64::from(is_said);
            self.skip(&entry.kind().0, bytes);
        }
    }

    fn skip(&mut self, kind: &str, bytes: u64) {
        self.left_out.entries += 1;
        self.left_out.messages += u64::from(matches!(kind, "user" | "assistant" | "attachment"));
        self.left_out.bytes += bytes;
    }
}
