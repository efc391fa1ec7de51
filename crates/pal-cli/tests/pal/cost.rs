//! `pal cost` and `pal breaks`: on the demo session, on stored ones, and on every recorded one.

use std::path::Path;

use pal_model::{
    BreakCause, CacheBreak, EntryDraft, RequestChange, RequestRecord, RequestSource, ResponseRecord,
    Timestamp, Usage,
};
use pal_testkit::session_files;

use crate::commands::SESSION;
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

/// A session that `pal` recorded against the simulator.
fn own_session(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/sessions");
    folder.join(name).to_str().unwrap().to_owned()
}

/// A member of a row of the replays.
fn figure(savings: &serde_json::Value, policy: &str, path: &str) -> f64 {
    let rows = savings["replays"].as_array().unwrap();
    let row = rows.iter().find(|row| row["policy"] == policy).unwrap();
    row.pointer(path).and_then(serde_json::Value::as_f64).unwrap_or_else(|| panic!("{path}: {row}"))
}

#[track_caller]
fn near(one: f64, other: f64, tolerance: f64) {
    assert!((one - other).abs() <= tolerance, "{one} and {other} differ by more than {tolerance}");
}

#[test]
fn savings_are_differences_of_replays_that_equal_the_recording() {
    let home = TestHome::new();
    // Under `none` in effect: nothing was dropped from these sessions.
    for (name, is_unchanged) in
        [("forked-1.jsonl", true), ("resumed.jsonl", true), ("long.jsonl", false), ("compacted.jsonl", false)]
    {
        let file = own_session(name);
        let json = parsed(&good(home.run(&["cost", &file, "--savings", "--json"])));
        let savings = &json["policy_savings"];
        let paid = savings["recorded"]["cost_usd"].as_f64().unwrap();
        let summaries = json["by_source"]["compact"]["cost"].as_f64().unwrap_or(0.0);
        near(figure(savings, "as recorded", "/cost_usd"), paid, 0.05 * paid);
        if is_unchanged {
            near(figure(savings, "as recorded", "/cost_usd"), paid, 1e-6);
            near(figure(savings, "none", "/total_usd"), paid, 0.001 * paid);
        }
        let replayed = |policy: &str| {
            let report = parsed(&good(home.run(&["replay", "--policy", policy, "--json", &file])));
            report["cost_usd"].as_f64().unwrap()
        };
        // Recorded summaries are copied by a replay, and were paid.
        near(figure(savings, "as recorded", "/cost_usd"), replayed("none") + summaries, 1e-9);
        near(figure(savings, "cost-aware", "/cost_usd"), replayed("cost-aware"), 1e-9);
        near(figure(savings, "threshold", "/cost_usd"), replayed("threshold"), 1e-9);
        let total = |policy: &str| figure(savings, policy, "/total_usd");
        for policy in ["as recorded", "none", "threshold", "cost-aware"] {
            near(
                total(policy),
                figure(savings, policy, "/cost_usd") + figure(savings, policy, "/rereads_usd"),
                1e-9,
            );
            assert!(figure(savings, policy, "/rereads_usd") >= 0.0);
            for (other, member) in [("none", "saved_against_none"), ("as recorded", "saved_against_recorded")]
            {
                if policy != other {
                    let saved = total(other) - total(policy);
                    near(figure(savings, policy, &format!("/{member}/usd")), saved, 1e-9);
                    near(figure(savings, policy, &format!("/{member}/share")), saved / total(other), 1e-9);
                }
            }
        }
    }
}

#[test]
fn savings_and_losses_are_stated_in_dollars_and_percent() {
    let home = TestHome::new();
    let text = |name: &str, more: &[&str]| {
        let out = good(home.run(&[&["cost", &own_session(name), "--savings"], more].concat()));
        fits(&out, 80);
        assert!(
            out.contains("replay against the") && out.contains("estimated cost of reading again"),
            "{out}"
        );
        out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let resumed = text("resumed.jsonl", &[]);
    let expected = "`cost-aware` saves $1.0560 (69.7%) against `none` and saves $1.0560 (69.7%) against the recorded client.";
    assert!(resumed.contains(expected) && resumed.contains("claude-opus-5-5, window 1,000,000"), "{resumed}");
    // A session too short for what the policy pays in advance.
    let forked = text("forked-1.jsonl", &["--window", "200000"]);
    let expected = "With re-reads, the session as recorded costs the same as `none`; `threshold` costs the same as both; \
                    `cost-aware` costs $0.0440 (19.3%) more than `none` and costs $0.0440 (19.3%) more than the recorded client.";
    assert!(forked.contains(expected) && forked.contains("window 200,000"), "{forked}");
    let plain = good(home.run(&["cost", &own_session("resumed.jsonl")]));
    assert!(!plain.contains("re-reads"), "{plain}");
}

#[test]
fn no_saving_is_stated_without_prices_or_for_several_sessions() {
    let home = TestHome::new();
    let file = home.file("session.jsonl", SESSION.replace("claude-opus-4-6", "nobody-knows-it"));
    let out = good(home.run(&["cost", &file, "--savings"]));
    assert!(out.contains("The price of nobody-knows-it is not known, so no saving can be stated"), "{out}");
    let table = out.split("Other policies").nth(1).unwrap();
    assert!(!table.contains('$') && !table.contains("saves") && !table.contains("the same"), "{out}");
    let json = parsed(&good(home.run(&["cost", &file, "--savings", "--json"])));
    let savings = &json["policy_savings"];
    assert_eq!(savings["unpriced_models"][0], "nobody-knows-it");
    assert!(savings["recorded"]["cost_usd"].is_null(), "{savings}");
    for row in savings["replays"].as_array().unwrap() {
        for member in ["cost_usd", "rereads_usd", "total_usd", "saved_against_none", "saved_against_recorded"]
        {
            assert!(row[member].is_null(), "{member}: {row}");
        }
        assert!(row["tokens"]["output"].as_u64().unwrap() > 0, "{row}");
    }
    let said = home.run(&["cost", &file, &file, "--savings"]);
    assert!(said.code == 2 && said.err.contains("--savings replays one session"), "{}", said.err);
    assert_eq!(home.run(&["cost", &file, "--window", "200000"]).code, 2);
}

/// A session of another agent, of `turns` turns that each read a file, and of a compaction before the last one.
fn compacted_by_another_client(turns: usize, trigger: &str) -> String {
    let project = Path::new("/src/demo");
    let lines = crate::stored_session::foreign(project, "8ba1c0de", turns);
    let mut lines: Vec<String> = lines.lines().map(str::to_owned).collect();
    let last = lines.len() - 4;
    let boundary = serde_json::json!({"type": "system", "subtype": "compact_boundary", "uuid": "b1", "parentUuid": null,
        "sessionId": "8ba1c0de", "content": "Conversation compacted", "timestamp": "2026-11-15T09:50:00.000Z",
        "compactMetadata": {"trigger": trigger, "preTokens": 30_000}});
    let summary = serde_json::json!({"type": "user", "uuid": "b2", "parentUuid": "b1", "sessionId": "8ba1c0de",
        "isCompactSummary": true, "timestamp": "2026-11-15T09:50:01.000Z",
        "message": {"role": "user", "content": "Summary: all parts but the last one are fine."}});
    let mut next: serde_json::Value = serde_json::from_str(&lines[last]).unwrap();
    next["parentUuid"] = "b2".into();
    next["timestamp"] = "2026-11-15T09:51:00.000Z".into();
    lines[last] = next.to_string();
    lines.splice(last..last, [boundary.to_string(), summary.to_string()]);
    lines.join("\n") + "\n"
}

#[test]
fn policies_get_no_more_room_than_a_client_that_compacted_by_itself() {
    let home = TestHome::new();
    for (trigger, window, basis) in [("auto", 200_000, "compactions"), ("manual", 1_000_000, "model_card")] {
        let file = home.file("session.jsonl", compacted_by_another_client(3, trigger));
        let json = parsed(&good(home.run(&["cost", &file, "--savings", "--json"])));
        let savings = &json["policy_savings"];
        assert_eq!(
            (&savings["window"], &savings["window_basis"]),
            (&window.into(), &basis.into()),
            "{savings}"
        );
        assert_eq!(savings["recorded"]["unrecorded_summaries"], 1, "{savings}");
        let out = good(home.run(&["cost", &file, "--savings"]));
        assert!(out.contains("The transcript lacks the requests"), "{out}");
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
