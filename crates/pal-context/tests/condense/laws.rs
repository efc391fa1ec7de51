//! Laws of condensed text.

use pal_context::{OutputOrigin, condense_output};
use pal_testkit::cases;
use proptest::prelude::*;

/// Returns true if a line surely reports an error: narrower than the condenser's own rule.
fn reports_error(line: &str) -> bool {
    let is_passed = ["(pass)", "✓", "✔", "... ok", " PASSED", "PASS"].iter().any(|sign| line.contains(sign));
    let opens = ["error: ", "error[", "FAILED ", "--- FAIL", "fatal: ", "panic: "];
    let has = [" error: ", "TypeError: ", "(fail)", " panicked at ", "✗ ", " ERROR "];
    let line = line.trim_start();
    !is_passed
        && (opens.iter().any(|opening| line.starts_with(opening))
            || has.iter().any(|words| line.contains(words)))
}

fn is_mark(line: &str) -> bool {
    line.trim().starts_with("[… ") && line.trim().ends_with(" …]")
}

/// Number of lines that the markers of a text stand for.
fn marked(text: &str) -> u64 {
    let number = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["[…", count, "line" | "lines", "left", ..] => count.parse().unwrap_or(0),
            ["[…", "the", "line", "above", "came", count, ..] => count.parse().unwrap_or(0),
            _ => 0,
        }
    };
    text.lines().filter(|line| is_mark(line)).map(number).sum()
}

/// Checks every law on one text.
pub(crate) fn check_laws(asked: OutputOrigin<'_>, text: &str, most: usize) {
    let condensed = condense_output(asked, text, most);
    assert_eq!(condensed, condense_output(asked, text, most), "the same twice");
    let Some(condensed) = condensed else { return };
    let (before, after) = (text.chars().count(), condensed.text.chars().count());
    assert!(before >= 2_000 && after + 1_000 <= before && after * 4 <= before * 3, "{before} to {after}");
    for most in [most, most / 3] {
        assert_eq!(condense_output(asked, &condensed.text, most), None, "condensed once is condensed");
    }
    let is_clean = !text.contains(['\u{1b}', '\r', '\u{8}', '\u{9b}']);
    let by_line = !["json", "terminal redraws"].contains(&condensed.format.name());
    if !(is_clean && by_line) {
        return;
    }
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(marked(&condensed.text), condensed.lines_left_out, "the marks say what is missing");
    let kept: Vec<&str> = condensed.text.lines().filter(|line| !is_mark(line)).collect();
    assert_eq!(
        kept.len() as u64 + condensed.lines_left_out,
        lines.len() as u64,
        "every line is there or counted"
    );
    // Kept lines are in order, whole or cut in the middle.
    let mut rest = lines.iter();
    for line in &kept {
        let head = line.split("[… ").next().unwrap();
        assert!(
            rest.any(|original| original == line || original.starts_with(head)),
            "not in the text: {line}"
        );
    }
    let said = |line: &&&str| !line.trim().is_empty();
    for end in [lines.iter().find(said), lines.iter().rev().find(said)].into_iter().flatten() {
        // Of a search hit, the file name is what matters.
        let head: String =
            end.chars().take(if condensed.format.name() == "listing" { 140 } else { 400 }).collect();
        assert!(kept.iter().any(|line| line.starts_with(&head)), "first and last lines stay: {end}");
    }
    let counts_errors = condensed.text.lines().any(|line| is_mark(line) && line.contains(" error"));
    if ["build log", "test run", "progress", "log"].contains(&condensed.format.name()) && !counts_errors {
        for error in lines.iter().filter(|line| reports_error(line) && line.len() < 600) {
            assert!(kept.contains(error), "an error is missing: {error}");
        }
    }
}

/// Lines as programs print them, and some that none prints.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (0..400_u32).prop_map(|number| format!("   Compiling part-{number} v0.{number}.0")),
        4 => (0..400_u32).prop_map(|number| format!("test suite::case_{number} ... ok")),
        2 => (0..9_u32).prop_map(|number| format!("error[E000{number}]: something is wrong with `{number}`")),
        1 => (0..9_u32).prop_map(|number| format!("  --> src/part_{number}.rs:{number}:5")),
        1 => (0..9_u32).prop_map(|number| format!("--- FAIL: TestPart{number} (0.00s)")),
        1 => (0..99_u32).prop_map(|number| format!("warning: part {number} is old")),
        2 => (0..99_u32).prop_map(|number| format!("src/folder/file_{number}.rs:{number}: let x = {number};")),
        1 => (0..99_u32).prop_map(|number| format!("+added {number}")),
        1 => (0..99_u32).prop_map(|number| format!("-removed {number}")),
        1 => Just(String::from("@@ -1,9 +1,9 @@")),
        1 => Just(String::from("diff --git a/Cargo.lock b/Cargo.lock")),
        1 => Just(String::from("{\"a\": [1, 2, {\"b\": null}]}")),
        1 => Just(String::new()),
        1 => Just(String::from("├── name")),
        2 => "[ -~]{0,90}",
        1 => "\\PC{0,900}",
        1 => any::<String>(),
    ]
}

/// Runs of equal lines and stretches of mixed ones.
fn text() -> impl Strategy<Value = String> {
    let stretch = prop_oneof![
        (line(), 1..60_usize).prop_map(|(line, times)| vec![line; times]),
        proptest::collection::vec(line(), 1..60),
    ];
    let lines = proptest::collection::vec(stretch, 1..8).prop_map(|stretches| stretches.concat());
    (lines, any::<bool>()).prop_map(|(lines, ends)| lines.join("\n") + if ends { "\n" } else { "" })
}

fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![Just(String::from("null")), "[0-9]{1,9}", "\"[a-z \\u{e9}]{0,300}\""];
    leaf.prop_recursive(6, 200, 20, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..40)
                .prop_map(|items| format!("[{}]", items.join(", "))),
            proptest::collection::vec(("[a-z]{1,9}", inner), 0..12).prop_map(|members| {
                let members: Vec<String> =
                    members.iter().map(|(key, value)| format!("\"{key}\":\n{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

fn asked() -> impl Strategy<Value = (&'static str, Option<&'static str>)> {
    prop_oneof![
        Just(("Bash", Some("cargo test"))),
        Just(("Bash", Some("./run"))),
        Just(("mcp__ci__log", None)),
        Just(("Grep", None)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(400)))]

    #[test]
    fn texts_keep_the_laws((tool, command) in asked(), text in text(), most in 0..12_000_usize) {
        check_laws(OutputOrigin { tool, command }, &text, most);
    }

    #[test]
    fn json_keeps_the_laws(json in json(), most in 500..9_000_usize) {
        let asked = OutputOrigin { tool: "Bash", command: Some("curl x") };
        check_laws(asked, &json, most);
        check_laws(asked, &format!("Output:\n{json}\ndone"), most);
    }

    #[test]
    fn file_content_is_never_condensed(text in text(), most in 0..9_000_usize) {
        for (tool, command) in [("Read", None), ("Bash", Some("cat a.log")), ("Bash", Some("sed -n '1,900p' a.rs"))] {
            prop_assert_eq!(condense_output(OutputOrigin { tool, command }, &text, most), None);
        }
    }
}

/// Shortest of three times that condensing takes.
fn shortest_time(text: &str) -> std::time::Duration {
    let origin = OutputOrigin { tool: "Bash", command: Some("./run") };
    let times = (0..3).map(|_| {
        let start = thread_time();
        std::hint::black_box(condense_output(origin, text, 8_000));
        thread_time() - start
    });
    times.min().unwrap()
}

/// Processor time of this thread, which other work on the machine does not lengthen; on systems that do not tell it, the time of day.
#[allow(clippy::disallowed_methods, reason = "times of two lengths are compared")]
fn thread_time() -> std::time::Duration {
    // The kernel brings its count up to date when a thread yields.
    std::thread::yield_now();
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = stat.and_then(|stat| stat.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(
        || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap(),
        std::time::Duration::from_nanos,
    )
}

/// Only the ratio of two lengths counts: four times the text would take sixteen times as long in quadratic time.
#[test]
fn time_is_linear_in_the_text() {
    const SHORT: usize = 250_000;
    let numbered = |bytes: usize| -> String {
        let lines = (0..).map(|number| format!("[{number}] step {number} of the error: {number}\n"));
        lines.take(bytes / 36).collect()
    };
    let items = |bytes: usize| -> String {
        let item =
            |number: usize| format!("{{\"id\": {number}, \"name\": \"an item\", \"tags\": [1, 2, 3]}},");
        format!("[{} 1]", (0..bytes / 44).map(item).collect::<String>())
    };
    let repeated = |piece: &'static str| move |bytes: usize| piece.repeat(bytes / piece.len());
    let texts: [(&str, &dyn Fn(usize) -> String); 11] = [
        ("one line", &repeated("x")),
        ("errors", &numbered),
        ("escapes", &repeated("\u{1b}]\u{1b}[3\r")),
        ("colons", &repeated("a.b:1(")),
        ("dashes", &repeated("-1-")),
        ("json", &items),
        ("brackets", &repeated("[")),
        ("jsonl", &repeated("{\"level\":\"info\",\"message\":\"all is well\"}\n")),
        ("paths", &repeated("src/a/b/c.rs\nsrc/a/d.rs\n")),
        ("tests", &repeated("test a::b ... ok\n--- FAIL: x\n    y\n")),
        ("diff", &repeated("diff --git a/x b/x\n@@ -1,2 +1,2 @@\n-a\n+b\n c\n")),
    ];
    for (name, text) in texts {
        let (short, long) = (shortest_time(&text(SHORT)), shortest_time(&text(4 * SHORT)));
        assert!(long.as_secs_f64() < 10.0 * short.as_secs_f64(), "{name}: {short:?}, then {long:?}");
    }
}
