//! Tests whether content that the recorded agent has seen is still visible to the model.

use pal_model::{ContentBlock, DecisionKind, EntryBody, ToolUseId};
use pal_view::View;
use rustc_hash::FxHashSet;

use crate::comparison::file_touches::RecordedFileTouch;

/// Content that a view shows whole.
pub(crate) struct VisibleContent<'a> {
    view: &'a View,
    /// Results that show themselves.
    results: FxHashSet<&'a ToolUseId>,
    /// Of these, the ones that the provider cleared. It reports a number of tokens, oldest first.
    cleared: FxHashSet<&'a ToolUseId>,
    /// Files that the newest boundary restored, whole or in part.
    restored: Vec<RestoredPart>,
}

impl<'a> VisibleContent<'a> {
    pub(crate) fn of(view: &'a View) -> VisibleContent<'a> {
        let restored = match view.boundary().map(|entry| &entry.body) {
            Some(EntryBody::Boundary(boundary)) => {
                let part = |block: &ContentBlock| RestoredPart::of(&block.string("text")?);
                boundary.restored.blocks().iter().filter_map(part).collect()
            }
            _ => Vec::new(),
        };
        VisibleContent {
            view,
            results: view.result_ids().collect(),
            cleared: cleared_by_provider(view),
            restored,
        }
    }

    /// True if missing content was cleared or spilled, not compacted.
    pub(crate) fn has_cleared(&self, touch: &RecordedFileTouch) -> bool {
        touch.earlier.iter().any(|copy| copy.is_read && self.results.contains(&copy.id))
    }

    /// True if an answer touches content that was shown before and is no longer visible.
    pub(crate) fn lacks(&self, touch: &RecordedFileTouch) -> bool {
        if touch.earlier.is_empty() {
            return false;
        }
        let is_copy = touch.earlier.iter().any(|copy| match copy.is_read {
            true => self.shows_result(&copy.id),
            false => self.view.call_block(&copy.id).is_some() && self.results.contains(&copy.id),
        });
        !is_copy && !self.restored.iter().any(|part| part.shows(touch))
    }

    fn shows_result(&self, id: &ToolUseId) -> bool {
        let is_whole = |result: pal_view::VisibleResult<'_>| {
            !result.is_cleared && !result.is_deleted && result.spilled_to.is_none()
        };
        self.results.contains(id) && !self.cleared.contains(id) && self.view.result(id).is_some_and(is_whole)
    }
}

/// Lines of a file that a boundary restored.
struct RestoredPart {
    path: String,
    /// The first line, and the line after the last one.
    lines: (u64, u64),
}

impl RestoredPart {
    fn of(text: &str) -> Option<RestoredPart> {
        let (path, rest) = text.strip_prefix("[File `")?.split_once('`')?;
        let first = rest.strip_prefix(" from line ").and_then(|rest| rest.split_once(' ')?.0.parse().ok());
        let first: u64 = first.unwrap_or(1);
        // The heading and two tags are no lines of the file.
        let lines = text.lines().count().saturating_sub(3) as u64;
        Some(RestoredPart { path: path.to_owned(), lines: (first, first + lines) })
    }

    fn shows(&self, touch: &RecordedFileTouch) -> bool {
        self.path == touch.path && self.lines.0 < touch.lines.1 && touch.lines.0 < self.lines.1
    }
}

/// Results that the provider has cleared since the view began.
fn cleared_by_provider(view: &View) -> FxHashSet<&ToolUseId> {
    let boundary = view.boundary().map(|entry| entry.id);
    let since = view.branch().iter().rev().take_while(|entry| Some(entry.id) != boundary);
    let cleared = since.filter_map(|entry| match entry.decision() {
        Some(DecisionKind::ProviderClear { cleared_tokens }) => Some(*cleared_tokens as f64),
        _ => None,
    });
    let mut left = cleared.fold(0.0, f64::max);
    let mut found = FxHashSet::default();
    if left == 0.0 {
        return found;
    }
    for id in view.result_ids() {
        let tokens = view.result(id).map_or(0.0, |result| result.tokens);
        if tokens > left {
            break;
        }
        left -= tokens;
        found.insert(id);
    }
    found
}
