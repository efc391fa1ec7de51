//! Fits unanswered messages into the room that a compaction has for them.

use pal_model::text::group_digits;

use super::spilled_paste::SpilledPaste;
use super::unsent_results::UnsentResult;
use super::{LogEntry, PREVIEW};
use crate::LayerContext;
use crate::compaction::WaitingMessages;

/// Minimum preview bytes of a result.
const PREVIEW_MIN: usize = 300;
/// Bytes of a token in a preview, cautiously.
const BYTES_PER_TOKEN: f64 = 2.0;
/// Share of the room that is filled: frames of blocks count, too.
const ROOM_SHARE: f64 = 0.97;
/// Weight of a person's text compared with a result of the same size: words that a person wrote are shortened last.
const PASTE_WEIGHT: f64 = 0.5;

/// A message that can be shortened.
enum Candidate<'a> {
    Result(usize),
    Paste(&'a LogEntry),
}

/// Shortens the largest messages until a compaction can keep all of them.
pub(super) fn fit_waiting(
    context: &LayerContext<'_>,
    waiting: &WaitingMessages<'_>,
    results: &mut [UnsentResult],
    pastes: &mut Vec<SpilledPaste>,
) {
    let scale = context.view.measured_estimator().scale();
    let saved = results.iter().map(|result| result.saved_tokens(context)).sum::<f64>()
        + pastes.iter().map(|paste| paste.saved_tokens).sum::<f64>();
    let mut left = waiting.tokens - scale * saved;
    let room = waiting.room * ROOM_SHARE;
    if left <= room {
        return;
    }
    let share = room * BYTES_PER_TOKEN / results.len().max(1) as f64;
    let preview = (share as usize).clamp(PREVIEW_MIN, PREVIEW);
    for candidate in candidates(context, waiting, results, pastes) {
        if left <= room {
            return;
        }
        let reason = format!(
            "{} tokens wait for an answer, and a compaction can keep {}: shown in part",
            group_digits(left as u64),
            group_digits(room as u64)
        );
        match candidate {
            Candidate::Result(at) => {
                let result = &mut results[at];
                let reason = format!("{} result: {reason}", result.tool);
                let saved = result.saved_tokens(context);
                result.shorten(context, preview, reason);
                left -= scale * (result.saved_tokens(context) - saved);
            }
            Candidate::Paste(entry) => {
                if let Some(paste) = SpilledPaste::of_waiting(context, entry, &reason) {
                    left -= scale * paste.saved_tokens;
                    pastes.push(paste);
                }
            }
        }
    }
}

/// Messages in the order in which they are shortened: those that are shown whole, then the previews of results, which
/// many results of one message have to share.
fn candidates<'a>(
    context: &LayerContext<'_>,
    waiting: &WaitingMessages<'a>,
    results: &[UnsentResult],
    pastes: &[SpilledPaste],
) -> Vec<Candidate<'a>> {
    let is_shown_whole = |result: &UnsentResult| result.is_whole && result.replacement.is_none();
    let (whole, previews): (Vec<_>, Vec<_>) =
        results.iter().enumerate().partition(|(_, result)| is_shown_whole(result));
    let mut found: Vec<(f64, Candidate<'a>)> =
        whole.into_iter().map(|(at, result)| (result.tokens, Candidate::Result(at))).collect();
    let is_spilled = |entry: &LogEntry| pastes.iter().any(|paste| paste.entry == entry.id);
    for entry in waiting.entries.iter().copied().filter(|entry| !is_spilled(entry)) {
        let tokens = SpilledPaste::of_waiting(context, entry, "").map_or(0.0, |paste| paste.saved_tokens);
        if tokens > 0.0 {
            found.push((PASTE_WEIGHT * tokens, Candidate::Paste(entry)));
        }
    }
    found.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let previews = previews.into_iter().filter(|(_, result)| !result.is_cleared);
    let previews = previews.map(|(at, _)| Candidate::Result(at));
    found.into_iter().map(|(_, candidate)| candidate).chain(previews).collect()
}
