//! Questions before a call, line by line: all of it is printed before it can be allowed.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::json;

use crate::test_world::{PATIENCE, TestWorld, finish};
use pal_agent_testkit::{ProviderSetup, calls, says};

struct PlainTerminal {
    input: ChildStdin,
    lines: Receiver<String>,
    printed: String,
}

impl PlainTerminal {
    fn say(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    /// Reads on until one of these texts comes; the line with it.
    fn until(&mut self, texts: &[&str]) -> String {
        loop {
            let line =
                self.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{texts:?}: {}", self.printed));
            self.printed.push_str(&line);
            self.printed.push('\n');
            if texts.iter().any(|text| line.contains(text)) {
                return line;
            }
        }
    }
}

#[test]
fn a_long_command_must_be_printed_in_full_before_consent() {
    let lines: String = (1..=70).map(|number| format!("echo {number} >> counted.txt\n")).collect();
    let command = format!("bash <<'END'\n{lines}touch allowed.txt\nEND");
    let world = TestWorld::new(ProviderSetup::answers(move |at, _| match at {
        0 => calls("I run.", &[("Bash", json!({"command": command}))]),
        _ => says("Done."),
    }));
    let mut child = world.command(&["--plain"]).stdin(Stdio::piped()).spawn().unwrap();
    let (sender, lines) = channel();
    let out = BufReader::new(child.stdout.take().unwrap());
    std::thread::spawn(move || out.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line))));
    let input = child.stdin.take().unwrap();
    let mut talk = PlainTerminal { input, lines, printed: String::new() };
    talk.say("go");
    talk.until(&["more lines: press Enter"]);
    assert!(!talk.printed.contains("allowed.txt"), "{}", talk.printed);
    talk.say("y");
    talk.until(&["not allowed yet"]);
    talk.say("a");
    talk.until(&["not allowed yet"]);
    assert!(!world.repository().join("counted.txt").exists());
    let mut last = String::new();
    while !last.contains("Type y for once") {
        talk.say("");
        last = talk.until(&["more lines: press Enter", "Type y for once"]);
    }
    for text in ["72│ touch allowed.txt", "73│ END", "the text is run by `bash` as commands"] {
        assert!(talk.printed.contains(text), "{text}: {}", talk.printed);
    }
    assert!(!talk.printed.contains("stores this rule"), "no rule for a script: {}", talk.printed);
    assert!(!world.repository().join("counted.txt").exists());
    talk.say("y");
    talk.until(&["Done."]);
    talk.say("/exit");
    drop(talk);
    assert_eq!(finish(child).code, 0);
    assert!(world.repository().join("allowed.txt").exists());
}
