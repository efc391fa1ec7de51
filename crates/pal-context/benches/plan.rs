//! Planning: all layers over a view of a million tokens in which nothing is to be done. Bar: 200 µs.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use criterion::{Criterion, criterion_group, criterion_main};
use pal_context::{ActionKind, ContextPolicy, LAYERS, LayerContext, SessionPaths};
use pal_model::{ModelCard, ModelCatalog, Timestamp};
use pal_testkit::script;
use pal_view::{Estimator, Lens, View, ViewScope, WindowLimits, WindowSettings};

/// A session of about a million tokens: calls, results and words, all of it sent and decided about.
fn log() -> String {
    let text = r"a line of plain words, as tools print them\n".repeat(70);
    let mut log = String::from("tools Read Bash Edit Write Grep Task mcp__a__b\nuser: go\nsent\n");
    for at in 0..1_500 {
        log += &format!("model m{at}: think about step {at}\n");
        log += &format!("model m{at}: call c{at} Bash {{\"command\":\"step {at}\"}}\n");
        log += &format!("result c{at}: {at} {text}\nkeep c{at}\nsent\n");
        if at % 20 == 19 {
            log += &format!("model n{at}: done\nuser: and now step {at}\nsent\n");
        }
    }
    log + "model z: call z Bash\nresult z: ok\nkeep z\n"
}

fn view_of(card: &ModelCard, log: &str) -> View {
    let lens = Lens {
        estimator: Estimator::shipped(card.generation),
        card: card.clone(),
        scope: ViewScope::Current,
    };
    View::from_branch(lens, script(log).unwrap())
}

fn context<'a>(
    view: &'a View,
    (limits, policy, place): &'a (WindowLimits, ContextPolicy, SessionPaths),
) -> LayerContext<'a> {
    let now: Timestamp = view.last_request_at().unwrap();
    LayerContext { view, now, limits, policy, paths: place, blocked_by: None, size: view.size().tokens }
}

fn plan(criterion: &mut Criterion) {
    let own = "[models.plain]\nlike = \"claude-opus-4-6\"\ncontext_management = []\n\
               [models.editing]\nlike = \"claude-opus-4-6\"\ncache_edits = true\n";
    let cards = ModelCatalog::built_in().with_overrides(own).unwrap();
    for (name, model) in
        [("provider clears", "claude-opus-4-6"), ("pressure", "plain"), ("cache edits", "editing")]
    {
        let mut card = cards.find(model).card;
        card.window = 2_000_000;
        let mut view = view_of(&card, &log());
        let policy = ContextPolicy { snip: true, fold: true, ..ContextPolicy::threshold() };
        let place = SessionPaths { directory: "/s".into(), transcript: "/s/log.jsonl".into() };
        let setting = (WindowLimits::new(&card, &WindowSettings::STANDARD), policy, place);
        println!("{name}: {} tokens", view.size().tokens);
        // What is settled once for a session is settled.
        for layer in LAYERS {
            if let ActionKind::Decide(proposals) = layer.act(&context(&view, &setting)).kind {
                view = proposals.iter().fold(view, |view, proposal| view.with_decision(&proposal.decision));
            }
        }
        let context = context(&view, &setting);
        for layer in LAYERS {
            assert!(
                !matches!(layer.act(&context).kind, ActionKind::Decide(_) | ActionKind::Compact),
                "{}",
                layer.name()
            );
        }
        criterion.bench_function(&format!("plan a million tokens, nothing to do: {name}"), |bencher| {
            bencher.iter(|| LAYERS.map(|layer| layer.act(&context)).len());
        });
    }
}

/// The usual turn: one result is new, and short enough to stay.
fn look_at_one_result(criterion: &mut Criterion) {
    let card = ModelCatalog::built_in().find("claude-opus-4-6").card;
    let view = view_of(&card, log().trim_end().trim_end_matches("keep z"));
    let place = SessionPaths { directory: "/s".into(), transcript: "/s/log.jsonl".into() };
    let setting = (WindowLimits::new(&card, &WindowSettings::STANDARD), ContextPolicy::threshold(), place);
    let context = context(&view, &setting);
    assert!(matches!(LAYERS[0].act(&context).kind, ActionKind::Decide(proposals) if proposals.len() == 1));
    criterion.bench_function("spill looks at one new result", |bencher| {
        bencher.iter(|| LAYERS[0].act(&context));
    });
}

criterion_group!(benches, plan, look_at_one_result);
criterion_main!(benches);
