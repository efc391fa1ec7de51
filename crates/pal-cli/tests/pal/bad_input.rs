//! Invalid input: a clear error with file and line, exit code 1, nothing written.

use crate::program::{CommandOutput, TestHome};

/// Every command that reads a session refuses the file with these words, and writes nothing.
fn refused(home: &TestHome, file: &str, expected: &[&str]) {
    for command in ["import", "tokens", "render", "view"] {
        let CommandOutput { code, out, err } = home.run(&[command, file]);
        assert_eq!(code, 1, "{command} {file}\n{out}\n{err}");
        assert!(err.contains(file), "the file is named\n{err}");
        assert!(!err.contains("panicked"), "{err}");
        for words in expected {
            assert!(err.contains(words), "{command}: `{words}` is not in\n{err}");
        }
        assert!(err.len() < 4_000, "an error is no dump");
    }
    for command in ["compact", "uncompact"] {
        let CommandOutput { code, err, .. } = home.run(&[command, file]);
        assert!(code == 1 && !err.contains("panicked") && err.len() < 4_000, "{command} {file}: {err}");
    }
    assert!(home.written().is_empty(), "nothing is written: {:?}", home.written());
}

#[test]
fn files_of_other_kinds_are_refused() {
    let home = TestHome::new();
    let cases: [(&str, Vec<u8>); 9] = [
        ("prose.txt", b"It was a dark night.\nNothing here is JSON.\n".to_vec()),
        ("empty", Vec::new()),
        ("blank", b"\n\n\n".to_vec()),
        ("nul", vec![0; 100_000]),
        ("utf16", [0xff, 0xfe, b'{', 0, b'}', 0].to_vec()),
        ("latin1", b"{\"type\":\"\xe9\xe8\"}\n".to_vec()),
        ("numbers", b"{\"type\":123456789012345678901234567890}\n1e999\n".to_vec()),
        ("deep", [b"[".repeat(200_000), b"]".repeat(200_000)].concat()),
        ("other.json", b"{\"name\":\"package\",\"version\":\"1.0.0\"}\n".to_vec()),
    ];
    for (name, content) in cases {
        refused(&home, &home.file(name, content), &["not recognised", "hint"]);
    }
}

#[test]
fn a_line_of_fifty_megabytes_is_refused() {
    let home = TestHome::new();
    let file = home.file("long", "x".repeat(50 << 20));
    refused(&home, &file, &["not recognised"]);
    let file = home.file("long.json", format!("{{\"type\":\"{}", "y".repeat(50 << 20)));
    refused(&home, &file, &["not recognised"]);
}

#[test]
fn a_huge_file_without_a_line_end_is_refused() {
    let home = TestHome::new();
    let path = home.path().join("huge");
    let file = std::fs::File::create(&path).unwrap();
    // Sparse: it has a length and no content.
    file.set_len(1 << 40).unwrap();
    refused(&home, path.to_str().unwrap(), &["too large"]);
    file.set_len(1 << 30).unwrap();
    refused(&home, path.to_str().unwrap(), &["line 1"]);
}

#[test]
fn directories_and_pipes_are_refused() {
    let home = TestHome::new();
    let directory = home.path().join("directory");
    std::fs::create_dir(&directory).unwrap();
    refused(&home, directory.to_str().unwrap(), &["directory"]);
    let pipe = home.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    refused(&home, pipe.to_str().unwrap(), &["not a regular file"]);
    let ring = home.path().join("ring");
    std::os::unix::fs::symlink(&ring, &ring).unwrap();
    refused(&home, ring.to_str().unwrap(), &["symbolic links"]);
    refused(&home, home.path().join("absent").to_str().unwrap(), &["No such file", "hint"]);
}

#[test]
fn bad_lines_between_good_ones_are_set_aside() {
    let home = TestHome::new();
    let good = r#"{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s1","timestamp":"2026-11-15T09:00:00.000Z","message":{"role":"user","content":"hello"}}"#;
    let mut content = format!("{good}\n{{\"cut\": tr\n").into_bytes();
    content.extend(b"\xff\xfe not text\n\0\0\0\n");
    content.extend("[".repeat(150_000).bytes());
    let file = home.file("mixed.jsonl", content);
    let said = home.run(&["import", &file]);
    assert_eq!(said.code, 0, "{}", said.err);
    for line in ["line 2", "line 3", "line 4", "line 5"] {
        assert!(said.out.contains(line), "{line}\n{}", said.out);
    }
    let log = home.written()[0].to_str().unwrap().to_owned();
    assert_eq!(home.run(&["render", &log, "--model", "claude-opus-5"]).code, 0);
    let strict = home.run(&["import", "--strict", &file]);
    assert!(strict.code == 1 && strict.err.contains("line 2"), "{}", strict.err);
}

#[test]
fn an_unwritable_home_is_reported() {
    let home = TestHome::new();
    let session = r#"{"type":"user","uuid":"u1","sessionId":"s1","timestamp":"2026-11-15T09:00:00.000Z","message":{"role":"user","content":"hello"}}"#;
    let file = home.file("session.jsonl", session);
    // A file in place of the home: not even root can create directories in it.
    home.file("pal", "in the way");
    let said = home.run(&["import", &file]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("pal"), "{}", said.err);
}

#[test]
fn invalid_request_bodies_are_reported() {
    let home = TestHome::new();
    for body in [&b""[..], b"\0", b"{", b"[1]", b"\xff\xff", "[".repeat(1 << 20).as_bytes(), b"{\"model\":7}"]
    {
        let said = home.run_with_input(&["check", "-"], body);
        assert_eq!(said.code, 1, "{}", said.out);
        assert!(said.out.starts_with("400 invalid_request_error"), "{}", said.out);
    }
}
