//! Snip (§3.2): calls that later ones made redundant leave the view with their results.
//!
//! Acts only when that is cheap or needed: the cache is cold, or the context is past the warning; and only for a gain
//! that is worth it. Whole pairs of call and result go; nothing that a person said, and nothing of the last messages.

mod pairs;
mod redundant;

use pal_model::DecisionKind;

use crate::act::Drafts;
use crate::words::{counted, grouped};
use crate::{Act, Foreseen, Layer, Situation, What, When};
use pairs::Pairs;
use redundant::{Why, redundant};

/// Hides redundant calls.
pub(crate) struct Snip;

/// Tokens that a snip must free, on a full window.
const FREED_LEAST: u64 = 5_000;

impl Layer for Snip {
    fn name(&self) -> &'static str {
        "snip"
    }

    fn act(&self, situation: &Situation<'_>) -> Act {
        if !situation.policy.snip {
            return Act::nothing("switched off");
        }
        let warning = situation.limits.warning;
        let moment = if situation.is_cold() {
            String::from("the cache is cold")
        } else if situation.size >= warning {
            format!("{} tokens are past the warning at {}", grouped(situation.size), grouped(warning))
        } else {
            return Act::nothing(format!(
                "the cache is warm and {} tokens are below the warning at {}",
                grouped(situation.size),
                grouped(warning)
            ));
        };
        if !situation.may_rewrite() {
            return Act::nothing(format!("{moment}, but thinking is bound to what stands before it"));
        }
        snip(situation, &moment)
    }

    fn foresee(&self, situation: &Situation<'_>) -> Vec<Foreseen> {
        if !situation.policy.snip {
            return Vec::new();
        }
        let (pause, warning) = (situation.cold_after(), situation.limits.warning);
        vec![
            Foreseen::of(self.name(), When::Idle(pause), self.act(&situation.idle_for(pause))),
            Foreseen::of(self.name(), When::Tokens(warning), self.act(&situation.grown_to(warning))),
        ]
    }
}

fn snip(situation: &Situation<'_>, moment: &str) -> Act {
    let pairs = Pairs::of(situation.view, situation.policy.snip_keep_messages);
    let reasons = redundant(&pairs);
    let hidden = pairs.hidden(|pair| reasons.contains_key(&pair));
    if hidden.entries.is_empty() {
        return Act::nothing(format!("{moment}, but nothing is redundant"));
    }
    let counts: Vec<String> = Why::ALL
        .into_iter()
        .map(|why| (why, hidden.pairs.iter().filter(|pair| reasons.get(pair) == Some(&why)).count()))
        .filter(|(_, count)| *count > 0)
        .map(|(why, count)| counted(count, why.name()))
        .collect();
    let reason = format!("{moment}: {} hidden", counts.join(", "));
    let mut drafts = Drafts::about(situation.view);
    drafts.add(DecisionKind::Snip { entries: hidden.entries }, reason.clone());
    let proposals = drafts.finish();
    let freed: u64 = proposals.iter().map(|proposal| proposal.decision.cost.tokens_freed).sum();
    let least = situation.budgets().of(FREED_LEAST);
    if freed < least {
        return Act::nothing(format!(
            "{moment}, but redundant calls have only {} tokens, acts from {}",
            grouped(freed),
            grouped(least)
        ));
    }
    Act { what: What::Decide(proposals), reason }
}
