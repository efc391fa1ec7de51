//! `pal cost` and `pal breaks`: on the demo session, on stored ones, and on every recorded one.

use std::path::Path;

use pal_model::{
    BreakCause, CacheBreak, EntryDraft, RequestChange, RequestRecord, RequestSource, ResponseRecord,
    Timestamp, Usage,
};
use pal_testkit::session_files;

use crate::program::{CommandOutput, TestHome};
use crate::stored_session::ImportedSession;

fn demo() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../demo/session.jsonl").to_str().unwrap().to_owned()
}

#[track_caller]
fn good(said: CommandOutput) -> String {
    assert_eq!(said.code, 0, "{}\n{}", said.out, said.err);
    said.out
}

#[track_caller]
fn fits(out: &str, columns: usize) {
    let too_long = out.lines().find(|line| line.chars().count() > columns);
    assert_eq!(too_long, None, "{columns} columns");
}

fn parsed(out: &str) -> serde_json::Value {
    serde_json::from_str(out).unwrap()
}

#[test]
fn the_cost_report_fits_eighty_columns() {
    let out = good(TestHome::new().run(&["cost", &demo()]));
    fits(&out, 80);
    let expected = "\
session.jsonl: $0.2915 for 6 requests

                 requests    read  written  uncached  output     cost
claude-opus-4-6         6  74,759   38,280        22     589  $0.2915

cache    66.1% of prompt tokens were cache reads; they saved $0.2886, 49.8% of
         the $0.5800 that these requests cost without a cache
breaks   none; 1 expected drop, 18,981 tokens, $0.1086

";
    assert!(out.starts_with(expected), "{out}");
    let chart = "\
      0 └1───────────────────── 6
compact                  ▼
 cached  ▁▁▁▁████████████▁▁▁▁████
   cost  ████▁▁▁▁▁▁▁▁▁▁▁▁████▁▁▁▁
         full: 100% cached, $0.1211
";
    assert!(out.contains(chart), "{out}");
    assert_eq!(out.lines().filter(|line| line.contains("░░░░")).count(), 12, "{out}");
    assert!(!out.contains('\x1b'));
}

#[test]
fn colours_keep_the_width_and_every_request_has_a_row() {
    let home = TestHome::new();
    let out = good(home.run(&["cost", &demo(), "--color", "always", "--requests"]));
    assert!(out.contains("\x1b[90m████"), "{out}");
    let rows = out.lines().filter(|line| line.contains("  main    claude-opus-4-6")).count();
    assert_eq!(rows, 6, "{out}");
    assert!(out.contains("compaction −"), "{out}");
    let json = parsed(&good(home.run(&["cost", &demo(), "--json"])));
    assert_eq!(json["requests"].as_array().unwrap().len(), 6);
    assert_eq!(json["compactions"][0]["before_request"], 5);
    let sum: f64 = json["requests"].as_array().unwrap().iter().map(|row| row["cost"].as_f64().unwrap()).sum();
    assert!((sum - json["all"]["cost"].as_f64().unwrap()).abs() < 1e-9);
}

#[test]
fn the_newest_session_of_the_directory_is_the_default() {
    let stored = ImportedSession::new(3);
    let inner = stored.project.join("src");
    let named = stored.good("cost", &[]);
    assert_eq!(good(stored.home.run_in(&stored.project, &["cost"])), named);
    assert_eq!(good(stored.home.run_in(&inner, &["cost"])), named, "from a folder inside, too");
    let id = stored.log.parent().unwrap().file_name().unwrap().to_str().unwrap();
    assert_eq!(good(stored.home.run(&["cost", id])), named);
    let elsewhere = tempfile::tempdir().unwrap();
    for command in ["cost", "breaks"] {
        let said = stored.home.run_in(elsewhere.path(), &[command]);
        assert_eq!(said.code, 1);
        assert!(
            said.err.contains("no saved sessions for") && said.err.contains("hint: name a session"),
            "{}",
            said.err
        );
    }
}

#[test]
fn abandoned_branches_count_towards_the_cost() {
    let stored = ImportedSession::new(3);
    let before = parsed(&stored.good("cost", &["--json"]));
    let first = before["requests"][0].clone();
    let bytes = stored.bytes();
    let line = bytes.split(|byte| *byte == b'\n').nth(2).unwrap();
    let entry: serde_json::Value = serde_json::from_slice(line).unwrap();
    let mut log = stored.held();
    log.rewind(entry["id"].as_str().unwrap().parse().unwrap()).unwrap();
    let at = "2026-11-16T09:00:00.000Z".parse::<Timestamp>().unwrap();
    log.append(EntryDraft::user(pal_model::MessageOrigin::Person, "\"otherwise\""), at).unwrap();
    drop(log);
    let after = parsed(&stored.good("cost", &["--json"]));
    assert_eq!((&after["all"], &after["requests"][0]), (&before["all"], &first));
}

/// A request whose reads fell, with the verdict of the moment.
fn broken(stored: &ImportedSession, verdict: CacheBreak) {
    let at = "2026-11-16T09:00:00.000Z".parse::<Timestamp>().unwrap();
    let mut log = stored.held();
    let request = RequestRecord::new(RequestSource::main(), None, "claude-opus-4-6".into());
    log.append(EntryDraft::request(&request), at).unwrap();
    let got = ResponseRecord {
        response: "msg_broken".into(),
        source: RequestSource::main(),
        model: "claude-opus-4-6".into(),
        usage: Usage { cache_creation_input_tokens: 30_000, output_tokens: 5, ..Usage::default() },
        stop_reason: None,
        cost: None,
        cache_break: Some(verdict),
    };
    log.append(EntryDraft::response(&got), at).unwrap();
}

fn section(diff: &str) -> CacheBreak {
    let cause =
        BreakCause::Section { name: "environment".into(), change: RequestChange::Changed, characters: 12 };
    let provider = Some("system_changed".into());
    CacheBreak {
        tokens: 20_000,
        cause,
        also: vec![BreakCause::Effort],
        cost: None,
        provider,
        diff: Some(diff.into()),
    }
}

#[test]
fn a_break_is_explained_with_its_price_and_its_diff() {
    let stored = ImportedSession::new(3);
    let clean = stored.good("breaks", &[]);
    assert!(clean.contains("no cache breaks") && clean.contains("% of all prompt tokens"), "{clean}");
    let folder = stored.log.parent().unwrap().join("breaks");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("7.diff"), "@@ system @@\n-It is Sunday.\n+It is \x1b[2JMonday.\n").unwrap();
    broken(&stored, section("breaks/7.diff"));
    let out = stored.good("breaks", &[]);
    fits(&out, 80);
    for expected in [
        // 20 000 × (6.25 − 0.5)
        "1 cache break, 20,000 tokens, $0.1150",
        "request 7  2026-11-16 09:00:00  20,000 tokens, $0.1150",
        "section `environment` of the system prompt changed: 12 characters longer;\n    also, the effort setting changed",
        "the provider reports: system changed",
        "breaks/7.diff (--diff shows it)",
    ] {
        assert!(out.contains(expected), "`{expected}` is not in\n{out}");
    }
    let out = stored.good("breaks", &["--diff"]);
    assert!(out.contains("    -It is Sunday.\n    +It is ·[2JMonday."), "{out}");
    let json = parsed(&stored.good("breaks", &["--diff", "--json"]));
    assert_eq!(json["breaks"][0]["cause"], "section");
    assert_eq!(json["breaks"][0]["details"]["characters"], 12);
    assert_eq!(json["breaks"][0]["also"][0]["type"], "effort");
    assert!(json["breaks"][0]["diff_text"].as_str().unwrap().starts_with("@@ system"));
    assert!(stored.good("cost", &[]).contains("1: 20,000 fewer tokens read from the cache, $0.1150"));
}

#[test]
fn a_missing_diff_is_reported() {
    let stored = ImportedSession::new(2);
    let cause = BreakCause::Message { message: 3, block: 0, change: RequestChange::Changed, characters: 0 };
    let provider = Some("none".into());
    let verdict = CacheBreak { tokens: 20_000, cause, also: Vec::new(), cost: None, provider, diff: None };
    broken(&stored, verdict);
    let plain = stored.good("breaks", &[]);
    assert!(plain.contains("    already sent block 1 of message 4 changed\n"), "{plain}");
    assert!(
        plain.contains("    the provider reports no difference\n") && !plain.contains("no diff was"),
        "{plain}"
    );
    assert!(stored.good("breaks", &["--diff"]).contains("    no diff was stored\n"));
}

#[test]
fn diffs_outside_the_session_directory_are_refused() {
    let stored = ImportedSession::new(2);
    let secret = stored.home.file("secret.txt", "a secret");
    let folder = stored.log.parent().unwrap();
    broken(&stored, section(&secret));
    broken(&stored, section("../../../../../secret.txt"));
    broken(&stored, section("breaks/missing.diff"));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&secret, folder.join("link.diff")).unwrap();
        broken(&stored, section("link.diff"));
    }
    let out = stored.good("breaks", &["--diff"]);
    assert!(!out.contains("a secret"), "{out}");
    assert!(out.contains("not a file in the session's directory"), "{out}");
    assert!(!stored.good("breaks", &["--diff", "--json"]).contains("a secret"));
    assert!(folder.is_dir());
}

/// One recorded session through both commands.
fn walk(home: &TestHome, file: &Path) {
    let name = file.to_str().unwrap();
    let out = good(home.run(&["cost", name]));
    fits(&out, 80);
    assert!(out.contains("Context in tokens"), "{out}");
    let coloured = good(home.run(&["cost", name, "--color", "always"]));
    assert_eq!(coloured.lines().count(), out.lines().count(), "{name}");
    fits(&good(home.run(&["breaks", name, "--all"])), 80);
    let json = parsed(&good(home.run(&["cost", name, "--json"])));
    assert!(json["all"]["requests"].as_u64().unwrap() > 0, "{name}");
    match json["all"]["cost"].as_f64() {
        Some(cost) => assert!(cost > 0.0 && out.contains(" for "), "{out}"),
        None => assert!(out.contains("not reported") || out.contains("price not known"), "{out}"),
    }
    assert!(!out.contains("$0.0000 for"), "{out}");
    let breaks = parsed(&good(home.run(&["breaks", name, "--json", "--all"])));
    // Thinking is forgotten by the model's own rule; all else that is expected is a decision, and in the ledger.
    let expected = breaks["expected"].as_array().unwrap();
    let has_decisions = expected.iter().any(|fall| fall["details"]["what"] != "forgotten_thinking");
    let is_booked = ["compactions", "savings"].iter().any(|kind| !json[kind].as_array().unwrap().is_empty());
    assert!(!has_decisions || is_booked, "{name}: {expected:?}");
    for fall in breaks["breaks"].as_array().unwrap() {
        assert!(
            !fall["why"].as_str().unwrap().is_empty() && fall["tokens"].as_u64().unwrap() > 2_000,
            "{fall}"
        );
    }
}

#[test]
fn recorded_sessions_have_a_ledger() {
    let files = session_files();
    let (one, two) = files.split_at(files.len() / 2);
    std::thread::scope(|scope| {
        for half in [one, two] {
            scope.spawn(move || {
                let home = TestHome::new();
                half.iter().for_each(|file| walk(&home, file));
            });
        }
    });
}
