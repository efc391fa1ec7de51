//! Spill (§3.1, §10.6): what a tool returned, or what somebody pasted, goes to disk when it is too long, before it is
//! first sent. What was looked at and left is recorded too, so that nothing changes once it was sent.
//!
//! Looks only at what no request covered, and at each result once.

mod fresh;
mod text;

use pal_model::{Body, DecisionKind, Entry, Origin};

use crate::act::Drafts;
use crate::words::{counted, grouped};
use crate::{Act, Layer, Situation, SpillFile};
use fresh::{Fresh, Replacement};

/// Sends long results and pastes to disk.
pub(crate) struct Spill;

/// Where spilled texts lie, relative to the session's folder.
const FOLDER: &str = "tool-results";
/// Bytes that the model reads of a result on disk.
const PREVIEW: usize = 2_000;
/// Bytes that the model reads of a person's text on disk, on a full window.
const PREVIEW_OF_USER: u64 = 8_000;

impl Layer for Spill {
    fn name(&self) -> &'static str {
        "spill"
    }

    fn act(&self, situation: &Situation<'_>) -> Act {
        if !situation.policy.spill && !situation.policy.condense {
            return Act::nothing("switched off");
        }
        let unsent = situation.view.unsent();
        let results = settle(situation, &unsent);
        let pastes: Vec<Paste> = unsent.iter().filter_map(|entry| Paste::of(situation, entry)).collect();
        let n_new = results.iter().filter(|result| !result.is_settled).count();
        if n_new == 0 && pastes.is_empty() {
            return Act::nothing("nothing new to look at");
        }
        let mut drafts = Drafts::about(situation.view);
        let mut n_spilled = 0;
        let mut left = Vec::new();
        for result in results {
            match result.replacement {
                Some(Replacement { path, text, reason, file }) => {
                    let file = file.map(|text| SpillFile { path: path.clone(), text });
                    let tool_use_id = Some(result.id.clone());
                    let kind = DecisionKind::Spill { tool_use_id, entry: None, path, text };
                    match drafts.add_if_less(kind, reason, file) {
                        true => n_spilled += 1,
                        false => left.push(result.id),
                    }
                }
                None if !result.is_settled => left.push(result.id),
                None => {}
            }
        }
        for Paste { decision, reason, file } in pastes {
            n_spilled += usize::from(drafts.add_if_less(decision, reason, Some(file)));
        }
        if !left.is_empty() {
            let reason = format!("{} short enough to stay whole", counted(left.len(), "result"));
            drafts.note(DecisionKind::Keep { tool_use_ids: left }, reason);
        }
        let reason = match n_spilled {
            0 => format!("{}, none too long", counted(n_new, "new result")),
            _ => format!("{} to disk, {}", counted(n_spilled, "long text"), counted(n_new, "new result")),
        };
        drafts.into_act(reason)
    }
}

/// The results that no request covered, each with what shall stand in its place.
fn settle(situation: &Situation<'_>, unsent: &[&Entry]) -> Vec<Fresh> {
    let mut results = fresh::results(situation, unsent);
    for result in results.iter_mut().filter(|result| !result.is_settled) {
        result.decide(situation);
    }
    if situation.policy.spill {
        fit_message(situation, &mut results);
    }
    results
}

/// All results of a message together: the largest go until the rest fits.
fn fit_message(situation: &Situation<'_>, results: &mut [Fresh]) {
    let most = situation.budgets().of(situation.policy.spill_characters_of_message) as usize;
    let mut total: usize = results.iter().map(Fresh::shown_characters).sum();
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
            grouped(total as u64),
            grouped(most as u64),
            result.tool,
            grouped(before as u64),
        );
        result.shorten(situation, most.saturating_sub(total - before), reason);
        total = total - before + result.shown_characters();
    }
}

/// A long text of a person, or of the agent in a person's place.
struct Paste {
    decision: DecisionKind,
    reason: String,
    file: SpillFile,
}

impl Paste {
    fn of(situation: &Situation<'_>, entry: &Entry) -> Option<Paste> {
        let Body::User(user) = &entry.body else { return None };
        if !matches!(user.origin, Origin::Person | Origin::Agent)
            || !situation.policy.spill
            || situation.view.is_spilled(entry.id)
        {
            return None;
        }
        let budgets = situation.budgets();
        let most = budgets.of(situation.policy.spill_characters_of_user) as usize;
        if entry.line.len() <= most {
            return None;
        }
        let whole = text::of_blocks(user.content.blocks());
        let characters = whole.chars().count();
        if characters <= most {
            return None;
        }
        let path = format!("{FOLDER}/user-{}.txt", entry.id);
        let preview = budgets.of(PREVIEW_OF_USER) as usize;
        let shown = text::of_paste(&whole, &format!("{}/{path}", situation.place.directory), preview);
        if shown.len() >= whole.len() {
            return None;
        }
        let who = if user.origin == Origin::Person { "text of the user" } else { "message" };
        let reason =
            format!("{who} of {} characters is over {}", grouped(characters as u64), grouped(most as u64));
        let file = SpillFile { path: path.clone(), text: whole };
        let decision = DecisionKind::Spill { tool_use_id: None, entry: Some(entry.id), path, text: shown };
        Some(Paste { decision, reason, file })
    }
}
