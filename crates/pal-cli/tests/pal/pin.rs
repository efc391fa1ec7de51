//! `pal pin` on stored sessions.

use crate::stored_session::ImportedSession;

const PIN: &str = "The release is on Friday;\nuntil then no \"dependency\" changes.";

#[test]
fn pins_survive_two_compactions_and_go_when_removed() {
    let stored = ImportedSession::new(6);
    let file = stored.home.file("decisions.md", "Errors are values.\n");
    let _ = stored.good("pin", &[PIN]);
    let out = stored.good("pin", &["--file", &file]);
    assert!(out.contains("  1  ") && out.contains("  2  ") && out.contains("2 pins"), "{out}");
    for round in 1..=2 {
        let _ = stored.good("compact", &[]);
        let texts = stored.texts();
        assert!(texts.contains(PIN) && texts.contains("Errors are values."), "compaction {round}\n{texts}");
        stored.say(&format!("{} round {round}", "Something more to be summarised. ".repeat(40)));
    }
    let out = stored.good("pin", &["--remove", "1", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["pins"].as_array().unwrap().len(), 1);
    assert_eq!(report["pins"][0]["text"], "Errors are values.\n");
    let out = stored.good("view", &[]);
    assert!(out.contains("Pins: ") && out.contains("Errors are values."), "{out}");
    // The hidden messages are visible again, and the pin stays removed.
    let _ = stored.good("uncompact", &[]);
    let _ = stored.good("uncompact", &[]);
    let _ = stored.good("compact", &[]);
    let texts = stored.texts();
    assert!(!texts.contains(PIN) && texts.contains("Errors are values."), "{texts}");
    let list = stored.good("pin", &["--list"]);
    assert!(list.contains("1 pin,") && list.lines().all(|line| line.chars().count() <= 80), "{list}");
}

#[test]
fn pins_have_a_budget() {
    let stored = ImportedSession::new(2);
    let long = "word ".repeat(7_000);
    let file = stored.home.file("long.md", &long);
    let _ = stored.good("pin", &["--file", &file]);
    let bytes = stored.bytes();
    let other = stored.home.file("other.md", format!("other {long}"));
    stored.refused("pin", &["--file", &other], &["8000", "already"]);
    let small = [("PAL_MAX_CONTEXT_TOKENS", "20000")];
    let log = stored.log.to_str().unwrap();
    let said = stored.home.run_with_environment(&["pin", log, "even this"], &small);
    assert!(
        said.code == 1 && said.err.contains("800 that pins may have on a window of 20000"),
        "{}",
        said.err
    );
    stored.refused("pin", &["--file", &file], &["pinned already, as number 1"]);
    for nothing in ["", "  \n"] {
        let said = stored.run("pin", &[nothing]);
        assert!(said.code == 2 && said.err.contains("nothing to pin"), "{}", said.err);
        let file = stored.home.file("nothing.md", nothing);
        stored.refused("pin", &["--file", &file], &["nothing to pin"]);
    }
    stored.refused("pin", &["--remove", "2"], &["no pin 2: the session has 1"]);
    let binary = stored.home.file("binary", [0xff, 0xfe, 0]);
    stored.refused("pin", &["--file", &binary], &["not a text file"]);
    assert_eq!(stored.bytes(), bytes);
    assert_eq!(stored.run("pin", &[]).code, 2, "a text, or what to do");
}
