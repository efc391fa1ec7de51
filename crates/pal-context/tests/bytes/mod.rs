//! Bytes: requests that would be too large for the provider.

use crate::common::{LayerFixture, check};

/// A user message with an image of this size.
fn picture(megabytes: usize) -> String {
    let data = "iVBORw0K".repeat(megabytes * 1_000_000 / 8);
    format!(
        r#"raw user [{{"type":"text","text":"look"}},{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{data}"}}}}]"#
    )
}

fn log(megabytes: &[usize]) -> String {
    let shown = |(at, size): (usize, &usize)| format!("{}\nsent\nmodel m{at}: I see.\n", picture(*size));
    megabytes.iter().enumerate().map(shown).collect::<String>() + "user: and?"
}

#[test]
fn oldest_media_are_stripped_below_the_limit() {
    check("bytes", LayerFixture::of("claude-opus-5-5", &log(&[9, 9, 9])), &["nothing: 27 MB, acts from 30"]);
    let reason = "33 MB are more than a request may have: pictures and documents of 2 old messages left out";
    let setting = check(
        "bytes",
        LayerFixture::of("claude-opus-5-5", &log(&[5, 5, 9, 14])),
        &[&format!("strip 1: {reason}"), &format!("strip 4: {reason}")],
    );
    let body = setting.checked_body();
    assert!(body.len() < 24_000_000 && body.matches("left out: the request was too large").count() == 2);
}

#[test]
fn only_compaction_helps_within_a_turn() {
    let result = |id: &str, megabytes| {
        let picture = picture(megabytes).replace(r#"raw user [{"type":"text","text":"look"},"#, "");
        format!(
            "model m{id}: call {id} Read\nraw tool [{{\"type\":\"tool_result\",\"tool_use_id\":\"{id}\",\"content\":[{picture}}}]\n"
        )
    };
    let log = format!("user: go\nsent\n{}sent\n{}", result("a", 20), result("b", 12));
    check(
        "bytes",
        LayerFixture::of("claude-opus-5-5", &log),
        &[
            "compact: 32 MB are more than a request may have, and in the middle of a turn nothing that was sent may change: a compaction is needed",
        ],
    );
    let reason = "32 MB are more than a request may have: pictures and documents of 1 old message left out";
    check("bytes", LayerFixture::of("claude-opus-4-6", &log), &[&format!("strip 4: {reason}")]);
}

#[test]
fn text_alone_needs_a_compaction() {
    let log = "user: ~31000000~";
    let expected =
        "32 MB are more than a request may have, even without pictures and documents: a compaction is needed";
    check("bytes", LayerFixture::of("claude-opus-5-5", log), &[&format!("compact: {expected}")]);
    let mut blocked = LayerFixture::of("claude-opus-5-5", log);
    blocked.blocked_by = Some("guard");
    check("bytes", blocked, &[&format!("stop: {expected}, and the hook `guard` forbids it")]);
}
