//! Grep and Glob calls.

use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::common::Place;

/// Sets the modification time of a file, in seconds before now.
fn aged(place: &Place, name: &str, seconds: u64) {
    let file = std::fs::File::options().write(true).open(place.path(name)).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
}

fn project() -> Place {
    let place = Place::new();
    place.put("src/main.rs", "fn main() {\n    needle();\n}\n");
    place.put("src/deep/lib.rs", "// one\n// two\nfn needle() {}\n// three\n// four\n\n\n// Needle\n");
    place.put("docs/read.md", "A needle in Markdown.\r\n");
    place.put("target/out.rs", "needle\n");
    place.put(".gitignore", "target/\n*.log\n");
    place.put("a.log", "needle\n");
    place.put(".hidden/x.rs", "needle\n");
    place.put(".git/config", "needle\n");
    place.put("picture", b"needle\0\n");
    let outside = place.outside("elsewhere");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("secret.rs"), "needle\n").unwrap();
    symlink(&outside, place.path("out")).unwrap();
    symlink(outside.join("secret.rs"), place.path("secret.rs")).unwrap();
    for (name, seconds) in [("src/main.rs", 10), ("src/deep/lib.rs", 5), ("docs/read.md", 20)] {
        aged(&place, name, seconds);
    }
    place
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

#[test]
fn matching_files_come_newest_first() {
    let place = project();
    let found = place.call("Grep", &json!({"pattern": "needle"})).good();
    assert_eq!(lines(&found), ["src/deep/lib.rs", "src/main.rs", "docs/read.md"]);
    for (input, expected) in [
        (json!({"pattern": "needle", "glob": "*.rs"}), vec!["src/deep/lib.rs", "src/main.rs"]),
        (json!({"pattern": "needle", "glob": "!*.rs"}), vec!["docs/read.md"]),
        (json!({"pattern": "needle", "glob": "src/*.rs"}), vec!["src/main.rs"]),
        (json!({"pattern": "needle", "type": "md"}), vec!["docs/read.md"]),
        (json!({"pattern": "needle", "path": "src/deep"}), vec!["src/deep/lib.rs"]),
        (json!({"pattern": "needle", "glob": ".hidden/**"}), vec![".hidden/x.rs"]),
        (json!({"pattern": "needle", "path": ".hidden"}), vec![".hidden/x.rs"]),
        (json!({"pattern": "needle", "path": "a.log"}), vec!["a.log"]),
        (json!({"pattern": "needle", "path": "target"}), vec!["target/out.rs"]),
        (json!({"pattern": "^NEEDLE", "-i": true}), vec![]),
        (json!({"pattern": "A NEEDLE.*\\.$", "-i": true}), vec!["docs/read.md"]),
    ] {
        let found = place.call("Grep", &input).good();
        let found: Vec<&str> = found.lines().filter(|line| !line.starts_with("[Nothing")).collect();
        assert_eq!(found, expected, "{input}");
    }
}

#[test]
fn lines_come_with_context() {
    let place = project();
    let content = |more: Value| {
        let mut input = json!({"pattern": "needle", "output_mode": "content", "-i": true, "path": "src"});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        place.call("Grep", &input).good()
    };
    assert_eq!(
        content(json!({})),
        "src/deep/lib.rs:3:fn needle() {}\nsrc/deep/lib.rs:8:// Needle\nsrc/main.rs:2:    needle();\n"
    );
    assert_eq!(
        content(json!({"-B": 1, "-A": 1, "path": "src/deep/lib.rs"})),
        "2-// two\n3:fn needle() {}\n4-// three\n--\n7-\n8:// Needle\n"
    );
    assert_eq!(content(json!({"-n": false, "path": "src/main.rs"})), "    needle();\n");
    assert_eq!(
        content(json!({"head_limit": 1, "offset": 1})),
        "src/deep/lib.rs:8:// Needle\n\n[There is more. Narrow the search, or go on with offset 2.]"
    );
    assert!(content(json!({"offset": 9})).contains("none at offset 9"));
    let count = place.call("Grep", &json!({"pattern": "needle", "output_mode": "count", "-i": true})).good();
    assert_eq!(lines(&count), ["src/deep/lib.rs:2", "src/main.rs:1", "docs/read.md:1"]);
    let spanning = json!({"pattern": "two.*three", "multiline": true, "output_mode": "content"});
    assert_eq!(
        place.call("Grep", &spanning).good(),
        "src/deep/lib.rs:2:// two\nsrc/deep/lib.rs:3:fn needle() {}\nsrc/deep/lib.rs:4:// three\n"
    );
}

#[test]
fn search_errors_are_explained() {
    let place = project();
    for (input, expected) in [
        (json!({"pattern": "foo("}), "unclosed group"),
        (json!({"pattern": "a\\nb"}), "needs `multiline`"),
        (json!({"pattern": "x", "type": "klingon"}), "no type of files called klingon"),
        (json!({"pattern": "x", "glob": "{a"}), "pattern {a is wrong"),
        (json!({"pattern": "x", "path": "absent"}), "absent does not exist"),
        (json!({"pattern": "x", "output_mode": "lines"}), "`output_mode`: unknown variant `lines`"),
    ] {
        let said = place.call("Grep", &input).wrong();
        assert!(said.contains(expected), "{input}: {said}");
    }
    place.cancel.cancel();
    assert!(place.call("Grep", &json!({"pattern": "needle"})).wrong().contains("cancelled"));
    assert!(place.call("Glob", &json!({"pattern": "**/*"})).wrong().contains("cancelled"));
}

#[test]
fn search_output_is_bounded() {
    let place = Place::new();
    for number in 0..400 {
        place.put(&format!("f{number:03}.txt"), format!("needle {}\n", "x".repeat(2_000)).repeat(10));
    }
    place.put("minified.js", format!("{}needle{}", "a".repeat(300_000), "b".repeat(300_000)));
    let all = json!({"pattern": "needle", "output_mode": "content", "head_limit": 0});
    let said = place.call("Grep", &all).good();
    assert!(said.len() < 50_000 && said.contains("go on with offset"), "{}", said.len());
    let said = place.call("Grep", &json!({"pattern": "needle"})).good();
    assert!(said.contains("[These are 250 of 401. Narrow the search, or go on with offset 250.]"));
    let rest = place.call("Grep", &json!({"pattern": "needle", "offset": 250})).good();
    assert_eq!(rest.lines().count(), 151);
    let one = json!({"pattern": "needle", "path": "minified.js", "output_mode": "content"});
    let said = place.call("Grep", &one).good();
    assert!(said.contains("aneedleb") && said.len() < 1_000, "the hit itself is shown");
    let said = place.call("Glob", &json!({"pattern": "*.txt"})).good();
    assert!(said.contains("[The 100 most recently changed of 400 files."), "{said}");
}

#[test]
fn files_are_listed_by_pattern() {
    let place = project();
    for (input, expected) in [
        (json!({"pattern": "**/*.rs"}), vec!["secret.rs", "src/deep/lib.rs", "src/main.rs"]),
        (json!({"pattern": "*.md"}), vec!["docs/read.md"]),
        (json!({"pattern": "src/*.rs"}), vec!["src/main.rs"]),
        (json!({"pattern": "src/**/*.rs"}), vec!["src/deep/lib.rs", "src/main.rs"]),
        (json!({"pattern": "./src/main.rs"}), vec!["src/main.rs"]),
        (json!({"pattern": "*.{md,log}"}), vec!["docs/read.md"]),
        (json!({"pattern": "*.rs", "path": "src"}), vec!["src/deep/lib.rs", "src/main.rs"]),
        (json!({"pattern": ".hidden/*"}), vec![".hidden/x.rs"]),
        (json!({"pattern": "**/.gitignore"}), vec![".gitignore"]),
        (json!({"pattern": place.path("docs/*").to_str().unwrap()}), vec!["docs/read.md"]),
    ] {
        let found = place.call("Glob", &input).good();
        assert_eq!(lines(&found), expected, "{input}");
    }
    assert!(place.call("Glob", &json!({"pattern": "*.nothing"})).good().contains("[No file fits *.nothing."));
    assert!(place.call("Glob", &json!({"pattern": "{a"})).wrong().contains("pattern {a is wrong"));
    assert!(place.call("Glob", &json!({"pattern": "*", "path": "absent"})).wrong().contains("no folder"));
    place.workspace.change_directory(&place.path("src"));
    let found = place.call("Glob", &json!({"pattern": "*.rs"})).good();
    assert_eq!(lines(&found), ["deep/lib.rs", "main.rs"], "relative to where the session works");
}
