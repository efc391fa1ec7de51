//! The layers in order: cheapest first.

mod auto_compact;
mod byte_limit;
mod fold;
mod microcompact;
mod snip;
mod spill;

use crate::cost_aware::{
    IdleCompactionVerdict, KeepaliveVerdict, evaluate_idle_compaction, evaluate_keepalive,
};
use crate::{ForecastCondition, Layer, LayerContext};
use auto_compact::AutoCompactLayer;
use byte_limit::BytesLayer;
use fold::FoldLayer;
use microcompact::MicrocompactLayer;
use snip::SnipLayer;
use spill::SpillLayer;

pub use fold::{FoldQuestion, extractive_fold, fold_decision, fold_question};

/// All layers in the order in which they act before every request.
pub const LAYERS: [&dyn Layer; 6] =
    [&SpillLayer, &BytesLayer, &SnipLayer, &MicrocompactLayer, &FoldLayer, &AutoCompactLayer];

/// Decides whether a keep-alive request is worth its price now (§10.5), given the results that would be
/// cleared if the cache expired.
pub fn judge_keepalive(context: &LayerContext<'_>) -> KeepaliveVerdict {
    evaluate_keepalive(context, cleared_when_cold(context))
}

/// Decides whether the conversation should be compacted now, before a pause expires its cache (§10.5), given
/// the results that would otherwise be cleared afterwards.
pub fn judge_idle_compaction(context: &LayerContext<'_>) -> IdleCompactionVerdict {
    evaluate_idle_compaction(context, || cleared_when_cold(context))
}

/// Tokens of the results that would be cleared if the cache expired.
fn cleared_when_cold(context: &LayerContext<'_>) -> f64 {
    let foreseen = MicrocompactLayer.forecast(context);
    let lost = foreseen.iter().find(|foreseen| matches!(foreseen.condition, ForecastCondition::Idle(_)));
    lost.map_or(0.0, |foreseen| foreseen.tokens as f64)
}
