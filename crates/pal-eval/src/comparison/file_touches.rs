//! Files that the recorded agent read and edited, call by call, with the earlier call that showed the same content.

use pal_context::VisibleCall;
use pal_model::{BlockType, ContentBlock, EntryBody, LogEntry, ToolKind, ToolUseId};
use rustc_hash::FxHashMap;

/// Lines that a read shows when it does not say how many.
const LINES: u64 = 2_000;
/// Maximum earlier copies of a file that are searched.
const COPIES_MAX: usize = 8;

/// A file that an answer reads or edits.
#[derive(Clone, Debug)]
pub(crate) struct RecordedFileTouch {
    /// Which call of the recording has that answer, counted from 0.
    pub(crate) call: usize,
    pub(crate) path: String,
    /// True if it reads; else it edits.
    pub(crate) is_read: bool,
    /// Characters it needs: the result of a read, or the text that an edit had read before.
    pub(crate) characters: u64,
    /// Lines that it needs, counted from 1, and the line after them.
    pub(crate) lines: (u64, u64),
    /// Where it was shown before, oldest first; empty if it never was.
    pub(crate) earlier: Vec<ShownFile>,
}

/// Where a file was shown whole, or in part.
#[derive(Clone, Debug)]
pub(crate) struct ShownFile {
    /// Call whose answer requested it; the next call shows it.
    pub(crate) call: usize,
    pub(crate) id: ToolUseId,
    /// True if a result shows it; else the call that wrote it does.
    pub(crate) is_read: bool,
    lines: (u64, u64),
    characters: u64,
}

/// All of them, in order.
pub(crate) fn find_touches(entries: &[LogEntry]) -> Vec<RecordedFileTouch> {
    let characters = results(entries);
    let mut shown: FxHashMap<String, Vec<ShownFile>> = FxHashMap::default();
    let mut touches = Vec::new();
    let mut calls = 0_usize;
    for entry in entries {
        match &entry.body {
            EntryBody::Request(request) if request.source.is_conversation() => calls += 1,
            EntryBody::Assistant(assistant) if calls > 0 => {
                for block in assistant.content.blocks() {
                    touches.extend(touched(block, calls - 1, &characters, &mut shown));
                }
            }
            _ => {}
        }
    }
    touches
}

fn touched(
    block: &ContentBlock,
    call: usize,
    characters: &FxHashMap<&ToolUseId, u64>,
    shown: &mut FxHashMap<String, Vec<ShownFile>>,
) -> Option<RecordedFileTouch> {
    if block.kind() != BlockType::ToolUse {
        return None;
    }
    let id = block.tool_use_id()?;
    let what = VisibleCall::read(block)?;
    let kind = what.kind?;
    let path = what.path()?.into_owned();
    let number = |name: &str| what.member(name).and_then(|raw| raw.parse::<u64>().ok());
    let from = number("offset").unwrap_or(0);
    let lines = (from, from.saturating_add(number("limit").unwrap_or(LINES)));
    let whole = (0, u64::MAX);
    let is_read = kind == ToolKind::Read;
    if !is_read && !matches!(kind, ToolKind::Edit | ToolKind::Write) {
        return None;
    }
    let copies = shown.entry(path.clone()).or_default();
    let wanted = if is_read { lines } else { whole };
    let overlaps = |copy: &&ShownFile| copy.lines.0 < wanted.1 && wanted.0 < copy.lines.1;
    let mut earlier: Vec<ShownFile> =
        copies.iter().rev().filter(overlaps).take(COPIES_MAX).cloned().collect();
    earlier.reverse();
    let read = characters.get(id).copied().unwrap_or(0);
    if kind != ToolKind::Edit && (!is_read || read > 0) {
        let lines = if is_read { lines } else { whole };
        copies.push(ShownFile { call, id: id.clone(), is_read, lines, characters: read });
    }
    // Writing a whole file needs nothing of it.
    (kind != ToolKind::Write).then(|| RecordedFileTouch {
        call,
        path,
        is_read,
        lines: wanted,
        characters: if is_read { read } else { earlier.last().map_or(0, |newest| newest.characters) },
        earlier,
    })
}

/// Characters of each result.
fn results(entries: &[LogEntry]) -> FxHashMap<&ToolUseId, u64> {
    let mut found = FxHashMap::default();
    for entry in entries {
        let EntryBody::User(user) = &entry.body else { continue };
        for block in user.content.blocks().iter().filter(|block| block.kind() == BlockType::ToolResult) {
            if let Some(id) = block.tool_use_id() {
                let texts = block.content();
                let characters = texts.blocks().iter().filter_map(|block| block.string("text"));
                found.insert(id, characters.map(|text| text.chars().count() as u64).sum());
            }
        }
    }
    found
}
