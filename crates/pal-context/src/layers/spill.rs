//! Spill (§3.1, §10.6): writes long tool results and pastes to disk before they are first sent. Decisions to
//! keep a result whole are recorded, too, so that nothing changes once it was sent.
//!
//! Inspects only unsent entries, and each result once. Where a compaction is due, the unanswered messages are shortened
//! until it can keep them: the model must not lose what it has never seen.

mod spill_text;
mod spilled_paste;
mod unsent_results;
mod waiting_fit;

use pal_model::text::{count_noun, group_digits};
use pal_model::{DecisionKind, LogEntry};

use crate::compaction::WaitingMessages;
use crate::layer::DecisionDrafts;
use crate::{Layer, LayerAction, LayerContext, SpillFile};
use spilled_paste::SpilledPaste;
use unsent_results::{ResultReplacement, UnsentResult};

/// Spills long results and pastes to disk.
pub(crate) struct SpillLayer;

/// Directory of spilled texts, relative to the session's directory.
const FOLDER: &str = "tool-results";
/// Preview bytes of a spilled result.
const PREVIEW: usize = 2_000;

impl Layer for SpillLayer {
    fn name(&self) -> &'static str {
        "spill"
    }

    fn act(&self, context: &LayerContext<'_>) -> LayerAction {
        if !context.policy.spill && !context.policy.condense {
            return LayerAction::nothing("switched off");
        }
        let mut entries = context.view.unsent_entries();
        let limit = context.limits.auto_compact.unwrap_or(context.limits.blocking);
        let waiting = (context.size >= limit).then(|| WaitingMessages::of(context.view, context.limits));
        if let Some(waiting) = &waiting {
            let is_unsent = |entry: &&LogEntry| entries.iter().any(|unsent| unsent.id == entry.id);
            let sent: Vec<&LogEntry> =
                waiting.entries.iter().copied().filter(|entry| !is_unsent(entry)).collect();
            entries.splice(0..0, sent);
        }
        let mut results = settle(context, &entries);
        let mut pastes: Vec<SpilledPaste> =
            entries.iter().filter_map(|entry| SpilledPaste::of_long(context, entry)).collect();
        if let Some(waiting) = waiting.filter(|_| context.policy.spill) {
            waiting_fit::fit_waiting(context, &waiting, &mut results, &mut pastes);
        }
        let n_new = results.iter().filter(|result| !result.is_settled).count();
        let is_same = pastes.is_empty() && results.iter().all(|result| result.replacement.is_none());
        if n_new == 0 && is_same {
            return LayerAction::nothing("nothing new to look at");
        }
        let mut drafts = DecisionDrafts::about(context.view);
        let mut n_spilled = 0;
        let mut left = Vec::new();
        for result in results {
            match result.replacement {
                Some(ResultReplacement { path, text, reason, file, .. }) => {
                    let file = file.map(|text| SpillFile { path: path.clone(), text });
                    let tool_use_id = Some(result.id.clone());
                    let kind = DecisionKind::Spill { tool_use_id, entry: None, path, text };
                    match drafts.add_if_smaller(kind, reason, file) {
                        true => n_spilled += 1,
                        false if !result.is_settled => left.push(result.id),
                        false => {}
                    }
                }
                None if !result.is_settled => left.push(result.id),
                None => {}
            }
        }
        for SpilledPaste { decision, reason, file, .. } in pastes {
            n_spilled += usize::from(drafts.add_if_smaller(decision, reason, Some(file)));
        }
        if !left.is_empty() {
            let reason = format!("{} short enough to stay whole", count_noun(left.len(), "result"));
            drafts.note(DecisionKind::Keep { tool_use_ids: left }, reason);
        }
        let reason = match n_spilled {
            0 => format!("{}, none too long", count_noun(n_new, "new result")),
            _ => {
                format!("{} to disk, {}", count_noun(n_spilled, "long text"), count_noun(n_new, "new result"))
            }
        };
        drafts.into_action(reason)
    }
}

/// Unsent results, each with its replacement.
fn settle(context: &LayerContext<'_>, unsent: &[&LogEntry]) -> Vec<UnsentResult> {
    let mut results = unsent_results::results(context, unsent);
    for result in results.iter_mut().filter(|result| !result.is_settled) {
        result.decide(context);
    }
    if context.policy.spill {
        fit_message(context, &mut results);
    }
    results
}

/// Fits all results of a message together: shortens the largest until the rest fits.
fn fit_message(context: &LayerContext<'_>, results: &mut [UnsentResult]) {
    let most = context.budgets().scale(context.policy.spill_characters_of_message);
    let mut total: u64 = results.iter().map(UnsentResult::shown_weight).sum();
    let mut order: Vec<usize> = (0..results.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(results[*at].shown_weight()));
    for at in order {
        if total <= most {
            return;
        }
        let result = &mut results[at];
        if result.is_settled || result.replacement.is_some() {
            continue;
        }
        let before = result.shown_weight();
        let reason = format!(
            "the results of this message have {} characters, over {}: the {} result of {} is shown in part",
            group_digits(total),
            group_digits(most),
            result.tool,
            group_digits(before),
        );
        let room = most.saturating_sub(total - before) as usize;
        result.shorten(context, room.max(PREVIEW), reason);
        total = total - before + result.shown_weight();
    }
}
