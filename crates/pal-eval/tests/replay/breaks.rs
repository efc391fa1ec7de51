//! **Every cache-read drop gets its true cause.** In replays of every recorded session, with the recorded decisions and under the
//! threshold policy, every drop has a cause, the simulator's own record of the request confirms it, and the provider's reported reason
//! does not contradict it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pal_context::cache::cache_read_drop;
use pal_eval::replay::{ReplayOptions, ReplayStep, replay_watched};
use pal_model::{BreakCause, CacheBreak};
use pal_sim::{CacheOutcome, PromptDifference};
use pal_testkit::{map_on_all_cores, session_sample};

use crate::sessions::{recorded, threshold};

/// True if the simulator's record of a request supports a cause, given its cache reads and those of the one before.
fn confirms(cause: &BreakCause, story: &CacheOutcome, before: u64, now: u64) -> bool {
    // Nothing as long as what was read before was ever cached of this request: it is another one.
    let is_new = story.known < before;
    match (cause, story.differs) {
        (BreakCause::Expired { .. }, _) => story.lapsed && story.known > now,
        (BreakCause::LookBack { .. }, _) => !story.lapsed && story.known > now,
        (BreakCause::Message { message, block, .. }, Some(differs)) => {
            differs == PromptDifference::Messages { message: *message as u32, block: *block as u32 }
        }
        (BreakCause::Expected { .. }, Some(differs)) => matches!(differs, PromptDifference::Messages { .. }),
        (BreakCause::Model { .. }, Some(differs)) => differs == PromptDifference::Model,
        (BreakCause::Tool { .. }, Some(differs)) => matches!(differs, PromptDifference::Tools { .. }),
        (BreakCause::Section { .. }, Some(differs)) => matches!(differs, PromptDifference::System { .. }),
        (
            BreakCause::Effort
            | BreakCause::Thinking
            | BreakCause::ToolChoice
            | BreakCause::Betas { .. }
            | BreakCause::Member { .. },
            Some(differs),
        ) => differs == PromptDifference::Parameters,
        // What is cleared otherwise is another prompt from there on.
        (BreakCause::Edits, Some(differs)) => {
            matches!(differs, PromptDifference::Parameters | PromptDifference::Messages { .. })
        }
        // The provider does not compare for this model: that it is another request has to do.
        (BreakCause::Unseen | BreakCause::Provider | BreakCause::NoBreakpoint | BreakCause::CacheTtl, _) => {
            false
        }
        (_, None) => is_new,
        (_, Some(_)) => false,
    }
}

/// True if what the provider says aloud goes with a cause; it names no more than the layer.
fn agrees(found: &CacheBreak) -> bool {
    let Some(word) = found.provider.as_deref() else { return true };
    let right: &[&str] = match &found.cause {
        BreakCause::Model { .. } | BreakCause::Speed => &["model_changed"],
        BreakCause::Tool { .. } => &["tools_changed"],
        BreakCause::Section { .. } => &["system_changed"],
        BreakCause::Message { .. } => &["messages_changed"],
        // A decision may come with a parameter that makes requests incomparable.
        BreakCause::Expected { .. } => &["messages_changed", "unavailable"],
        BreakCause::Expired { .. } | BreakCause::LookBack { .. } => &[],
        _ => &["unavailable"],
    };
    right.contains(&word)
}

/// Results of one replay: drops by cause, and those without support.
#[derive(Default)]
struct Seen {
    causes: BTreeMap<String, u64>,
    wrong: Vec<String>,
}

fn look(step: &ReplayStep<'_>, before: &mut Option<u64>, seen: &mut Seen) {
    let (Some(usage), Some(story)) = (step.simulated, step.cache) else { return };
    // Requests beside the conversation are booked by themselves.
    if !step.is_answer {
        return;
    }
    let now = usage.cache_read_input_tokens;
    let previous = before.replace(now);
    let fell = previous.and_then(|previous| cache_read_drop(previous, now));
    match (fell, step.cache_break) {
        (None, None) => {}
        (Some(tokens), Some(found)) => {
            let name = found.cause.to_string();
            let name = name.split([':', ',']).next().unwrap_or_default();
            let name: String =
                name.chars().map(|letter| if letter.is_ascii_digit() { '#' } else { letter }).collect();
            *seen.causes.entry(name).or_default() += 1;
            let borne_out = confirms(&found.cause, &story, previous.unwrap_or(0), now);
            if tokens != found.tokens || !borne_out || !agrees(found) {
                seen.wrong.push(format!("request {}: {found:?}, but {story:?}", step.number));
            }
        }
        (fell, found) => {
            seen.wrong.push(format!("request {}: fell by {fell:?}, and was told {found:?}", step.number));
        }
    }
}

#[test]
fn recorded_cache_breaks_have_a_confirmed_cause() {
    let policies: [(&str, ReplayOptions); 3] = [
        ("as recorded", ReplayOptions::plain()),
        ("threshold", threshold(None)),
        ("threshold at 60 000", threshold(Some(60_000))),
    ];
    let mut wrong = Vec::new();
    for (name, options) in policies {
        let files: Vec<PathBuf> = session_sample(&format!("breaks {name}"));
        let all = map_on_all_cores(&files, |file| {
            let (mut seen, mut before) = (Seen::default(), None);
            replay_watched(&recorded(file), &options, &mut |step| look(step, &mut before, &mut seen))
                .unwrap();
            (file.clone(), seen)
        });
        let mut causes: BTreeMap<String, u64> = BTreeMap::new();
        for (file, seen) in all {
            seen.causes.into_iter().for_each(|(cause, count)| *causes.entry(cause).or_default() += count);
            wrong.extend(seen.wrong.into_iter().map(|what| format!("{name}, {}: {what}", file.display())));
        }
        println!("{name}: {causes:?}");
    }
    assert!(wrong.is_empty(), "{} falls without a true cause:\n{}", wrong.len(), wrong.join("\n"));
}
