//! Microcompact: old results.

use crate::common::{Setting, check};

/// Eight calls, each with its result, one round each.
fn rounds(tools: &[&str], size: usize) -> String {
    let mut log = String::from("user: go\nsent\n");
    for (at, tool) in tools.iter().enumerate() {
        log += &format!("model m{at}: call c{at} {tool}\nresult c{at}: ~{size}~\nsent\n");
    }
    log + "model z: done\n"
}

fn card_without_clearing(log: &str) -> Setting {
    Setting::of("gpt-5.2", log).with_window(200_000)
}

#[test]
fn a_cold_cache_clears_all_but_the_newest() {
    let log = rounds(&["Bash"; 8], 3_000) + "user: and now?";
    let cold = || Setting::of("claude-opus-4-6", &log).later(61);
    let setting = check(
        "microcompact",
        cold(),
        &["clear c0 c1 c2: the cache is cold after 61 minutes: 3 old results cleared"],
    );
    let body = setting.checked_body();
    assert!(
        body.contains("[Old tool result content cleared] All of it is in /s/log.jsonl, under c1."),
        "{body}"
    );
    let kept = |keep| cold().with_policy(move |policy| policy.cold_keep = keep);
    let reason = "the cache is cold after 61 minutes: 7 old results cleared";
    check("microcompact", kept(0), &[&format!("clear c0 c1 c2 c3 c4 c5 c6: {reason}")]);
}

#[test]
fn a_warm_cache_is_left_alone() {
    let log = rounds(&["Bash"; 8], 3_000) + "user: and now?";
    let setting = card_without_clearing(&log).later(59);
    check("microcompact", setting, &["nothing: 6 813 tokens, acts from 160 000"]);
}

#[test]
fn under_pressure_where_the_provider_cannot() {
    let log =
        rounds(&["Bash", "Task", "read_file", "mcp__a__b", "exec_command", "Grep", "Edit", "Read"], 100_000);
    let setting = card_without_clearing(&(log + "user: more"));
    check(
        "microcompact",
        setting,
        &["clear c0 c2 c4: 220 794 tokens are past the warning at 160 000: 3 old results cleared"],
    );
}
