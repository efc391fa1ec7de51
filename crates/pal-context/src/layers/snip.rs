//! Snip (§3.2): hides calls that later ones made redundant, with their results.
//!
//! Acts only if the cache is cold or the context is past the warning, and only for a sufficient gain. Hides
//! whole pairs of call and result; never text of a person, never the last messages.

mod call_pairs;
mod redundant_calls;

use pal_model::DecisionKind;

use crate::layer::DecisionDrafts;
use crate::{ActionKind, ForecastCondition, Layer, LayerAction, LayerContext, LayerForecast};
use call_pairs::CallPairs;
use pal_model::text::{count_noun, group_digits};
use redundant_calls::{RedundancyReason, redundant};

/// Hides redundant calls.
pub(crate) struct SnipLayer;

/// Minimum tokens that a snip must free, on a full window.
const FREED_MIN: u64 = 5_000;

impl Layer for SnipLayer {
    fn name(&self) -> &'static str {
        "snip"
    }

    fn act(&self, context: &LayerContext<'_>) -> LayerAction {
        if !context.policy.snip {
            return LayerAction::nothing("switched off");
        }
        let warning = context.limits.warning;
        let moment = if context.is_cold() {
            String::from("the cache is cold")
        } else if context.size >= warning {
            format!("{} tokens are past the warning at {}", group_digits(context.size), group_digits(warning))
        } else {
            return LayerAction::nothing(format!(
                "the cache is warm and {} tokens are below the warning at {}",
                group_digits(context.size),
                group_digits(warning)
            ));
        };
        if !context.may_rewrite() {
            return LayerAction::nothing(format!("{moment}, but thinking is bound to what stands before it"));
        }
        snip(context, &moment)
    }

    fn forecast(&self, context: &LayerContext<'_>) -> Vec<LayerForecast> {
        if !context.policy.snip {
            return Vec::new();
        }
        let (pause, warning) = (context.cold_after(), context.limits.warning);
        vec![
            LayerForecast::of(
                self.name(),
                ForecastCondition::Idle(pause),
                self.act(&context.idle_for(pause)),
            ),
            LayerForecast::of(
                self.name(),
                ForecastCondition::Tokens(warning),
                self.act(&context.grown_to(warning)),
            ),
        ]
    }
}

fn snip(context: &LayerContext<'_>, moment: &str) -> LayerAction {
    let pairs = CallPairs::of(context.view, context.policy.snip_keep_messages);
    let reasons = redundant(&pairs);
    let hidden = pairs.hidden(|pair| reasons.contains_key(&pair));
    if hidden.entries.is_empty() {
        return LayerAction::nothing(format!("{moment}, but nothing is redundant"));
    }
    let counts: Vec<String> = RedundancyReason::ALL
        .into_iter()
        .map(|why| (why, hidden.pairs.iter().filter(|pair| reasons.get(pair) == Some(&why)).count()))
        .filter(|(_, count)| *count > 0)
        .map(|(why, count)| count_noun(count, why.name()))
        .collect();
    let reason = format!("{moment}: {} hidden", counts.join(", "));
    let mut drafts = DecisionDrafts::about(context.view);
    drafts.add(DecisionKind::Snip { entries: hidden.entries }, reason.clone());
    let proposals = drafts.finish();
    let freed: u64 = proposals.iter().map(|proposal| proposal.decision.cost.tokens_freed).sum();
    let least = context.budgets().scale(FREED_MIN);
    if freed < least {
        return LayerAction::nothing(format!(
            "{moment}, but redundant calls have only {} tokens, acts from {}",
            group_digits(freed),
            group_digits(least)
        ));
    }
    LayerAction { kind: ActionKind::Decide(proposals), reason }
}
