//! `Context` (§10.3): how much room is left in the window, what fills it, and the wish to have it compacted.

use pal_view::{Limits, View};
use serde::Deserialize;

/// What the model wants.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Wanted {
    /// A compaction before the next request.
    pub(crate) compact: bool,
    /// What its summary shall dwell on.
    pub(crate) instructions: Option<String>,
}

/// How full the window is, in words and figures.
pub(crate) fn told(view: &View, limits: &Limits, wanted: &Wanted) -> String {
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
