//! Read calls.

use std::os::unix::fs::symlink;

use pal_model::BlockType;
use pal_tools::MediaSupport;
use serde_json::json;

use crate::common::Place;

#[test]
fn lines_come_with_their_numbers() {
    let place = Place::new();
    let path = place.put("a.txt", "eins\nzwei → 2\n\nvier\n");
    let said = place.read("a.txt");
    assert_eq!(said.good(), "1\teins\n2\tzwei → 2\n3\t\n4\tvier\n");
    assert!(said.remembers(&path));
    assert_eq!(said.output.touched, [path]);
    let part = place.call("Read", &json!({"file_path": "a.txt", "offset": 2, "limit": 2})).good();
    assert_eq!(part, "2\tzwei → 2\n3\t\n\n[Lines 2 to 3 of 4. Read on with offset 4.]");
    let end = place.call("Read", &json!({"file_path": "a.txt", "offset": "4"})).good();
    assert_eq!(end, "4\tvier\n\n[Lines 4 to 4 of 4: the end of the file.]");
}

#[test]
fn odd_files_are_annotated() {
    let place = Place::new();
    place.put("empty", "");
    place.put("short", "x\n");
    place.put("dos", "a\r\nb\r\n");
    place.put("mixed", "a\r\nb\n");
    place.put("open", "a\nb");
    place.put("latin", b"caf\xe9\n");
    for (name, offset, expected) in [
        ("empty", 1, "[The file is empty.]"),
        ("short", 9, "[The file has 1 lines: there is no line 9.]"),
        ("dos", 1, "1\ta\n2\tb\n\n[Lines end with CR LF; edits keep that.]"),
        ("mixed", 1, "1\ta\n2\tb\n\n[1 of these lines end with CR LF, the others with LF.]"),
        ("open", 1, "1\ta\n2\tb\n\n[The last line has no line end.]"),
        ("latin", 1, "1\tcaf\u{fffd}\n\n[Some bytes are no UTF-8 and are shown as \u{fffd}.]"),
    ] {
        assert_eq!(
            place.call("Read", &json!({"file_path": name, "offset": offset})).good(),
            expected,
            "{name}"
        );
    }
}

#[test]
fn long_lines_and_large_files_are_shown_in_part() {
    let place = Place::new();
    place.put("long", format!("short\n{}\nend\n", "ä".repeat(50_000)));
    let said = place.read("long").good();
    assert!(said.contains(&format!("2\t{}\n3\tend\n", "ä".repeat(2_000))));
    assert!(said.contains("line 2 (100000 bytes)"), "{}", &said[said.len() - 200..]);
    let lines: String = (1..=200_000).map(|number| format!("this is line number {number}\n")).collect();
    place.put("large", lines);
    let said = place.read("large").good();
    assert!(said.len() < 50_000, "a page stays below what is put aside: {}", said.len());
    assert!(said.contains("of 200000. Read on with offset "));
    let said = place.call("Read", &json!({"file_path": "large", "offset": 199_999})).good();
    assert!(said.starts_with("199999\tthis is line number 199999\n200000\t"));
    place.put("small", "x\n".repeat(5_000));
    assert!(place.read("small").good().contains("[Lines 1 to 2000 of 5000. Read on with offset 2001.]"));
}

#[test]
fn non_files_are_refused_with_a_hint() {
    let place = Place::new();
    place.put("folder/x", "x");
    place.put("binary", b"abc\0def");
    place.put("program", [&b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0"[..], &[0; 64]].concat());
    let fifo = place.path("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(place.path("socket")).unwrap();
    for (name, expected) in [
        ("folder", "List it with Glob"),
        ("absent", "absent does not exist."),
        ("binary", "is no text (binary)"),
        ("program", "is no text (application/x-executable)"),
        ("fifo", "a pipe, a socket or a device"),
        ("socket", "a pipe, a socket or a device"),
        ("/dev/zero", "a pipe, a socket or a device"),
    ] {
        let said = place.read(name).wrong();
        assert!(said.contains(expected), "{name}: {said}");
    }
    assert!(place.call("Read", &json!({"path": "x"})).wrong().contains("unknown field `path`"));
}

#[test]
fn media_is_shown_to_models_that_support_it() {
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0";
    let seeing = Place::seeing(MediaSupport { images: true, documents: true });
    let blind = Place::new();
    for place in [&seeing, &blind] {
        place.put("a.txt", png);
        place.put("b.pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n");
        place.put("big.png", [&png[..], &vec![7; 6 << 20]].concat());
    }
    let said = seeing.read("a.txt");
    let [block] = &said.output.content[..] else { panic!("{said:?}") };
    assert_eq!(block.kind(), BlockType::Image, "what it is counts, not what it is called");
    assert!(block.raw().contains(r#""media_type":"image/png","data":"iVBORw0K"#));
    assert_eq!(seeing.read("b.pdf").output.content[0].kind(), BlockType::Document);
    assert!(seeing.read("big.png").wrong().contains("too large"));
    assert!(blind.read("a.txt").wrong().contains("cannot look at pictures"));
    assert!(blind.read("b.pdf").wrong().contains("pdftotext"));
}

#[test]
fn an_unchanged_visible_file_is_not_shown_again() {
    let place = Place::new();
    place.put("a.txt", "one\ntwo\n");
    let first = place.read("a.txt");
    assert_eq!(place.read("a.txt").good(), first.good(), "nobody said that the first result is in sight");
    let second = place.read("a.txt").call;
    place.workspace.show_result(&second);
    let said = place.read("./a.txt");
    assert!(said.good().contains(&format!("has not changed since call {second}")), "{said:?}");
    assert!(said.output.aftermath.is_empty(), "the call that showed it stays the one to point to");
    let part = place.call("Read", &json!({"file_path": "a.txt", "limit": 1})).good();
    assert!(part.starts_with("1\tone"), "other lines are shown");
    let again = place.read("a.txt");
    assert!(again.good().starts_with("1\tone\n2\ttwo"), "what was shown last is only a part");
    place.workspace.show_result(&again.call);
    place.put("a.txt", "one\nzwei\n");
    assert!(place.read("a.txt").good().contains("zwei"), "it has changed");
    place.workspace.set_visible_results(std::collections::BTreeSet::new());
    assert!(place.read("a.txt").good().contains("zwei"), "what was cleared away is shown again");
}

#[test]
fn spilled_results_are_always_shown() {
    let place = Place::new();
    let path = place.outside("session").join("result.txt");
    std::fs::write(&path, "kept\n").unwrap();
    for _ in 0..3 {
        let said = place.read(path.to_str().unwrap());
        assert_eq!(said.good(), "1\tkept\n");
        place.workspace.show_result(&said.call);
    }
}

#[test]
fn concurrent_reads_work() {
    let place = Place::new();
    for number in 0..8 {
        place.put(&format!("f{number}"), format!("{number}\n").repeat(1_000));
    }
    std::thread::scope(|scope| {
        for number in 0..8 {
            let place = &place;
            scope.spawn(move || {
                for _ in 0..20 {
                    let said = place.read(&format!("f{number}")).good();
                    assert!(
                        said.starts_with(&format!("1\t{number}\n"))
                            && said.ends_with(&format!("1000\t{number}\n"))
                    );
                }
            });
        }
    });
}

#[test]
fn a_cancelled_read_ends() {
    let place = Place::new();
    place.put("a", "x\n");
    place.cancel.cancel();
    assert!(place.read("a").wrong().contains("cancelled"));
}

#[test]
fn a_link_is_read_where_it_leads() {
    let place = Place::new();
    let target = place.put("real.txt", "x\n");
    symlink("real.txt", place.path("link")).unwrap();
    let said = place.read("link");
    assert_eq!(said.good(), "1\tx\n");
    assert!(said.remembers(&target), "a file is known by where it really is");
}
