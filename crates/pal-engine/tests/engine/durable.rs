//! **A call that changes something is on the disk before it is carried out**, and a log that disappears stops the run.

use std::collections::VecDeque;
use std::path::PathBuf;

use pal_context::{FileRequest, RestoredFile, SummaryQuestion, SummaryReply};
use pal_engine::{
    CompactionObserver, EngineError, FileReader, ModelClient, ModelResponse, Notifier, OutgoingRequest,
    PermissionPrompt, RequestOutcome, RunEvent, RunInbox, RunObserver, Session, SessionConfig,
    SummaryExchange, TimeSource, ToolExecutor, TurnHooks, drive,
};
use pal_model::{
    BlockType, Content, ContentBlock, EntryDraft, MessageOrigin, ResponseId, SharedText, Timestamp, Usage,
};
use pal_run::{CallRuling, Run, RunInput, RunSettings, ToolCall, ToolCallResult};
use smol_str::SmolStr;

use crate::played_session::{PlayedSession, card};

/// Hands whose model makes these calls, and which note whether the log was on the disk when a call was carried out.
#[derive(Default)]
struct RecordingHost {
    answers: VecDeque<Vec<(&'static str, &'static str)>>,
    returned: VecDeque<RunInput>,
    /// The calls that were carried out, and whether the log was synced just then.
    carried: Vec<(String, bool)>,
    /// A log that the first call deletes.
    deletes: Option<PathBuf>,
    responses: u64,
}

impl ModelClient for RecordingHost {
    fn send(&mut self, _: &OutgoingRequest<'_>) -> RequestOutcome {
        self.responses += 1;
        let calls = self.answers.pop_front().unwrap_or_default();
        let blocks = calls
            .iter()
            .map(|(id, name)| format!(r#"{{"type":"tool_use","id":"{id}","name":"{name}","input":{{}}}}"#));
        let blocks = format!("[{}]", blocks.collect::<Vec<_>>().join(","));
        let mut blocks = Content::parse(&SharedText::from(blocks)).blocks().to_vec();
        let stop = if blocks.is_empty() { "end_turn" } else { "tool_use" };
        if blocks.is_empty() {
            blocks.push(ContentBlock::text("Done."));
        }
        RequestOutcome::Answered(ModelResponse {
            response: ResponseId::from(format!("msg_{}", self.responses).as_str()),
            model: "claude-opus-4-6".into(),
            blocks,
            usage: Usage { input_tokens: 10, output_tokens: 10, ..Usage::default() },
            cost: None,
            stop_reason: Some(stop.into()),
            cleared_tokens: 0,
            cache_miss: None,
        })
    }

    fn ask(&mut self, _: &SummaryQuestion, _: &[SmolStr], _: Timestamp) -> SummaryExchange {
        SummaryExchange { reply: SummaryReply::Failed(String::from("nobody")), answered: None }
    }
}

impl FileReader for RecordingHost {
    fn read_file(&mut self, wanted: &FileRequest) -> RestoredFile {
        RestoredFile { path: wanted.path.clone(), text: None, first_line: 1, seen: None }
    }
}

impl Notifier for RecordingHost {
    fn notice(&mut self, _: &str) {}
}

impl TimeSource for RecordingHost {
    fn now(&mut self, _: Timestamp) -> Timestamp {
        Timestamp::from_milliseconds(1_800_000_100_000)
    }
}

impl CompactionObserver for RecordingHost {}

impl ToolExecutor for RecordingHost {
    fn parse_calls(&mut self, blocks: &[ContentBlock]) -> Vec<ToolCall> {
        let calls = blocks.iter().filter(|block| block.kind() == BlockType::ToolUse);
        let call = |block: &ContentBlock| {
            let name = SmolStr::new(block.string("name")?);
            let only_looks = name == "Read";
            let (id, input) = (block.tool_use_id()?.clone(), SharedText::from("{}"));
            Some(ToolCall { id, name, input, is_read_only: only_looks, problem: None })
        };
        calls.filter_map(call).collect()
    }

    fn execute(&mut self, session: &mut Session, _: &SessionConfig, call: ToolCall) {
        self.carried.push((call.name.to_string(), session.is_synced()));
        if let Some(log) = self.deletes.take() {
            std::fs::remove_file(log).unwrap();
        }
        self.returned.push_back(RunInput::CallReturned(ToolCallResult::plain(
            &call.id,
            vec![ContentBlock::text("ok")],
            false,
        )));
    }

    fn cancel(&mut self) {}
}

impl PermissionPrompt for RecordingHost {
    fn authorize(&mut self, _: &mut Session, _: &ToolCall) -> CallRuling {
        CallRuling::Allowed { input: None }
    }
}

impl TurnHooks for RecordingHost {
    fn check_prompt(&mut self, _: &mut Session, _: &Content) -> Result<(), String> {
        Ok(())
    }

    fn before_request(&mut self, _: &mut Session, _: Timestamp) -> Result<(), EngineError> {
        Ok(())
    }

    fn take_compaction_request(&mut self) -> Option<Option<String>> {
        None
    }

    fn apply_switches(&mut self, _: &mut SessionConfig) {}

    fn check_stop(&mut self, _: &mut Session, _: &str, _: bool) -> Result<(), String> {
        Ok(())
    }
}

impl RunInbox for RecordingHost {
    fn wait(&mut self) -> RunInput {
        self.returned.pop_front().unwrap()
    }

    fn back_off(&mut self, _: std::time::Duration) -> Option<RunInput> {
        None
    }

    fn try_next(&mut self) -> Option<RunInput> {
        None
    }
}

impl RunObserver for RecordingHost {
    fn observe(&mut self, _: RunEvent<'_>) {}
}

fn run(played: &mut PlayedSession, hands: &mut RecordingHost) -> Result<(), EngineError> {
    let mut engine = played.engine.clone();
    let mut run = Run::new(RunSettings::plain(1_000, 2_000));
    run.handle(RunInput::Prompt(Content::from_text("Do it.")));
    drive(played.session(), &mut engine, &mut run, hands).map(|_| ())
}

#[test]
fn a_call_that_changes_something_is_synced_before_it_is_carried_out() {
    let mut played = PlayedSession::new(card(200_000));
    let answers =
        [vec![("r1", "Read"), ("w1", "Write"), ("w2", "Bash")], vec![("r2", "Read")], vec![("w3", "Bash")]];
    let mut hands = RecordingHost { answers: answers.into(), ..RecordingHost::default() };
    run(&mut played, &mut hands).unwrap();
    let of = |name: &str| -> Vec<bool> {
        hands.carried.iter().filter(|(carried, _)| carried == name).map(|(_, synced)| *synced).collect()
    };
    assert_eq!((of("Write"), of("Bash")), (vec![true], vec![true, true]), "{:?}", hands.carried);
    assert_eq!(of("Read"), [false, false], "a call that only reads waits for no disk");
}

#[test]
fn a_log_that_is_deleted_under_a_run_ends_it_and_nothing_is_lost() {
    let mut played = PlayedSession::new(card(200_000));
    played.say("Before.");
    let log = played.log.clone();
    let answers = [vec![("w1", "Write")], vec![("w2", "Write")]];
    let mut hands = RecordingHost { answers: answers.into(), deletes: Some(log), ..RecordingHost::default() };
    let error = run(&mut played, &mut hands).unwrap_err();
    let EngineError::LogChanged { saved, .. } = &error else { panic!("{error}") };
    let words = error.to_string();
    assert!(words.contains("was deleted while") && words.contains("pal --resume"), "{words}");
    assert_eq!(hands.carried.len(), 1, "nothing more was done: {:?}", hands.carried);
    let text = std::fs::read_to_string(saved).unwrap();
    for said in ["Before.", "Do it.", "\"w1\"", "tool_result"] {
        assert!(text.contains(said), "{said} is not in\n{text}");
    }
    let lens = played.view().lens().clone();
    let resumed = Session::open(saved, lens, pal_model::IdSource::seeded(7)).unwrap();
    assert!(resumed.problems().is_empty(), "{:?}", resumed.problems());
}

#[test]
fn a_log_that_is_gone_at_the_end_of_a_run_is_an_error_and_not_a_success() {
    let mut played = PlayedSession::new(card(200_000));
    played.append(EntryDraft::user(MessageOrigin::Person, "\"Before.\""));
    std::fs::remove_file(&played.log).unwrap();
    let error = played.session().sync().unwrap_err();
    assert!(matches!(&error, EngineError::LogChanged { .. }), "{error}");
}
