//! Auto-compact (§3.5, §4.1): compacts the conversation when the context reaches its threshold.

use pal_model::text::group_digits;
use pal_model::{BlockType, ContentBlock, EntryBody};

use super::fold::percent_of;
use super::microcompact::chosen;
use crate::cost_aware::PolicyMove;
use crate::layer::ActionKind;
use crate::{ForecastCondition, Layer, LayerAction, LayerContext, LayerForecast};

/// Compacts when the threshold is reached.
pub(crate) struct AutoCompactLayer;

impl Layer for AutoCompactLayer {
    fn name(&self) -> &'static str {
        "auto-compact"
    }

    fn act(&self, context: &LayerContext<'_>) -> LayerAction {
        let mut act = decide(context);
        if is_summary_as_text(context) {
            act.reason.push_str(TOLD);
        }
        act
    }

    fn forecast(&self, context: &LayerContext<'_>) -> Vec<LayerForecast> {
        let at = |tokens: u64| {
            let reason = String::from("everything but what waits to be sent is summarised");
            LayerForecast {
                layer: self.name(),
                condition: ForecastCondition::Tokens(tokens),
                results: Vec::new(),
                tokens: 0,
                reason,
            }
        };
        let at_threshold = context.limits.auto_compact.filter(|_| !context.policy.reactive_only);
        at_threshold.map(|threshold| at(acts_from(context, threshold))).into_iter().collect()
    }
}

/// Notice about a compaction block that only another model can read.
const TOLD: &str =
    "; this model does not read the provider's own summary and is told its words until the next one";

/// Returns true if the messages begin with the text of a provider's own summary, because the model cannot
/// read the block.
fn is_summary_as_text(context: &LayerContext<'_>) -> bool {
    let Some(EntryBody::Boundary(boundary)) = context.view.boundary().map(|entry| &entry.body) else {
        return false;
    };
    let is_block = |block: &ContentBlock| block.kind() == BlockType::Compaction;
    !context.view.opens_with_provider_summary() && boundary.summary.blocks().iter().any(is_block)
}

/// Tokens from which on the layer acts: while folding is on, not before folding fails to free enough (§3.4).
fn acts_from(context: &LayerContext<'_>, threshold: u64) -> u64 {
    if !context.policy.fold {
        return threshold;
    }
    let drain = percent_of(context.limits.effective, context.policy.fold_drain_percent);
    threshold.max(drain).min(context.limits.blocking)
}

fn decide(context: &LayerContext<'_>) -> LayerAction {
    let size = context.size;
    let tokens = group_digits(size);
    let fill = context.limits.fill(size);
    let Some(threshold) = context.limits.auto_compact else {
        return if fill.blocking {
            let reason = format!(
                "{tokens} tokens leave no room for an answer, and automatic compaction is off: compact by hand"
            );
            LayerAction { kind: ActionKind::Stop, reason }
        } else {
            LayerAction::nothing("switched off")
        };
    };
    if context.policy.reactive_only {
        return LayerAction::nothing("compacts only after the provider refused a request as too long");
    }
    let from = acts_from(context, threshold);
    if context.policy.fold {
        // Folding came before: act only if it could not free enough.
        if size < from {
            return LayerAction::nothing(format!(
                "{tokens} tokens, and folding handles them up to {}",
                group_digits(from)
            ));
        }
    } else if !fill.auto_compact {
        return match context.policy.cost_aware.map(|settings| chosen(context, settings)) {
            Some(choice) if choice.chosen == PolicyMove::Compact => {
                LayerAction { kind: ActionKind::Compact, reason: choice.reason }
            }
            Some(choice) => LayerAction::nothing(choice.reason),
            None => LayerAction::nothing(format!("{tokens} tokens, acts from {}", group_digits(threshold))),
        };
    }
    match context.blocked_by {
        Some(hook) if fill.blocking => {
            let reason = format!(
                "{tokens} tokens leave no room for an answer, and the hook `{hook}` forbids compaction: \
                     change the hook, or start a new session"
            );
            LayerAction { kind: ActionKind::Stop, reason }
        }
        Some(hook) => LayerAction::nothing(format!(
            "due at {} tokens, but the hook `{hook}` forbids it",
            group_digits(from)
        )),
        None => LayerAction {
            kind: ActionKind::Compact,
            reason: format!("{tokens} tokens have reached the threshold of {}", group_digits(from)),
        },
    }
}
