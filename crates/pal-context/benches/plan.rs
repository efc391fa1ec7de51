//! Planning: all layers over a view of a million tokens in which nothing is to be done. Bar: 200 µs.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use criterion::{Criterion, criterion_group, criterion_main};
use pal_context::{LAYERS, Place, Policy, Situation, What};
use pal_model::{Card, Cards, Timestamp};
use pal_testkit::script;
use pal_view::{Estimator, Lens, Limits, Scope, View, WindowSettings};

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

fn view_of(card: &Card, log: &str) -> View {
    let lens =
        Lens { estimator: Estimator::shipped(card.generation), card: card.clone(), scope: Scope::Current };
    View::of(lens, script(log).unwrap())
}

fn situation<'a>(view: &'a View, (limits, policy, place): &'a (Limits, Policy, Place)) -> Situation<'a> {
    let now: Timestamp = view.last_request_at().unwrap();
    Situation { view, now, limits, policy, place, blocked_by: None, size: view.size().tokens }
}

fn plan(criterion: &mut Criterion) {
    let own = "[models.plain]\nlike = \"claude-opus-4-6\"\ncontext_management = []\n\
               [models.editing]\nlike = \"claude-opus-4-6\"\ncache_edits = true\n";
    let cards = Cards::shipped().overridden(own).unwrap();
    for (name, model) in
        [("provider clears", "claude-opus-4-6"), ("pressure", "plain"), ("cache edits", "editing")]
    {
        let mut card = cards.find(model).card;
        card.window = 2_000_000;
        let mut view = view_of(&card, &log());
        let policy = Policy { snip: true, fold: true, ..Policy::classic() };
        let place = Place { directory: "/s".into(), transcript: "/s/log.jsonl".into() };
        let setting = (Limits::new(&card, &WindowSettings::STANDARD), policy, place);
        println!("{name}: {} tokens", view.size().tokens);
        // What is settled once for a session is settled.
        for layer in LAYERS {
            if let What::Decide(proposals) = layer.act(&situation(&view, &setting)).what {
                view = proposals.iter().fold(view, |view, proposal| view.with(&proposal.decision));
            }
        }
        let situation = situation(&view, &setting);
        for layer in LAYERS {
            assert!(
                !matches!(layer.act(&situation).what, What::Decide(_) | What::Compact),
                "{}",
                layer.name()
            );
        }
        criterion.bench_function(&format!("plan a million tokens, nothing to do: {name}"), |bencher| {
            bencher.iter(|| LAYERS.map(|layer| layer.act(&situation)).len());
        });
    }
}

/// The usual turn: one result is new, and short enough to stay.
fn look_at_one_result(criterion: &mut Criterion) {
    let card = Cards::shipped().find("claude-opus-4-6").card;
    let view = view_of(&card, log().trim_end().trim_end_matches("keep z"));
    let place = Place { directory: "/s".into(), transcript: "/s/log.jsonl".into() };
    let setting = (Limits::new(&card, &WindowSettings::STANDARD), Policy::classic(), place);
    let situation = situation(&view, &setting);
    assert!(matches!(LAYERS[0].act(&situation).what, What::Decide(proposals) if proposals.len() == 1));
    criterion.bench_function("spill looks at one new result", |bencher| {
        bencher.iter(|| LAYERS[0].act(&situation));
    });
}

criterion_group!(benches, plan, look_at_one_result);
criterion_main!(benches);
