//! Auto-compact (§3.5, §4.1): when the context has reached its threshold, the conversation is compacted.

use pal_model::{Block, BlockType, Body};

use super::fold::percent_of;
use super::microcompact::chosen;
use crate::act::What;
use crate::thrifty::Deed;
use crate::{Act, Foreseen, Layer, Situation, When};

/// Compacts when the threshold is reached.
pub(crate) struct AutoCompact;

impl Layer for AutoCompact {
    fn name(&self) -> &'static str {
        "auto-compact"
    }

    fn act(&self, situation: &Situation<'_>) -> Act {
        let mut act = decide(situation);
        if is_told(situation) {
            act.reason.push_str(TOLD);
        }
        act
    }

    fn foresee(&self, situation: &Situation<'_>) -> Vec<Foreseen> {
        let at = |tokens: u64| {
            let reason = String::from("everything but what waits to be sent is summarised");
            Foreseen {
                layer: self.name(),
                when: When::Tokens(tokens),
                results: Vec::new(),
                tokens: 0,
                reason,
            }
        };
        situation.limits.auto_compact.map(at).into_iter().collect()
    }
}

/// What is said of a summary in a block that only another model reads.
const TOLD: &str =
    "; this model does not read the provider's own summary and is told its words until the next one";

/// Whether the messages begin with the words of a provider's own summary, because the model does not read the block.
fn is_told(situation: &Situation<'_>) -> bool {
    let Some(Body::Boundary(boundary)) = situation.view.boundary().map(|entry| &entry.body) else {
        return false;
    };
    let is_block = |block: &Block| block.kind() == BlockType::Compaction;
    !situation.view.opens_with_provider_summary() && boundary.summary.blocks().iter().any(is_block)
}

fn decide(situation: &Situation<'_>) -> Act {
    let size = situation.size;
    let fill = situation.limits.fill(size);
    let Some(threshold) = situation.limits.auto_compact else {
        return if fill.blocking {
            let reason = format!(
                "{size} tokens leave no room for an answer, and automatic compaction is off: compact by hand"
            );
            Act { what: What::Stop, reason }
        } else {
            Act::nothing("switched off")
        };
    };
    if situation.policy.fold {
        // Folding has had its turn by now: only if it could not help enough is there more to do.
        let drain = percent_of(situation.limits.effective, situation.policy.fold_drain_percent);
        if size < drain {
            return Act::nothing(format!("{size} tokens, and folding handles them up to {drain}"));
        }
    } else if !fill.auto_compact {
        return match situation.policy.thrift.map(|thrift| chosen(situation, thrift)) {
            Some(choice) if choice.deed == Deed::Compact => {
                Act { what: What::Compact, reason: choice.reason }
            }
            Some(choice) => Act::nothing(choice.reason),
            None => Act::nothing(format!("{size} tokens, acts from {threshold}")),
        };
    }
    match situation.blocked_by {
        Some(hook) if fill.blocking => {
            let reason = format!(
                "{size} tokens leave no room for an answer, and the hook `{hook}` forbids compaction: \
                     change the hook, or start anew"
            );
            Act { what: What::Stop, reason }
        }
        Some(hook) => Act::nothing(format!("due at {threshold} tokens, but the hook `{hook}` forbids it")),
        None => Act {
            what: What::Compact,
            reason: format!("{size} tokens have reached the threshold of {threshold}"),
        },
    }
}
