//! Tests of the fork runner.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use pal_engine::CacheSettings;
use pal_model::{EntryBody, MessageOrigin, ModelCatalog, SharedText, Timestamp, Usage};
use pal_permissions::{TargetPath, ToolAccess};
use pal_prompt::{PrefixInputs, assemble};
use pal_provider::{ClientPolicy, ProviderEndpoint};
use pal_tools::{MediaSupport, ToolContext, ToolInput, ToolOutput};
use pal_view::{Estimator, Lens, ViewScope};
use pal_wire::{Dialect, FailureKind, ProviderFailure, ResponseEnd};

use std::time::Instant;

use super::*;

/// A tool that reports how many of its calls ran at once.
struct SlowTool {
    name: &'static str,
    is_read_only: bool,
    running: Arc<AtomicUsize>,
    started: Arc<Mutex<Vec<String>>>,
}

impl ToolHandler for SlowTool {
    fn name(&self) -> &str {
        self.name
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        self.is_read_only
    }

    fn required_access(&self, _: &ToolInput, _: &Workspace) -> Result<Vec<ToolAccess>, String> {
        let file = TargetPath { named: self.name.to_owned(), real: Path::new("/").join(self.name) };
        Ok(vec![if self.is_read_only { ToolAccess::Read(file) } else { ToolAccess::Write(file) }])
    }

    fn run(&self, _: &ToolInput, context: &ToolContext<'_>) -> ToolOutput {
        self.started.lock().unwrap().push(context.call.to_string());
        self.running.fetch_add(1, Ordering::SeqCst);
        // Parallel calls see each other within that time.
        let until = Instant::now() + Duration::from_millis(if self.is_read_only { 2_000 } else { 100 });
        let mut most = 0;
        while most < 2 && Instant::now() < until {
            most = most.max(self.running.load(Ordering::SeqCst));
            std::thread::sleep(Duration::from_millis(1));
        }
        self.running.fetch_sub(usize::from(!self.is_read_only), Ordering::SeqCst);
        ToolOutput::text(&most.to_string())
    }
}

/// Ids of the calls that were started.
type StartedCalls = Arc<Mutex<Vec<String>>>;

/// The tools `Look` and `Secret`, which are read-only, and `Change`; and the list of calls that they started.
fn slow_tools() -> (Vec<Box<dyn ToolHandler>>, StartedCalls) {
    let started = StartedCalls::default();
    let tools = [("Look", true), ("Secret", true), ("Change", false)];
    let tools = tools.map(|(name, is_read_only)| -> Box<dyn ToolHandler> {
        Box::new(SlowTool { name, is_read_only, running: Arc::default(), started: Arc::clone(&started) })
    });
    (tools.into(), started)
}

/// A fork of one turn whose provider cannot be reached, and which must not use `Secret`.
fn runner(home: &Path, tools: Vec<Box<dyn ToolHandler>>) -> ForkRunner {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let endpoint = ProviderEndpoint::new(Dialect::Messages, "http://127.0.0.1:9", None).unwrap();
    let policy = ClientPolicy::patient();
    let connection = Arc::new(ProviderConnection::new(runtime, endpoint, policy).unwrap());
    let card = ModelCatalog::built_in().find("claude-opus-5-5").card;
    let prefix = assemble(&PrefixInputs::for_card(&card)).prefix;
    let estimator = Estimator::shipped(card.generation);
    let lens = Lens { card: card.clone(), estimator, scope: ViewScope::Current };
    let now = Timestamp::from_milliseconds(1_800_000_000_000);
    let root = PathBuf::from("/");
    let workspace =
        Workspace::new(vec![root.clone()], root, None, MediaSupport::default(), Default::default());
    ForkRunner {
        fork: ConversationFork::fresh(lens, &prefix, &CacheSettings::default(), now),
        model: ForkModel {
            card,
            source: RequestSource::from_name("test"),
            listener: Arc::new(()),
            budget: Arc::new(BackgroundBudget::new(home, 0, "", Arc::clone(&connection))),
            connection,
            clock: Clock::default(),
        },
        limits: ForkLimits {
            turns_max: 1,
            progress: ProgressLimits::STANDARD,
            ends_when_written: false,
            cost_max: None,
        },
        tools,
        workspace,
        access: Box::new(|need, _| match need {
            ToolAccess::Read(target) if target.named == "Secret" => Err(String::from("it is secret.")),
            _ => Ok(()),
        }),
        on_turn: Box::new(|_| {}),
        cancel: CancelToken::new(),
    }
}

/// Scripted answers; one request too many fails.
struct ScriptedAnswers {
    answers: VecDeque<ProviderExchange>,
    cancels: bool,
}

impl ScriptedAnswers {
    fn new(answers: impl IntoIterator<Item = ProviderExchange>) -> ScriptedAnswers {
        ScriptedAnswers { answers: answers.into_iter().collect(), cancels: false }
    }
}

impl AnswerSource for ScriptedAnswers {
    fn request(&mut self, _: &ConversationFork, _: u64, cancel: &CancelToken) -> ProviderExchange {
        if self.cancels {
            cancel.cancel();
        }
        self.answers.pop_front().expect("no further request")
    }
}

fn call_blocks(calls: &[(&str, &str)]) -> Vec<ContentBlock> {
    let block = |(id, name): &(&str, &str)| {
        let raw = format!(r#"{{"type":"tool_use","id":"{id}","name":"{name}","input":{{}}}}"#);
        ContentBlock::parse(SharedText::from(raw))
    };
    calls.iter().map(block).collect()
}

/// An answer with these calls, (id, tool), and 100,000 output tokens.
fn answer(calls: &[(&str, &str)], stop_reason: &str) -> ProviderExchange {
    let end = ExchangeEnd::Finished(ResponseEnd {
        response: ResponseId::from("r"),
        model: SmolStr::new("m"),
        stop_reason: Some(stop_reason.into()),
        usage: Usage { output_tokens: 100_000, ..Usage::default() },
        extras: SharedText::from("{}"),
    });
    ProviderExchange { started: None, blocks: call_blocks(calls), end }
}

/// Results that a fork appended, as (id, text).
fn results(fork: &ConversationFork) -> Vec<(String, String)> {
    let results = fork.view().branch().iter().filter_map(|entry| match &entry.body {
        EntryBody::User(user) if user.origin == MessageOrigin::Tool => user.content.blocks().first(),
        _ => None,
    });
    let text = |block: &ContentBlock| {
        let content = Content::parse(&SharedText::from(block.field("content").unwrap()));
        answer_text(content.blocks())
    };
    results.map(|block| (block.tool_use_id().unwrap().to_string(), text(block))).collect()
}

#[test]
fn read_only_calls_run_in_parallel_and_others_alone() {
    let home = tempfile::tempdir().unwrap();
    let (tools, started) = slow_tools();
    let mut runner = runner(home.path(), tools);
    let calls =
        [("a", "Look"), ("s", "Secret"), ("b", "Look"), ("c", "Change"), ("d", "Change"), ("e", "Other")];
    let mut report = ForkReport::default();
    let mut answers = ScriptedAnswers::new([answer(&calls, "tool_use")]);
    runner.drive(&mut answers, "go", &mut report).unwrap();
    let results = results(&runner.fork);
    let results: Vec<(&str, &str)> = results.iter().map(|(id, text)| (&**id, &**text)).collect();
    let (secret, missing) = ("Not carried out: it is secret.", "This tool is not available here.");
    let expected = [("a", "2"), ("s", secret), ("b", "2"), ("c", "1"), ("d", "1"), ("e", missing)];
    assert_eq!(results, expected, "in the order of the calls, refused ones too");
    assert_eq!((report.changes, report.requests), (2, 1));
    assert_eq!(report.refused, ["Secret: it is secret.", "Other"]);
    assert_eq!(started.lock().unwrap()[2..], ["c", "d"]);
}

/// Drives a fork of at most three turns through these answers. Returns its end and its unused answers.
fn drive_limited(
    change: impl FnOnce(&mut ForkLimits),
    answers: impl IntoIterator<Item = ProviderExchange>,
    cancels: bool,
) -> (Result<(), String>, usize) {
    let home = tempfile::tempdir().unwrap();
    let mut runner = runner(home.path(), slow_tools().0);
    runner.limits.turns_max = 3;
    change(&mut runner.limits);
    let mut answers = ScriptedAnswers { cancels, ..ScriptedAnswers::new(answers) };
    let end = runner.drive(&mut answers, "go", &mut ForkReport::default());
    (end, answers.answers.len())
}

/// A tool whose result is longer than small windows allow.
struct LongTool;

impl ToolHandler for LongTool {
    fn name(&self) -> &str {
        "Look"
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        true
    }

    fn required_access(&self, _: &ToolInput, _: &Workspace) -> Result<Vec<ToolAccess>, String> {
        Ok(vec![ToolAccess::Read(TargetPath { named: "look".into(), real: PathBuf::from("/look") })])
    }

    fn run(&self, _: &ToolInput, _: &ToolContext<'_>) -> ToolOutput {
        ToolOutput::text(&"one line of the file\n".repeat(2_500))
    }
}

#[test]
fn results_are_cut_for_a_small_window_and_a_fork_that_does_not_fit_is_not_sent() {
    let home = tempfile::tempdir().unwrap();
    let runs = |window: Option<u64>, answers: usize| {
        let mut runner = runner(home.path(), vec![Box::new(LongTool)]);
        runner.limits.turns_max = 9;
        runner.fork = runner.fork.clone().with_window(window.unwrap_or(1_000_000));
        let looks = (0..answers).map(|turn| answer(&[(["a", "b", "c", "d"][turn], "Look")], "tool_use"));
        let mut answers = ScriptedAnswers::new(looks.chain([answer(&[], "end_turn")]));
        let end = runner.drive(&mut answers, "go", &mut ForkReport::default());
        (end, results(&runner.fork), answers.answers.len(), runner.fork.view().size().tokens)
    };
    let (end, whole, ..) = runs(None, 1);
    assert!(end.is_ok() && whole[0].1.len() > 50_000, "{end:?}");
    let (end, cut, unused, size) = runs(Some(32_768), 3);
    assert_eq!((end, unused), (Ok(()), 0));
    let is_cut = |text: &str| text.len() < 9_000 && text.contains("52,500 characters");
    assert!(cut.len() == 3 && cut.iter().all(|(_, text)| is_cut(text)), "{cut:?}");
    assert!(size < 32_768, "{size}");
    let (end, _, unused, _) = runs(Some(4_000), 1);
    assert!(end.as_ref().is_err_and(|why| why.contains("window of 4,000")) && unused == 2, "{end:?}");
}

#[test]
fn turn_limit_is_a_good_end_and_other_limits_are_failures() {
    let other = |id| answer(&[(id, "Other")], "tool_use");
    let answers = || ["call-1", "call-2", "call-3", "call-4"].map(other);
    assert_eq!(drive_limited(|_| {}, answers(), false), (Ok(()), 1));
    let (end, unused) = drive_limited(|limits| limits.cost_max = Some(0.01), answers(), false);
    assert!(end.as_ref().is_err_and(|why| why.contains("the limit of $0.01")) && unused == 3, "{end:?}");
    let stalls = |limits: &mut ForkLimits| limits.progress.stalled_turns_max = 1;
    let (end, unused) = drive_limited(stalls, answers(), false);
    assert!(end.as_ref().is_err_and(|why| why.contains("no progress")) && unused == 2, "{end:?}");
}

#[test]
fn fork_that_ends_when_written_makes_no_request_after_a_successful_change() {
    let ends = |limits: &mut ForkLimits| limits.ends_when_written = true;
    let changed = || answer(&[("c", "Change")], "tool_use");
    assert_eq!(drive_limited(ends, [changed(), changed()], false), (Ok(()), 1));
    let failed = answer(&[("a", "Change"), ("b", "Other")], "tool_use");
    assert_eq!(drive_limited(ends, [failed, changed(), changed()], false), (Ok(()), 1), "it repairs");
    assert_eq!(drive_limited(ends, [changed(), changed()], true), (Ok(()), 1), "even when cancelled");
}

#[test]
fn cancelled_or_broken_answer_is_a_failure_and_a_truncated_one_is_an_answer() {
    let stopped = Err(String::from("it was stopped"));
    let cancelled = ProviderExchange { end: ExchangeEnd::Cancelled, ..answer(&[], "") };
    assert_eq!(drive_limited(|_| {}, [cancelled], true), (stopped.clone(), 0));
    let changed = || answer(&[("c", "Change"), ("d", "Change")], "tool_use");
    assert_eq!(drive_limited(|_| {}, [changed(), changed()], true), (stopped, 1));
    assert_eq!(drive_limited(|_| {}, [answer(&[], "end_turn")], true), (Ok(()), 0), "it was complete");
    let failure = ProviderFailure::new(FailureKind::Cut, "cut");
    let broken = ProviderExchange { end: ExchangeEnd::Failed(failure), ..changed() };
    assert_eq!(drive_limited(|_| {}, [broken, changed()], false), (Err(String::from("cut")), 1));
    let truncated = answer(&[("c", "Change")], "max_tokens");
    let written = |limits: &mut ForkLimits| limits.ends_when_written = true;
    assert_eq!(drive_limited(written, [truncated, changed()], false), (Ok(()), 1));
}
