//! Bytes (§10.4): keeps a request under the provider's limit in bytes. The oldest images and documents go
//! first; if text alone is too long, only a compaction helps.

use pal_model::{DecisionKind, EntryId};
use pal_view::{RenderOptions, View};

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
            drafts.add(DecisionKind::Strip { entry, media: None, text: STRIPPED.into() }, reason.clone());
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
    let mut by_entry: Vec<(EntryId, usize)> = Vec::new();
    for media in view.visible_media() {
        match by_entry.last_mut() {
            Some((entry, bytes)) if *entry == media.entry => *bytes += media.bytes,
            _ => by_entry.push((media.entry, media.bytes)),
        }
    }
    let mut sum = 0;
    let large = by_entry.into_iter().filter(|(_, bytes)| *bytes > STRIPPED.len());
    let is_needed = |(_, bytes): &(EntryId, usize)| {
        let needs_more = sum < enough;
        sum += bytes;
        needs_more
    };
    large.take_while(is_needed).collect()
}
