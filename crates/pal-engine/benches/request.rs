//! What a request costs before it leaves: the prefix of a session put together, once; and every later request decided,
//! planned for the cache and rendered, whatever the length of the session.

// A bench that cannot go on has failed.
#![allow(clippy::unwrap_used, missing_docs)]

use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use pal_context::{ContextPolicy, FileRequest, RestoredFile, SummaryQuestion};
use pal_engine::{
    CompactionObserver, FileReader, ModelClient, Notifier, OutgoingRequest, RequestOutcome, Session,
    SessionConfig, SummaryExchange, TimeSource,
};
use pal_model::{EntryDraft, IdSource, MessageOrigin, ModelCatalog, RequestRecord, RequestSource, Timestamp};
use pal_prompt::{InstructionFile, InstructionScope, PrefixInputs, assemble, built_in_tools};
use pal_view::{Estimator, Lens, ViewScope, WindowLimits, WindowSettings};
use smol_str::SmolStr;

/// A host without a provider.
struct OfflineHost;

impl ModelClient for OfflineHost {
    fn send(&mut self, _: &OutgoingRequest<'_>) -> RequestOutcome {
        RequestOutcome::Failed(String::new())
    }

    fn ask(&mut self, _: &SummaryQuestion, _: &[SmolStr], _: Timestamp) -> SummaryExchange {
        SummaryExchange { reply: pal_context::SummaryReply::Failed(String::new()), answered: None }
    }
}

impl FileReader for OfflineHost {
    fn read_file(&mut self, wanted: &FileRequest) -> RestoredFile {
        RestoredFile { path: wanted.path.clone(), text: None, first_line: 1, seen: None }
    }
}

impl Notifier for OfflineHost {
    fn notice(&mut self, _: &str) {}
}

impl TimeSource for OfflineHost {}

impl CompactionObserver for OfflineHost {}

fn instruction(number: usize) -> InstructionFile {
    InstructionFile {
        path: format!("rules/part{number}.md"),
        scope: InstructionScope::Project,
        included_by: None,
        reason: String::from("a rule of the project"),
        text: "Keep functions short, and names whole words.\n".repeat(100),
    }
}

fn requests(criterion: &mut Criterion) {
    let card = ModelCatalog::built_in().find("claude-opus-5-5").card;
    let assembly = PrefixInputs {
        tools: built_in_tools(),
        instructions: (0..20).map(instruction).collect(),
        ..PrefixInputs::for_card(&card)
    };
    criterion.bench_function("assemble a prefix with 20 instruction files", |bencher| {
        bencher.iter(|| black_box(assemble(&assembly)));
    });
    let engine = SessionConfig::for_log(
        Path::new("session/log.jsonl"),
        ContextPolicy::threshold(),
        WindowLimits::new(&card, &WindowSettings::STANDARD),
        8_000,
    );
    for turns in [20, 1_500] {
        let folder = tempfile::tempdir().unwrap();
        let lens = Lens {
            card: card.clone(),
            estimator: Estimator::shipped(card.generation),
            scope: ViewScope::Current,
        };
        let mut session =
            Session::create(&folder.path().join("log.jsonl"), lens, IdSource::seeded(1)).unwrap();
        let now = Timestamp::from_milliseconds(1_763_251_200_000);
        session.append(EntryDraft::prefix(&assemble(&assembly).prefix), now).unwrap();
        session.append(EntryDraft::user(MessageOrigin::Person, r#""Read every part.""#), now).unwrap();
        for turn in 0..turns {
            let last = session.view().newest_id();
            let request = RequestRecord::new(RequestSource::main(), last, card.model.clone());
            session.append(EntryDraft::request(&request), now).unwrap();
            let call = format!(
                r#"[{{"type":"tool_use","id":"t{turn}","name":"Read","input":{{"file_path":"a"}}}}]"#
            );
            let response = format!("msg_{turn}").as_str().into();
            session.append(EntryDraft::assistant(Some(&response), None, &call), now).unwrap();
            let text = "let part = 1;\\n".repeat(60);
            let result = format!(r#"[{{"type":"tool_result","tool_use_id":"t{turn}","content":"{text}"}}]"#);
            session.append(EntryDraft::user(MessageOrigin::Tool, &result), now).unwrap();
        }
        let tokens = session.view().size().tokens / 1_000;
        let prepared = session.prepare(&engine, now, &mut OfflineHost).unwrap();
        assert!(!prepared.request.breakpoints().is_empty() && session.view().boundary().is_none());
        criterion.bench_function(&format!("prepare a request behind {tokens} K tokens"), |bencher| {
            bencher.iter(|| black_box(session.prepare(&engine, now, &mut OfflineHost).unwrap()));
        });
    }
}

criterion_group!(benches, requests);
criterion_main!(benches);
