//! `pal sim` and `pal ask` as people run them: two processes and a socket between them.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command};

use crate::program::TestHome;

/// A simulator that runs until it is dropped.
pub(crate) struct RunningSimulator {
    child: Child,
    pub(crate) address: String,
}

impl RunningSimulator {
    pub(crate) fn start(home: &TestHome, arguments: &[&str]) -> RunningSimulator {
        let arguments = [&["sim", "--port", "0", "--json", "--speed", "virtual"], arguments].concat();
        let mut child = home.command(&arguments).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let greeting: serde_json::Value = serde_json::from_str(&line).unwrap();
        RunningSimulator { child, address: greeting["listening"].as_str().unwrap().to_owned() }
    }
}

impl Drop for RunningSimulator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const SCRIPT: &str = "[default]\ntext = \"You said: {{last_user}} ({{count.messages}} messages)\"\n";

#[test]
fn a_question_is_answered_in_every_dialect() {
    let home = TestHome::new();
    let script = home.file("script.toml", SCRIPT);
    let simulator = RunningSimulator::start(&home, &["--model-script", &script, "--key", "canary-key-1234"]);
    let openai = format!("{}/v1", simulator.address);
    let variables = [
        ("ANTHROPIC_BASE_URL", simulator.address.as_str()),
        ("ANTHROPIC_API_KEY", "canary-key-1234"),
        ("OPENAI_BASE_URL", openai.as_str()),
        ("OPENAI_API_KEY", "canary-key-1234"),
    ];
    for arguments in [
        &["ask", "hello there"][..],
        &["ask", "--model", "gpt-6-sol", "hello there"],
        &["ask", "--model", "gpt-5.1", "--provider", "chat", "hello there"],
    ] {
        let said = home.run_with_environment(arguments, &variables);
        assert_eq!(
            (said.code, said.out.as_str()),
            (0, "You said: hello there (1 messages)\n"),
            "{}",
            said.err
        );
        assert!(said.err.contains("uncached") && said.err.contains(" out"), "{}", said.err);
    }
    let json = home.run_with_environment(&["ask", "--json", "hello"], &variables);
    let answer: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(answer["content"][0]["text"], "You said: hello (1 messages)");
    assert!(answer["cost_usd"].as_f64().unwrap() > 0.0);
    let wrong =
        [("ANTHROPIC_BASE_URL", simulator.address.as_str()), ("ANTHROPIC_API_KEY", "canary-key-9999")];
    let refused = home.run_with_environment(&["ask", "hello"], &wrong);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("hint:") && !refused.err.contains("9999"), "{}", refused.err);
}

#[test]
fn asking_a_stored_session_does_not_change_it() {
    let home = TestHome::new();
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/../../demo/session.jsonl");
    let before = std::fs::read(demo).unwrap();
    let said = home.run(&["ask", "--provider", "sim", "--session", demo, "Which files did we change?"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("Which files did we change?"), "{}", said.out);
    assert_eq!(std::fs::read(demo).unwrap(), before);
    assert!(home.written().is_empty(), "nothing is kept");
}

#[test]
fn a_truncated_answer_is_reported() {
    let home = TestHome::new();
    let cut = home.run(&["ask", "--provider", "sim", "--max-tokens", "1", "hello"]);
    assert_eq!(cut.code, 0);
    assert!(cut.err.contains("cut at --max-tokens"), "{}", cut.err);
    let other = home.run(&["ask", "--provider", "sim", "--model", "gpt-6-sol", "hello"]);
    assert_eq!(other.code, 0, "the simulator speaks to every model: {}", other.err);
}

#[test]
fn retries_are_reported() {
    let home = TestHome::new();
    let script = home.file("script.toml", SCRIPT);
    let simulator =
        RunningSimulator::start(&home, &["--model-script", &script, "--faults", "529=10ms@1-2,cut=after@4"]);
    let variables = [("ANTHROPIC_BASE_URL", simulator.address.as_str())];
    let said = home.run_with_environment(&["ask", "hello"], &variables);
    assert_eq!((said.code, said.out.as_str()), (0, "You said: hello (1 messages)\n"), "{}", said.err);
    assert!(said.err.contains("attempt 2 of") && said.err.contains("attempt 3 of"), "{}", said.err);
    let cut = home.run_with_environment(&["ask", "hello"], &variables);
    assert_eq!(cut.code, 1, "a cut answer is an error");
    assert!(
        cut.out.starts_with("You said") && !cut.out.contains("You said: hello (1 messages)\nYou"),
        "{}",
        cut.out
    );
}

#[test]
fn money_of_a_simulator_behind_a_base_url_is_marked() {
    let home = TestHome::new();
    let script = home.file("script.toml", SCRIPT);
    let simulator = RunningSimulator::start(&home, &["--model-script", &script]);
    let variables = [("ANTHROPIC_BASE_URL", simulator.address.as_str())];
    let said = home.run_with_environment(&["-p", "hello", "--output-format", "json"], &variables);
    let result: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let session = result["session_id"].as_str().unwrap();
    let cost = home.run(&["cost", session]);
    assert!(cost.out.contains("simulated") && cost.out.contains("nothing spent"), "{}{}", cost.out, cost.err);
    // Before its first response nothing tells that the server is a simulator; none of its money counts as spent today.
    let all = home.run(&["cost", "--all"]);
    assert!(all.out.contains("not spent") && !all.out.contains("today (UTC)"), "{}{}", all.out, all.err);
}

#[test]
fn a_recording_answers_as_its_model_did() {
    let home = TestHome::new();
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/../../demo/session.jsonl");
    let simulator = RunningSimulator::start(&home, &["--replay", demo]);
    let variables = [("ANTHROPIC_BASE_URL", simulator.address.as_str())];
    let said = home.run_with_environment(&["ask", "--json", "anything"], &variables);
    let answer: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let recorded = std::fs::read_to_string(demo).unwrap();
    let first =
        answer["content"].as_array().unwrap().iter().find(|block| block["type"] != "thinking").unwrap();
    let known = first["text"].as_str().or(first["id"].as_str()).unwrap();
    let mut escaped = String::new();
    pal_model::escape_into(&mut escaped, known);
    assert!(recorded.contains(escaped.trim_matches('"')), "{known} is not in the recording");
}

#[test]
fn wrong_arguments_are_explained() {
    let home = TestHome::new();
    let script = home.file("script.toml", "[[turn]]\ntxet = \"x\"\n");
    for (arguments, told) in [
        (&["sim", "--model-script", &script][..], "did you mean `text`"),
        (&["sim", "--faults", "cutt"], "cut"),
        (&["sim", "--replay", "/nowhere/at/all"], "/nowhere/at/all"),
        (&["ask", "hello"], "ANTHROPIC_API_KEY is not set"),
    ] {
        let said = home.run(arguments);
        assert_eq!(said.code, 1, "{arguments:?}");
        assert!(said.err.contains(told) && said.err.contains("hint:"), "{arguments:?}: {}", said.err);
    }
    let simulator = RunningSimulator::start(&home, &[]);
    let port = simulator.address.rsplit(':').next().unwrap();
    let taken = home.run(&["sim", "--port", port]);
    assert!(taken.code == 1 && taken.err.contains("--port 0"), "{}", taken.err);
    let far = home.run_with_environment(&["ask", "hello"], &[("ANTHROPIC_BASE_URL", "http://example.com")]);
    assert!(far.code == 1 && far.err.contains("PAL_ALLOW_PLAIN_HTTP"), "{}", far.err);
}

#[test]
fn an_interrupt_ends_the_simulator_with_its_totals() {
    let home = TestHome::new();
    let mut child = home.command(&["sim", "--port", "0", "--speed", "virtual"]).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert!(line.starts_with("simulator at http://127.0.0.1:"), "{line}");
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    let rest: Vec<String> = out.lines().map(Result::unwrap).collect();
    assert!(rest.last().unwrap().starts_with("0 answers"), "{rest:?}");
    assert!(child.wait().unwrap().success());
}
