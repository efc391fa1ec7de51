//! Conversations: several prompts, steering, interrupts, limits, answers that are too long, copies of sessions.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use pal_sim::ReplyPace;
use serde_json::{Value, json};

use crate::test_world::{PATIENCE, TestWorld, finish, log_lines};
use pal_agent_testkit::{ProviderSetup, calls, cut_off, says};

const FREELY: [&str; 3] = ["--permission-mode", "bypass", "--no-sandbox"];

/// The program with an open standard input, line by line.
struct JsonDialogue {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
}

impl JsonDialogue {
    fn begin(world: &TestWorld) -> JsonDialogue {
        let formats = ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];
        let mut command = world.command(&[&formats[..], &FREELY, &["--include-partial-messages"]].concat());
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let _ = sender.send(serde_json::from_str(&line).unwrap());
            }
        });
        JsonDialogue { input: child.stdin.take(), child, lines }
    }

    fn say(&mut self, line: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    fn prompt(&mut self, text: &str) {
        self.say(&json!({"type": "user", "message": {"role": "user", "content": text}}));
    }

    /// The next line that fits.
    fn next(&self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).expect("a line comes");
            if fits(&line) {
                return line;
            }
        }
    }

    fn result(&self) -> Value {
        self.next(|line| line["type"] == "result")
    }

    /// Closes the input; what the program exits with.
    fn end(mut self) -> i32 {
        drop(self.input.take());
        finish(self.child).code
    }
}

fn began(line: &Value) -> bool {
    line["state"] == "began"
}

#[test]
fn prompts_run_in_order_and_a_bad_line_is_skipped() {
    let world = TestWorld::new(ProviderSetup::answers(|at, _| says(&format!("Answer {at}."))));
    let mut dialogue = JsonDialogue::begin(&world);
    dialogue.prompt("one");
    assert_eq!(dialogue.result()["result"], "Answer 0.");
    writeln!(dialogue.input.as_mut().unwrap(), "what?").unwrap();
    dialogue.prompt("two");
    assert_eq!(dialogue.next(|line| line["subtype"] == "input_error")["line"], 2);
    let result = dialogue.result();
    assert_eq!((&result["result"], &result["num_turns"]), (&json!("Answer 1."), &json!(1)));
    assert_eq!(dialogue.end(), 0);
    let heard = world.provider.heard();
    assert!(heard.asked[1].departs_from(&heard.asked[0]).is_none(), "the second request repeats the first");
}

#[test]
fn steering_is_sent_with_the_next_tool_results() {
    let world = TestWorld::new(ProviderSetup::answers(|at, _| match at {
        0 => calls("I wait.", &[("Bash", json!({"command": "sleep 0.4; echo slept"}))]),
        _ => says("Done."),
    }));
    let mut dialogue = JsonDialogue::begin(&world);
    dialogue.prompt("wait");
    dialogue.next(began);
    dialogue.say(
        &json!({"type": "user", "steer": true, "message": {"role": "user", "content": "Leave the tests alone."}}),
    );
    assert_eq!(dialogue.result()["num_turns"], 2);
    assert_eq!(dialogue.end(), 0);
    let second = world.provider.heard().asked[1].text();
    let (slept, steered) = (second.find("slept").unwrap(), second.find("Leave the tests alone.").unwrap());
    assert!(slept < steered, "{second}");
    assert_eq!(world.provider.heard().asked.len(), 2);
}

#[test]
fn an_interrupt_stops_a_tool_and_the_next_prompt_works() {
    let world = TestWorld::new(ProviderSetup::answers(|at, _| match at {
        0 => calls("I wait.", &[("Bash", json!({"command": "sleep 20; echo late > late.txt"}))]),
        _ => says("I am still here."),
    }));
    let mut dialogue = JsonDialogue::begin(&world);
    dialogue.prompt("wait");
    dialogue.next(began);
    dialogue.say(&json!({"type": "control", "subtype": "interrupt"}));
    assert_eq!(dialogue.result()["subtype"], "error_interrupted");
    dialogue.prompt("are you there?");
    assert_eq!(dialogue.result()["result"], "I am still here.");
    assert_eq!(dialogue.end(), 0);
    assert_eq!(world.text("late.txt"), "");
    assert!(world.provider.heard().asked[1].text().contains("interrupted"));
}

fn interrupt(child: &Child) {
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

#[test]
fn ctrl_c_ends_a_single_prompt_with_130() {
    let tool = ProviderSetup::answers(|_, _| {
        calls("I wait.", &[("Bash", json!({"command": "touch began; sleep 30"}))])
    });
    let mut stream = ProviderSetup::answers(|_, _| says(&"word ".repeat(900)));
    stream.pace = ReplyPace { per_1k_output: Duration::from_secs(30), ..ReplyPace::none() };
    let mut silent = ProviderSetup::answers(|_, _| says("never heard"));
    silent.faults = String::from("silence");
    for (name, made) in [("tool", tool), ("stream", stream), ("silence", silent)] {
        let world = TestWorld::new(made);
        let child = world.spawn(&[&FREELY[..], &["work"]].concat());
        assert!(world.provider.wait_until(PATIENCE, |heard| !heard.asked.is_empty()), "{name}");
        while name == "tool" && !world.repository().join("began").exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(100));
        interrupt(&child);
        let said = finish(child);
        assert_eq!(said.code, 130, "{name}: {}\n{}", said.out, said.err);
        assert!(world.log().iter().any(|line| line["what"] == "interrupted"), "{name}");
    }
}

#[test]
fn limits_end_a_prompt_with_3() {
    let busy = || {
        ProviderSetup::answers(|at, _| {
            calls("On.", &[("Bash", json!({"command": format!("echo {at} >> ran.txt")}))])
        })
    };
    for (limit, subtype) in [
        (["--max-turns", "3"], "error_max_turns"),
        (["--max-cost-usd", "0.05"], "error_limit"),
        (["--max-tokens-total", "30000"], "error_limit"),
    ] {
        let world = TestWorld::new(busy());
        let said = world.run(&[&FREELY[..], &limit, &["--output-format", "json", "work"]].concat());
        assert_eq!(said.code, 3, "{limit:?}: {}\n{}", said.out, said.err);
        assert_eq!(said.lines()[0]["subtype"], subtype, "{}", said.out);
        let ran = world.text("ran.txt").lines().count();
        assert_eq!(
            ran,
            world.provider.heard().asked.len(),
            "what was asked for before the limit was carried out"
        );
        let said = world.run(&[&FREELY[..], &["--max-turns", "1", "--continue", "go on"]].concat());
        assert_eq!(said.code, 3, "limits count from the prompt: {}", said.err);
        assert_eq!(world.text("ran.txt").lines().count(), ran + 1);
        assert_eq!(world.provider.heard().refused, []);
    }
}

#[test]
fn a_truncated_answer_is_retried_and_then_continued() {
    let world = TestWorld::new(ProviderSetup::answers(|at, _| match at {
        0 => cut_off(says("It begins and is cut")),
        1 => cut_off(says("It begins, and the first part ends in the mid")),
        _ => says("dle of a word."),
    }));
    let said = world.run(&["tell"]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (0, "It begins, and the first part ends in the middle of a word.\n"),
        "{}",
        said.err
    );
    let heard = world.provider.heard();
    assert!(heard.asked[0].max_tokens < heard.asked[1].max_tokens, "a longer answer is asked for");
    assert_eq!(heard.asked[0].blocks, heard.asked[1].blocks, "with the same request");
    assert!(heard.asked[2].text().contains("Go on exactly where it stopped"));
    assert_eq!(heard.refused, []);
}

#[test]
fn a_fork_repeats_the_original_and_leaves_it_unchanged() {
    let world = TestWorld::new(ProviderSetup::answers(|at, _| match at {
        0 => calls("Looking.", &[("Read", json!({"file_path": "src/lib.rs"}))]),
        _ => says("Seen."),
    }));
    assert_eq!(world.run(&["look"]).code, 0);
    let original = world.logs().pop().unwrap();
    let before = std::fs::read(&original).unwrap();
    let said = world.run(&["--continue", "--fork-session", "and now?"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(std::fs::read(&original).unwrap(), before);
    let logs = world.logs();
    assert_eq!(logs.len(), 2);
    let copy = logs.iter().find(|log| **log != original).unwrap();
    assert!(log_lines(copy).len() > log_lines(&original).len());
    let heard = world.provider.heard();
    let departs = heard.asked[2].departs_from(&heard.asked[1]);
    assert!(departs.is_none(), "{departs:?}");
    assert!(heard.asked[2].text().contains("and now?"));
}

#[test]
fn a_session_killed_at_its_start_can_be_resumed() {
    let world = TestWorld::new(ProviderSetup::answers(|at, _| says(&format!("Answer {at}."))));
    assert_eq!(world.run(&["one"]).code, 0);
    let log = world.logs().pop().unwrap();
    let whole = std::fs::read_to_string(&log).unwrap();
    let first = whole.lines().next().unwrap();
    for left in [format!("{first}\n"), first[..40].to_owned(), String::new()] {
        std::fs::write(&log, &left).unwrap();
        let said = world.run(&["--continue", "two"]);
        assert_eq!(said.code, 0, "{left:?}: {}", said.err);
        let heard = world.provider.heard();
        assert_eq!(
            heard.asked[0].head,
            heard.asked.last().unwrap().head,
            "with its tools and its system prompt"
        );
    }
}

#[test]
fn a_session_is_resumed_by_an_id_prefix() {
    let world = TestWorld::new(ProviderSetup::answers(|at, _| says(&format!("Answer {at}."))));
    let id = "01890000-0000-7000-8000-00000000abcd";
    assert_eq!(world.run(&["--session-id", id, "one"]).code, 0);
    let said = world.run(&["--resume", &id[..13], "two"]);
    assert_eq!((said.code, said.out.as_str()), (0, "Answer 1.\n"), "{}", said.err);
    assert_eq!(world.logs().len(), 1);
    let said = world.run(&["--resume", "ffffffff", "three"]);
    assert!(said.code == 1 && said.err.contains("pal sessions"), "{}", said.err);
}

#[test]
fn a_project_without_sessions_has_nothing_to_resume() {
    let world = TestWorld::new(ProviderSetup::answers(|_, _| says("Never asked.")));
    let child = world.command(&["--plain", "--resume"]).stdin(Stdio::null()).spawn().unwrap();
    let said = finish(child);
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(said.err.contains("no session to resume"), "{}", said.err);
    assert!(said.err.contains("`pal sessions --all`"), "{}", said.err);
}

/// A foreign log must not provide the system prompt.
#[test]
fn a_foreign_log_is_resumed_without_its_system_prompt() {
    let world = TestWorld::new(ProviderSetup::answers(|at, _| says(&format!("Answer {at}."))));
    let said = world.run(&["--append-system-prompt", "STRANGER RULES", "one"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let own = std::fs::read_to_string(&world.logs()[0]).unwrap();
    // Among what was said, the stranger has the system remind of something.
    let last: Value = serde_json::from_str(own.lines().last().unwrap()).unwrap();
    let note = json!({
        "v": last["v"], "id": "01990000-0000-7000-8000-00000000abcd", "parent": last["id"], "at": last["at"],
        "kind": "attachment", "what": "note", "content": "STRANGER NOTE",
    });
    world.file("elsewhere/log.jsonl", &format!("{own}{note}\n"));
    let file = world.repository().join("elsewhere/log.jsonl");
    for arguments in [
        &["--resume", file.to_str().unwrap(), "--fork-session", "two"][..],
        &["--resume", file.to_str().unwrap(), "three"],
    ] {
        let said = world.run(arguments);
        assert_eq!(said.code, 0, "{}", said.err);
        assert!(
            said.err.contains("is no session of") && said.err.contains("elsewhere/log.jsonl"),
            "{}",
            said.err
        );
        let heard = world.provider.heard();
        let asked = heard.asked.last().unwrap();
        let all = asked.head.concat() + &asked.text();
        assert!(!all.contains("STRANGER"), "{all}");
        assert!(all.contains("Answer 0."), "what was said is there: {all}");
        assert!(asked.head.concat().contains(r#""name":"Bash""#), "with our own tools: {:?}", asked.head);
    }
    // Our own session keeps what it was begun with.
    let said = world.run(&[
        "--resume",
        world.logs()[0].parent().unwrap().file_name().unwrap().to_str().unwrap(),
        "four",
    ]);
    assert_eq!(said.code, 0, "{}", said.err);
}

#[test]
fn piped_lines_wait_for_the_answer_before_them() {
    let world = TestWorld::new(ProviderSetup::answers(|at, _| match at {
        0 => calls("I wait.", &[("Bash", json!({"command": "sleep 0.3; echo slept"}))]),
        _ => says("Done."),
    }));
    let mut command = world.command(&[&["--plain"][..], &FREELY].concat());
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"the first\nthe second\n").unwrap();
    assert_eq!(finish(child).code, 0);
    let heard = world.provider.heard();
    assert_eq!(heard.asked.len(), 3);
    assert!(!heard.asked[1].text().contains("the second"), "it does not steer the work on the first");
    assert!(heard.asked[2].text().contains("the second"));
}
