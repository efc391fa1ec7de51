//! Spill (§3.1, §10.6): writes long tool results and pastes to disk before they are first sent. Decisions to
//! keep a result whole are recorded, too, so that nothing changes once it was sent.
//!
//! Inspects only unsent entries, and each result once.

mod spill_text;
mod unsent_results;

use pal_model::{DecisionKind, EntryBody, LogEntry, MessageOrigin};

use crate::layer::DecisionDrafts;
use crate::{Layer, LayerAction, LayerContext, SpillFile};
use pal_model::text::{count_noun, group_digits};
use unsent_results::{ResultReplacement, UnsentResult};

/// Spills long results and pastes to disk.
pub(crate) struct SpillLayer;

/// Directory of spilled texts, relative to the session's directory.
const FOLDER: &str = "tool-results";
/// Preview bytes of a spilled result.
const PREVIEW: usize = 2_000;
/// Preview bytes of a spilled user text, on a full window.
const PREVIEW_OF_USER: u64 = 8_000;

impl Layer for SpillLayer {
    fn name(&self) -> &'static str {
        "spill"
    }

    fn act(&self, context: &LayerContext<'_>) -> LayerAction {
        if !context.policy.spill && !context.policy.condense {
            return LayerAction::nothing("switched off");
        }
        let unsent = context.view.unsent_entries();
        let results = settle(context, &unsent);
        let pastes: Vec<SpilledPaste> =
            unsent.iter().filter_map(|entry| SpilledPaste::of(context, entry)).collect();
        let n_new = results.iter().filter(|result| !result.is_settled).count();
        if n_new == 0 && pastes.is_empty() {
            return LayerAction::nothing("nothing new to look at");
        }
        let mut drafts = DecisionDrafts::about(context.view);
        let mut n_spilled = 0;
        let mut left = Vec::new();
        for result in results {
            match result.replacement {
                Some(ResultReplacement { path, text, reason, file }) => {
                    let file = file.map(|text| SpillFile { path: path.clone(), text });
                    let tool_use_id = Some(result.id.clone());
                    let kind = DecisionKind::Spill { tool_use_id, entry: None, path, text };
                    match drafts.add_if_smaller(kind, reason, file) {
                        true => n_spilled += 1,
                        false => left.push(result.id),
                    }
                }
                None if !result.is_settled => left.push(result.id),
                None => {}
            }
        }
        for SpilledPaste { decision, reason, file } in pastes {
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
    let most = context.budgets().scale(context.policy.spill_characters_of_message) as usize;
    let mut total: usize = results.iter().map(UnsentResult::shown_characters).sum();
    let mut order: Vec<usize> = (0..results.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(results[*at].characters));
    for at in order {
        if total <= most {
            return;
        }
        let result = &mut results[at];
        if result.is_settled || result.replacement.is_some() {
            continue;
        }
        let before = result.shown_characters();
        let reason = format!(
            "the results of this message have {} characters, over {}: the {} result of {} is shown in part",
            group_digits(total as u64),
            group_digits(most as u64),
            result.tool,
            group_digits(before as u64),
        );
        result.shorten(context, most.saturating_sub(total - before), reason);
        total = total - before + result.shown_characters();
    }
}

/// A long user text, typed by a person or written by the agent.
struct SpilledPaste {
    decision: DecisionKind,
    reason: String,
    file: SpillFile,
}

impl SpilledPaste {
    fn of(context: &LayerContext<'_>, entry: &LogEntry) -> Option<SpilledPaste> {
        let EntryBody::User(user) = &entry.body else { return None };
        if !matches!(user.origin, MessageOrigin::Person | MessageOrigin::Agent)
            || !context.policy.spill
            || context.view.is_spilled(entry.id)
        {
            return None;
        }
        let budgets = context.budgets();
        let most = budgets.scale(context.policy.spill_characters_of_user) as usize;
        if entry.line.len() <= most {
            return None;
        }
        let whole = spill_text::of_blocks(user.content.blocks());
        let characters = whole.chars().count();
        if characters <= most {
            return None;
        }
        let path = format!("{FOLDER}/user-{}.txt", entry.id);
        let preview = budgets.scale(PREVIEW_OF_USER) as usize;
        let shown = spill_text::of_paste(&whole, &format!("{}/{path}", context.paths.directory), preview);
        if shown.len() >= whole.len() {
            return None;
        }
        let who = if user.origin == MessageOrigin::Person { "text of the user" } else { "message" };
        let reason = format!(
            "{who} of {} characters is over {}",
            group_digits(characters as u64),
            group_digits(most as u64)
        );
        let file = SpillFile { path: path.clone(), text: whole };
        let decision = DecisionKind::Spill { tool_use_id: None, entry: Some(entry.id), path, text: shown };
        Some(SpilledPaste { decision, reason, file })
    }
}
