//! A provider that has no room: what is made smaller, in which order, and that nothing is lost by it.

use std::collections::VecDeque;
use std::path::Path;

use pal_context::{ContextPolicy, FileRequest, RestoredFile, SummaryQuestion, SummaryReply};
use pal_model::{
    ContentBlock, DecisionKind, EntryBody, EntryDraft, IdSource, MessageOrigin, ModelCatalog, RequestRecord,
    RequestSource, Usage,
};
use pal_view::{Estimator, Lens, ViewScope, WindowLimits, WindowSettings};
use smol_str::SmolStr;

use super::*;
use crate::{CompactionObserver, FileReader, ModelClient, Notifier, SummaryExchange, TimeSource};

/// A provider with scripted outcomes and no summaries.
#[derive(Default)]
struct ScriptedHost {
    outcomes: VecDeque<RequestOutcome>,
    bodies: Vec<String>,
    notices: Vec<String>,
}

impl ModelClient for ScriptedHost {
    fn send(&mut self, outgoing: &OutgoingRequest<'_>) -> RequestOutcome {
        self.bodies.push(outgoing.request.body());
        self.outcomes.pop_front().unwrap()
    }

    fn ask(&mut self, _question: &SummaryQuestion, _betas: &[SmolStr], _now: Timestamp) -> SummaryExchange {
        SummaryExchange { reply: SummaryReply::Failed(String::from("nobody is there")), answered: None }
    }
}

impl FileReader for ScriptedHost {
    fn read_file(&mut self, wanted: &FileRequest) -> RestoredFile {
        RestoredFile { path: wanted.path.clone(), text: None, first_line: 1, seen: None }
    }
}

impl Notifier for ScriptedHost {
    fn notice(&mut self, line: &str) {
        self.notices.push(line.to_owned());
    }
}

impl TimeSource for ScriptedHost {}

impl CompactionObserver for ScriptedHost {}

fn answered(text: &str, stop_reason: &str, cleared_tokens: u64) -> RequestOutcome {
    RequestOutcome::Answered(ModelResponse {
        response: text.into(),
        model: "claude-opus-4-6".into(),
        blocks: vec![ContentBlock::text(text)],
        usage: Usage { input_tokens: 90_000, output_tokens: 7, ..Usage::default() },
        cost: None,
        stop_reason: Some(stop_reason.into()),
        cleared_tokens,
        cache_miss: None,
    })
}

fn too_long() -> RequestOutcome {
    let overflow =
        ContextOverflow { prompt: Some(260_000), window: Some(200_000), ..ContextOverflow::UNKNOWN };
    RequestOutcome::TooLong { overflow, message: String::from("too long") }
}

fn engine(policy: ContextPolicy) -> SessionConfig {
    let card = ModelCatalog::built_in().find("claude-opus-4-6").card;
    let settings = WindowSettings { max_context_tokens: Some(200_000), ..WindowSettings::STANDARD };
    SessionConfig::for_log(Path::new("s/log.jsonl"), policy, WindowLimits::new(&card, &settings), 8_000)
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_milliseconds((1_800_000_000 + second) * 1_000)
}

/// A session of some rounds, about 8 000 tokens each, whose last request was answered.
fn session(folder: &std::path::Path, rounds: usize) -> Session {
    let card = ModelCatalog::built_in().find("claude-opus-4-6").card;
    let lens = Lens { estimator: Estimator::shipped(card.generation), card, scope: ViewScope::Current };
    let mut session = Session::create(&folder.join("log.jsonl"), lens, IdSource::seeded(3)).unwrap();
    session.append(EntryDraft::user(MessageOrigin::Person, r#""Fix it, please""#), at(0)).unwrap();
    for round in 0..rounds {
        let second = round as i64 * 10;
        let sent =
            RequestRecord::new(RequestSource::main(), session.view().newest_id(), "claude-opus-4-6".into());
        session.append(EntryDraft::request(&sent), at(second)).unwrap();
        let call = format!(
            r#"[{{"type":"tool_use","id":"t{round}","name":"Bash","input":{{"command":"step {round}"}}}}]"#
        );
        let response = format!("m{round}").as_str().into();
        session
            .append(EntryDraft::assistant(Some(&response), Some("claude-opus-4-6"), &call), at(second))
            .unwrap();
        let words = "some words of it ".repeat(1_900);
        let result =
            format!(r#"[{{"type":"tool_result","tool_use_id":"t{round}","content":"{round} {words}"}}]"#);
        session.append(EntryDraft::user(MessageOrigin::Tool, &result), at(second + 1)).unwrap();
    }
    session
}

fn kinds(session: &Session) -> Vec<String> {
    session.view().branch().iter().map(|entry| entry.kind().0.to_string()).collect()
}

#[test]
fn an_answer_cut_off_by_a_full_window_is_kept_and_the_work_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = session(folder.path(), 8);
    let mut told = ScriptedHost::default();
    let cut = || answered("half a sen", "model_context_window_exceeded", 0);
    told.outcomes.extend([cut(), answered("whole", "end_turn", 0)]);
    let sent = session.send(&mut engine(ContextPolicy::none()), at(100), &mut told).unwrap();
    assert_eq!((sent.rejected, sent.answered.response.as_str()), (1, "whole"));
    assert!(told.bodies[1].len() < told.bodies[0].len() / 2);
    assert!(told.bodies[1].contains("Fix it, please") && told.bodies[1].contains("half a sen"));
    let branch = session.view().branch();
    let boundary = branch.iter().find_map(|entry| match &entry.body {
        EntryBody::Boundary(boundary) => Some(boundary),
        _ => None,
    });
    assert_eq!(boundary.unwrap().trigger, "reactive");
    let got = branch.iter().find_map(|entry| match &entry.body {
        EntryBody::Response(got) => Some(got.stop_reason.clone()),
        _ => None,
    });
    assert_eq!(got.flatten().as_deref(), Some("model_context_window_exceeded"));
    // If nothing helps, the conversation stays complete.
    told.outcomes.extend([cut(), cut(), cut()]);
    session.append(EntryDraft::user(MessageOrigin::Person, r#""Go on""#), at(110)).unwrap();
    let sent = session.send(&mut engine(ContextPolicy::none()), at(120), &mut told).unwrap();
    assert_eq!((sent.rejected, sent.answered.response.as_str()), (2, "half a sen"));
}

#[test]
fn folds_run_before_an_urgent_compaction() {
    for (fold, wanted) in [(true, true), (false, false)] {
        let folder = tempfile::tempdir().unwrap();
        let mut session = session(folder.path(), 15);
        let mut told = ScriptedHost::default();
        told.outcomes.extend([too_long(), answered("done", "end_turn", 0)]);
        let policy = ContextPolicy { fold, ..ContextPolicy::none() };
        let sent = session.send(&mut engine(policy), at(200), &mut told).unwrap();
        assert_eq!(sent.rejected, 1);
        let kinds = kinds(&session);
        let boundary = kinds.iter().position(|kind| kind == "boundary").unwrap();
        assert_eq!(kinds[..boundary].iter().any(|kind| kind == "fold"), wanted, "{kinds:?}");
    }
}

#[test]
fn nothing_is_compacted_without_summary_methods() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = session(folder.path(), 6);
    let mut engine = SessionConfig { summary_methods: Some(Vec::new()), ..engine(ContextPolicy::none()) };
    let mut told = ScriptedHost::default();
    told.outcomes.extend([too_long(), answered("half a sen", "model_context_window_exceeded", 0)]);
    let failed = session.send(&mut engine, at(200), &mut told);
    assert!(matches!(failed, Err(EngineError::TooLong { .. })), "{failed:?}");
    let sent = session.send(&mut engine, at(210), &mut told).unwrap();
    assert_eq!((sent.rejected, sent.answered.response.as_str()), (0, "half a sen"));
    assert!(kinds(&session).iter().all(|kind| kind != "boundary") && told.bodies.len() == 2);
}

#[test]
fn a_provider_that_refuses_everything_is_reported_and_the_session_stays_usable() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = session(folder.path(), 6);
    let mut told = ScriptedHost::default();
    told.outcomes.extend((0..20).map(|_| too_long()));
    let failed = session.send(&mut engine(ContextPolicy::none()), at(200), &mut told);
    assert!(matches!(failed, Err(EngineError::TooLong { .. })), "{failed:?}");
    assert!(told.notices.iter().any(|notice| notice.contains("without a model")), "{:?}", told.notices);
    let sizes: Vec<usize> = told.bodies.iter().map(String::len).collect();
    assert!(sizes.is_sorted_by(|one, next| one > next), "every attempt is smaller: {sizes:?}");
    told.outcomes.clear();
    told.outcomes.push_back(answered("done", "end_turn", 0));
    session.append(EntryDraft::user(MessageOrigin::Person, r#""Again""#), at(210)).unwrap();
    assert_eq!(session.send(&mut engine(ContextPolicy::none()), at(220), &mut told).unwrap().rejected, 0);
}

#[test]
fn provider_clearing_is_logged_when_it_grows() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = session(folder.path(), 3);
    let mut told = ScriptedHost::default();
    let mut freed = Vec::new();
    for (number, cleared) in [0, 500, 500, 800, 300].into_iter().enumerate() {
        told.outcomes.push_back(answered("ok", "end_turn", cleared));
        let size = session.view().size().tokens;
        let sent =
            session.send(&mut engine(ContextPolicy::none()), at(100 + number as i64), &mut told).unwrap();
        assert_eq!(session.view().size().tokens, size, "sizes rest on what the provider reports");
        let report = sent.prepared.reports.iter().find(|report| report.layer == "microcompact").unwrap();
        freed.push(report.tokens_freed);
    }
    assert_eq!(freed, [0, 500, 0, 300, 0]);
    let logged = session.view().branch().iter().filter_map(|entry| match entry.decision() {
        Some(DecisionKind::ProviderClear { cleared_tokens }) => Some(*cleared_tokens),
        _ => None,
    });
    assert_eq!(logged.collect::<Vec<_>>(), [500, 800]);
}
