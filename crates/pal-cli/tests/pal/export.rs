//! `pal export`: nothing that was said is missing, and nothing of it is anything but text.

use std::path::Path;

use pal_model::{BlockType, EntryBody, LogEntry, MessageOrigin, SharedText};
use pal_testkit::session_sample;
use serde_json::Value;

use crate::commands::SESSION;
use crate::program::{CommandOutput, TestHome, imported};
use crate::stored_session::{ImportedSession, question};

#[track_caller]
fn good(said: CommandOutput) -> String {
    assert_eq!(said.code, 0, "{}", said.err);
    said.out
}

const FORMATS: [&str; 3] = ["markdown", "html", "json"];

/// The page without its escapes, as a reader sees it.
fn unescaped(html: &str) -> String {
    let named = html.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#39;", "'");
    named.replace("&amp;", "&")
}

#[test]
fn an_export_has_prompts_answers_calls_and_costs() {
    let home = TestHome::new();
    let file = home.file("session.jsonl", SESSION);
    let markdown = good(home.run(&["export", &file]));
    for words in [
        "## User · 2026-11-15 09:00\n\n```text\nWhy does the test fail?\n```",
        "<details><summary>Read /src/demo/test.rs</summary>",
        "\"file_path\": \"/src/demo/test.rs\"",
        "assert_eq!(1 + 1, 3);",
        "It expects 3.",
        "<sub>20,005 read, 120 written, 3 uncached, 10 out, $0.0110</sub>",
        "## Cost",
        "| claude-opus-4-6 | 2 |",
    ] {
        assert!(markdown.contains(words), "{words}\n{markdown}");
    }
    let html = good(home.run(&["export", &file, "--format", "html"]));
    for words in [
        "<div class=\"text\">Why does the test fail?</div>",
        "<h2>User · prompt 1 · 2026-11-15 09:00</h2>",
        "<li><a href=\"#prompt-1\">Why does the test fail?</a> <small>$0.1375</small></li>",
        "id=\"prompt-1\"",
        "<details><summary>Read",
        "class=\"bar\"",
        "<p>It expects 3.</p>",
        "<h2 id=\"cost\">Cost</h2>",
    ] {
        assert!(html.contains(words), "{words}\n{html}");
    }
    let json: Value = serde_json::from_str(&good(home.run(&["export", &file, "-f", "json"]))).unwrap();
    assert_eq!((&json["summary"]["prompts"], &json["summary"]["tool_calls"]), (&1.into(), &1.into()));
    assert_eq!(
        json["entries"].as_array().unwrap().len(),
        json["summary"]["entries"].as_u64().unwrap() as usize
    );
}

#[test]
fn json_export_keeps_the_bytes_of_entries() {
    let stored = ImportedSession::new(2);
    let json = stored.good("export", &["--format", "json"]);
    for line in String::from_utf8(stored.bytes()).unwrap().lines() {
        assert!(json.contains(line), "{line}");
    }
    let newest = good(stored.home.run_in(&stored.project, &["export"]));
    assert!(newest.contains(&question(2)), "the newest of the directory is taken: {newest}");
}

#[test]
fn an_exported_file_is_private_and_has_the_format_of_its_extension() {
    use std::os::unix::fs::PermissionsExt;
    let home = TestHome::new();
    let file = home.file("session.jsonl", SESSION);
    for (name, begins) in [("a.html", "<!doctype html>"), ("a.json", "{\"summary\""), ("a.md", "# ")] {
        let target = home.path().join(name);
        std::fs::write(&target, "old").unwrap();
        let said = home.run(&["export", &file, "-o", target.to_str().unwrap()]);
        assert_eq!((said.code, said.out.as_str()), (0, ""), "{}", said.err);
        assert!(std::fs::read_to_string(&target).unwrap().starts_with(begins), "{name}");
        assert_eq!(std::fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let said = home.run(&["export", &file, "-o", "/nowhere/at/all.md"]);
    assert!(said.code == 1 && said.err.contains("/nowhere/at/all.md"), "{}", said.err);
    let left = std::fs::read_dir(home.path()).unwrap().flatten();
    assert!(left.filter(|file| file.file_name().to_string_lossy().contains(".part")).count() == 0);
    assert_eq!(home.run(&["export", "no-such-session"]).code, 1);
}

/// Texts that would do something in a page, if they were not text.
const TRICKS: [&str; 8] = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</details></pre></div><iframe src='https://example.org'></iframe>",
    "\"><svg/onload=alert(1)>",
    "javascript:alert(1)",
    "```\n<script>alert(2)</script>\n```",
    "&lt;b&gt; &#x3c;script>",
    "</style><style>*{display:none}</style>",
];

#[test]
fn content_never_becomes_markup() {
    let mut lines = Vec::new();
    for (at, trick) in TRICKS.iter().enumerate() {
        let (call, text) = (format!("toolu_{at}"), serde_json::json!(trick));
        lines.push(format!(r#"{{"type":"user","uuid":"u{at}","sessionId":"s","cwd":{text},"timestamp":"2026-11-15T09:00:00.000Z","message":{{"role":"user","content":{text}}}}}"#));
        let picture = serde_json::json!({"type": "image", "source": {"type": "base64", "media_type": trick, "data": trick}});
        lines.push(format!(r#"{{"type":"assistant","uuid":"a{at}","sessionId":"s","timestamp":"2026-11-15T09:00:00.000Z","message":{{"id":"m{at}","role":"assistant","model":{text},"content":[{{"type":"thinking","thinking":{text},"signature":"x"}},{{"type":"text","text":{text}}},{{"type":"tool_use","id":"{call}","name":{text},"input":{{"command":{text}}}}}],"usage":{{"input_tokens":5,"output_tokens":6}}}}}}"#));
        lines.push(format!(r#"{{"type":"user","uuid":"r{at}","sessionId":"s","timestamp":"2026-11-15T09:00:00.000Z","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{call}","content":[{{"type":"text","text":{text}}},{picture}]}}]}}}}"#));
    }
    let home = TestHome::new();
    let file = home.file("tricks.jsonl", lines.join("\n") + "\n");
    let html = good(home.run(&["export", &file, "--format", "html"]));
    let body = html.split_once("<body>").unwrap().1;
    for tag in ["<script", "<img", "<iframe", "<svg", "<style", "<b>"] {
        assert!(!body.contains(tag), "{tag}");
    }
    assert_eq!(body.matches("<pre").count(), body.matches("</pre>").count());
    assert_eq!(body.matches("<details").count(), body.matches("</details>").count());
    assert!(!html.contains("http://") && !html.contains("src='"), "nothing is fetched");
    assert!(html.contains("default-src 'none'"));
    for trick in TRICKS {
        assert!(
            unescaped(body).contains(trick.trim_start_matches("```\n").trim_end_matches("\n```")),
            "{trick}"
        );
    }
    let markdown = good(home.run(&["export", &file]));
    let mut fence: Option<String> = None;
    for line in markdown.lines() {
        // Text after a backslash is literal.
        let line = &line.replace("\\\\", "").replace("\\<", "");
        let ticks: String = line.chars().take_while(|c| *c == '`').collect();
        match &fence {
            None if ticks.len() >= 3 => fence = Some(ticks),
            Some(open) if ticks == *open && line.len() == ticks.len() => fence = None,
            None => assert!(
                !line.contains("<script") && !line.contains("<img") && !line.contains("<iframe"),
                "{line}"
            ),
            _ => {}
        }
    }
    assert_eq!(fence, None, "every fence is closed");
}

/// User texts of a recorded session.
fn said_in(file: &Path) -> Vec<String> {
    let log = SharedText::from(imported(file).log);
    let mut said = Vec::new();
    for line in log.lines() {
        let entry = LogEntry::parse(log.slice_of(line)).unwrap();
        if let EntryBody::User(user) = &entry.body
            && user.origin == MessageOrigin::Person
        {
            let texts = user.content.blocks().iter().filter(|block| block.kind() == BlockType::Text);
            said.extend(texts.filter_map(|block| block.string("text")).map(|text| text.into_owned()));
        }
    }
    said
}

#[test]
#[ignore = "needs sessions of other agents: PAL_TEST_DATA"]
fn recorded_messages_are_in_every_export_format() {
    let home = TestHome::new();
    let mut count = 0;
    for file in session_sample("export") {
        let said = said_in(&file);
        let path = file.to_str().unwrap();
        for format in FORMATS {
            let out = good(home.run(&["export", path, "--format", format]));
            let shown = match format {
                "html" => unescaped(&out),
                _ => out,
            };
            for text in said.iter().filter(|text| !text.trim().is_empty()) {
                let plain: String = match format {
                    "json" => {
                        let mut escaped = String::new();
                        pal_model::escape_into(&mut escaped, text);
                        escaped
                    }
                    _ => text
                        .replace("\r\n", "\n")
                        .chars()
                        .map(|c| if c.is_control() && !matches!(c, '\n' | '\t') { '·' } else { c })
                        .collect(),
                };
                let is_there =
                    shown.contains(plain.trim_end_matches('\n')) || format == "json" && in_json(&shown, text);
                assert!(is_there, "{path} as {format}: missing {text:?}");
            }
        }
        count += said.len();
    }
    println!("{count} texts of people, each in {} formats", FORMATS.len());
}

/// Tells whether a text is in the entries, in any escaping.
fn in_json(out: &str, text: &str) -> bool {
    fn holds(value: &Value, text: &str) -> bool {
        match value {
            Value::String(known) => known == text,
            Value::Array(items) => items.iter().any(|item| holds(item, text)),
            Value::Object(members) => members.values().any(|member| holds(member, text)),
            _ => false,
        }
    }
    holds(&serde_json::from_str(out).unwrap(), text)
}

/// A session in which secrets of several sorts were said, written, called with and returned.
fn session_with_secrets() -> (String, Vec<String>) {
    let token = format!("{}{}", "ghp", "_0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV1wX");
    let secrets = vec![
        token.clone(),
        String::from("hunter2!x"),
        String::from("s3cr3t-Pa55"),
        String::from("Winter2026!"),
    ];
    let said = format!("use {token} please");
    let answer = "The database is postgres://app:s3cr3t-Pa55@db.internal/app";
    let lines = [
        format!(
            r#"{{"type":"user","uuid":"u1","sessionId":"s","timestamp":"2026-11-15T09:00:00.000Z","message":{{"role":"user","content":"{said}"}}}}"#
        ),
        format!(
            r#"{{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s","timestamp":"2026-11-15T09:00:04.000Z","message":{{"id":"m1","type":"message","role":"assistant","model":"claude-opus-4-6","content":[{{"type":"text","text":"{answer}"}},{{"type":"tool_use","id":"toolu_1","name":"Login","input":{{"user":"ann","password":"hunter2!x"}}}}],"usage":{{"input_tokens":5,"output_tokens":6}}}}}}"#
        ),
        String::from(
            r#"{"type":"user","uuid":"u2","parentUuid":"a1","sessionId":"s","timestamp":"2026-11-15T09:00:05.000Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"DB_PASSWORD=Winter2026!"}]}}"#,
        ),
    ];
    (lines.join("\n") + "\n", secrets)
}

#[test]
fn secrets_are_masked_by_default() {
    let home = TestHome::new();
    let (session, secrets) = session_with_secrets();
    let file = home.file("session.jsonl", session);
    for format in FORMATS {
        let masked = home.run(&["export", &file, "--format", format]);
        assert_eq!(masked.code, 0, "{}", masked.err);
        for secret in &secrets {
            assert!(!masked.out.contains(secret.as_str()), "{format}: {secret}\n{}", masked.out);
        }
        assert!(
            masked.err.contains("4 secrets masked") && masked.err.contains("--no-mask"),
            "{}",
            masked.err
        );
        assert!(
            masked.out.contains("[secret: github token]"),
            "{format}: what was masked shows\n{}",
            masked.out
        );
        let counted = if format == "json" { "\"masked\":4" } else { "4 secrets masked" };
        assert!(masked.out.contains(counted), "{format}: {}", masked.out);
        let kept = home.run(&["export", &file, "--format", format, "--no-mask"]);
        assert_eq!((kept.code, kept.err.as_str()), (0, ""));
        for secret in &secrets {
            assert!(kept.out.contains(secret.as_str()), "{format}: {secret}\n{}", kept.out);
        }
    }
    let json = home.run(&["export", &file, "--format", "json"]);
    assert!(serde_json::from_str::<Value>(&json.out).is_ok(), "{}", json.out);
}

#[test]
fn a_home_that_others_can_write_to_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let home = TestHome::new();
    let pal = home.path().join("pal");
    std::fs::create_dir(&pal).unwrap();
    let settings = pal.join("settings.toml");
    std::fs::write(&settings, "editor = \"ed\"\n").unwrap();
    let mode = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    assert_eq!(home.run(&["config"]).code, 0);
    for (path, bad, good) in [(&settings, 0o666, 0o600), (&pal, 0o777, 0o700)] {
        mode(path, bad);
        let said = home.run(&["config"]);
        let command = format!("chmod go-w {}", path.display());
        assert!(said.code == 1 && said.err.contains(&command) && said.err.contains("owner"), "{}", said.err);
        mode(path, good);
        assert_eq!(home.run(&["config"]).code, 0);
    }
}
