//! `pal replay` as people run it.

use serde_json::Value;

use crate::commands::SESSION;
use crate::program::TestHome;
use crate::stored_session::foreign;

#[test]
fn simulated_figures_stand_beside_recorded_ones() {
    let home = TestHome::new();
    let file = home.file("session.jsonl", SESSION);
    let said = home.run(&["replay", &file]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    for expected in ["claude-opus-4-6", "simulated", "recorded", "20,005", "cost", "engine time per turn"] {
        assert!(said.out.contains(expected), "{expected}\n{}", said.out);
    }
    assert!(home.written().is_empty(), "nothing is kept");
    let other = home.file("other.jsonl", SESSION);
    let said = home.run(&["replay", &file, &other]);
    assert!(said.code == 0 && said.out.contains("2 sessions"), "{}{}", said.out, said.err);
}

#[test]
fn json_has_one_object_per_file_in_order() {
    let home = TestHome::new();
    let files = ["a.jsonl", "b.jsonl", "c.jsonl"].map(|name| home.file(name, SESSION));
    let mut arguments = vec!["replay", "--json"];
    arguments.extend(files.iter().map(String::as_str));
    let said = home.run(&arguments);
    assert_eq!(said.code, 0, "{}", said.err);
    let reports: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(reports.len(), 3);
    for (report, file) in reports.iter().zip(&files) {
        assert_eq!(report["file"].as_str(), Some(file.as_str()));
        assert_eq!((&report["requests"], &report["rejected"]), (&2.into(), &0.into()));
        for path in [
            "/tokens/input",
            "/tokens/cache_read",
            "/tokens/cache_write",
            "/tokens/output",
            "/cost_usd",
            "/cache_hit_ratio",
            "/peak_context_tokens",
            "/window",
            "/engine_us/p50",
            "/engine_us/p99",
            "/engine_us/max",
            "/recorded/cost_usd",
        ] {
            assert!(report.pointer(path).is_some_and(Value::is_number), "{path}: {report}");
        }
        assert_eq!(report["recorded"]["tokens"]["cache_read"], 20_005);
        for list in ["compactions", "breaks", "lost"] {
            assert_eq!(report[list].as_array().map(Vec::len), Some(0), "{list}");
        }
        assert!(report["layers"].is_object());
        // The first call writes the unrecorded prefix, the second reads it.
        let read = report["tokens"]["cache_read"].as_u64().unwrap();
        assert!((19_000..21_500).contains(&read), "{report}");
    }
}

#[test]
fn out_keeps_a_log_that_can_be_replayed() {
    let home = TestHome::new();
    let file = home.file("session.jsonl", SESSION);
    let out = home.path().join("out");
    let arguments = ["replay", "--json", "--out", out.to_str().unwrap(), &file];
    let first = home.run(&arguments);
    assert_eq!(first.code, 0, "{}", first.err);
    let log = out.join("session/log.jsonl");
    let again = home.run(&["replay", "--json", log.to_str().unwrap()]);
    assert_eq!(again.code, 0, "{}", again.err);
    let tokens = |said: &str| serde_json::from_str::<Value>(said).unwrap()["tokens"]["cache_read"].clone();
    assert_eq!(tokens(&first.out), tokens(&again.out));
    // A log that is there is not written over.
    let refused = home.run(&arguments);
    assert!(refused.code == 1 && refused.err.contains("--out"), "{}", refused.err);
}

#[test]
fn files_that_cannot_be_replayed_are_reported() {
    let home = TestHome::new();
    let good = home.file("good.jsonl", SESSION);
    let silent = home.file("silent.jsonl", SESSION.lines().next().unwrap());
    let said = home.run(&["replay", &good, &silent, "nowhere.jsonl"]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains("good.jsonl") || said.out.contains("claude-opus-4-6"), "{}", said.out);
    for expected in ["silent.jsonl", "--model", "nowhere.jsonl", "2 of 3 files"] {
        assert!(said.err.contains(expected), "{expected}\n{}", said.err);
    }
    let small = home.run(&["replay", "--window", "0", &good]);
    assert!(small.code == 2 && small.err.contains("--window"), "{}", small.err);
    let refused = home.run(&["replay", "--policy", "none", "--window", "100", &good]);
    assert!(refused.code == 0 && refused.out.contains("prompt is too long"), "{}", refused.out);
    // The engine does not send what cannot fit, and says what would help.
    let refused = home.run(&["replay", "--window", "100", &good]);
    assert!(refused.code == 1 && refused.out.contains("larger window"), "{}", refused.out);
    assert!(refused.out.contains("simulated"), "the table is there all the same: {}", refused.out);
    assert!(!refused.out.contains("()"), "{}", refused.out);
    for number in ["request 1 was refused", "request 2 was refused"] {
        assert!(refused.out.contains(number), "{number}\n{}", refused.out);
    }
    let refused = home.run(&["replay", "--json", "--window", "100", &good, &good]);
    assert!(refused.code == 1 && refused.out.lines().count() == 2, "{}", refused.out);
}

#[test]
fn compaction_is_switched_off_by_the_environment() {
    let home = TestHome::new();
    let file = home.file("session.jsonl", foreign(home.path(), "8ba1c0de", 30));
    let run = |variables: &[(&str, &str)]| {
        let only = ["--policy", "threshold", "--layers", "auto-compact"];
        let arguments = [&["replay", "--json", "--window", "40000", &file], &only[..]].concat();
        let said = home.run_with_environment(&arguments, variables);
        let report: Value = serde_json::from_str(&said.out).unwrap();
        let triggers: Vec<String> = report["compactions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|compaction| compaction["trigger"].as_str().unwrap().to_owned())
            .collect();
        (triggers, said.err, report)
    };
    let (triggers, told, report) = run(&[]);
    assert!(triggers.contains(&"auto".to_owned()) && told.is_empty(), "{report}");
    for variable in ["PAL_DISABLE_AUTO_COMPACT", "PAL_DISABLE_COMPACT"] {
        let (triggers, told, report) = run(&[(variable, "1")]);
        assert!(triggers.is_empty() && report["lost"].as_array().unwrap().is_empty(), "{report}");
        assert!(told.contains(&format!("switched off by {variable}")), "{told}");
        // Requests that were not sent keep the number of the recording.
        let numbers: Vec<u64> = report["rejections"]
            .as_array()
            .unwrap()
            .iter()
            .map(|rejection| rejection["request"].as_u64().unwrap())
            .collect();
        let first = report["requests"].as_u64().unwrap() + 1;
        assert_eq!(numbers, (first..first + 5).collect::<Vec<_>>(), "{report}");
    }
    assert_eq!(run(&[("PAL_DISABLE_COMPACT", "0")]).0, triggers);
}
