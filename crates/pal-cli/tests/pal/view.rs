//! `pal view` on stored sessions.

use pal_model::{DecisionKind, EntryId};

use crate::stored_session::ImportedSession;

fn ids(stored: &ImportedSession) -> Vec<EntryId> {
    let page: serde_json::Value = serde_json::from_str(&stored.good("view", &["--json"])).unwrap();
    let messages = page["messages"].as_array().unwrap();
    messages.iter().map(|message| message["id"].as_str().unwrap().parse().unwrap()).collect()
}

#[test]
fn every_decision_is_listed_beside_its_target() {
    let stored = ImportedSession::new(8);
    let ids = ids(&stored);
    let call = |turn: usize| pal_model::ToolUseId::from(format!("toolu_8ba1c0de_{turn}").as_str());
    let cleared = DecisionKind::Clear { tool_use_ids: vec![call(5)], text: "[gone for now]".into() };
    stored.decide(cleared, "the cache was cold");
    let spilled = DecisionKind::Spill {
        tool_use_id: Some(call(6)),
        entry: None,
        path: "tool-results/six.txt".into(),
        text: "[on disk]".into(),
    };
    stored.decide(spilled, "very long");
    stored.decide(DecisionKind::Snip { entries: vec![ids[1], ids[2]] }, "read again later");
    let fold = DecisionKind::Fold { head: ids[8], tail: ids[11], text: "Part 3 was looked at.".into() };
    stored.decide(fold, "ninety percent");
    stored.decide(DecisionKind::Title { title: "Moonlight".into() }, "");
    let out = stored.good("view", &[]);
    for expected in [
        "cleared: the cache was cold",
        "[gone for now]",
        "spilled to tool-results/six.txt: very long",
        "[on disk]",
        "2–3  2 messages hidden",
        "snipped: read again later",
        "9–12  4 messages hidden",
        "Part 3 was looked at.",
        "folded: ninety percent",
        "title: Moonlight",
        "auto-compact: nothing",
    ] {
        assert!(out.contains(expected), "`{expected}` is not in\n{out}");
    }
    let too_long = out.lines().find(|line| line.chars().count() > 80);
    assert_eq!(too_long, None, "eighty columns");
    assert!(!out.contains('\x1b'), "no colours for a file");
    let coloured = stored.good("view", &["--color", "always"]);
    assert!(coloured.contains("\x1b[33m└ cleared"), "{coloured}");
    assert_eq!(strip(&coloured), out);
    let full = stored.good("view", &["--full"]);
    assert!(full.contains(&"once upon a time ".repeat(100)), "texts are whole");
    // Taken back, it is no longer said.
    let bytes = stored.bytes();
    let lines: Vec<&str> = std::str::from_utf8(&bytes).unwrap().lines().collect();
    let clear: serde_json::Value =
        serde_json::from_str(lines.iter().find(|line| line.contains("\"kind\":\"clear\"")).unwrap()).unwrap();
    stored.decide(DecisionKind::Undo { target: clear["id"].as_str().unwrap().parse().unwrap() }, "");
    assert!(!stored.good("view", &[]).contains("└ cleared"));
}

/// Without what colours a terminal.
fn strip(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\x1b') {
        plain.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    plain.push_str(rest);
    plain
}

#[test]
fn a_compaction_shows_its_method_and_what_it_hides() {
    let stored = ImportedSession::new(6);
    let _ = stored.good("compact", &["--provider", "sim", "mind", "the", "gap"]);
    let out = stored.good("view", &[]);
    for expected in [
        "24 messages before the compaction hidden, 6 from people",
        "compacted by fork (manual)",
        "audit: 6 user messages (6 verbatim",
        "instructions: mind the gap",
        "restored",
    ] {
        assert!(out.contains(expected), "`{expected}` is not in\n{out}");
    }
    assert_eq!(out.lines().find(|line| line.chars().count() > 80), None);
    let early = stored.good("view", &["--at", "2"]);
    assert!(
        early.contains("Question 1") && !early.contains("Question 2") && !early.contains("compacted"),
        "{early}"
    );
    stored.refused("view", &["--at", "99"], &["no response 99"]);
    let narrow = stored.home.run_with_environment(
        &["view", stored.log.to_str().unwrap(), "--at", "12"],
        &[("PAL_MAX_CONTEXT_TOKENS", "30000")],
    );
    assert!(narrow.out.contains("auto-compact: compact"), "{}", narrow.out);
}

#[test]
fn text_cannot_drive_the_terminal() {
    let stored = ImportedSession::new(1);
    stored.say("\x1b]0;owned\x07 \u{202e}back");
    let out = stored.good("view", &["--full"]);
    assert!(!out.contains(['\x1b', '\x07']), "{out:?}");
}
