//! Old results that may be cleared, and what is read in their place.

use std::collections::BTreeMap;

use pal_model::{DecisionKind, ToolKind, ToolUseId};
use pal_view::{ShownResult, View};

use crate::Situation;
use crate::act::Drafts;
use crate::call::Call;
use crate::thrifty::{Files, NeedAge, share_needed};

const CLEARED: &str = "[Old tool result content cleared]";

/// Old results, and what clearing them is worth.
pub(super) struct Old {
    /// The results to clear, oldest first.
    pub(super) ids: Vec<ToolUseId>,
    /// Tokens of all clearable results, the newest included.
    pub(super) clearable: u64,
    /// Tokens that clearing would free.
    pub(super) freed: u64,
    /// Of these, how many are expected to be needed again.
    pub(super) needed: u64,
}

/// Whether results of this call may be cleared.
pub(super) fn is_clearable(view: &View, id: &ToolUseId) -> bool {
    clearable(view, id).is_some()
}

/// A call whose results may be cleared, and what its tool does: tools that every program has, and no reads of memory.
fn clearable<'a>(view: &'a View, id: &ToolUseId) -> Option<(Call<'a>, ToolKind)> {
    let call = Call::of(view, id)?;
    let kind = call.kind.filter(|_| !call.reads_memory())?;
    Some((call, kind))
}

impl Old {
    /// All but the newest `keep` of the results that are still whole.
    pub(super) fn of(situation: &Situation<'_>, keep: usize) -> Old {
        Old::chosen(situation, keep, &|_, _| true)
    }

    /// The same, of those only that are worth it, by their tokens and by how likely they are needed again.
    pub(super) fn chosen(situation: &Situation<'_>, keep: usize, is_worth: &dyn Fn(f64, f64) -> bool) -> Old {
        let view = situation.view;
        let live = view.result_ids().rev().filter_map(|id| {
            let (call, kind) = clearable(view, id)?;
            let result = view.result(id).filter(|result| !result.is_cleared && !result.is_deleted)?;
            Some((id, call, kind, result))
        });
        let estimator = view.lens().estimator;
        let (mut ids, mut clearable, mut freed, mut needed) = (Vec::new(), 0.0, 0.0, 0.0);
        let mut files = Files::default();
        for (at, (id, call, kind, result)) in live.enumerate() {
            let since = files.since(kind, call.path().as_deref(), call.input);
            clearable += result.tokens;
            let text = text_of(situation, &result).replace(DecisionKind::ID, id.as_str());
            let gain = result.tokens - estimator.text(&text) - estimator.result_frame();
            if at < keep || !result.is_sent || gain <= 0.0 {
                continue;
            }
            let share = share_needed(kind, NeedAge::of(at), since);
            if is_worth(gain, share) {
                freed += gain;
                needed += gain * share;
                ids.push(id.clone());
            }
        }
        ids.reverse();
        let estimator = view.estimator();
        let total = |tokens| estimator.total(tokens);
        Old { ids, clearable: total(clearable), freed: total(freed), needed: total(needed) }
    }

    /// Clears them: one decision for all that are read back in the same way.
    pub(super) fn clear(self, situation: &Situation<'_>, reason: &str, drafts: &mut Drafts<'_>) {
        for (text, tool_use_ids) in by_text(situation, self.ids) {
            drafts.add_if_less(DecisionKind::Clear { tool_use_ids, text }, reason.to_owned(), None);
        }
    }
}

/// Results that were deleted from a cache that is lost now: they are to be cleared here, unless they are short.
pub(super) fn lost(situation: &Situation<'_>) -> Vec<ToolUseId> {
    let view = situation.view;
    let is_lost = |id: &&ToolUseId| {
        view.result(id).is_some_and(|result| {
            let is_long = result.block.raw().len() > 2 * text_of(situation, &result).len();
            result.is_deleted && !result.is_cleared && result.is_sent && is_long
        })
    };
    view.result_ids().filter(is_lost).filter(|id| is_clearable(view, id)).cloned().collect()
}

/// Clears results that were deleted from a cache that is lost. They took no room, so that nothing is freed; in a log that
/// is damaged, results without their calls are no results, and what is read in their place would take some.
pub(super) fn clear_lost(
    situation: &Situation<'_>,
    ids: Vec<ToolUseId>,
    reason: &str,
    drafts: &mut Drafts<'_>,
) {
    for (text, tool_use_ids) in by_text(situation, ids) {
        drafts.add_unless_more(DecisionKind::Clear { tool_use_ids, text }, reason.to_owned());
    }
}

/// Results by what is read in their place.
fn by_text(situation: &Situation<'_>, ids: Vec<ToolUseId>) -> BTreeMap<String, Vec<ToolUseId>> {
    let mut groups: BTreeMap<String, Vec<ToolUseId>> = BTreeMap::new();
    for id in ids {
        if let Some(result) = situation.view.result(&id) {
            groups.entry(text_of(situation, &result)).or_default().push(id);
        }
    }
    groups
}

/// What is read in place of a result: that it was cleared, and how to get it back.
fn text_of(situation: &Situation<'_>, result: &ShownResult<'_>) -> String {
    let place = situation.place;
    match result.spilled_to {
        Some(path) => {
            let id = result.block.tool_use_id().map_or("", |id| id.as_str());
            let path = path.replace(id, DecisionKind::ID);
            format!("{CLEARED} All of it is in {}/{path}.", place.directory)
        }
        None => format!("{CLEARED} All of it is in {}, under {}.", place.transcript, DecisionKind::ID),
    }
}
