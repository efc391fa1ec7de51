//! Everything that can go wrong on the wire, against the whole agent in a loop of tools: it recovers, or it ends with an error
//! that says what to do. It never hangs, never runs a tool twice, never shows words twice, and keeps what arrived.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::test_world::{RunOutput, TestWorld, finish};
use pal_agent_testkit::{ProviderSetup, says};

/// Three rounds: two commands that leave a trace, and a last word.
const SCRIPT: &str = r#"
[[turn]]
text = "First comes the first step, which is called alpha, and it leaves a trace."
tools = [{ name = "Bash", input = { command = "echo one >> ran.txt" } }]

[[turn]]
text = "Then comes the second step, which is called beta, and it leaves another."
tools = [{ name = "Bash", input = { command = "echo two >> ran.txt" } }]

[[turn]]
when = { last_is = "tool_result" }
text = "Everything was done, says gamma."

[default]
text = "All was done, says omega."
"#;

/// Expected result of a fault.
#[derive(Clone, Copy, PartialEq, Debug)]
enum FaultOutcome {
    /// It ends well, with both commands run.
    Whole,
    /// It ends well; a call that never arrived whole was not carried out.
    Well,
    /// It ends with an error of these words.
    Error(&'static str),
}

use FaultOutcome::{Error, Well, Whole};

/// One fault for each outcome of the program, and those that need a timeout. `crates/pal-agent/tests/agent/provider_errors.rs`
/// has all faults.
const MATRIX: &[(&str, FaultOutcome)] = &[
    ("529=none@2", Whole),
    ("cut=after@1", Well),
    ("401@1", Error("check the key")),
    ("400@2", Error("pal check")),
    ("silence=before@2", Whole),
    ("silence=after@2", Well),
    ("silence=after@1-9", Error("--continue")),
];

fn world(faults: &str, seed: u64) -> TestWorld {
    let mut made = ProviderSetup::script(SCRIPT);
    made.faults = faults.to_owned();
    made.seed = seed;
    TestWorld::new(made)
}

fn run(world: &TestWorld, format: &str) -> RunOutput {
    let mut arguments = vec!["-p", "Do both steps.", "--permission-mode", "bypass", "--no-sandbox"];
    arguments.extend(["--output-format", format]);
    if format == "stream-json" {
        arguments.extend(["--include-partial-messages", "--verbose"]);
    }
    let mut command = world.command(&arguments);
    command.env("PAL_IDLE_TIMEOUT_S", "1");
    finish(command.spawn().unwrap())
}

/// Invariants that hold after any fault.
fn check(faults: &str, world: &TestWorld, said: &RunOutput) {
    let lines = said.lines();
    let ran = world.text("ran.txt");
    let once: BTreeSet<&str> = ran.lines().collect();
    assert_eq!(once.len(), ran.lines().count(), "{faults}: a tool ran twice: {ran}");
    let shown = shown(&lines);
    for word in ["alpha", "beta", "gamma"] {
        assert!(shown.matches(word).count() <= 1, "{faults}: shown twice: {shown}");
    }
    assert_eq!(shown, logged(world), "{faults}: what was shown is what is kept");
    let results: Vec<&Value> = lines.iter().filter(|line| line["type"] == "result").collect();
    assert_eq!(results.len(), 1, "{faults}: {}", said.out);
    let refused = &world.provider.heard().refused;
    let invalid = refused.iter().find(|(status, body)| *status == 400 && !body.contains("imulated"));
    assert!(
        invalid.is_none() || faults.contains("400") || faults.contains("too-long"),
        "{faults}: {refused:?}"
    );
}

/// The words of all answers as they grew, without those that were taken back.
fn shown(lines: &[Value]) -> String {
    let (mut shown, mut answer) = (String::new(), String::new());
    for line in lines {
        match (line["type"].as_str(), line["subtype"].as_str()) {
            (Some("stream_event"), _) => {
                answer.push_str(line["event"]["delta"]["text"].as_str().unwrap_or_default());
            }
            (_, Some("void")) => answer.clear(),
            (Some("assistant"), _) => shown.push_str(&std::mem::take(&mut answer)),
            _ => {}
        }
    }
    shown + &answer
}

/// The words of all answers in the log.
fn logged(world: &TestWorld) -> String {
    let answers = world.log().into_iter().filter(|line| line["kind"] == "assistant");
    let blocks = answers.flat_map(|line| line["content"].as_array().cloned().unwrap_or_default());
    blocks.filter_map(|block| block["text"].as_str().map(str::to_owned)).collect()
}

fn check_outcome(faults: &str, outcome: FaultOutcome) {
    let world = world(faults, 7);
    let said = run(&world, "stream-json");
    check(faults, &world, &said);
    let lines = said.lines();
    let result = lines.iter().find(|line| line["type"] == "result").unwrap();
    let told = format!("{faults}: {}\n{}", said.out, said.err);
    match outcome {
        Whole => {
            assert_eq!(said.code, 0, "{told}");
            assert!(result["result"].as_str().unwrap().contains("gamma"), "{told}");
            assert_eq!(world.text("ran.txt"), "one\ntwo\n", "{told}");
        }
        Well => {
            assert_eq!(said.code, 0, "{told}");
            let last = result["result"].as_str().unwrap();
            assert!(last.contains("gamma") || last.contains("omega"), "{told}");
        }
        Error(words) => {
            assert_eq!(said.code, 1, "{told}");
            assert!(result["error"].to_string().contains(words), "{words} is not said: {told}");
        }
    }
}

/// Runs a check for many cases, some at a time.
fn all<T: Copy + Sync>(cases: &[T], check: impl Fn(T) + Sync) {
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    check(*case);
                }
            });
        }
    });
}

#[test]
fn each_fault_is_recovered_or_reported_with_a_hint() {
    all(MATRIX, |(faults, outcome)| check_outcome(faults, outcome));
}

#[test]
fn mixed_faults_are_recovered_or_reported() {
    let mix = "429=20ms:0.1,529=20ms:0.1,reset:0.1,cut:0.15,truncate:0.1,malformed:0.1,error:0.1,split:0.3,duplicate:0.3,\
               unknown:0.3,crlf:0.3,slow=1ms+200:0.2,usage:0.2,silence=30ms+random:0.2";
    let seeds: Vec<u64> = (0..6).collect();
    all(&seeds, |seed| {
        let world = world(mix, seed);
        let said = run(&world, "stream-json");
        check(&format!("seed {seed}"), &world, &said);
        assert!(said.code == 0 || said.code == 1, "seed {seed}: {}\n{}", said.code, said.err);
        if said.code == 1 {
            let errors = said.lines().pop().unwrap()["error"].to_string();
            assert!(errors.contains("--continue") || errors.contains("pal check"), "seed {seed}: {errors}");
        }
    });
}

#[test]
fn retries_print_no_word_twice() {
    for faults in ["cut=after@3", "529=20ms@1-2", "cut=before@2", "duplicate"] {
        let world = world(faults, 3);
        let said = run(&world, "text");
        assert_eq!(said.code, 0, "{faults}: {}", said.err);
        let ends = said.out.matches("gamma").count() + said.out.matches("omega").count();
        assert_eq!(ends, 1, "{faults}: {}", said.out);
        if faults == "cut=after@3" {
            assert!(said.out.starts_with("Everyt"), "what came before the cut is shown, too: {}", said.out);
        }
    }
}

#[test]
fn a_failed_session_can_be_continued() {
    let world = world("reset@2-4", 1);
    assert_eq!(run(&world, "stream-json").code, 1);
    let said = world.run(&["--continue", "--permission-mode", "bypass", "--no-sandbox", "Go on."]);
    assert_eq!((said.code, world.text("ran.txt").as_str()), (0, "one\ntwo\n"), "{}", said.err);
}

#[test]
fn an_overloaded_model_hands_over_to_the_fallback_model() {
    let mut setup = ProviderSetup::answers(|_, _| says("Done."));
    setup.faults = String::from("529=none@1-3");
    let world = TestWorld::new(setup);
    let said = world.run(&["--verbose", "--fallback-model", "haiku", "work"]);
    assert_eq!((said.code, said.out.as_str()), (0, "Done.\n"), "{}", said.err);
    assert!(said.err.contains("is overloaded; claude-haiku-"), "{}", said.err);
}
