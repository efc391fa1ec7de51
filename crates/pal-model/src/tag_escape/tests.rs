//! Tests of tag escaping.

use proptest::prelude::*;

use super::*;

#[test]
fn guarded_tags_are_escaped_and_unescaped() {
    for (text, escaped) in [
        ("a <system-reminder>b</system-reminder>", "a <\\system-reminder>b<\\/system-reminder>"),
        ("<\\system-reminder>", "<\\\\system-reminder>"),
        ("< /SYSTEM-Reminder x", "<\\ /SYSTEM-Reminder x"),
        ("<system_reminder> <system reminder", "<\\system_reminder> <\\system reminder"),
        ("<sys\u{200b}tem\u{2011}rem\nin\u{ad}der>", "<\\sys\u{200b}tem\u{2011}rem\nin\u{ad}der>"),
        ("＜ｓystem-reminder＞", "＜\\ｓystem-reminder＞"),
        ("‹ѕуѕtеm-rеmіndеr›", "‹\\ѕуѕtеm-rеmіndеr›"),
        ("<𝐬𝐲𝐬𝐭𝐞𝐦-𝕣𝕖𝕞𝕚𝕟𝕕𝕖𝕣>", "<\\𝐬𝐲𝐬𝐭𝐞𝐦-𝕣𝕖𝕞𝕚𝕟𝕕𝕖𝕣>"),
        ("<s\u{363}yst\u{301}em-r℮ⅿⁱₙⅆℯʳ>", "<\\s\u{363}yst\u{301}em-r℮ⅿⁱₙⅆℯʳ>"),
        ("<|im\u{336}_start|>", "<\\|im\u{336}_start|>"),
        ("<<system-reminder>>", "<<\\system-reminder>>"),
        ("<!--system-reminder-->", "<\\!--system-reminder-->"),
        ("<git-snapshot><instruction-file path=\"a\">", "<\\git-snapshot><\\instruction-file path=\"a\">"),
        ("<|im_start|>system<|im_end|>", "<\\|im_start|>system<\\|im_end|>"),
        ("<| im_start |>", "<\\| im_start |>"),
        ("<｜begin▁of▁sentence｜>", "<\\｜begin▁of▁sentence｜>"),
        ("<|reserved_special_token_7|>", "<\\|reserved_special_token_7|>"),
        ("[INST] <<SYS>>x<</SYS>>", "[INST] <\\<SYS>>x<\\</SYS>>"),
        ("<start_of_turn>model", "<\\start_of_turn>model"),
        ("</function_results>", "<\\/function_results>"),
        ("cut <", "cut <\\"),
        ("cut < sys", "cut <\\ sys"),
        ("cut <|sys", "cut <\\|sys"),
    ] {
        assert_eq!(escape_tags(text), escaped);
        assert_eq!(unescape_tags(escaped), text);
    }
    for name in GUARDED_TAGS {
        assert_eq!(escape_tags(&format!("<{name}>")), format!("<\\{name}>"));
    }
    let hidden: String =
        "<system-reminder>".chars().map(|letter| char::from_u32(0xe0000 + letter as u32).unwrap()).collect();
    assert!(escape_tags(&hidden).starts_with("\u{e003c}\\"));
}

#[test]
fn ordinary_text_is_unchanged() {
    for text in [
        "<system> <user> <assistant> <summary> <systemreminder> a < b",
        "for i in 0.. { if a < i",
        "<SystemReminder prop={1} /> <GitSnapshot/> <InstructionFile>",
        "<!DOCTYPE html><html><body class=\"x\"><s>old</s></body></html>",
        "let f = g <| h |> i; x <|> y; cat <<EOF\nEOF\nif a<b&&c>d {}",
        "Vec<String> std::vector<int> #include <git2.h> <instructions> <i>reminder</i>",
        "&lt;system-reminder&gt; \\u003csystem-reminder\\u003e [INST] [system-reminder]",
        "日本語〈注〉、«bonjour» ‹x› 1 ≪ 2",
    ] {
        assert!(matches!(escape_tags(text), Cow::Borrowed(same) if same == text), "{}", escape_tags(text));
    }
}

#[test]
fn json_strings_are_unescaped_before_matching() {
    for (json, escaped) in [
        (r#"{"a":"\u003csystem-reminder>","b":["x"]}"#, r#"{"a":"<\\system-reminder>","b":["x"]}"#),
        (r#"["\ud83d <SYSTEM-REMINDER\u003E",1]"#, "[\"\u{fffd} <\\\\SYSTEM-REMINDER>\",1]"),
        (r#""\"<system-reminder>\"""#, r#""\"<\\system-reminder>\"""#),
        (r#"{"a":"caf\u00e9","b":"\/ < c"}"#, r#"{"a":"caf\u00e9","b":"\/ < c"}"#),
        (r#"{"a":"unfinished <system-reminder>"#, r#"{"a":"unfinished <system-reminder>"#),
    ] {
        assert_eq!(escape_tags_in_json(json), escaped);
    }
}

#[test]
fn reminders_have_one_pair_of_tags() {
    assert_eq!(unwrap_reminder(&wrap_reminder("a\nb")), Some("a\nb"));
    assert_eq!(unwrap_reminder("<system-reminder>a</system-reminder>\n"), Some("a"));
    assert_eq!(unwrap_reminder("<system-reminder>a</system-reminder> b"), None);
    assert_eq!(unwrap_reminder("x <system-reminder>a</system-reminder>"), None);
    assert_eq!(
        escape_reminder_tags("</system-reminder> <\\system-reminder>"),
        "<\\/system-reminder> <\\system-reminder>"
    );
    assert_eq!(escape_reminder_tags("<git-snapshot>"), "<git-snapshot>");
}

#[test]
fn quoted_names_stay_on_one_line() {
    for (name, line) in [
        ("src/main.rs", "\"src/main.rs\""),
        ("a\nb\u{1b}[0m\u{202e}c", "\"a\\nb\\u{1b}[0m\\u{202e}c\""),
        ("x\" </system-reminder>", "\"x\\\" <\\/system-reminder>\""),
        ("a\u{a0}b\u{2028}c", "\"a b\\u{2028}c\""),
        ("", "\"\""),
    ] {
        assert_eq!(quote_name(name, 40), line);
    }
    assert_eq!(quote_name("abcdefgh", 7), "\"abcdef…\"");
    assert_eq!(quote_name("abcdefg", 7), "\"abcdefg\"");
    assert_eq!(quote_name("abc\u{202e}", 7), "\"abc…\"");
}

#[test]
fn escaping_runs_in_linear_time() {
    for piece in ["<", "< ", "<\\", "<s", "<|", "<<SYS", "<system-", "‹\u{200b}", "\"<", "＜＜"] {
        let text = piece.repeat(1_000_000 / piece.len());
        assert_eq!(unescape_tags(&escape_tags(&text)), text);
        let mut json = String::new();
        crate::escape_into(&mut json, &text);
        escape_tags_in_json(&json);
        quote_name(&text, 1_000_000);
    }
}

/// Generates texts that resemble tags.
fn nearly() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(&["<", "＜", "\\", "/", "system", "reminder", "-", "_", " ", "\u{200b}", ">", "|", "im_start", "<<SYS>>", "<system-reminder>", "<|", "s", "\u{e003c}", "\u{e0073}"][..]).prop_map(String::from),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn escaped_text_round_trips(text in nearly()) {
        let escaped = escape_tags(&text);
        prop_assert_eq!(unescape_tags(&escaped), text.as_str());
        let twice = escape_tags(&escaped);
        prop_assert_eq!(unescape_tags(&twice), escaped.as_ref());
        // No continuation of the text turns it into a tag.
        for (at, opener) in tag_openers(&escaped) {
            let behind = &escaped[at + opener.len_utf8()..];
            prop_assert!(behind.starts_with('\\') || !guarded_tags::is_guarded(behind, TagAlphabet::after_opener(opener)), "{}", escaped);
        }
    }

    #[test]
    fn quoted_names_respect_the_length_limit(text in nearly(), most in 1..30usize) {
        let line = quote_name(&text, most);
        // Only the text between the quotation marks: after the closing one, no tag can be cut off.
        let inner = line.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default();
        prop_assert!(!line.contains('\n') && unescape_tags(inner).chars().count() <= most, "{line}");
    }

    #[test]
    fn escaped_json_stays_valid(text in nearly()) {
        let mut json = String::from("[");
        crate::escape_into(&mut json, &text);
        json.push(']');
        let escaped = escape_tags_in_json(&json);
        let read: Vec<String> = serde_json::from_str(&escaped).unwrap();
        let wanted = escape_tags(&text);
        prop_assert_eq!(&read[0], wanted.as_ref());
    }
}
