//! Cache edits: results are deleted from the provider's cache, and the messages keep their bytes. Private to
//! one vendor's client, so only if the card says so.

use pal_model::{DecisionKind, ToolUseId};

use super::old_results::is_clearable;
use crate::layer::DecisionDrafts;
use crate::{ForecastCondition, LayerAction, LayerContext, LayerForecast};
use pal_model::text::count_noun;

/// Forecast of the current results that will be deleted.
pub(super) fn foresee(layer: &'static str, context: &LayerContext<'_>) -> LayerForecast {
    let (view, policy) = (context.view, context.policy);
    let n_old = policy.cache_edit_from.saturating_sub(policy.cache_edit_keep);
    let live = view.live_results().filter(|id| is_clearable(view, id)).take(n_old);
    let results: Vec<ToolUseId> = live.cloned().collect();
    let tokens = results.iter().filter_map(|id| view.result(id)).map(|result| result.tokens).sum();
    let reason = format!("all but the newest {} are deleted from the cache", policy.cache_edit_keep);
    let (when, tokens) = (ForecastCondition::Results(policy.cache_edit_from), view.estimator().total(tokens));
    LayerForecast { layer, condition: when, results, tokens, reason }
}

/// Deletes all but the newest results from the cache, once there are enough of them.
pub(super) fn edit(context: &LayerContext<'_>) -> LayerAction {
    let (view, policy) = (context.view, context.policy);
    let live: Vec<&ToolUseId> = view.live_results().filter(|id| is_clearable(view, id)).collect();
    let n_old = live.len().saturating_sub(policy.cache_edit_keep);
    if live.len() < policy.cache_edit_from.max(1) || n_old == 0 {
        return LayerAction::nothing(format!(
            "{} in the cache, edits it from {} on",
            count_noun(live.len(), "result"),
            policy.cache_edit_from
        ));
    }
    let tool_use_ids: Vec<ToolUseId> = live.into_iter().take(n_old).cloned().collect();
    let reason = format!(
        "{} deleted from the cache, {} stay",
        count_noun(n_old, "old result"),
        policy.cache_edit_keep
    );
    let mut drafts = DecisionDrafts::about(view);
    drafts.add_if_smaller(DecisionKind::CacheEdit { tool_use_ids }, reason.clone(), None);
    drafts.into_action(reason)
}
