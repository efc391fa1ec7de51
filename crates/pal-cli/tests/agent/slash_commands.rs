//! Slash commands between prompts, and the bytes of the next request.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Condvar, Mutex};

use pal_sim::{ExtractiveModel, SimulatedModel};
use serde_json::json;

use crate::test_world::{PATIENCE, TestWorld, finish};
use pal_agent_testkit::{ProviderSetup, ReceivedRequest, calls, is_summary, says};

const FREELY: [&str; 3] = ["--permission-mode", "bypass", "--no-sandbox"];

/// Line that the terminal prints when the agent is idle.
const RESTS: &str = "until compaction";

/// `pal --plain`, line by line through pipes.
pub(crate) struct TerminalTalk {
    child: Child,
    input: Option<ChildStdin>,
    printed: Arc<(Mutex<String>, Condvar)>,
    /// Bytes of it that were looked at.
    seen: usize,
}

impl TerminalTalk {
    pub(crate) fn begin(world: &TestWorld, arguments: &[&str]) -> TerminalTalk {
        let plain = ["--plain"];
        let mut command = world.command(&[&plain, arguments].concat());
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let printed = Arc::new((Mutex::new(String::new()), Condvar::new()));
        let (shared, mut out) = (Arc::clone(&printed), child.stdout.take().unwrap());
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = out.read(&mut bytes) {
                shared.0.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
                shared.1.notify_all();
            }
        });
        let mut talk = TerminalTalk { input: child.stdin.take(), child, printed, seen: 0 };
        talk.awaited("Palimpsest");
        talk
    }

    /// Waits for a text; everything that came up to it.
    pub(crate) fn awaited(&mut self, text: &str) -> String {
        let printed = self.printed.0.lock().unwrap();
        let has_not = |printed: &mut String| !printed[self.seen..].contains(text);
        let (printed, timeout) = self.printed.1.wait_timeout_while(printed, PATIENCE, has_not).unwrap();
        assert!(!timeout.timed_out(), "{text} never comes: {}", &printed[self.seen..]);
        let end = self.seen + printed[self.seen..].find(text).unwrap() + text.len();
        let came = printed[self.seen..end].to_owned();
        self.seen = end;
        came
    }

    pub(crate) fn type_line(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Says something or commands it, and waits until it is done.
    pub(crate) fn say(&mut self, line: &str) -> String {
        self.type_line(line);
        self.awaited(RESTS)
    }

    pub(crate) fn end(mut self) {
        drop(self.input.take());
        let said = finish(self.child);
        assert_eq!((said.code, said.err.as_str()), (0, ""));
    }
}

/// Answers with words that no summary could come upon, and summaries word for word.
fn talker() -> ProviderSetup {
    let mut at = 0;
    ProviderSetup::answers(move |_, ask| match is_summary(ask) {
        true => ExtractiveModel.answer(ask),
        false => {
            at += 1;
            says(&format!("Answer {at}. {}", "Nothing more came of it than these words. ".repeat(40)))
        }
    })
}

fn conversation(world: &TestWorld) -> Vec<ReceivedRequest> {
    world.provider.heard().asked.iter().filter(|asked| !asked.is_summary).cloned().collect()
}

#[test]
fn rewind_restores_the_earlier_request() {
    let world = TestWorld::new(talker());
    let mut talk = TerminalTalk::begin(&world, &[]);
    talk.say("the first prompt");
    talk.say("the second prompt");
    talk.type_line("/rewind");
    let choices = talk.awaited("Type a number");
    assert!(choices.contains("1: the second prompt") && choices.contains("2: the first prompt"), "{choices}");
    let told = talk.say("1");
    assert!(told.contains("continues from before this prompt"), "{told}");
    talk.say("the third prompt");
    talk.end();
    let asked = conversation(&world);
    assert_eq!(asked[2].head, asked[1].head);
    let length = asked[1].blocks.len();
    assert_eq!(asked[2].blocks.len(), length);
    assert_eq!(asked[2].blocks[..length - 1], asked[1].blocks[..length - 1], "all but what was said last");
    let last = &asked[2].blocks[length - 1].1;
    assert!(last.contains("the third prompt") && !asked[2].text().contains("the second prompt"), "{last}");
}

#[test]
fn a_part_of_the_conversation_is_compacted_by_message_number() {
    let world = TestWorld::new(talker());
    let mut talk = TerminalTalk::begin(&world, &[]);
    for words in ["the first prompt", "the second prompt", "the third prompt"] {
        talk.say(words);
    }
    let told = talk.say("/compact --from");
    assert!(told.contains("needs the number of a message"), "{told}");
    let told = talk.say("/compact --up-to 3");
    assert!(told.contains("the conversation was compacted"), "{told}");
    talk.say("the fourth prompt");
    talk.end();
    let asked = conversation(&world);
    let last = asked.last().unwrap().text();
    let is_kept = |number: usize| last.contains(&format!("\"text\":\"Answer {number}. Nothing"));
    assert_eq!([1, 2, 3].map(is_kept), [false, true, true], "the first answer is summarized: {last}");
}

#[test]
fn uncompact_restores_the_earlier_request() {
    let world = TestWorld::new(talker());
    let mut talk = TerminalTalk::begin(&world, &[]);
    talk.say("the first prompt");
    talk.say("the second prompt");
    let told = talk.say("/compact");
    assert!(told.contains("the conversation was compacted"), "{told}");
    talk.say("the third prompt");
    let told = talk.say("/uncompact");
    assert!(told.contains("The last compaction is undone."), "{told}");
    talk.say("the fourth prompt");
    let told = talk.say("/uncompact");
    assert!(!told.contains("The last compaction is undone."), "there is none any more: {told}");
    talk.end();
    let asked = conversation(&world);
    let [_, second, third, fourth] = asked.as_slice() else { panic!("{}", asked.len()) };
    assert!(third.departs_from(second).is_some() && !third.text().contains("Answer 1. Nothing"));
    assert_eq!(fourth.departs_from(second), None, "what was sent before is sent again, byte for byte");
    let places: Vec<_> = ["the first", "the second", "the third", "the fourth"]
        .map(|words| fourth.text().find(&format!("{words} prompt")))
        .into();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{}", fourth.text());
}

#[test]
fn a_pin_is_kept_by_compactions_until_it_is_removed() {
    const PIN: &str = "Whatever happens, the harbour has seven cranes.";
    let world = TestWorld::new(talker());
    let mut talk = TerminalTalk::begin(&world, &[]);
    talk.say("the first prompt");
    let told = talk.say(&format!("/pin {PIN}"));
    assert!(told.contains("1  Whatever happens"), "{told}");
    talk.say("the second prompt");
    talk.say("/compact");
    talk.say("the third prompt");
    let told = talk.say("/unpin 1");
    assert!(told.contains("Nothing is pinned"), "{told}");
    assert!(talk.say("/unpin 1").contains("there is no pin 1"));
    talk.say("the fourth prompt");
    talk.say("/compact");
    talk.say("the fifth prompt");
    talk.end();
    let asked = conversation(&world);
    assert_eq!(asked[1].departs_from(&asked[0]), None);
    let carried: Vec<bool> = asked.iter().map(|asked| asked.text().contains(PIN)).collect();
    assert_eq!(carried, [false, false, true, true, false]);
    assert_eq!(asked[3].departs_from(&asked[2]), None, "what was sent is not taken back");
}

#[test]
fn a_preview_writes_nothing_and_asks_no_model() {
    let world = TestWorld::new(talker());
    let mut talk = TerminalTalk::begin(&world, &[]);
    talk.say("the first prompt");
    talk.say("the second prompt");
    let before = (std::fs::read(&world.logs()[0]).unwrap(), world.provider.heard().asked.len());
    let told = talk.say("/compact --preview");
    for words in
        ["preview", "extractive", "summarised", "kept", "→", "the first prompt", "The context is unchanged"]
    {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert_eq!((std::fs::read(&world.logs()[0]).unwrap(), world.provider.heard().asked.len()), before);
    talk.say("the third prompt");
    talk.end();
    let asked = conversation(&world);
    assert_eq!(asked[2].departs_from(&asked[1]), None);
}

#[test]
fn mcp_prompts_are_slash_commands() {
    let world = TestWorld::new(talker());
    let config = world.servers(&[("s", "")]);
    let mut talk = TerminalTalk::begin(&world, &["--mcp-config", &config]);
    let mut told = String::new();
    for _ in 0..100 {
        talk.type_line("/mcp");
        talk.type_line("/nothing");
        told = talk.awaited("unknown command /nothing");
        if told.contains("s: ready") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(
        told.contains("s: ready, 3 tools, 1 resource, 1 prompt") && told.contains("/mcp__s__greet"),
        "{told}"
    );
    talk.type_line("/mcp__s__greet");
    talk.awaited("missing arguments: who");
    talk.say("/mcp__s__greet Ada");
    talk.say("/s:greet Grace");
    talk.type_line("/mcp restart s");
    talk.awaited("s is restarting");
    talk.end();
    let asked = conversation(&world);
    assert!(asked[0].text().contains("Greet them, with who=Ada"), "{}", asked[0].text());
    assert!(asked[1].text().contains("Greet them, with who=Grace"), "{}", asked[1].text());
    assert_eq!(asked[1].departs_from(&asked[0]), None);
}

#[test]
fn running_agents_are_listed() {
    let world = TestWorld::new(ProviderSetup::answers(|_, ask| {
        let said = |words: &str| {
            ask.messages.iter().any(|message| message.blocks.iter().any(|raw| raw.contains(words)))
        };
        let errand = json!({"description": "Look", "prompt": "task of the scout", "name": "scout", "run_in_background": true});
        match () {
            () if said("tool_result") => says("Done."),
            () if said("begin") => calls("I send one.", &[("Agent", errand)]),
            () => calls("I look.", &[("Bash", json!({"command": "sleep 20"}))]),
        }
    }));
    world.file(
        ".claude/agents/reviewer.md",
        "---\nname: reviewer\ndescription: Reads a change twice\n---\nReview.\n",
    );
    let mut talk = TerminalTalk::begin(&world, &["--permission-mode", "bypass", "--no-sandbox"]);
    talk.say("begin");
    assert!(world.provider.wait_until(PATIENCE, |heard| heard.asked.len() >= 3));
    let mut told = String::new();
    for _ in 0..100 {
        talk.type_line("/agents");
        told = talk.awaited("Sessions on this machine");
        if told.contains("tokens") && !told.contains(" 0 tokens") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(told.contains("scout  general, for"), "{told}");
    assert!(told.contains("reviewer  Reads a change twice") && told.contains("fork"), "{told}");
    talk.type_line("/exit");
    talk.end();
}

#[test]
fn slash_commands_run_in_print_mode() {
    let world = TestWorld::new(talker());
    world.file(".claude/commands/sum.md", "Add $ARGUMENTS.\n");
    let said = world.run(&["/sum 2 and 3"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(world.provider.heard().asked[0].text().contains("Add 2 and 3."));
    let said = world.run(&["--continue", "/cost --requests"]);
    assert!(said.code == 0 && said.out.contains("1 request"), "{}\n{}", said.out, said.err);
    let said = world.run(&["--continue", "/cost --all"]);
    assert!(said.code == 1 && said.err.contains("usage: /cost [--requests]"), "{}", said.err);
    let said = world.run(&["/help"]);
    assert!(said.out.contains("/compact") && !said.out.contains("/clear"), "{}", said.out);
    let is_command =
        |asked: &ReceivedRequest| asked.text().contains("/cost") || asked.text().contains("/help");
    assert!(!world.provider.heard().asked.iter().any(is_command), "commands ask no model");
}

#[test]
fn themes_and_keys_are_kept() {
    let world = TestWorld::new(talker());
    let mut talk = TerminalTalk::begin(&world, &[]);
    let settings = || std::fs::read_to_string(world.pal().join("settings.toml")).unwrap_or_default();
    talk.type_line("/theme light");
    talk.awaited("settings.toml");
    assert!(settings().contains("theme = \"light\""), "{}", settings());
    talk.type_line("/vim");
    talk.awaited("editor_mode = \"vim\"");
    talk.type_line("/vim off");
    talk.awaited("editor_mode = \"normal\"");
    assert!(settings().contains("editor_mode = \"normal\""), "{}", settings());
    talk.type_line("/theme pink");
    talk.awaited("dark-daltonized");
    talk.type_line("/theme");
    talk.awaited("2: dark");
    talk.type_line("2");
    talk.awaited("theme = \"dark\"");
    talk.end();
    let said = world.run(&["/theme dark"]);
    assert!(said.code != 0 && said.err.contains("command of the terminal"), "{}", said.err);
}

#[test]
fn a_plan_is_edited_rejected_and_approved_line_by_line() {
    let world = TestWorld::new(ProviderSetup::answers(|at, _| match at {
        0 | 1 => calls("", &[("ExitPlanMode", json!({"plan": format!("# Plan {at}\n\n1. write it")}))]),
        _ => says("Carried out."),
    }));
    let mut talk = TerminalTalk::begin(&world, &["--permission-mode", "plan"]);
    talk.type_line("go");
    let plan = talk.awaited("or n and why not.");
    assert!(plan.contains("Plan 0") && plan.contains("a to approve all edits too"), "{plan}");
    talk.type_line("n use another file");
    let plan = talk.awaited("or n and why not.");
    assert!(plan.contains("Plan 1"), "{plan}");
    let second = world.provider.heard().asked[1].text();
    assert!(second.contains("use another file"), "{second}");
    talk.type_line("e");
    talk.awaited("A line with a single `.` ends it");
    talk.type_line("# Better");
    talk.type_line("");
    talk.type_line("2. test it");
    talk.type_line(".");
    let plan = talk.awaited("or n and why not.");
    assert!(plan.contains("Better") && plan.contains("test it"), "{plan}");
    talk.say("y");
    let last = world.provider.heard().asked[2].text();
    assert!(last.contains("# Better") && last.contains("2. test it"), "{last}");
    talk.end();
}

#[test]
fn long_results_are_expanded_by_a_command() {
    let world = TestWorld::new(ProviderSetup::answers(|at, _| match at {
        0 => calls("", &[("Bash", json!({"command": "seq 1001 1100"}))]),
        _ => says("Counted."),
    }));
    let mut talk = TerminalTalk::begin(&world, &FREELY);
    let said = talk.say("count");
    assert!(said.contains("/expand prints all") && !said.contains("1003"), "{said}");
    talk.type_line("/expand");
    let all = talk.awaited("1099");
    assert!(all.contains("1003"), "{all}");
    talk.end();
}
