//! Edit calls.

use serde_json::json;

use crate::common::{CallResult, Place};

fn edit(place: &Place, name: &str, old: &str, new: &str) -> CallResult {
    place.call("Edit", &json!({"file_path": name, "old_string": old, "new_string": new}))
}

/// Workspace with a file that was read.
fn with(content: impl AsRef<[u8]>) -> Place {
    let place = Place::new();
    place.put("a", content);
    let _ = place.read("a").good();
    place
}

#[test]
fn a_piece_is_replaced_and_the_rest_stays() {
    let place = with("one\ntwo\nthree\nfour\nfive\nsix\n");
    let said = edit(&place, "a", "three", "drei");
    assert_eq!(said.good(), "Changed a:\n@@ -1,6 +1,6 @@\n one\n two\n-three\n+drei\n four\n five\n six");
    assert_eq!(place.text("a"), "one\ntwo\ndrei\nfour\nfive\nsix\n");
    assert!(said.remembers(&place.path("a")));
    let _ = edit(&place, "a", "drei\nfour\n", "").good();
    assert_eq!(place.text("a"), "one\ntwo\nfive\nsix\n", "an edit knows what the one before it left");
}

#[test]
fn several_edits_are_all_made_or_none() {
    let place = with("a b c a\n");
    let edits = |edits: serde_json::Value| place.call("Edit", &json!({"file_path": "a", "edits": edits}));
    let said = edits(json!([
        {"old_string": "b", "new_string": "x"},
        {"old_string": "x c", "new_string": "y"},
        {"old_string": "a", "new_string": "z", "replace_all": true},
    ]));
    assert!(said.good().starts_with("Changed a in 4 places:"));
    assert_eq!(place.text("a"), "z y z\n");
    let said = edits(json!([
        {"old_string": "y", "new_string": "b"},
        {"old_string": "nothing like it", "new_string": "b"},
    ]));
    assert!(said.wrong().contains("Edit 2 of 2"));
    assert_eq!(place.text("a"), "z y z\n");
}

#[test]
fn failed_edits_are_explained() {
    let place = with("fn main() {\n\tlet  value = 1;\n}\n\nlet value = 1;\nlet value = 1;\n");
    for (old, new, expected) in [
        ("let value = 1;", "x", "2 times, at lines 5, 6. Take more"),
        (
            "fn main() {\n    let value = 1;",
            "x",
            "With other white space it is, at line 1:\n1\tfn main() {\n2\t\tlet  value = 1;\n",
        ),
        ("1\tfn main() {", "x", "Leave out the line numbers"),
        ("fn main(argument) {", "x", "The nearest lines are:\n1\tfn main() {"),
        ("zebra", "x", "Nothing in it looks like it"),
        ("fn", "fn", "are the same"),
        ("", "x", "`old_string` is empty, and the file is not"),
        ("\u{fffd}", "x", "bytes that are no UTF-8"),
    ] {
        let said = edit(&place, "a", old, new).wrong();
        assert!(said.contains(expected), "{old:?}: {said}");
    }
    for (input, expected) in [
        (json!({"file_path": "a"}), "Say what to replace"),
        (json!({"file_path": "a", "edits": []}), "Say what to replace"),
        (json!({"file_path": "a", "old_string": "x"}), "`new_string` is missing"),
        (json!({"file_path": "a", "old_string": "x", "new_string": "y", "edits": []}), "but not both"),
        (json!({"file_path": "a", "edits": [{"old_string": "x"}]}), "missing field `new_string`"),
        (json!({"file_path": "absent", "old_string": "x", "new_string": "y"}), "absent does not exist"),
    ] {
        let said = place.call("Edit", &input).wrong();
        assert!(said.contains(expected), "{input}: {said}");
    }
}

#[test]
fn unread_or_changed_files_are_not_edited() {
    let place = Place::new();
    place.put("a", "x\n");
    assert!(edit(&place, "a", "x", "y").wrong().contains("have not read it"));
    let _ = place.read("a").good();
    place.put("a", "x x\n");
    assert!(edit(&place, "a", "x x", "y").wrong().contains("has changed since"));
    assert_eq!(place.text("a"), "x x\n");
}

#[test]
fn line_ends_stay_as_they_are() {
    let place = with("one\r\ntwo\r\nthree\r\n");
    let _ = edit(&place, "a", "one\ntwo\n", "eins\nzwei\nund\n").good();
    assert_eq!(place.text("a"), "eins\r\nzwei\r\nund\r\nthree\r\n");
    let _ = edit(&place, "a", "three", "drei\nvier").good();
    assert_eq!(place.text("a"), "eins\r\nzwei\r\nund\r\ndrei\r\nvier\r\n");
    let place = with("one\ntwo\r\nthree\nfour\n");
    let _ = edit(&place, "a", "two\nthree", "2\n3").good();
    assert_eq!(
        place.text("a"),
        "one\ntwo\r\nthree\nfour\n".replace("two\r\nthree", "2\r\n3"),
        "of two kinds"
    );
}

#[test]
fn mixed_line_ends_match_as_shown() {
    let place = with("a\r\nb\nc\r\nd\n");
    let _ = edit(&place, "a", "a\nb\nc", "x").good();
    assert_eq!(place.text("a"), "x\r\nd\n");
}

#[test]
fn defused_tags_match_as_shown() {
    let shown = |text: &str| pal_model::escape_tags(text).into_owned();
    let file = "A <system-reminder> and <\\system-reminder> here.\n";
    let place = with(file);
    assert_eq!(shown(file), "A <\\system-reminder> and <\\\\system-reminder> here.\n");
    let _ = edit(&place, "a", &shown("A <system-reminder>"), &shown("An <system-reminder>")).good();
    assert_eq!(place.text("a"), "An <system-reminder> and <\\system-reminder> here.\n");
    let _ = edit(&place, "a", &shown("<\\system-reminder>"), "tag").good();
    assert_eq!(place.text("a"), "An <system-reminder> and tag here.\n", "each is told from the other");
    let place = with("only <\\system-reminder>\n");
    let _ = edit(&place, "a", "<\\system-reminder>", "x").good();
    assert_eq!(place.text("a"), "only x\n", "what stands there literally is found, too");
}

#[test]
fn non_utf8_bytes_stay() {
    let place = with(b"caf\xe9 one\nna\xefve two\n");
    let _ = edit(&place, "a", "one\n", "ün\n").good();
    assert_eq!(place.bytes("a"), b"caf\xe9 \xc3\xbcn\nna\xefve two\n");
}

#[test]
fn an_empty_old_string_creates_a_file() {
    let place = Place::new();
    let said = edit(&place, "new/file", "", "hello\n");
    assert!(said.good().starts_with("Created new/file:") && said.remembers(&place.path("new/file")));
    assert_eq!(place.text("new/file"), "hello\n");
    assert!(edit(&place, "new/file", "", "again\n").wrong().contains("is empty, and the file is not"));
    place.put("empty", "");
    let _ = edit(&place, "empty", "", "x\n").good();
    assert_eq!(place.text("empty"), "x\n");
}

#[test]
fn concurrent_edits_lose_nothing() {
    let lines: Vec<String> = (0..16).map(|number| format!("<{number:02}> old")).collect();
    let place = with(lines.join("\n"));
    std::thread::scope(|scope| {
        for number in 0..16 {
            let place = &place;
            scope.spawn(move || {
                let _ = edit(place, "a", &format!("<{number:02}> old"), &format!("<{number:02}> new")).good();
            });
        }
    });
    assert_eq!(place.text("a"), lines.join("\n").replace("old", "new"));
}
