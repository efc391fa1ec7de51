//! JSON syntax of the body.

use pal_wire::{RequestRules, check_request};

/// Checks a body given as bytes; compares the text after `not valid JSON`, or the whole message.
#[track_caller]
fn check(body: impl AsRef<[u8]>, expected: &str) {
    let message = match check_request(body.as_ref(), &RequestRules::newest()) {
        Ok(_) => String::new(),
        Err(error) => error.message,
    };
    assert_eq!(message.strip_prefix("The request body is not valid JSON: ").unwrap_or(&message), expected);
}

/// Returns a valid request around the inside of a string.
fn around(inside: &str) -> String {
    format!(r#"{{"model":"m","max_tokens":1,"messages":[{{"role":"user","content":"{inside}"}}]}}"#)
}

#[test]
fn grammar() {
    check("", "unexpected end of data: line 1 column 1 (char 0)");
    check("{\n  \"a\"\n", "unexpected end of data: line 3 column 1 (char 8)");
    check("{}x", "unexpected content after document: line 1 column 3 (char 2)");
    check("{\"é\": tru}", "invalid literal: line 1 column 7 (char 6)");
    check("[1,]", "unexpected character: line 1 column 4 (char 3)");
    check("{\"a\":1,}", "unexpected character in object: line 1 column 8 (char 7)");
    check("{\"a\" 1}", "unexpected character, expected a colon after a key: line 1 column 6 (char 5)");
    check("[1 2]", "unexpected character, expected a comma or the end: line 1 column 4 (char 3)");
    check("[1}", "unexpected character, expected a comma or the end: line 1 column 3 (char 2)");
    check("[01]", "number with leading zero is not allowed: line 1 column 4 (char 3)");
    check("[-]", "no digit in number: line 1 column 3 (char 2)");
    check("\u{feff}{}", "unexpected character: line 1 column 1 (char 0)");
    check("[]", "Input should be a valid dictionary");
}

#[test]
fn strings() {
    check(around(r"\u0068\u0069 \ud83d\ude00 \/ \n"), "");
    check(around("a\u{1}b"), "unexpected control character in string: line 1 column 68 (char 67)");
    check(around(r"a\x"), "invalid escaped character in string: line 1 column 68 (char 67)");
    check(around(r"a\u12g4"), "invalid escaped sequence in string: line 1 column 68 (char 67)");
    check(around(r"a\ud83d b"), "no low surrogate in string: line 1 column 68 (char 67)");
    check(around(r"a\ud83d\u0041"), "invalid low surrogate in string: line 1 column 68 (char 67)");
    check(around(r"a\ude00"), "invalid high surrogate in string: line 1 column 68 (char 67)");
    let mut bytes = around("a?b").into_bytes();
    let at = bytes.iter().position(|&byte| byte == b'?').unwrap();
    bytes[at] = 0xff;
    check(&bytes, "invalid UTF-8 encoding in string: line 1 column 68 (char 67)");
}

#[test]
fn control_characters_at_any_position() {
    for byte in 0..0x20u8 {
        for n_before in 0..20 {
            let inside = format!("{}{}", "a".repeat(n_before), char::from(byte));
            let at = 66 + n_before;
            let message = "unexpected control character in string: line 1 column";
            if byte != b'\n' {
                check(around(&inside), &format!("{message} {} (char {at})", at + 1));
            } else {
                assert!(check_request(around(&inside).as_bytes(), &RequestRules::newest()).is_err());
            }
        }
    }
    let printable: String = (' '..='\u{7f}').filter(|c| !matches!(c, '"' | '\\')).collect();
    check(around(&format!("{printable} é 日本 {printable}")), "");
}

#[test]
fn lone_surrogates_are_found_in_tool_inputs() {
    let body = r#"{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_use","id":"a","name":"b","input":{"c":["\udead"]}}]}]}"#;
    check(body, "invalid high surrogate in string: line 1 column 121 (char 120)");
}

#[test]
fn escaped_names_equal_unescaped_names() {
    check(around("a").replace("\"role\"", r#""\u0072ole""#).replace("\"user\"", r#""\u0075ser""#), "");
}

#[test]
fn duplicate_fields_are_refused() {
    let body = around("a").replacen("\"model\"", "\"model\":\"n\",\"model\"", 1);
    check(body, "model: Field must not be given twice");
}

#[test]
fn depth_is_bounded() {
    let deep = "[".repeat(10 << 20);
    check(&deep, "nesting is too deep: line 1 column 128 (char 127)");
    check("{\"a\":".repeat(1 << 20), "nesting is too deep: line 1 column 636 (char 635)");
    let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    check(nested(127), "Input should be a valid dictionary");
    check(nested(128), "nesting is too deep: line 1 column 128 (char 127)");
}
