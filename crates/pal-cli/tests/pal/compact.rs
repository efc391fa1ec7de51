//! `pal compact` and `pal uncompact` on stored sessions.

use pal_testkit::session_files;

use crate::program::TestHome;
use crate::simulator::RunningSimulator;
use crate::stored_session::{ImportedSession, foreign, question};

/// The ways that need no key.
const WAYS: [&[&str]; 4] = [
    &["--with", "extractive"],
    &["--provider", "sim"],
    &["--provider", "sim", "--with", "plain"],
    &["--provider", "sim", "--with", "provider"],
];

#[test]
fn a_preview_keeps_the_context_and_records_its_requests() {
    let stored = ImportedSession::new(6);
    let (body, bytes) = (stored.body(), stored.bytes());
    let said = stored.run("compact", &["--preview"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.err.contains("ANTHROPIC_API_KEY is not set") && said.err.contains("without a model"),
        "{}",
        said.err
    );
    for expected in ["preview", "extractive", "tokens", "kept", "dropped", "verbatim", "restored files"] {
        assert!(said.out.contains(expected), "{expected}\n{}", said.out);
    }
    assert!(said.out.contains(&question(3)), "the summary itself is shown\n{}", said.out);
    assert_eq!(stored.bytes(), bytes, "without a model nothing is booked");
    let out = stored.good("compact", &["--preview", "--provider", "sim"]);
    assert!(out.contains("fork, by claude-opus-4-6") && out.contains("recorded in the log"), "{out}");
    assert_eq!(stored.body(), body);
    let grown = String::from_utf8(stored.bytes()[bytes.len()..].to_vec()).unwrap();
    let entries: Vec<serde_json::Value> =
        grown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Session-wide choices are latched before the request is sent; nothing else is decided.
    let kinds: Vec<String> = entries
        .iter()
        .filter(|entry| entry["kind"] != "latch")
        .map(|entry| format!("{} {}", entry["kind"].as_str().unwrap(), entry["source"].as_str().unwrap()))
        .collect();
    assert_eq!(kinds, ["request compact", "response compact"]);
    assert!(!out.contains('\x1b'), "no colours for a file");
}

#[test]
fn uncompact_restores_the_request_byte_for_byte() {
    for way in WAYS {
        let stored = ImportedSession::new(6);
        let before = stored.body();
        let out = stored.good("compact", &[way, &["--json"]].concat());
        let report: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(report["applied"], true);
        let (from, to) =
            (report["tokens_before"].as_u64().unwrap(), report["tokens_after"].as_u64().unwrap());
        assert!(to < from, "{report}");
        assert_eq!(report["audit"]["user_messages"], 6, "{report}");
        let after = stored.body();
        assert!(after.len() < before.len() / 2, "{way:?}: {} → {}", before.len(), after.len());
        let texts = stored.texts();
        for turn in 1..=6 {
            // A provider's own block is quoted where the model that is asked does not take it.
            let asked = question(turn).replace('"', "\\\"");
            let is_there = texts.contains(&question(turn)) || texts.contains(&asked);
            assert!(is_there, "{way:?}: question {turn} is lost\n{texts}");
        }
        let out = stored.good("uncompact", &[]);
        assert!(out.contains("undone") && out.contains("24 messages"), "{out}");
        assert_eq!(stored.body(), before, "{way:?}");
        stored.refused("uncompact", &[], &["nothing to take back"]);
    }
}

#[test]
#[ignore = "needs sessions of other agents: PAL_TEST_DATA"]
fn recorded_sessions_are_restored_by_uncompact() {
    let files = session_files();
    let (one, two) = files.split_at(files.len() / 2);
    let counts = std::thread::scope(|scope| {
        let halves =
            [one, two].map(|half| scope.spawn(move || half.iter().filter(|file| back(file)).count()));
        halves.map(|half| half.join().unwrap())
    });
    println!("{} of {} sessions were compacted and came back", counts[0] + counts[1], files.len());
}

/// Compacts a recorded session and takes it back; whether it was worth it and fitted.
fn back(file: &std::path::Path) -> bool {
    let home = TestHome::new();
    let said = home.run(&["import", "--json", file.to_str().unwrap()]);
    let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let log = report["log"].as_str().unwrap();
    let run = |arguments: &[&str]| home.run(&[arguments, &["--model", "claude-opus-5-5", log]].concat());
    let before = run(&["render"]).out;
    let compacted = run(&["compact", "--with", "extractive"]);
    if compacted.code != 0 {
        assert!(compacted.err.contains("no less than"), "{}: {}", file.display(), compacted.err);
        return false;
    }
    let after = run(&["render"]).out;
    assert!(home.run_with_input(&["check", "-"], after.as_bytes()).code == 0 && after != before);
    let uncompacted = run(&["uncompact"]);
    assert_eq!(uncompacted.code, 0, "{}: {}", file.display(), uncompacted.err);
    assert!(run(&["render"]).out == before, "{} did not come back as it was", file.display());
    true
}

#[test]
fn later_messages_follow_the_restored_ones() {
    let stored = ImportedSession::new(6);
    let before: serde_json::Value = serde_json::from_str(&stored.body()).unwrap();
    let _ = stored.good("compact", &[]);
    stored.say("And what about part seven?");
    let _ = stored.good("uncompact", &[]);
    let after: serde_json::Value = serde_json::from_str(&stored.body()).unwrap();
    let (before, after) = (before["messages"].as_array().unwrap(), after["messages"].as_array().unwrap());
    assert!(after.len() >= before.len());
    // The end of the conversation carries the cache mark; all before it is as it was.
    let end = before.len() - 1;
    assert_eq!(after[..end], before[..end]);
    assert!(after.last().unwrap().to_string().contains("And what about part seven?"));
    assert_eq!(after.iter().filter(|message| message.to_string().contains("part seven")).count(), 1);
}

#[test]
fn two_compactions_are_undone_one_by_one() {
    let stored = ImportedSession::new(8);
    let first = stored.body();
    let _ = stored.good("compact", &["--up-to", "20"]);
    let second = stored.body();
    let _ = stored.good("compact", &["--provider", "sim"]);
    assert_ne!(stored.body(), second);
    for turn in 1..=8 {
        assert!(stored.texts().contains(&question(turn)), "question {turn} is lost by the second compaction");
    }
    let out = stored.good("uncompact", &[]);
    assert!(out.contains("earlier compaction"), "{out}");
    assert_eq!(stored.body(), second);
    let _ = stored.good("uncompact", &["--json"]);
    assert_eq!(stored.body(), first);
    stored.refused("uncompact", &[], &["nothing to take back"]);
}

#[test]
fn a_compaction_that_does_not_shrink_the_context_says_so_and_how_to_undo_it() {
    let stored = ImportedSession::new(1);
    let (body, note) = (stored.body(), "not shrink the context");
    let previewed = stored.good("compact", &["--preview", "--with", "extractive"]);
    assert!(previewed.contains(&format!("would {note}")), "{previewed}");
    let report = stored.good("compact", &["--with", "extractive"]);
    assert!(report.contains(&format!("did {note}")) && report.contains("pal uncompact"), "{report}");
    let _ = stored.good("uncompact", &[]);
    assert_eq!(stored.body(), body);
    let larger = ImportedSession::new(8).good("compact", &["--with", "extractive"]);
    assert!(!larger.contains(note), "{larger}");
}

#[test]
fn an_empty_session_asks_no_model() {
    let stored = ImportedSession::new(6);
    let _ = stored.good("compact", &["--provider", "sim"]);
    let bytes = stored.bytes();
    stored.refused("compact", &["--provider", "sim"], &["no messages since the last compaction"]);
    assert_eq!(stored.bytes(), bytes);
}

#[test]
fn ranges_are_named_by_message_number() {
    let stored = ImportedSession::new(6);
    let before: serde_json::Value = serde_json::from_str(&stored.body()).unwrap();
    let page: serde_json::Value = serde_json::from_str(&stored.good("view", &["--json"])).unwrap();
    let fifth = &page["messages"][16];
    assert!(fifth["number"] == 17 && fifth["begins"].as_str().unwrap().starts_with("Question 5"), "{fifth}");
    let _ = stored.good("compact", &["--up-to", fifth["id"].as_str().unwrap()]);
    let texts = stored.texts();
    assert!(texts.contains("Part 5 is fine now.") && !texts.contains("\nPart 4 is fine now.\n"), "{texts}");
    let _ = stored.good("uncompact", &[]);
    let _ = stored.good("compact", &["--from", "17"]);
    let after: serde_json::Value = serde_json::from_str(&stored.body()).unwrap();
    let beginning = |body: &serde_json::Value| body["messages"].as_array().unwrap()[..16].to_vec();
    assert_eq!(beginning(&after), beginning(&before), "the beginning stays as it was");
    stored.refused("compact", &["--from", "99"], &["no message 99"]);
    stored.refused("compact", &["--from", "ffffffff-ff"], &["starts with ffffffff-ff"]);
    assert_eq!(stored.run("compact", &["--from", "1", "--up-to", "2"]).code, 2);
}

#[test]
fn an_invalid_range_is_an_error() {
    let stored = ImportedSession::new(6);
    for side in ["--from", "--up-to"] {
        for way in [&["--with", "extractive"][..], &[]] {
            let said = stored.run("compact", &[&[side, "1"], way].concat());
            assert!(
                said.code == 1 && said.err.contains("there is nothing before message 1\n"),
                "{}",
                said.err
            );
            assert!(said.err.contains("hint: name a later message"), "{}", said.err);
            let said = stored.run("compact", &[&[side, "999999"], way].concat());
            assert!(said.code == 1 && said.err.contains("no message 999999"), "{}", said.err);
            assert!(!said.err.contains("ANTHROPIC") && !said.err.contains("extractive"), "{}", said.err);
        }
        // Message 19 answers a call of message 18.
        let out = stored.good("compact", &["--preview", side, "19"]);
        assert!(out.contains("before message 18, not 19: calls and their results"), "{out}");
        let out = stored.good("compact", &["--preview", side, "17"]);
        assert!(out.contains("before message 17\n") || out.contains("before message 17 "), "{out}");
        let out = stored.good("compact", &["--preview", "--json", side, "19"]);
        let report: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(report["cut_before_message"], 18, "{report}");
    }
    let _ = stored.good("compact", &["--up-to", "17"]);
    for first in ["1", "2"] {
        stored.refused(
            "compact",
            &["--up-to", first],
            &["there is nothing between the last compaction and message"],
        );
    }
}

#[test]
fn uncompact_is_refused_if_the_result_does_not_fit() {
    let stored = ImportedSession::new(8);
    let _ = stored.good("compact", &[]);
    let compacted = stored.body();
    let log = stored.log.to_str().unwrap();
    let said = stored.home.run_with_environment(&["uncompact", log], &[("PAL_MAX_CONTEXT_TOKENS", "24000")]);
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(said.err.contains("window of 24000") && said.err.contains("hint:"), "{}", said.err);
    assert_eq!(stored.body(), compacted);
}

#[test]
fn only_project_files_are_restored() {
    let stored = ImportedSession::new(5);
    let secret = stored.home.file("secret.txt", "the canary of somebody else");
    std::fs::remove_file(stored.project.join("src/part5.rs")).unwrap();
    std::os::unix::fs::symlink(&secret, stored.project.join("src/part5.rs")).unwrap();
    std::fs::write(stored.project.join("src/part4.rs"), "// part 4 was changed meanwhile\n").unwrap();
    let out = stored.good("compact", &["--json"]);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    let not = report["not_restored"].as_array().unwrap();
    assert!(not.len() == 1 && not[0]["why"].as_str().unwrap().contains("outside"), "{report}");
    let texts = stored.texts();
    assert!(texts.contains("// part 4 was changed meanwhile"), "{texts}");
    assert!(!stored.body().contains("canary"));
}

#[test]
fn files_are_restored_only_in_the_directory_of_the_session() {
    let stored = ImportedSession::new(5);
    std::fs::write(stored.project.join("src/part4.rs"), "// the canary\n").unwrap();
    let log = stored.log.to_str().unwrap();
    for elsewhere in [stored.home.path(), std::path::Path::new("/")] {
        let said = stored.home.run_in(elsewhere, &["compact", "--preview", log]);
        assert_eq!(said.code, 0, "{}", said.err);
        assert!(said.out.contains("not restored:") && said.out.contains("run it in the"), "{}", said.out);
        assert!(!said.out.contains("canary") && !said.out.contains("restored files"), "{}", said.out);
    }
    let said = stored.home.run_in(&stored.home.path().join("pal"), &["compact", "--json", log]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!stored.body().contains("canary"), "nothing of it is in the boundary either");
    let _ = stored.good("uncompact", &[]);
    let said = stored.home.run_in(&stored.project.join("src"), &["compact", log]);
    assert!(said.code == 0 && said.out.contains("restored files"), "{}{}", said.out, said.err);
    assert!(stored.body().contains("canary"));
}

#[test]
fn a_live_session_is_refused_with_its_process() {
    let stored = ImportedSession::new(3);
    let bytes = stored.bytes();
    let held = stored.held();
    let holder = format!("process {}", std::process::id());
    for (command, arguments) in [("compact", &["--preview"][..]), ("uncompact", &[]), ("pin", &["text"])] {
        stored.refused(command, arguments, &["open in process", &holder]);
    }
    assert!(stored.good("view", &[]).contains("Question 1"), "looking is always possible");
    drop(held);
    assert_eq!(stored.bytes(), bytes);
}

#[test]
fn sessions_of_other_agents_must_be_imported() {
    let home = TestHome::new();
    let file = home.file("session.jsonl", foreign(home.path(), "8ba1c0de", 3));
    for command in [&["compact", &file][..], &["uncompact", &file], &["pin", &file, "text"]] {
        let said = home.run(command);
        assert_eq!(said.code, 1, "{command:?}");
        assert!(said.err.contains("hint:") && said.err.contains("pal import"), "{}", said.err);
    }
    assert_eq!(home.run(&["view", &file]).code, 0);
    assert!(home.written().is_empty());
}

#[test]
fn sessions_are_found_by_id() {
    let stored = ImportedSession::new(3);
    let id = stored.log.parent().unwrap().file_name().unwrap().to_str().unwrap();
    let folder = stored.log.parent().unwrap().to_str().unwrap();
    let whole = stored.good("view", &["--json"]);
    for name in [id, &id[..13], "8ba1c0de", folder] {
        assert_eq!(stored.home.run(&["view", "--json", name]).out, whole, "{name}");
    }
    let other = stored.home.file("other.jsonl", foreign(&stored.project, "8ba1ffff", 2));
    assert_eq!(stored.home.run(&["import", &other]).code, 0);
    let said = stored.home.run(&["compact", "8ba1"]);
    assert!(
        said.code == 1 && said.err.contains("2 session ids start with") && said.err.contains(id),
        "{}",
        said.err
    );
    let said = stored.home.run(&["compact", "nothing-like-it"]);
    assert!(
        said.code == 1 && said.err.contains("no session id starts with") && said.err.contains("hint:"),
        "{}",
        said.err
    );
}

#[test]
fn impossible_methods_are_explained() {
    let stored = ImportedSession::new(4);
    stored.refused("compact", &["--with", "fork"], &["ANTHROPIC_API_KEY"]);
    stored.refused(
        "compact",
        &["--with", "provider", "--provider", "sim", "--model", "claude-opus-4-5"],
        &["has no compaction of its own"],
    );
    let newer = ["--model", "claude-opus-5-5", "--with", "provider", "--provider", "sim"];
    stored.refused("compact", &[&newer[..], &["--from", "2"]].concat(), &["whole conversations only"]);
    stored.refused("compact", &["--edit"], &["VISUAL"]);
    let log = stored.log.to_str().unwrap();
    let said = stored.home.run_with_environment(&["compact", log], &[("PAL_DISABLE_COMPACT", "1")]);
    assert!(said.code == 1 && said.err.contains("PAL_DISABLE_COMPACT"), "{}", said.err);
}

#[test]
fn the_summary_falls_back_to_an_extract() {
    let stored = ImportedSession::new(5);
    let simulator = RunningSimulator::start(&stored.home, &["--faults", "500@1-99"]);
    let log = stored.log.to_str().unwrap();
    let variables = [("ANTHROPIC_BASE_URL", simulator.address.as_str())];
    let said = stored.home.run_with_environment(&["compact", log], &variables);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.out.contains("extractive, without a model") && said.out.contains("failed attempts"),
        "{}",
        said.out
    );
    assert!(said.err.contains("no summary by fork"), "{}", said.err);
    let keyed = RunningSimulator::start(&stored.home, &["--key", "right"]);
    let variables = [("ANTHROPIC_BASE_URL", keyed.address.as_str()), ("ANTHROPIC_API_KEY", "wrong")];
    stored.say("one more");
    let said = stored.home.run_with_environment(&["compact", "--with", "fork", log], &variables);
    assert!(said.code == 1 && said.err.contains("unchanged"), "{}", said.err);
    assert!(said.err.contains("no summary by fork: the provider rejects the API key"), "{}", said.err);
}

#[test]
fn an_edited_summary_must_keep_the_pins() {
    let stored = ImportedSession::new(5);
    let _ = stored.good("pin", &["Never touch the generated files."]);
    let before = stored.body();
    let edit = |script: &str| {
        let log = stored.log.to_str().unwrap();
        let path = ("PATH", std::env::var("PATH").unwrap());
        let variables = [("EDITOR", script), (path.0, path.1.as_str())];
        stored.home.run_with_environment(&["compact", "--edit", log], &variables)
    };
    let said = edit("sed -i '/generated files/d'");
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(said.err.contains("lost pin 1") && said.err.contains("your text is saved in"), "{}", said.err);
    for nothing in ["false", "truncate -s 0"] {
        assert_eq!(edit(nothing).code, 1, "{nothing}");
    }
    assert_eq!(stored.body(), before, "nothing was applied");
    let said = edit("sed -i -e '/Question 2/d' -e '$a Mind the gap.'");
    assert_eq!(said.code, 0, "{}", said.err);
    let texts = stored.texts();
    assert!(texts.contains("Mind the gap.") && texts.contains("Never touch the generated files."), "{texts}");
    assert!(texts.contains(&question(2)), "what the user said is put back\n{texts}");
    let left: Vec<_> = std::fs::read_dir(stored.log.parent().unwrap()).unwrap().flatten().collect();
    assert_eq!(left.len(), 3, "the log, and the two texts that were not applied: {left:?}");
}

#[test]
fn the_approved_plan_is_restored_and_restored_files_count_as_read() {
    let plan = ("ExitPlanMode", serde_json::json!({"plan": "# Plan\n\nMove the vault to the cellar."}));
    let stored = ImportedSession::with_call(6, Some(plan));
    let _ = stored.good("compact", &["--with", "extractive"]);
    assert!(stored.body().contains("Move the vault to the cellar."));
    let log = String::from_utf8(stored.bytes()).unwrap();
    let boundary = log.lines().rev().find(|line| line.contains("\"kind\":\"boundary\"")).unwrap();
    let boundary: serde_json::Value = serde_json::from_str(boundary).unwrap();
    let seen = boundary["snapshot"]["seen_files"].as_object().expect("files that count as read");
    assert!(seen.keys().any(|path| path.ends_with("src/part6.rs")), "{seen:?}");
    let mut log = pal_store::Log::open(&stored.log, pal_model::IdSource::seeded(7)).unwrap().log;
    for part in 0..4 {
        let text = serde_json::json!(format!("More of it, part {part}. {}", "and so on ".repeat(2_000)));
        let draft = pal_model::EntryDraft::user(pal_model::MessageOrigin::Person, &text.to_string());
        log.append(draft, pal_model::Timestamp::from_milliseconds(1_800_000_000_000)).unwrap();
    }
    drop(log);
    let _ = stored.good("compact", &["--with", "extractive"]);
    assert!(stored.body().contains("Move the vault to the cellar."), "a later compaction finds it, too");
}

#[test]
fn hooks_run_before_and_after_a_compaction() {
    let stored = ImportedSession::new(6);
    let hook = |event: &str, command: &str| {
        format!("[[hooks.{event}]]\nhooks = [{{ type = \"command\", command = \"{command}\" }}]\n")
    };
    let log = stored.project.join("heard.json");
    let settings = stored.home.path().join("pal/settings.toml");
    let heard = format!("cat > {}; echo Keep the numbers.", log.display());
    let after = hook("PostCompact", "echo The vault is closed.");
    std::fs::write(&settings, hook("PreCompact", &heard) + &after).unwrap();
    let _ = stored.good("compact", &["--preview"]);
    assert!(!log.exists(), "a preview has no effects");
    let _ = stored.good("compact", &["--with", "extractive", "the", "vault"]);
    let heard: serde_json::Value = serde_json::from_slice(&std::fs::read(&log).unwrap()).unwrap();
    assert_eq!((&heard["trigger"], &heard["custom_instructions"]), (&"manual".into(), &"the vault".into()));
    assert!(stored.body().contains("The vault is closed."));
    std::fs::write(&settings, hook("PreCompact", "echo Not now. >&2; exit 2")).unwrap();
    let bytes = stored.bytes();
    stored.refused("compact", &["--with", "extractive"], &["forbids the compaction", "Not now."]);
    assert_eq!(stored.bytes(), bytes);
}
