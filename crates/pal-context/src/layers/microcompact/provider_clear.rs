//! Clearing by the provider: the request asks it to leave old results and old thinking out of the prompt,
//! without a change of the messages.
//!
//! The member stays the same from one request to the next; values that depend on the conversation are
//! latched.

use pal_model::{DecisionKind, SharedText, ToolKind, escape_into};
use smol_str::SmolStr;

use super::old_results::is_clearable;
use crate::layer::DecisionDrafts;
use crate::{ActionKind, ForecastCondition, LayerAction, LayerContext, LayerForecast};
use pal_model::text::group_digits;

/// Name of the edit that clears tool results.
pub(super) const CLEAR_USES: &str = "clear_tool_uses_20250919";
const CLEAR_THINKING: &str = "clear_thinking_20251015";

/// Latch: number of results to keep, once their size is known.
const KEEP_LATCH: &str = "clear_keep";
/// Latch: number of turns whose thinking stays, once the cache expired.
const THINKING_LATCH: &str = "clear_thinking";

/// Tokens below the automatic compaction at which the provider clears early, on a full window.
const BEFORE_COMPACTION: u64 = 10_000;
/// Maximum tokens at which the provider clears early.
const TRIGGER_MAX: u64 = 180_000;
/// Tokens of the newest results to keep, on a full window.
const KEEP_TOKENS: u64 = 40_000;
/// Minimum number of results to keep, and the number while their size is unknown.
const KEEP_MIN: usize = 3;
const KEEP_UNKNOWN: &str = "20";
/// Minimum tokens that a clear must free, on a full window.
const CLEAR_MIN: u64 = 20_000;
/// Idle time after which old thinking is no longer worth its room, in seconds.
const THINKING_IDLE: u64 = 60 * 60;

/// Asks the provider to clear.
pub(super) fn ask(context: &LayerContext<'_>) -> LayerAction {
    let compacts = context.policy.provider_compaction && context.view.lens().card.can.provider_compaction;
    if compacts || context.view.opens_with_provider_summary() {
        return LayerAction::nothing("the provider compacts, and does not clear beside that");
    }
    if context.view.tool_names().is_empty() {
        return LayerAction::nothing("the session declares no tools");
    }
    let trigger = trigger(context);
    if let Some(act) = latch_thinking(context).or_else(|| latch_keep(context, trigger)) {
        return act;
    }
    let chosen = latched(context, KEEP_LATCH);
    let keep = chosen.unwrap_or(KEEP_UNKNOWN);
    let kept = match chosen {
        Some(keep) => format!("all but the newest {keep} results"),
        None => String::from("how many results stay is decided shortly before"),
    };
    let reason = format!("the provider is asked to clear from {} tokens on: {kept}", group_digits(trigger));
    let value = SharedText::from(edits(context, trigger, keep));
    LayerAction { kind: ActionKind::AskProvider { member: "context_management", value }, reason }
}

/// Forecast of the current results that the provider will clear.
pub(super) fn foresee(layer: &'static str, context: &LayerContext<'_>) -> Option<LayerForecast> {
    let view = context.view;
    let asks = |what: &ActionKind| !matches!(what, ActionKind::Nothing);
    if !asks(&ask(context).kind) {
        return None;
    }
    let keep = latched(context, KEEP_LATCH).and_then(|keep| keep.parse().ok());
    let keep: usize = keep.unwrap_or_else(|| keep_of(context));
    let older = view.result_ids().rev().filter(|id| is_clearable(view, id)).skip(keep);
    let mut results: Vec<_> = older.cloned().collect();
    results.reverse();
    let tokens = results.iter().filter_map(|id| view.result(id)).map(|result| result.tokens).sum();
    let (tokens, least) = (view.estimator().total(tokens), context.budgets().scale(CLEAR_MIN));
    let reason = match tokens < least {
        true => format!(
            "nothing yet: the provider leaves out all but the newest {keep} results, once the older ones have {} tokens; they \
             have {}",
            group_digits(least),
            group_digits(tokens)
        ),
        false => format!("the provider leaves out all but the newest {keep} results"),
    };
    let (results, tokens) = if tokens < least { (Vec::new(), 0) } else { (results, tokens) };
    Some(LayerForecast {
        layer,
        condition: ForecastCondition::Tokens(trigger(context)),
        results,
        tokens,
        reason,
    })
}

/// Tokens from which on the provider clears. Where a compaction comes first, it is the size beyond which only a
/// compaction may be sent: reached if the provider counts more tokens than we do. Where none comes, clearing is
/// what keeps the session going, so it begins before that size.
fn trigger(context: &LayerContext<'_>) -> u64 {
    let limits = context.limits;
    if !context.policy.early_clear && context.can_compact() {
        return limits.blocking.max(1);
    }
    let most = limits.auto_compact.unwrap_or(limits.warning);
    most.saturating_sub(context.budgets().scale(BEFORE_COMPACTION)).clamp(1, TRIGGER_MAX)
}

fn latched<'a>(context: &LayerContext<'a>, name: &str) -> Option<&'a str> {
    context.view.state().latches.get(name).map(String::as_str)
}

fn latch(context: &LayerContext<'_>, name: &'static str, value: String, reason: String) -> LayerAction {
    let mut drafts = DecisionDrafts::about(context.view);
    drafts.note(DecisionKind::Latch { name: SmolStr::new_static(name), value }, reason.clone());
    LayerAction { kind: ActionKind::Decide(drafts.finish()), reason }
}

/// Returns true if the request may ask for clearing thinking.
fn clears_thinking(context: &LayerContext<'_>) -> bool {
    let card = &context.view.lens().card;
    card.thinking.adaptive && card.can.context_management.iter().any(|edit| edit == CLEAR_THINKING)
}

/// Latches that only the last turn's thinking stays. From then on every turn takes the thinking of the one before
/// out of the prompt, and everything behind it is written to the cache again: so only if the policy clears early.
fn latch_thinking(context: &LayerContext<'_>) -> Option<LayerAction> {
    if !context.policy.early_clear {
        return None;
    }
    let idle = context.idle()?.as_secs();
    if idle <= THINKING_IDLE || !clears_thinking(context) || latched(context, THINKING_LATCH).is_some() {
        return None;
    }
    let reason = format!("{} minutes without a request: only the last turn's thinking stays", idle / 60);
    Some(latch(context, THINKING_LATCH, String::from("1"), reason))
}

/// Latches the number of results to keep shortly before the provider clears for the first time.
fn latch_keep(context: &LayerContext<'_>, trigger: u64) -> Option<LayerAction> {
    let budgets = context.budgets();
    if context.size < trigger.saturating_sub(budgets.scale(CLEAR_MIN))
        || latched(context, KEEP_LATCH).is_some()
    {
        return None;
    }
    let keep = keep_of(context);
    let reason = format!(
        "{} tokens, the provider clears from {} on: the newest {keep} results, about {} tokens, will stay",
        group_digits(context.size),
        group_digits(trigger),
        group_digits(budgets.scale(KEEP_TOKENS))
    );
    Some(latch(context, KEEP_LATCH, keep.to_string(), reason))
}

/// Number of the newest results within the tokens to keep.
fn keep_of(context: &LayerContext<'_>) -> usize {
    let view = context.view;
    let estimator = view.estimator();
    let mut tokens = 0.0;
    let newest = view.result_ids().rev().filter(|id| is_clearable(view, id)).take_while(|id| {
        tokens += view.result(id).map_or(0.0, |result| result.tokens);
        estimator.total(tokens) <= context.budgets().scale(KEEP_TOKENS)
    });
    newest.count().max(KEEP_MIN)
}

/// Builds the edits as raw JSON. The provider requires thinking first.
fn edits(context: &LayerContext<'_>, trigger: u64, keep: &str) -> String {
    let names = context.view.tool_names().iter();
    let (known, other): (Vec<&SmolStr>, Vec<&SmolStr>) =
        names.partition(|name| ToolKind::from_name(name).is_some());
    let writers = known
        .into_iter()
        .filter(|name| matches!(ToolKind::from_name(name), Some(ToolKind::Edit | ToolKind::Write)));
    let mut json = String::from(r#"{"edits":["#);
    if clears_thinking(context) {
        let keep = match latched(context, THINKING_LATCH) {
            Some(turns) => format!(r#"{{"type":"thinking_turns","value":{turns}}}"#),
            None => String::from(r#""all""#),
        };
        json.push_str(&format!(r#"{{"type":"{CLEAR_THINKING}","keep":{keep}}},"#));
    }
    let at_least = context.budgets().scale(CLEAR_MIN);
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
