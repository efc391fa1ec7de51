//! Old results that may be cleared, and their replacement texts.

use std::collections::BTreeMap;

use pal_model::{DecisionKind, ToolKind, ToolUseId};
use pal_view::{View, VisibleResult};

use crate::LayerContext;
use crate::cost_aware::{FileHistory, FittedFigures, ResultAge, reuse_probability};
use crate::layer::DecisionDrafts;
use crate::visible_call::VisibleCall;

const CLEARED: &str = "[Old tool result content cleared]";

/// Old results, and the effect of clearing them.
pub(super) struct OldResults {
    /// Results to clear, oldest first.
    pub(super) ids: Vec<ToolUseId>,
    /// Tokens of all clearable results, the newest included.
    pub(super) clearable: u64,
    /// Tokens that clearing would free.
    pub(super) freed: u64,
    /// Of these, tokens expected to be needed again.
    pub(super) needed: u64,
}

/// Returns true if the result of this call may be cleared.
pub(super) fn is_clearable(view: &View, id: &ToolUseId) -> bool {
    clearable(view, id).is_some()
}

/// The call of a clearable result and its kind: well-known tools only, and no reads of memory.
fn clearable<'a>(view: &'a View, id: &ToolUseId) -> Option<(VisibleCall<'a>, ToolKind)> {
    let call = VisibleCall::of(view, id)?;
    let kind = call.kind.filter(|_| !call.reads_memory())?;
    Some((call, kind))
}

impl OldResults {
    /// Selects all but the newest `keep` of the results that are still whole.
    pub(super) fn of(context: &LayerContext<'_>, keep: usize) -> OldResults {
        OldResults::chosen(context, keep, &|_, _| true)
    }

    /// Like [`OldResults::of`], restricted to results worth clearing by their tokens and their probability of reuse.
    pub(super) fn chosen(
        context: &LayerContext<'_>,
        keep: usize,
        is_worth: &dyn Fn(f64, f64) -> bool,
    ) -> OldResults {
        let view = context.view;
        let live = view.result_ids().rev().filter_map(|id| {
            let (call, kind) = clearable(view, id)?;
            let result = view.result(id).filter(|result| !result.is_cleared && !result.is_deleted)?;
            Some((id, call, kind, result))
        });
        let estimator = view.lens().estimator;
        let figures = context.policy.cost_aware.map_or(FittedFigures::SHIPPED, |settings| settings.figures);
        let (mut ids, mut clearable, mut freed, mut needed) = (Vec::new(), 0.0, 0.0, 0.0);
        let mut files = FileHistory::default();
        for (at, (id, call, kind, result)) in live.enumerate() {
            let since = files.since(kind, call.path().as_deref(), call.input);
            clearable += result.tokens;
            let text = text_of(context, &result).replace(DecisionKind::TOOL_USE_ID_PLACEHOLDER, id.as_str());
            let gain = result.tokens - estimator.text(&text) - estimator.result_frame();
            if at < keep || !result.is_sent || gain <= 0.0 {
                continue;
            }
            let share = reuse_probability(&figures, kind, ResultAge::of(at), since);
            if is_worth(gain, share) {
                freed += gain;
                needed += gain * share;
                ids.push(id.clone());
            }
        }
        ids.reverse();
        let estimator = view.estimator();
        let total = |tokens| estimator.total(tokens);
        OldResults { ids, clearable: total(clearable), freed: total(freed), needed: total(needed) }
    }

    /// Clears them: one decision for all with the same replacement text.
    pub(super) fn clear(self, context: &LayerContext<'_>, reason: &str, drafts: &mut DecisionDrafts<'_>) {
        for (text, tool_use_ids) in by_text(context, self.ids) {
            drafts.add_if_smaller(DecisionKind::Clear { tool_use_ids, text }, reason.to_owned(), None);
        }
    }
}

/// Results that were deleted from a cache that has expired: unless they are short, they must be cleared here.
pub(super) fn lost(context: &LayerContext<'_>) -> Vec<ToolUseId> {
    let view = context.view;
    let is_lost = |id: &&ToolUseId| {
        view.result(id).is_some_and(|result| {
            let is_long = result.block.raw().len() > 2 * text_of(context, &result).len();
            result.is_deleted && !result.is_cleared && result.is_sent && is_long
        })
    };
    view.result_ids().filter(is_lost).filter(|id| is_clearable(view, id)).cloned().collect()
}

/// Clears results that were deleted from an expired cache. They took no room, so nothing is freed; in a
/// damaged log, results without their calls are no results, and the replacement text would take room.
pub(super) fn clear_lost(
    context: &LayerContext<'_>,
    ids: Vec<ToolUseId>,
    reason: &str,
    drafts: &mut DecisionDrafts<'_>,
) {
    for (text, tool_use_ids) in by_text(context, ids) {
        drafts.add_unless_larger(DecisionKind::Clear { tool_use_ids, text }, reason.to_owned());
    }
}

/// Groups results by replacement text.
fn by_text(context: &LayerContext<'_>, ids: Vec<ToolUseId>) -> BTreeMap<String, Vec<ToolUseId>> {
    let mut groups: BTreeMap<String, Vec<ToolUseId>> = BTreeMap::new();
    for id in ids {
        if let Some(result) = context.view.result(&id) {
            groups.entry(text_of(context, &result)).or_default().push(id);
        }
    }
    groups
}

/// Replacement text of a result: states that it was cleared, and how to get it back.
fn text_of(context: &LayerContext<'_>, result: &VisibleResult<'_>) -> String {
    let place = context.paths;
    match result.spilled_to {
        Some(path) => {
            let id = result.block.tool_use_id().map_or("", |id| id.as_str());
            let path = path.replace(id, DecisionKind::TOOL_USE_ID_PLACEHOLDER);
            format!("{CLEARED} All of it is in {}/{path}.", place.directory)
        }
        None => format!(
            "{CLEARED} All of it is in {}, under {}.",
            place.transcript,
            DecisionKind::TOOL_USE_ID_PLACEHOLDER
        ),
    }
}
