//! Severity of lines: errors, warnings, and the locations that belong to them.
//!
//! Goes by words, not by programs: whole words such as `error`, without zero counts and parts of names. In
//! doubt a line is kept.

use super::gap_marker::LineReport;

/// Severity of a line.
pub(super) fn classify_line(line: &str) -> LineReport {
    let mut found = mark_of(line.trim_start());
    if found == LineReport::Error {
        return found;
    }
    let bytes = line.as_bytes();
    let mut before = "";
    let mut at = 0;
    while let Some(start) = bytes[at..].iter().position(|&byte| is_word(byte)).map(|ahead| at + ahead) {
        let length = bytes[start..].iter().position(|&byte| !is_word(byte)).unwrap_or(bytes.len() - start);
        let end = start + length;
        let word = &line[start..end];
        let alarm = of_word(word);
        if alarm != LineReport::Nothing
            && !is_part_of_name(bytes, start, end)
            && !is_none(before, &line[end..])
        {
            found = alarm;
            if found == LineReport::Error {
                return found;
            }
        }
        before = word;
        at = end;
    }
    found
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Severity by a leading sign.
fn mark_of(line: &str) -> LineReport {
    const FAILED: [&str; 12] =
        ["✗", "✕", "✖", "❌", "× ", "✘", "not ok ", "(fail)", "E   ", "error", "Caused by:", "thread '"];
    if FAILED.iter().any(|sign| line.starts_with(sign)) && !line.starts_with("errors") {
        // A name such as `error_codes.rs` opens lines, too.
        let is_name = line.strip_prefix("error").is_some_and(|rest| !rest.starts_with([':', '[', ' ', '(']));
        return if is_name || line.starts_with("error 0") { LineReport::Nothing } else { LineReport::Error };
    }
    // Some programs put the sign behind the name of what failed.
    if !line.is_ascii() && line.contains(['✗', '✕', '✖', '❌', '✘']) {
        return LineReport::Error;
    }
    if line.starts_with('⚠') { LineReport::Warning } else { LineReport::Nothing }
}

fn of_word(word: &str) -> LineReport {
    // The shortest words are `fail` and `warn`; most words are ruled out by their length and first letter.
    if !(3..=64).contains(&word.len()) {
        return LineReport::Nothing;
    }
    match word.as_bytes()[0] | 0x20 {
        b'a' | b'c' | b'd' | b'e' | b'f' | b'p' | b's' | b't' | b'u' | b'w' => {}
        _ => return of_type_name(word),
    }
    const ERRORS: [&str; 18] = [
        "error",
        "errors",
        "fatal",
        "failed",
        "failure",
        "failures",
        "fail",
        "fails",
        "panicked",
        "panic",
        "exception",
        "traceback",
        "segfault",
        "segmentation",
        "denied",
        "aborted",
        "uncaught",
        "unhandled",
    ];
    const WARNINGS: [&str; 5] = ["warning", "warnings", "warn", "deprecated", "deprecation"];
    let is_one_of = |words: &[&str]| words.iter().any(|known| known.eq_ignore_ascii_case(word));
    if is_one_of(&ERRORS) || word == "CRITICAL" || word == "ERR" {
        LineReport::Error
    } else if is_one_of(&WARNINGS) {
        LineReport::Warning
    } else {
        of_type_name(word)
    }
}

/// Severity by a type name such as `TypeError` or `NullPointerException`.
fn of_type_name(word: &str) -> LineReport {
    let is_type = word.as_bytes()[0].is_ascii_uppercase()
        && ["Error", "Exception", "Failure"].iter().any(|end| word.len() > end.len() && word.ends_with(end));
    if is_type { LineReport::Error } else { LineReport::Nothing }
}

/// Returns true if a word is only part of a path, a flag, a call or an identifier.
fn is_part_of_name(bytes: &[u8], start: usize, end: usize) -> bool {
    let before = start.checked_sub(1).map(|at| bytes[at]);
    // Types may have a package in front: `java.lang.IllegalStateException`.
    let is_type = bytes[start].is_ascii_uppercase() && before == Some(b'.');
    let after = bytes.get(end).copied();
    let next = bytes.get(end + 1).copied();
    let is_begun = matches!(before, Some(b'-' | b'/' | b'.' | b'\\' | b'$' | b'@')) && !is_type;
    let goes_on = match after {
        Some(b'-' | b'/' | b'(' | b'\\') => true,
        Some(b'.') => next.is_some_and(is_word),
        Some(b':') => next == Some(b':'),
        _ => false,
    };
    is_begun || goes_on
}

/// Returns true for a zero count: `0 errors`, `no warnings`, `Failures: 0`.
fn is_none(before: &str, after: &str) -> bool {
    let counted_before =
        before == "0" || ["no", "zero", "without"].iter().any(|no| no.eq_ignore_ascii_case(before));
    let after = after.trim_start_matches([':', '=', ' ', '"']);
    let mut digits = after.bytes();
    counted_before
        || (digits.next() == Some(b'0') && !digits.next().is_some_and(|byte| is_word(byte) || byte == b'.'))
}

/// Returns true if a line names a location: `--> src/lib.rs:3:5`, `at run (a.js:1:2)`, `File "a.py", line 3`.
pub(super) fn is_location(line: &str) -> bool {
    let trimmed = line.trim_start_matches([' ', '\t', '❯', '|']);
    if trimmed.starts_with("--> ") || trimmed.starts_with("::: ") || trimmed.starts_with("File \"") {
        return true;
    }
    let bytes = line.as_bytes();
    memchr::memchr2_iter(b':', b'(', bytes).any(|at| {
        let has_number = bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
        let name_start = bytes[..at].iter().rposition(|byte| !is_word(*byte) && !b"./-\\".contains(byte));
        let name = &bytes[name_start.map_or(0, |start| start + 1)..at];
        // A location has a file name with an extension, and no time or version before the number.
        has_number
            && name.iter().rposition(|&byte| byte == b'.').is_some_and(|dot| {
                dot > 0 && (1..=5).contains(&(name.len() - dot - 1)) && name[dot + 1].is_ascii_alphabetic()
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_and_warning_lines_are_recognized() {
        let errors = [
            "error[E0425]: cannot find value `x`",
            "src/a.ts(3,4): error TS2322: no",
            "npm ERR! code ELIFECYCLE",
            "npm error code 1",
            "TypeError: undefined is not a function",
            "java.lang.IllegalStateException: no",
            "thread 'main' panicked at src/a.rs:1:2:",
            "--- FAIL: TestX (0.00s)",
            "FAILED tests/a.py::test_x - assert 1 == 2",
            "not ok 3 - parses",
            "  ✕ adds (3 ms)",
            "(fail) adds [1.00ms]",
            "make: *** [Makefile:3: all] Error 1",
            "a.c:3:1: fatal error: x.h: No such file or directory",
            "2 failed, 3 passed",
            "{\"level\":\"error\",\"message\":\"x\"}",
            "E   assert 1 == 2",
            "ls: x: Permission denied",
            "time=\"x\" level=error msg=\"y\"",
        ];
        for line in errors {
            assert_eq!(classify_line(line), LineReport::Error, "{line}");
        }
        let warnings =
            ["warning: unused variable", "npm warn deprecated a@1", "WARN x", "⚠ careful", "1 warning"];
        for line in warnings {
            assert_eq!(classify_line(line), LineReport::Warning, "{line}");
        }
        let neither = [
            "test result: ok. 3 passed; 0 failed; 0 ignored",
            "Found 0 errors and 0 warnings.",
            "[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 0",
            "   Compiling thiserror v1.0",
            "   Compiling error-chain v0.12",
            "src/error.rs",
            "console.error(x)",
            "# fail 0",
            "--deny-warnings",
            "no warnings",
            "error_codes.rs",
            "",
        ];
        for line in neither {
            assert_eq!(classify_line(line), LineReport::Nothing, "{line}");
        }
    }

    #[test]
    fn location_lines_are_recognized() {
        for line in [
            "  --> src/lib.rs:3:5",
            "    at run (/a/b.test.js:10:3)",
            "  File \"a.py\", line 3, in f",
            "main.go:12: undefined: x",
            "tests/test_a.py:12: AssertionError",
            "src/a.ts(3,4): error",
        ] {
            assert!(is_location(line), "{line}");
        }
        for line in ["12:30:01 started", "v1.2:3", "see https://x.y/z", "localhost:8080", ""] {
            assert!(!is_location(line), "{line}");
        }
    }
}
