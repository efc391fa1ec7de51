//! `Context` (§10.3): reports how full the window is, and requests a compaction.

use pal_view::{View, WindowLimits};
use serde::Deserialize;

/// Input of the tool.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ContextToolInput {
    /// A compaction before the next request.
    pub(crate) compact: bool,
    /// Instructions for the summary.
    pub(crate) instructions: Option<String>,
}

/// Report on the window for the model.
pub(crate) fn told(view: &View, limits: &WindowLimits, wanted: &ContextToolInput) -> String {
    let size = view.size().tokens;
    let percent = |tokens: f64| tokens * 100.0 / limits.window.max(1) as f64;
    let mut text =
        format!("{size} of {} tokens are in the window ({:.0} %).\n", limits.window, percent(size as f64));
    match limits.auto_compact {
        Some(threshold) => text.push_str(&format!(
            "{} tokens are left until the conversation is compacted at {threshold}.\n",
            threshold.saturating_sub(size)
        )),
        None => text.push_str(&format!(
            "It is not compacted by itself; {} tokens are left until requests are refused.\n",
            limits.blocking.saturating_sub(size)
        )),
    }
    text.push_str("What fills it:\n");
    for (category, tokens) in view.by_category() {
        if tokens >= 1.0 {
            text.push_str(&format!("- {}: {tokens:.0} ({:.0} %)\n", category.name(), percent(tokens)));
        }
    }
    if wanted.compact {
        text.push_str("The conversation is compacted before your next answer. Nothing is lost: Recall finds what was said.\n");
    }
    text
}
