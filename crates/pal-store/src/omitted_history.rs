//! Shortens a log that was never compacted and exceeds every context window.
//!
//! Such a log comes from another program or from a session with compaction switched off. Resume takes the
//! newest messages, several times what the largest window holds. From the older part it takes the user's
//! messages and the decisions in force, found by their entry heads, and sums up the usage of the rest.

use std::fmt;

use pal_model::{
    BlockType, ContentBlock, DecisionKind, EntryBody, EntryId, LogEntry, MessageOrigin, SharedText,
    ToolUseId, UsageTotals,
};
use rustc_hash::FxHashSet;

use crate::branch_walk::{BranchWalk, WalkStop};
use crate::entry_heads::{HeadText, SkimmedLine, skim_ancestors_of};
use crate::error::FileError;
use crate::located_entry::{LocatedEntry, read_entry};
use crate::segment::LogSource;

/// Bytes of visible messages that exceed every context window: about three million tokens.
const VISIBLE_BYTES_MAX: u64 = 12 << 20;

/// Extra bytes allowed so that the branch starts at the beginning of a turn.
const TURN_BYTES_MAX: u64 = 4 << 20;

/// Maximum bytes of entries taken from the omitted part.
const TAKEN_BYTES_MAX: u64 = 8 << 20;

/// Bytes that an image or a document counts for.
const MEDIA_BYTES: u64 = 8 << 10;

/// Kinds of entries that stay in force regardless of the messages around them.
const STANDING_KINDS: [&str; 10] =
    ["session", "pin", "latch", "announce", "model", "title", "factors", "undo", "strip", "spill"];

/// Older part of a branch that a resume leaves out.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct OmittedHistory {
    /// Omitted entries.
    pub entries: u64,
    /// Omitted messages.
    pub messages: u64,
    /// Omitted messages from people; only if they exceed a window by themselves.
    pub user_messages: u64,
    /// Bytes of the omitted entries in the log.
    pub bytes: u64,
    /// Usage recorded in the omitted entries.
    pub totals: UsageTotals,
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

/// Running size of the visible messages, fed from the newest entry backwards.
#[derive(Default)]
pub(crate) struct VisibleSize {
    bytes: u64,
    /// Tool results replaced by a text.
    replaced: FxHashSet<ToolUseId>,
    hidden: FxHashSet<EntryId>,
    /// First entries of the folded ranges that contain the current entry.
    folded_to: FxHashSet<EntryId>,
    /// Folded ranges as (last, first).
    folds: Vec<(EntryId, EntryId)>,
}

impl VisibleSize {
    /// Adds the next older entry, which must not be undone.
    pub(crate) fn add(&mut self, entry: &LogEntry) {
        match &entry.body {
            EntryBody::Decision(decision) => self.decide(&decision.kind),
            EntryBody::User(user) => self.add_blocks(entry.id, user.content.blocks()),
            EntryBody::Assistant(assistant) => self.add_blocks(entry.id, assistant.content.blocks()),
            EntryBody::Attachment(attachment) => self.add_blocks(entry.id, attachment.content.blocks()),
            _ => {}
        }
    }

    /// Reports whether the branch may begin with this entry, because more would exceed every window.
    pub(crate) fn is_enough(&self, entry: &LogEntry) -> bool {
        let starts_turn =
            matches!(&entry.body, EntryBody::User(user) if user.origin == MessageOrigin::Person);
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

    fn add_blocks(&mut self, id: EntryId, blocks: &[ContentBlock]) {
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

fn visible_bytes(block: &ContentBlock) -> u64 {
    let bytes = block.raw().len() as u64;
    let has_media = bytes > MEDIA_BYTES && block.raw().contains(r#""base64""#);
    if has_media { MEDIA_BYTES } else { bytes }
}

/// Collects the entries in force before `first`, newest first. `has_prefix` says that a prefix was already
/// taken.
pub(crate) fn collect_omitted(
    walk: &mut BranchWalk<'_>,
    first: &LocatedEntry,
    has_prefix: bool,
) -> Result<(Vec<LocatedEntry>, OmittedHistory), WalkStop> {
    let mut taking = OmissionCollector { has_prefix, ..OmissionCollector::default() };
    if walk.uses_parent_links() {
        let source = LogSource { end: first.offset, ..walk.source() };
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

/// Entries taken from the omitted part, and its totals.
#[derive(Default)]
struct OmissionCollector {
    taken: Vec<LocatedEntry>,
    taken_bytes: u64,
    has_prefix: bool,
    left_out: OmittedHistory,
}

impl OmissionCollector {
    fn take_line(
        &mut self,
        source: LogSource<'_>,
        head: &HeadText<'_>,
        line: &SkimmedLine<'_>,
    ) -> Result<(), FileError> {
        let kind = head.kind;
        let is_said = kind == "user"
            && head.origin.is_none_or(|origin| MessageOrigin::from_name(origin) == MessageOrigin::Person);
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
        let located = text.and_then(|text| read_entry(line.offset, &SharedText::from(text)).ok());
        match located {
            Some(located) => self.take(&located),
            None => self.skip(kind, head.bytes),
        }
        Ok(())
    }

    fn take(&mut self, located: &LocatedEntry) {
        let entry = &located.entry;
        let bytes = located.bytes();
        let is_taken = match &entry.body {
            EntryBody::User(user) => {
                user.origin == MessageOrigin::Person && self.taken_bytes + bytes <= TAKEN_BYTES_MAX
            }
            EntryBody::Prefix(_) => !std::mem::replace(&mut self.has_prefix, true),
            EntryBody::Response(response) => {
                self.left_out.totals.add(&response.usage, response.cost);
                false
            }
            EntryBody::Decision(decision) => !matches!(
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
            EntryBody::Session(_) => true,
            _ => false,
        };
        if is_taken {
            self.taken_bytes += bytes;
            self.taken.push(located.clone());
        } else {
            let is_said =
                matches!(&entry.body, EntryBody::User(user) if user.origin == MessageOrigin::Person);
            self.left_out.user_messages += u64::from(is_said);
            self.skip(&entry.kind().0, bytes);
        }
    }

    fn skip(&mut self, kind: &str, bytes: u64) {
        self.left_out.entries += 1;
        self.left_out.messages += u64::from(matches!(kind, "user" | "assistant" | "attachment"));
        self.left_out.bytes += bytes;
    }
}
