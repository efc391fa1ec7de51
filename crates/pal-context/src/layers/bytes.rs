//! Bytes (§10.4): a request stays under the provider's limit in bytes as well as in tokens. Pictures and documents go
//! first, the oldest first; if text alone is too long, only a compaction helps.

use pal_model::{Block, BlockType, Body, DecisionKind, Entry, EntryId};
use pal_view::{RenderOptions, Showing, View};

use crate::act::Drafts;
use crate::words::counted;
use crate::{Act, Layer, Situation, What};

/// Keeps requests under the limit in bytes.
pub(crate) struct Bytes;

/// Bytes that a request may have: the provider's limit of 32 MB, less what sizes are only about right by.
const BYTES_MOST: usize = 30_000_000;
/// Bytes that are left when media are taken out, so that not every request takes out some.
const BYTES_GOAL: usize = 24_000_000;

const STRIPPED: &str = "[Picture or document left out: the request was too large.]";

impl Layer for Bytes {
    fn name(&self) -> &'static str {
        "bytes"
    }

    fn act(&self, situation: &Situation<'_>) -> Act {
        let bytes = bytes_of(situation.view);
        if bytes <= BYTES_MOST {
            return Act::nothing(format!("{} MB, acts from {}", bytes / 1_000_000, BYTES_MOST / 1_000_000));
        }
        let over = format!("{} MB are more than a request may have", bytes / 1_000_000);
        if !situation.may_rewrite() {
            return compact(
                situation,
                &format!("{over}, and in the middle of a turn nothing that was sent may change"),
            );
        }
        let media = oldest_media(situation.view, bytes - BYTES_GOAL);
        let stripped: usize = media.iter().map(|(_, bytes)| bytes).sum();
        if bytes.saturating_sub(stripped) > BYTES_MOST {
            return compact(situation, &format!("{over}, even without pictures and documents"));
        }
        let reason =
            format!("{over}: pictures and documents of {} left out", counted(media.len(), "old message"));
        let mut drafts = Drafts::about(situation.view);
        for (entry, _) in media {
            drafts.add(DecisionKind::Strip { entry, text: STRIPPED.into() }, reason.clone());
        }
        Act { what: What::Decide(drafts.finish()), reason }
    }
}

fn compact(situation: &Situation<'_>, why: &str) -> Act {
    match situation.blocked_by {
        Some(hook) => {
            let reason = format!("{why}: a compaction is needed, and the hook `{hook}` forbids it");
            Act { what: What::Stop, reason }
        }
        None => Act { what: What::Compact, reason: format!("{why}: a compaction is needed") },
    }
}

fn bytes_of(view: &View) -> usize {
    // What the options add is far below the margin.
    let options = RenderOptions { max_tokens: 1, stream: true, spell_out_unseen: false };
    view.render(options).bytes()
}

/// The oldest entries with media, as many as make so many bytes, with what taking their media out saves.
fn oldest_media(view: &View, enough: usize) -> Vec<(EntryId, usize)> {
    let mut found = Vec::new();
    let mut sum = 0;
    let is_summary = |entry: &Entry| matches!(entry.body, Body::Boundary(_));
    let shown = view.shown().filter(|shown| shown.showing == Showing::Itself && !is_summary(shown.entry));
    for shown in shown.filter(|shown| !view.is_stripped(shown.entry.id)) {
        let Some(content) = shown.content() else { continue };
        let bytes: usize = content.blocks().iter().map(|block| media_bytes(view, block)).sum();
        if bytes > STRIPPED.len() {
            sum += bytes;
            found.push((shown.entry.id, bytes));
        }
        if sum >= enough {
            break;
        }
    }
    found
}

/// Bytes of media in a block that its message would lose.
fn media_bytes(view: &View, block: &Block) -> usize {
    match block.kind() {
        // What the model does not take is not sent anyway.
        BlockType::Image if view.lens().card.can.images => block.raw().len(),
        BlockType::Document if view.lens().card.can.documents => block.raw().len(),
        BlockType::ToolResult => {
            let replaced = block.tool_use_id().and_then(|id| view.result(id));
            match replaced.is_some_and(|result| result.is_cleared || result.spilled_to.is_some()) {
                true => 0,
                false => block.content().blocks().iter().map(|part| media_bytes(view, part)).sum(),
            }
        }
        _ => 0,
    }
}
