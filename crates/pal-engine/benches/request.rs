//! What a request costs before it leaves: the prefix of a session put together, once; and every later request decided,
//! planned for the cache and rendered, whatever the length of the session.

// A bench that cannot go on has failed.
#![allow(clippy::unwrap_used, missing_docs)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use pal_context::{FileRead, FileWanted, Place, Policy, Question};
use pal_engine::{Asked, CacheSettings, Engine, Errands, Outcome, Outgoing, Session};
use pal_model::{Cards, Draft, IdSource, Origin, RequestSent, Source, Timestamp};
use pal_prompt::{Assembly, Instruction, InstructionScope, assemble, built_in_tools};
use pal_view::{Estimator, Lens, Limits, Scope, WindowSettings};
use smol_str::SmolStr;

/// Nobody is asked anything here.
struct Nobody;

impl Errands for Nobody {
    fn send(&mut self, _: &Outgoing<'_>) -> Outcome {
        Outcome::Failed(String::new())
    }

    fn ask(&mut self, _: &Question, _: &[SmolStr], _: Timestamp) -> Asked {
        Asked { reply: pal_context::Reply::Failed(String::new()), answered: None }
    }

    fn read_file(&mut self, wanted: &FileWanted) -> FileRead {
        FileRead { path: wanted.path.clone(), text: None, seen: None }
    }

    fn notice(&mut self, _: &str) {}
}

fn instruction(number: usize) -> Instruction {
    Instruction {
        path: format!("rules/part{number}.md"),
        scope: InstructionScope::Project,
        included_by: None,
        reason: String::from("a rule of the project"),
        text: "Keep functions short, and names whole words.\n".repeat(100),
    }
}

fn requests(criterion: &mut Criterion) {
    let card = Cards::shipped().find("claude-opus-5-5").card;
    let assembly = Assembly {
        tools: built_in_tools(),
        instructions: (0..20).map(instruction).collect(),
        ..Assembly::bare(&card)
    };
    criterion.bench_function("assemble a prefix with 20 instruction files", |bencher| {
        bencher.iter(|| black_box(assemble(&assembly)));
    });
    let engine = Engine {
        policy: Policy::classic(),
        limits: Limits::new(&card, &WindowSettings::STANDARD),
        place: Place { directory: String::from("session"), transcript: String::from("log.jsonl") },
        is_attended: true,
        ways: None,
        max_tokens: 8_000,
        cache: CacheSettings::default(),
        inputs: pal_engine::Inputs::default(),
    };
    for turns in [20, 1_500] {
        let folder = tempfile::tempdir().unwrap();
        let lens = Lens {
            card: card.clone(),
            estimator: Estimator::shipped(card.generation),
            scope: Scope::Current,
        };
        let mut session =
            Session::create(&folder.path().join("log.jsonl"), lens, IdSource::seeded(1)).unwrap();
        let now = Timestamp::from_milliseconds(1_763_251_200_000);
        session.append(Draft::prefix(&assemble(&assembly).prefix), now).unwrap();
        session.append(Draft::user(Origin::Person, r#""Read every part.""#), now).unwrap();
        for turn in 0..turns {
            let last = session.view().newest();
            let request = RequestSent::plain(Source::main(), last, card.model.clone());
            session.append(Draft::request(&request), now).unwrap();
            let call = format!(
                r#"[{{"type":"tool_use","id":"t{turn}","name":"Read","input":{{"file_path":"a"}}}}]"#
            );
            let response = format!("msg_{turn}").as_str().into();
            session.append(Draft::assistant(Some(&response), None, &call), now).unwrap();
            let text = "let part = 1;\\n".repeat(60);
            let result = format!(r#"[{{"type":"tool_result","tool_use_id":"t{turn}","content":"{text}"}}]"#);
            session.append(Draft::user(Origin::Tool, &result), now).unwrap();
        }
        let tokens = session.view().size().tokens / 1_000;
        let prepared = session.prepare(&engine, now, &mut Nobody).unwrap();
        assert!(!prepared.request.marks().is_empty() && session.view().boundary().is_none());
        criterion.bench_function(&format!("prepare a request behind {tokens} K tokens"), |bencher| {
            bencher.iter(|| black_box(session.prepare(&engine, now, &mut Nobody).unwrap()));
        });
    }
}

criterion_group!(benches, requests);
criterion_main!(benches);
