//! Clearing by the provider: what a request asks for, so that old results and old thinking are left out of the prompt
//! without a change of the messages.
//!
//! What is asked stays the same from one request to the next; what depends on the conversation is latched.

use pal_model::{DecisionKind, Text, ToolKind, escape_into};
use smol_str::SmolStr;

use super::old::is_clearable;
use crate::act::Drafts;
use crate::words::grouped;
use crate::{Act, Foreseen, Situation, What, When};

/// The edit that clears results.
pub(super) const CLEAR_USES: &str = "clear_tool_uses_20250919";
const CLEAR_THINKING: &str = "clear_thinking_20251015";

/// How many results stay, once it is known how large they are.
const KEEP_LATCH: &str = "clear_keep";
/// How many turns' thinking stays, once the cache was lost.
const THINKING_LATCH: &str = "clear_thinking";

/// Tokens below the automatic compaction at which the provider clears, on a full window.
const BEFORE_COMPACTION: u64 = 10_000;
const TRIGGER_MAX: u64 = 180_000;
/// Tokens of the newest results that stay, on a full window.
const KEEP_TOKENS: u64 = 40_000;
/// Results that stay at least, and as long as nothing is known of their size.
const KEEP_LEAST: usize = 3;
const KEEP_UNKNOWN: &str = "20";
/// Tokens that a clear must free, on a full window.
const CLEAR_LEAST: u64 = 20_000;
/// Time without a request after which old thinking is no longer worth its place, in seconds.
const THINKING_IDLE: u64 = 60 * 60;

/// Asks the provider to clear.
pub(super) fn ask(situation: &Situation<'_>) -> Act {
    let compacts = situation.policy.provider_compaction && situation.view.lens().card.can.provider_compaction;
    if compacts || situation.view.opens_with_provider_summary() {
        return Act::nothing("the provider compacts, and does not clear beside that");
    }
    if situation.view.tool_names().is_empty() {
        return Act::nothing("the session declares no tools");
    }
    let trigger = trigger(situation);
    if let Some(act) = latch_thinking(situation).or_else(|| latch_keep(situation, trigger)) {
        return act;
    }
    let keep = latched(situation, KEEP_LATCH).unwrap_or(KEEP_UNKNOWN);
    let reason =
        format!("the provider is asked to clear from {} tokens on, all but {keep} results", grouped(trigger));
    let value = Text::from(edits(situation, trigger, keep));
    Act { what: What::AskProvider { member: "context_management", value }, reason }
}

/// What of the results that are there now the provider leaves out once it is time.
pub(super) fn foresee(layer: &'static str, situation: &Situation<'_>) -> Option<Foreseen> {
    let view = situation.view;
    let asks = |what: &What| !matches!(what, What::Nothing);
    if !asks(&ask(situation).what) {
        return None;
    }
    let keep = latched(situation, KEEP_LATCH).and_then(|keep| keep.parse().ok());
    let keep: usize = keep.unwrap_or_else(|| keep_of(situation));
    let older = view.result_ids().rev().filter(|id| is_clearable(view, id)).skip(keep);
    let mut results: Vec<_> = older.cloned().collect();
    results.reverse();
    let tokens = results.iter().filter_map(|id| view.result(id)).map(|result| result.tokens).sum();
    let (tokens, least) = (view.estimator().total(tokens), situation.budgets().of(CLEAR_LEAST));
    let reason = match tokens < least {
        true => format!(
            "nothing yet: the provider leaves out all but the newest {keep} results, once the older ones have {} tokens; they \
             have {}",
            grouped(least),
            grouped(tokens)
        ),
        false => format!("the provider leaves out all but the newest {keep} results"),
    };
    let (results, tokens) = if tokens < least { (Vec::new(), 0) } else { (results, tokens) };
    Some(Foreseen { layer, when: When::Tokens(trigger(situation)), results, tokens, reason })
}

fn trigger(situation: &Situation<'_>) -> u64 {
    let limits = situation.limits;
    let most = limits.auto_compact.unwrap_or(limits.warning);
    most.saturating_sub(situation.budgets().of(BEFORE_COMPACTION)).clamp(1, TRIGGER_MAX)
}

fn latched<'a>(situation: &Situation<'a>, name: &str) -> Option<&'a str> {
    situation.view.state().latches.get(name).map(String::as_str)
}

fn latch(situation: &Situation<'_>, name: &'static str, value: String, reason: String) -> Act {
    let mut drafts = Drafts::about(situation.view);
    drafts.note(DecisionKind::Latch { name: SmolStr::new_static(name), value }, reason.clone());
    Act { what: What::Decide(drafts.finish()), reason }
}

/// Whether the request may ask for thinking to be cleared.
fn clears_thinking(situation: &Situation<'_>) -> bool {
    let card = &situation.view.lens().card;
    card.thinking.adaptive && card.can.context_management.iter().any(|edit| edit == CLEAR_THINKING)
}

fn latch_thinking(situation: &Situation<'_>) -> Option<Act> {
    let idle = situation.idle()?.as_secs();
    if idle <= THINKING_IDLE || !clears_thinking(situation) || latched(situation, THINKING_LATCH).is_some() {
        return None;
    }
    let reason = format!("{} minutes without a request: only the last turn's thinking stays", idle / 60);
    Some(latch(situation, THINKING_LATCH, String::from("1"), reason))
}

/// Shortly before the provider clears for the first time it is known how many results make the tokens that stay.
fn latch_keep(situation: &Situation<'_>, trigger: u64) -> Option<Act> {
    let budgets = situation.budgets();
    if situation.size < trigger.saturating_sub(budgets.of(CLEAR_LEAST))
        || latched(situation, KEEP_LATCH).is_some()
    {
        return None;
    }
    let keep = keep_of(situation);
    let reason = format!(
        "{} tokens, the provider clears from {} on: the newest {keep} results, about {} tokens, will stay",
        grouped(situation.size),
        grouped(trigger),
        grouped(budgets.of(KEEP_TOKENS))
    );
    Some(latch(situation, KEEP_LATCH, keep.to_string(), reason))
}

/// How many of the newest results make the tokens that stay.
fn keep_of(situation: &Situation<'_>) -> usize {
    let view = situation.view;
    let estimator = view.estimator();
    let mut tokens = 0.0;
    let newest = view.result_ids().rev().filter(|id| is_clearable(view, id)).take_while(|id| {
        tokens += view.result(id).map_or(0.0, |result| result.tokens);
        estimator.total(tokens) <= situation.budgets().of(KEEP_TOKENS)
    });
    newest.count().max(KEEP_LEAST)
}

/// The edits, raw JSON. Thinking comes first: the provider wants it so.
fn edits(situation: &Situation<'_>, trigger: u64, keep: &str) -> String {
    let names = situation.view.tool_names().iter();
    let (known, other): (Vec<&SmolStr>, Vec<&SmolStr>) =
        names.partition(|name| ToolKind::named(name).is_some());
    let writers = known
        .into_iter()
        .filter(|name| matches!(ToolKind::named(name), Some(ToolKind::Edit | ToolKind::Write)));
    let mut json = String::from(r#"{"edits":["#);
    if clears_thinking(situation) {
        let keep = match latched(situation, THINKING_LATCH) {
            Some(turns) => format!(r#"{{"type":"thinking_turns","value":{turns}}}"#),
            None => String::from(r#""all""#),
        };
        json.push_str(&format!(r#"{{"type":"{CLEAR_THINKING}","keep":{keep}}},"#));
    }
    let at_least = situation.budgets().of(CLEAR_LEAST);
    json.push_str(&format!(
        r#"{{"type":"{CLEAR_USES}","trigger":{{"type":"input_tokens","value":{trigger}}},"keep":{{"type":"tool_uses","value":{keep}}},"clear_at_least":{{"type":"input_tokens","value":{at_least}}},"exclude_tools":{},"clear_tool_inputs":{}}}]}}"#,
        list(other),
        list(writers),
    ));
    json
}

fn list<'a>(names: impl IntoIterator<Item = &'a SmolStr>) -> String {
    let mut json = String::from("[");
    for (at, name) in names.into_iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        escape_into(&mut json, name);
    }
    json.push(']');
    json
}
