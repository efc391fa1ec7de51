//! Write calls.

use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::json;

use crate::common::{CallResult, Place};

fn write(place: &Place, name: &str, content: &str) -> CallResult {
    place.call("Write", &json!({"file_path": name, "content": content}))
}

#[test]
fn a_new_file_gets_its_folders() {
    let place = Place::new();
    let said = write(&place, "a/b/c.txt", "eins\nzwei\n");
    assert_eq!(said.good(), "Created a/b/c.txt (2 lines).");
    assert_eq!(place.text("a/b/c.txt"), "eins\nzwei\n");
    assert!(said.remembers(&place.path("a/b/c.txt")));
    let others: Vec<_> = std::fs::read_dir(place.path("a/b")).unwrap().collect();
    assert_eq!(others.len(), 1, "nothing is left beside it");
    assert!(
        write(&place, "a/b/c.txt", "drei\n").good().contains("-eins\n-zwei\n+drei"),
        "what was written is known"
    );
    let mode = std::fs::metadata(place.path("a/b/c.txt")).unwrap().permissions().mode();
    std::fs::File::create(place.path("plain")).unwrap();
    let plain = std::fs::metadata(place.path("plain")).unwrap().permissions().mode();
    assert_eq!(mode, plain, "a new file has the mode that any program would give it");
}

#[test]
fn unread_files_are_not_replaced() {
    let place = Place::new();
    place.put("a", "precious\n");
    assert!(write(&place, "a", "x").wrong().contains("have not read it"));
    assert_eq!(place.text("a"), "precious\n");
    let _ = place.read("a").good();
    place.put("a", "changed\n");
    assert!(write(&place, "a", "x").wrong().contains("has changed since you last saw it"));
    assert_eq!(place.text("a"), "changed\n");
    let _ = place.read("a").good();
    assert!(write(&place, "a", "x\n").good().contains("-changed\n+x"));
    place.workspace.forget_seen();
    assert!(write(&place, "a", "y\n").wrong().contains("have not read it"));
    place.put("empty", "");
    assert!(write(&place, "empty", "x\n").good().contains("+x"), "an empty file has nothing to lose");
}

#[test]
fn mode_link_and_line_ends_stay() {
    let place = Place::new();
    let path = place.put("run.sh", "#!/bin/sh\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).unwrap();
    symlink("run.sh", place.path("link")).unwrap();
    let _ = place.read("link").good();
    let _ = write(&place, "link", "#!/bin/bash\n").good();
    assert_eq!(place.text("run.sh"), "#!/bin/bash\n");
    assert!(place.path("link").is_symlink());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o750);
    place.put("dos", "a\r\nb\r\n");
    let _ = place.read("dos").good();
    let _ = write(&place, "dos", "a\nc\n").good();
    assert_eq!(place.text("dos"), "a\r\nc\r\n");
}

#[test]
fn defused_tags_are_restored_on_write() {
    let place = Place::new();
    let _ = write(&place, "a", "see <\\system-reminder> and <b>\\x</b>\n").good();
    assert_eq!(place.text("a"), "see <system-reminder> and <b>\\x</b>\n");
}

#[test]
fn non_files_are_not_written() {
    let place = Place::new();
    place.put("folder/x", "");
    assert!(write(&place, "folder", "x").wrong().contains("is a folder"));
    assert!(write(&place, "folder/x/y", "x").output.is_error, "a file has nothing below it");
    assert!(write(&place, "/dev/null", "x").wrong().contains("device"));
    assert!(place.call("Write", &json!({"file_path": "a"})).wrong().contains("missing field `content`"));
    let long = "line\n".repeat(10_000);
    let _ = write(&place, "long", &long).good();
    let said = write(&place, "long", &long.replace("line", "word")).good();
    assert!(said.len() < 7_000 && said.contains("not shown"), "{}", said.len());
}
