//! Bytes (§10.4): keeps a request under the provider's limit in bytes. The oldest images and documents go
//! first; if text alone is too long, only a compaction helps.

use pal_model::{BlockType, ContentBlock, DecisionKind, EntryBody, EntryId, LogEntry};
use pal_view::{RenderOptions, View, Visibility};

use crate::layer::DecisionDrafts;
use crate::{ActionKind, Layer, LayerAction, LayerContext};
use pal_model::text::count_noun;

/// Keeps requests under the limit in bytes.
pub(crate) struct BytesLayer;

/// Maximum bytes of a request: the provider's limit of 32 MB, less a margin for approximate sizes.
const BYTES_MAX: usize = 30_000_000;
/// Target size when media are removed, so that not every request removes some.
const BYTES_GOAL: usize = 24_000_000;

const STRIPPED: &str = "[Picture or document left out: the request was too large.]";

impl Layer for BytesLayer {
    fn name(&self) -> &'static str {
        "bytes"
    }

    fn act(&self, context: &LayerContext<'_>) -> LayerAction {
        let bytes = bytes_of(context.view);
        if bytes <= BYTES_MAX {
            return LayerAction::nothing(format!(
                "{} MB, acts from {}",
                bytes / 1_000_000,
                BYTES_MAX / 1_000_000
            ));
        }
        let over = format!("{} MB are more than a request may have", bytes / 1_000_000);
        if !context.may_rewrite() {
            return compact(
                context,
                &format!("{over}, and in the middle of a turn nothing that was sent may change"),
            );
        }
        let media = oldest_media(context.view, bytes - BYTES_GOAL);
        let stripped: usize = media.iter().map(|(_, bytes)| bytes).sum();
        if bytes.saturating_sub(stripped) > BYTES_MAX {
            return compact(context, &format!("{over}, even without pictures and documents"));
        }
        let reason =
            format!("{over}: pictures and documents of {} left out", count_noun(media.len(), "old message"));
        let mut drafts = DecisionDrafts::about(context.view);
        for (entry, _) in media {
            drafts.add(DecisionKind::Strip { entry, text: STRIPPED.into() }, reason.clone());
        }
        LayerAction { kind: ActionKind::Decide(drafts.finish()), reason }
    }
}

fn compact(context: &LayerContext<'_>, why: &str) -> LayerAction {
    match context.blocked_by {
        Some(hook) => {
            let reason = format!("{why}: a compaction is needed, and the hook `{hook}` forbids it");
            LayerAction { kind: ActionKind::Stop, reason }
        }
        None => LayerAction { kind: ActionKind::Compact, reason: format!("{why}: a compaction is needed") },
    }
}

fn bytes_of(view: &View) -> usize {
    // The options add far less than the margin.
    let options = RenderOptions { max_tokens: 1, stream: true, spell_out_unseen: false };
    view.render(options).approximate_bytes()
}

/// Oldest entries with media that together hold `enough` bytes, with the bytes that stripping each saves.
fn oldest_media(view: &View, enough: usize) -> Vec<(EntryId, usize)> {
    let mut found = Vec::new();
    let mut sum = 0;
    let is_summary = |entry: &LogEntry| matches!(entry.body, EntryBody::Boundary(_));
    let shown = view
        .visible_entries()
        .filter(|shown| shown.visibility == Visibility::Visible && !is_summary(shown.entry));
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

/// Bytes of media in a block that stripping would remove.
fn media_bytes(view: &View, block: &ContentBlock) -> usize {
    match block.kind() {
        // Media that the model does not accept are not sent anyway.
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
