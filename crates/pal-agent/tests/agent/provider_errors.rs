//! Everything that can go wrong on the wire, in a loop of tools: the agent recovers, or the prompt ends with an error that
//! says what to do. It never runs a tool twice, never shows a word twice, and keeps everything that arrived.

use std::collections::BTreeSet;

use pal_agent_testkit::{AgentWorld, ProviderSetup, TestAgent};
use pal_events::{AgentEvent, PromptEnd, PromptResult};
use pal_model::EntryBody;

use crate::{BYPASS, bash, caller};

/// Three turns: two commands that leave a trace, and a last word.
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

/// Runs the script under faults and checks what holds after any fault.
fn run_script(faults: &str, seed: u64) -> (PromptResult, String) {
    let mut setup = ProviderSetup::script(SCRIPT);
    (setup.faults, setup.seed) = (faults.to_owned(), seed);
    let world = AgentWorld::new(setup);
    let mut agent = world.start(BYPASS);
    let ended = agent.prompt("Do both steps.");
    let ran = world.text("ran.txt");
    let once: BTreeSet<&str> = ran.lines().collect();
    assert_eq!(once.len(), ran.lines().count(), "{faults}: a tool ran twice: {ran}");
    let shown = shown_text(&agent);
    for word in ["alpha", "beta", "gamma"] {
        assert!(shown.matches(word).count() <= 1, "{faults}: shown twice: {shown}");
    }
    assert_eq!(shown, logged_text(&agent), "{faults}: the log has exactly what was shown");
    assert_eq!(agent.events(|event| matches!(event, AgentEvent::Ended(_)).then_some(())).len(), 1);
    let refused = &world.provider.heard().refused;
    let invalid = refused.iter().find(|(status, body)| *status == 400 && !body.contains("imulated"));
    let is_fault = faults.contains("400") || faults.contains("too-long");
    assert!(invalid.is_none() || is_fault, "{faults}: {refused:?}");
    (ended, ran)
}

/// Text of all answers as it was shown, without discarded answers.
fn shown_text(agent: &TestAgent) -> String {
    let steps = agent.events(|event| match event {
        AgentEvent::Text(_) | AgentEvent::AnswerDiscarded { .. } => Some(event.clone()),
        AgentEvent::Message { entry, .. } if matches!(entry.body, EntryBody::Assistant(_)) => {
            Some(event.clone())
        }
        _ => None,
    });
    let (mut shown, mut answer) = (String::new(), String::new());
    for step in steps {
        match step {
            AgentEvent::Text(text) => answer.push_str(&text),
            AgentEvent::AnswerDiscarded { .. } => answer.clear(),
            _ => shown.push_str(&std::mem::take(&mut answer)),
        }
    }
    shown + &answer
}

/// Text of all answers in the log.
fn logged_text(agent: &TestAgent) -> String {
    let answers = agent.log_of_kind("assistant").into_iter();
    let blocks = answers.flat_map(|line| line["content"].as_array().cloned().unwrap_or_default());
    blocks.filter_map(|block| block["text"].as_str().map(str::to_owned)).collect()
}

fn check(cases: &[(&str, FaultOutcome)]) {
    for (faults, outcome) in cases {
        let (ended, ran) = run_script(faults, 7);
        match (outcome, &ended.end) {
            (Whole, PromptEnd::Done) => {
                assert!(ended.text.contains("gamma"), "{faults}: {ended:?}");
                assert_eq!(ran, "one\ntwo\n", "{faults}");
            }
            (Well, PromptEnd::Done) => {
                assert!(ended.text.contains("gamma") || ended.text.contains("omega"), "{faults}: {ended:?}");
            }
            (Error(advice), PromptEnd::Failed(why)) => assert!(why.contains(advice), "{faults}: {why}"),
            _ => panic!("{faults}: {ended:?}"),
        }
    }
}

#[test]
fn refused_requests_are_retried_or_reported_with_advice() {
    check(&[
        ("429=1ms@1", Whole),
        ("429=1ms@2-3", Whole),
        ("529=none@2", Whole),
        ("529=1ms@1-9", Error("--continue")),
        ("500=none@2", Whole),
        ("502=none@2", Whole),
        ("503=none@1-9", Error("--continue")),
        ("401@1", Error("check the key (of `pal login`")),
        ("403@2", Error("check the key")),
        ("404@1", Error("--model")),
        ("400@2", Error("pal check")),
        ("413@2", Whole),
        ("429=none+no-retry@2", Error("--continue")),
        ("429=10m@1", Error("--continue")),
        ("spend-limit@2", Error("--continue")),
        ("too-long=210000/200000@2", Whole),
        ("too-long=210000/200000+started@2", Whole),
    ]);
}

#[test]
fn lost_connections_are_retried_or_continued() {
    check(&[
        ("reset@1", Whole),
        ("reset@2-3", Whole),
        ("reset@1-9", Error("--continue")),
        ("cut=headers@2", Whole),
        ("cut=before@2", Whole),
        ("cut=before@1-9", Error("--continue")),
        ("cut=after@1", Well),
        ("cut=after@3", Well),
        ("cut=after@2,529=1ms@3", Well),
        ("cut=after@1-9", Error("--continue")),
        ("cut=end@2", Well),
        ("cut@2", Well),
        ("truncate=before@2", Whole),
        ("truncate=after@3", Well),
        ("truncate=end@2", Well),
    ]);
}

#[test]
fn broken_streams_are_retried_or_continued() {
    check(&[
        ("malformed=before@2", Whole),
        ("malformed=after@2", Well),
        ("error@2", Well),
        ("error=overloaded+before@2", Whole),
        ("error=api+after@3", Well),
        ("error=invalid_request+before@2", Error("pal check")),
        ("content-type=text/html@2", Whole),
    ]);
}

#[test]
fn odd_streams_do_no_harm() {
    check(&[
        ("silence=50ms@2", Whole),
        ("silence=50ms+after@2", Whole),
        ("slow=1ms+200", Whole),
        ("split", Whole),
        ("split=1", Whole),
        ("merge=all", Whole),
        ("crlf,split", Whole),
        ("usage=zero", Whole),
        ("usage=null", Whole),
        ("usage=huge@1", Whole),
        ("usage=missing", Whole),
        ("duplicate", Whole),
        ("unknown", Whole),
    ]);
}

#[test]
fn mixed_faults_are_recovered_or_reported() {
    let mix = "429=1ms:0.1,529=1ms:0.1,reset:0.1,cut:0.15,truncate:0.1,malformed:0.1,error:0.1,split:0.3,duplicate:0.3,\
               unknown:0.3,crlf:0.3,slow=1ms+400:0.1,usage:0.2,silence=2ms+random:0.2";
    for seed in 0..16 {
        let (ended, _) = run_script(mix, seed);
        match ended.end {
            PromptEnd::Done => {}
            PromptEnd::Failed(why) => {
                assert!(why.contains("--continue") || why.contains("pal check"), "seed {seed}: {why}");
            }
            other => panic!("seed {seed}: {other:?}"),
        }
    }
}

#[test]
fn each_retry_is_reported_once() {
    for (faults, waits) in [("529=none@1", 1), ("429=1ms@1-2", 2), ("503=none@1-9", 2), ("401@1", 0)] {
        let mut setup = caller(vec![bash("true")]);
        setup.faults = faults.to_owned();
        let world = AgentWorld::new(setup);
        let mut agent = world.start(BYPASS);
        agent.prompt("work");
        let attempts = agent.events(|event| match event {
            AgentEvent::Waiting { attempt, of, .. } => Some((*attempt, *of)),
            _ => None,
        });
        let expected: Vec<(u32, u32)> = (0..waits).map(|number| (number + 2, 3)).collect();
        assert_eq!(attempts, expected, "{faults}");
    }
}

#[test]
fn a_failed_prompt_can_be_continued() {
    let mut setup = caller(vec![bash("echo ran >> ran.txt")]);
    setup.faults = String::from("reset@2-4");
    let world = AgentWorld::new(setup);
    let mut agent = world.start(BYPASS);
    assert!(matches!(agent.prompt("work").end, PromptEnd::Failed(_)));
    assert_eq!(agent.prompt("Go on.").end, PromptEnd::Done);
    assert_eq!(world.text("ran.txt"), "ran\n");
}

#[test]
fn an_overloaded_model_hands_the_prompt_to_its_fallback() {
    for (faults, failed_over) in
        [("529=none@2-4", true), ("503=none@2-4", true), ("500=none@2-4", true), ("401@2", false)]
    {
        let mut setup = ProviderSetup::script(SCRIPT);
        setup.faults = faults.to_owned();
        let world = AgentWorld::new(setup);
        let mut agent = world.start_with(BYPASS, |options| {
            options.model.fallback = (options.model.lookup)(Some("claude-haiku-4-5"));
        });
        let ended = agent.prompt("Do both steps.");
        let models = |agent: &TestAgent| -> Vec<String> {
            let requests = agent.log_of_kind("request");
            let models =
                requests.iter().map(|request| request["model"].as_str().unwrap_or_default().to_owned());
            let mut models: Vec<String> = models.collect();
            models.dedup();
            models
        };
        if !failed_over {
            assert!(matches!(ended.end, PromptEnd::Failed(_)), "{faults}: {ended:?}");
            assert!(!agent.notices().contains("--fallback-model"), "{faults}");
            continue;
        }
        assert_eq!(ended.end, PromptEnd::Done, "{faults}: {ended:?}");
        assert_eq!(world.text("ran.txt"), "one\ntwo\n", "{faults}");
        assert!(
            agent.notices().contains("claude-opus-5-5 is overloaded; claude-haiku-4-5 answers"),
            "{}",
            agent.notices()
        );
        assert_eq!(models(&agent), ["claude-opus-5-5", "claude-haiku-4-5"], "{faults}");
        let switches = agent.log_of_kind("model");
        let switches: Vec<&str> = switches.iter().filter_map(|switch| switch["model"].as_str()).collect();
        assert_eq!(switches, ["claude-haiku-4-5", "claude-opus-5-5"], "{faults}");
        // The fallback is for one prompt.
        assert_eq!(agent.prompt("And now?").end, PromptEnd::Done, "{faults}");
        assert_eq!(models(&agent).last().map(String::as_str), Some("claude-opus-5-5"), "{faults}");
    }
}

#[test]
fn a_fallback_that_is_overloaded_as_well_fails_the_prompt() {
    let mut setup = caller(vec![bash("true")]);
    setup.faults = String::from("529=none@1-9");
    let world = AgentWorld::new(setup);
    let mut agent = world.start_with(BYPASS, |options| {
        options.model.fallback = (options.model.lookup)(Some("claude-haiku-4-5"));
    });
    assert!(matches!(agent.prompt("work").end, PromptEnd::Failed(_)));
    assert_eq!(agent.notices().matches("--fallback-model").count(), 1, "{}", agent.notices());
}
