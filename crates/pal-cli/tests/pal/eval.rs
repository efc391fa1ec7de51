//! `pal eval` as users run it.

use crate::commands::SESSION;
use crate::program::TestHome;

#[test]
fn policies_are_compared_and_the_report_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let home = TestHome::new();
    let file = home.file("session.jsonl", SESSION);
    let out = home.path().join("report");
    let out = out.to_str().unwrap();
    let said =
        home.run(&["eval", "--out", out, "--policy", "threshold,compact-100k", "--window", "200000", &file]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    for expected in ["window 200,000", "none", "threshold", "compact-100k", "÷ limit", "report.md"] {
        assert!(said.out.contains(expected), "{expected}\n{}", said.out);
    }
    let json = std::fs::read_to_string(format!("{out}/report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&report["sessions"], &report["calls"]), (&1.into(), &2.into()));
    let mode = std::fs::metadata(format!("{out}/report.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn unknown_names_are_reported_with_a_hint() {
    let home = TestHome::new();
    let file = home.file("session.jsonl", SESSION);
    let said = home.run(&["eval", "--out", "report", "--policy", "lavish", &file]);
    assert!(said.code == 2 && said.err.contains("lavish") && said.err.contains("--list"), "{}", said.err);
    let said = home.run(&["eval", "--out", "report", "--model", "nobody-knows-it", &file]);
    assert!(said.code == 2 && said.err.contains("nobody-knows-it"), "{}", said.err);
    let said = home.run(&["eval", "--list"]);
    assert!(said.code == 0 && said.out.contains("compact-100k"), "{}", said.out);
    let missing = home.run(&["eval", "--out", home.path().join("r").to_str().unwrap(), "nowhere.jsonl"]);
    assert!(missing.code == 1 && missing.err.contains("nowhere.jsonl"), "{}", missing.err);
}

#[test]
fn former_names_still_work_with_a_warning() {
    let home = TestHome::new();
    let said = home.run(&["lab", "--list"]);
    assert!(said.code == 0 && said.out.contains("cost-aware"), "{}", said.out);
    assert!(said.err.contains("`pal lab` is now `pal eval`"), "{}", said.err);
    let file = home.file("session.jsonl", SESSION);
    let out = home.path().join("report");
    let arguments =
        ["eval", "--out", out.to_str().unwrap(), "--policy", "thrifty", "--window", "200000", &file];
    let said = home.run(&arguments);
    assert!(said.code == 0 && said.out.contains("cost-aware"), "{}{}", said.out, said.err);
    assert!(said.err.contains("`thrifty` is now `cost-aware`"), "{}", said.err);
}

#[test]
fn fidelity_of_compactions_is_reported() {
    let home = TestHome::new();
    let compacted = pal_testkit::session_files().into_iter().find(|file| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        text.contains(r#""kind":"boundary""#)
    });
    let compacted = compacted.expect("testdata has a compacted session");
    let out = home.path().join("report");
    let out = out.to_str().unwrap();
    let said = home.run(&["eval", "fidelity", "--out", out, compacted.to_str().unwrap()]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    for expected in ["compaction by", "pal: summary", "extracted, pal: as shipped", "fidelity.md"] {
        assert!(said.out.contains(expected), "{expected}\n{}", said.out);
    }
    let said = home.run(&["eval", "fidelity", "--out", out, "--json", compacted.to_str().unwrap()]);
    let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(report["sessions"], 1);
    assert!(std::fs::read_to_string(format!("{out}/fidelity.svg")).unwrap().starts_with("<svg"));
    // A session without a compaction is said to have none.
    let file = home.file("session.jsonl", SESSION);
    let said = home.run(&["eval", "fidelity", "--out", out, &file]);
    assert!(said.code == 0 && said.out.contains("no compaction in 1 sessions"), "{}{}", said.out, said.err);
}
