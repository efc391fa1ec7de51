//! Layers that settings switch on or change, each seen acting in the log of a session.

use pal_agent_testkit::{AgentWorld, ProviderSetup, calls, says};
use pal_events::PromptEnd;
use serde_json::Value;

use crate::{BYPASS, bash, caller, talker};

/// A model without bound thinking, so that sent content may change at any request.
const MODEL: &str = "model = \"claude-opus-5\"\n";
/// Two hours later, when the cache has expired.
const LATER: &str = "clock_offset_s = 7200\n";

/// Entries of a kind.
fn of_kind(log: &[Value], kind: &str) -> usize {
    log.iter().filter(|line| line["kind"] == kind).count()
}

/// Ids in the field `tool_use_ids` of all entries of a kind.
fn named_results(log: &[Value], kind: &str) -> usize {
    let ids = |line: &Value| line["tool_use_ids"].as_array().map_or(0, Vec::len);
    log.iter().filter(|line| line["kind"] == kind).map(ids).sum()
}

/// A project with a file of `lines` long lines.
fn printing_world(setup: ProviderSetup, lines: usize) -> AgentWorld {
    let world = AgentWorld::new(setup);
    let line = |number: usize| format!("{number} the quick brown fox jumps over the lazy dog\n");
    world.file("long.txt", &(0..lines).map(line).collect::<String>());
    world
}

/// A model that prints the file six times without a word, and then says `Done.`.
fn silent_printer() -> ProviderSetup {
    ProviderSetup::answers(|at, _| {
        let mut answer = calls("", &[bash("cat long.txt")]);
        answer.blocks.remove(0);
        if at < 6 { answer } else { says("Done.") }
    })
}

/// Log of a session that printed the file six times and was resumed two hours later, with fixed thresholds.
fn resumed_later(settings: &str) -> Vec<Value> {
    let world = printing_world(silent_printer(), 400);
    let settings = format!("{BYPASS}{MODEL}policy = \"threshold\"\n{settings}");
    let mut agent = world.start(&settings);
    assert_eq!(agent.prompt("Print it.").end, PromptEnd::Done);
    let log = agent.finish();
    let mut agent = world.resume(&format!("{LATER}{settings}"), &log);
    assert_eq!(agent.prompt("And now?").end, PromptEnd::Done);
    agent.log()
}

#[test]
fn redundant_calls_are_snipped_if_the_setting_is_on() {
    let snipped = |settings: &str| of_kind(&resumed_later(settings), "snip");
    assert_eq!(snipped(""), 0);
    assert_eq!(snipped("snip.enabled = true\n"), 0, "the last 20 messages stay");
    let on = "snip.enabled = true\nsnip.keep_messages = 2\n";
    assert_eq!(snipped(on), 1);
    assert_eq!(snipped(&format!("{on}microcompact.cold_minutes = 180\n")), 0, "the cache counts as warm");
    assert_eq!(snipped(&format!("{on}disabled = [\"snip\"]\n")), 0, "the kill switch wins");
}

#[test]
fn an_expired_cache_clears_all_but_the_results_to_keep() {
    let cleared = |settings: &str| named_results(&resumed_later(settings), "clear");
    assert_eq!(cleared(""), 1);
    assert_eq!(cleared("microcompact.cold_keep = 2\n"), 4);
    assert_eq!(cleared("microcompact.cold_minutes = 180\n"), 0);
}

#[test]
fn cache_edits_follow_their_settings() {
    let edited = |settings: &str| {
        let mut setup = caller(vec![bash("cat long.txt"); 6]);
        setup.cards = String::from("[models.claude-opus-5]\ncache_edits = true\n");
        let world = printing_world(setup, 400);
        let mut agent = world.start(&format!("{BYPASS}{MODEL}{settings}"));
        assert_eq!(agent.prompt("Print it.").end, PromptEnd::Done);
        named_results(&agent.log(), "cache_edit")
    };
    assert_eq!(edited(""), 0);
    // From four in the cache, all but two are deleted.
    assert!(edited("microcompact.cache_edit_from = 4\nmicrocompact.cache_edit_keep = 2\n") >= 2);
}

#[test]
fn results_under_pressure_follow_their_setting() {
    let cleared = |settings: &str| {
        let mut setup = caller((0..12).map(|number| bash(&format!("cat long.txt # {number}"))).collect());
        setup.cards = String::from("[models.claude-opus-5]\ncontext_management = []\n");
        let world = printing_world(setup, 220);
        // The warning is at 40,000 tokens.
        let window = "max_context_tokens = 50000\n";
        let mut agent = world.start(&format!("{BYPASS}{MODEL}{window}{settings}"));
        assert_eq!(agent.prompt("Print it.").end, PromptEnd::Done);
        let first = agent.log().into_iter().find(|line| line["kind"] == "clear").unwrap();
        named_results(&[first], "clear")
    };
    // Early, and where nothing else makes room.
    for when in ["microcompact.early = true\n", "auto_compact = false\n"] {
        let kept = |count: u32| cleared(&format!("{when}microcompact.pressure_keep = {count}\n"));
        let (few, many) = (kept(4), kept(1));
        assert_eq!(many - few, 3, "{when}: {many} {few}");
    }
}

/// Log of a conversation of ten prompts that outgrows 22,000 tokens several times.
fn long_talk(settings: &str) -> Vec<Value> {
    let world = AgentWorld::new(talker(400));
    let mut agent = world.start(&format!("{MODEL}threshold = {{ used = 22000 }}\n{settings}"));
    for number in 0..10 {
        assert_eq!(agent.prompt(&format!("Question {number}?")).end, PromptEnd::Done);
    }
    agent.log()
}

/// Log of a conversation with five long prompts and short answers, in a window of 40,000 tokens.
fn long_prompts(setup: ProviderSetup, settings: &str) -> Vec<Value> {
    let world = AgentWorld::new(setup);
    let mut agent = world.start(&format!("{MODEL}max_context_tokens = 40000\n{settings}"));
    for number in 0..5 {
        let text = format!("Question {number}? {}", "It is long. ".repeat(1_500));
        assert_eq!(agent.prompt(&text).end, PromptEnd::Done);
    }
    agent.log()
}

#[test]
fn spilling_follows_its_settings() {
    // A result of 20 KB, printed twice at once, and a prompt of 20 KB.
    let spilled = |settings: &str| {
        let two = ProviderSetup::answers(|at, _| match at {
            0 => calls("", &[bash("cat long.txt"), bash("cat long.txt; echo again")]),
            _ => says("Done."),
        });
        let world = printing_world(two, 400);
        let mut agent = world.start(&format!("{BYPASS}{MODEL}{settings}"));
        let prompt = format!("Print it. {}", "It is long. ".repeat(1_700));
        assert_eq!(agent.prompt(&prompt).end, PromptEnd::Done);
        of_kind(&agent.log(), "spill")
    };
    assert_eq!(spilled(""), 0, "everything fits");
    assert_eq!(spilled("spill.result_characters = 10000\n"), 2);
    assert_eq!(spilled("spill.result_characters = 10000\nspill.tool_characters = { Bash = 90000 }\n"), 0);
    assert_eq!(spilled("spill.message_characters = 30000\n"), 1, "the results of one message together");
    assert_eq!(spilled("spill.prompt_characters = 10000\n"), 1);
}

#[test]
fn restoration_follows_its_settings() {
    let restored = |settings: &str| {
        let files = ["one.txt", "two.txt", "three.txt"];
        let reads = files.map(|file| ("Read", serde_json::json!({"file_path": file}))).to_vec();
        let world = AgentWorld::new(caller(reads));
        for file in files {
            world.file(file, &format!("The text of {file}.\n").repeat(300));
        }
        let mut agent = world.start(&format!("{BYPASS}{MODEL}policy = \"threshold\"\n{settings}"));
        agent.prompt("Read them.");
        for number in 0..8 {
            agent.prompt(&format!("Question {number}? {}", "It is long. ".repeat(800)));
        }
        agent.agent.compact(None).unwrap();
        let boundary = agent.log_of_kind("boundary").remove(0).to_string();
        files.iter().filter(|file| boundary.contains(&format!("The text of {file}."))).count()
    };
    assert_eq!(restored(""), 3);
    assert_eq!(restored("compaction.restored_files = 1\n"), 1);
    assert_eq!(restored("compaction.restored_tokens = 0\n"), 0);
}

#[test]
fn folding_holds_up_auto_compact_while_it_frees_enough() {
    let counts = |settings: &str| {
        let log = long_talk(&format!("max_context_tokens = 40000\n{settings}"));
        (of_kind(&log, "fold"), of_kind(&log, "boundary"))
    };
    let (folds, boundaries) = counts("");
    assert!(folds == 0 && boundaries > 0, "{folds} {boundaries}");
    let (folds, boundaries) = counts("fold.enabled = true\nfold.from_percent = 60\n");
    assert!(folds > 0 && boundaries == 0, "{folds} {boundaries}");
    let (folds, boundaries) = counts("fold.enabled = true\nfold.from_percent = 60\ndisabled = [\"fold\"]\n");
    assert!(folds == 0 && boundaries > 0, "{folds} {boundaries}");
}

#[test]
fn auto_compact_takes_over_where_folding_does_not_free_enough() {
    // Words of the user are not folded.
    let log = long_prompts(talker(0), "fold.enabled = true\n");
    assert!(of_kind(&log, "boundary") > 0 && of_kind(&log, "fold") == 0);
}

#[test]
fn reactive_only_waits_for_a_refusal() {
    assert!(of_kind(&long_prompts(talker(0), ""), "boundary") > 0);
    let settings = "compaction.reactive_only = true\n";
    assert_eq!(of_kind(&long_prompts(talker(0), settings), "boundary"), 0, "the provider has more room");
    let mut setup = talker(0);
    setup.faults = String::from("too-long=41000/40000@5");
    let log = long_prompts(setup, settings);
    let triggers: Vec<&Value> =
        log.iter().filter(|line| line["kind"] == "boundary").map(|line| &line["trigger"]).collect();
    assert_eq!(triggers, ["reactive"]);
}

#[test]
fn auto_compact_asks_the_provider_if_the_setting_says_so() {
    let method = |settings: &str| {
        let log = long_talk(settings);
        let first = log.iter().find(|line| line["kind"] == "boundary").unwrap();
        first["how"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(method(""), "fork");
    assert_eq!(method("compaction.provider = true\n"), "provider");
}

#[test]
fn a_table_is_condensed_only_by_the_setting() {
    // 400 rows of about 30 characters.
    let rows = "for i in $(seq 1 400); do echo \"$i,name number $i,$((i * 31))\"; done";
    let result = |settings: &str| {
        let world = AgentWorld::new(caller(vec![bash(rows)]));
        let mut agent = world.start(&format!("{BYPASS}{settings}"));
        assert_eq!(agent.prompt("Print it.").end, PromptEnd::Done);
        world.provider.heard().asked.last().unwrap().text()
    };
    assert!(result("").contains("200,name number 200,6200"), "all rows are there");
    let condensed = result("condense.tables = \"always\"\n");
    assert!(!condensed.contains("200,name number 200,6200") && condensed.contains("Shortened from"));
}
