//! The laws of a view, each a panic when it is broken.

use std::sync::LazyLock;

use pal_model::{LogEntry, ModelCard, ModelCatalog, TokenGeneration};
use pal_view::{Estimator, Lens, PushOutcome, RenderOptions, View, ViewScope};
use pal_wire::{RequestRules, check_request};

const OPTIONS: RenderOptions = RenderOptions { max_tokens: 8_000, stream: true, spell_out_unseen: false };

/// The window is a small one: it bounds the text that stands in for a prompt which an imported session does not
/// hold, and a megabyte of that would only cost time.
static CARD: LazyLock<ModelCard> =
    LazyLock::new(|| ModelCard { window: 8_000, ..ModelCatalog::built_in().find("claude-opus-5-5").card });

/// How all targets look at a branch.
pub fn lens(scope: ViewScope) -> Lens {
    Lens { card: CARD.clone(), estimator: Estimator::shipped(TokenGeneration::Claude47), scope }
}

/// The body of the request that would leave now, and its fingerprint.
fn shown(view: &View) -> (String, String) {
    let request = view.render(OPTIONS);
    (request.body(), request.fingerprint())
}

/// Renders twice to the same bytes, and the judge takes them.
pub fn accepted(view: &View) {
    let (body, fingerprint) = shown(view);
    assert_eq!(shown(view), (body.clone(), fingerprint), "rendered twice, the requests differ");
    if let Err(error) = check_request(body.as_bytes(), &RequestRules::from(&*CARD)) {
        panic!("{}\n{body:.4000}", error.message);
    }
}

/// A view that grew entry by entry shows what a view of the whole branch shows, and the judge takes it.
pub fn growing_equals_deriving(entries: &[LogEntry]) {
    for scope in [ViewScope::Current, ViewScope::Whole] {
        let mut grown = View::new(lens(scope));
        for (at, entry) in entries.iter().enumerate() {
            match grown.push(entry.clone()) {
                PushOutcome::Added => {}
                // It continues an entry of a branch that was left.
                PushOutcome::NeedsHistory => {
                    grown = View::from_branch(lens(scope), branch_of(&entries[..=at]))
                }
                PushOutcome::Duplicate => panic!("ids are unique"),
            }
        }
        let derived = View::from_branch(lens(scope), branch_of(entries));
        assert_eq!(shown(&grown), shown(&derived), "{scope:?}");
        accepted(&derived);
        assert_eq!(format!("{:?}", grown.state()), format!("{:?}", derived.state()), "{scope:?}");
        assert_eq!(grown.size().tokens, derived.size().tokens, "{scope:?}");
    }
}

/// The branch of the last entry.
pub fn branch_of(entries: &[LogEntry]) -> Vec<LogEntry> {
    let mut branch: Vec<LogEntry> = Vec::new();
    let mut next = entries.last();
    while let Some(entry) = next {
        branch.push(entry.clone());
        next = entry.parent.and_then(|parent| entries.iter().find(|entry| entry.id == parent));
    }
    branch.reverse();
    branch
}
