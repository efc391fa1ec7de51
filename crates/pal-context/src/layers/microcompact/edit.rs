//! Edits of the cache: results are deleted where the provider keeps them, and the messages keep their bytes. Private to
//! one vendor's client, so only where the card says so.

use pal_model::{DecisionKind, ToolUseId};

use super::old::is_clearable;
use crate::act::Drafts;
use crate::words::counted;
use crate::{Act, Foreseen, Situation, When};

/// What of the results that are there now is deleted once there are enough.
pub(super) fn foresee(layer: &'static str, situation: &Situation<'_>) -> Foreseen {
    let (view, policy) = (situation.view, situation.policy);
    let n_old = policy.cache_edit_from.saturating_sub(policy.cache_edit_keep);
    let live = view.live_results().filter(|id| is_clearable(view, id)).take(n_old);
    let results: Vec<ToolUseId> = live.cloned().collect();
    let tokens = results.iter().filter_map(|id| view.result(id)).map(|result| result.tokens).sum();
    let reason = format!("all but the newest {} are deleted from the cache", policy.cache_edit_keep);
    let (when, tokens) = (When::Results(policy.cache_edit_from), view.estimator().total(tokens));
    Foreseen { layer, when, results, tokens, reason }
}

/// Deletes all but the newest results from the cache, once there are enough of them.
pub(super) fn edit(situation: &Situation<'_>) -> Act {
    let (view, policy) = (situation.view, situation.policy);
    let live: Vec<&ToolUseId> = view.live_results().filter(|id| is_clearable(view, id)).collect();
    let n_old = live.len().saturating_sub(policy.cache_edit_keep);
    if live.len() < policy.cache_edit_from.max(1) || n_old == 0 {
        return Act::nothing(format!(
            "{} in the cache, edits it from {} on",
            counted(live.len(), "result"),
            policy.cache_edit_from
        ));
    }
    let tool_use_ids: Vec<ToolUseId> = live.into_iter().take(n_old).cloned().collect();
    let reason =
        format!("{} deleted from the cache, {} stay", counted(n_old, "old result"), policy.cache_edit_keep);
    let mut drafts = Drafts::about(view);
    drafts.add_if_less(DecisionKind::CacheEdit { tool_use_ids }, reason.clone(), None);
    drafts.into_act(reason)
}
