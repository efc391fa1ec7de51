//! Snip: redundant calls.

use crate::common::{LayerFixture, check};

/// A session with these rounds, and enough behind them that they are old.
fn setting(rounds: &str) -> LayerFixture {
    let mut log = String::from("user: go\nsent\n") + rounds;
    for at in 0..11 {
        log += &format!("model z{at}: call z{at} Task {{\"n\":{at}}}\nresult z{at}: done {at}\nsent\n");
    }
    let log = log + "model z: done\nuser: more";
    LayerFixture::of("claude-opus-4-6", &log).later(90).with_policy(|policy| policy.snip = true)
}

const READ: &str = r#"Read {"file_path":"/a"}"#;

#[test]
fn superseded_reads_are_hidden() {
    let rounds = format!(
        "model m1: call a {READ}\nresult a: ~20000~\nsent\nmodel m2: call b Edit {{\"file_path\":\"/a\"}}\nresult b: ok\nsent\nmodel m3: call c {READ}\nresult c: ~20001~\nsent\n"
    );
    check("snip", setting(&rounds), &["snip 3 4: the cache is cold: 1 superseded read hidden"]);
    let written = rounds.replace("model m3: call c Read", "model m3: call c Write");
    check("snip", setting(&written), &["snip 3 4: the cache is cold: 1 superseded read hidden"]);
    let partial =
        rounds.replace(r#"call c Read {"file_path":"/a""#, r#"call c Read {"file_path":"/a","offset":9"#);
    check("snip", setting(&partial), &["nothing: the cache is cold, but nothing is redundant"]);
    let stub = rounds.replace("~20001~", "unchanged since the last read");
    check("snip", setting(&stub), &["nothing: the cache is cold, but nothing is redundant"]);
}

#[test]
fn repeats_failures_and_polls() {
    let call = |id: &str, tool: &str, result: &str| {
        format!("model m{id}: call {id} {tool}\nresult {id}{result}\nsent\n")
    };
    let rounds = [
        call("a", r#"Bash {"command":"ls"}"#, ": ~9000~"),
        call("b", r#"Grep {"pattern":"x"}"#, ": ~9000~"),
        call("c", r#"Bash {"command":"ls"}"#, ": ~9000~"),
        call("d", r#"Edit {"file_path":"/x","old":"1"}"#, " error: ~9000~"),
        call("e", r#"Edit {"file_path":"/x","old":"2"}"#, ": ok"),
        call("f", r#"Bash {"command":"gh run view"}"#, ": ~5000~ 1"),
        call("g", r#"Bash {"command":"gh run view"}"#, ": ~5000~ 2"),
        call("h", r#"Bash {"command":"gh run view"}"#, ": ~5000~ 3"),
    ];
    check(
        "snip",
        setting(&rounds.concat()),
        &["snip 3 4 12 13 18 19 21 22: the cache is cold: 1 repeated call, 1 failed attempt, 2 polls hidden"],
    );
}

#[test]
fn pairs_go_whole_or_not_at_all() {
    // The first response says something, too; the second makes another call; results share an entry.
    let spoken = format!(
        "raw model m1 [{{\"type\":\"text\",\"text\":\"I look.\"}},{{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"Read\",\"input\":{{\"file_path\":\"/a\"}}}}]\nresult a: ~20000~\nsent\nmodel m3: call c {READ}\nresult c: ~20001~\nsent\n"
    );
    check("snip", setting(&spoken), &["nothing: the cache is cold, but nothing is redundant"]);
    let parallel = format!(
        "model m1: think hard\nmodel m1: call a {READ}\nmodel m1: call b Bash\nresult a: ~20000~\nresult b: ok\nsent\nmodel m3: call c {READ}\nresult c: ~20001~\nsent\n"
    );
    check("snip", setting(&parallel), &["snip 4 6: the cache is cold: 1 superseded read hidden"]);
    let alone = parallel.replace("model m1: call b Bash\n", "").replace("result b: ok\n", "");
    check("snip", setting(&alone), &["snip 3 4 5: the cache is cold: 1 superseded read hidden"]);
    let shared = parallel.replace(
        "result a: ~20000~\nresult b: ok\n",
        "raw user [{\"type\":\"tool_result\",\"tool_use_id\":\"a\",\"content\":\"~20000~\"},{\"type\":\"tool_result\",\"tool_use_id\":\"b\",\"content\":\"ok\"}]\n",
    );
    check("snip", setting(&shared), &["nothing: the cache is cold, but nothing is redundant"]);
}

#[test]
fn snip_waits_for_a_cold_cache_and_enough_gain() {
    let rounds = format!(
        "model m1: call a {READ}\nresult a: ~2000~\nsent\nmodel m3: call c {READ}\nresult c: ~2000~\nsent\n"
    );
    check(
        "snip",
        setting(&rounds),
        &["nothing: the cache is cold, but redundant calls have only 626 tokens, acts from 5,000"],
    );
    let mut warm = setting(&rounds.replace("2000", "20000"));
    warm.now = warm.view.branch().last().unwrap().at;
    check("snip", warm, &["nothing: the cache is warm and 11,884 tokens are below the warning at 960,000"]);
    let off = setting(&rounds).with_policy(|policy| policy.snip = false);
    check("snip", off, &["nothing: switched off"]);
    // The last messages are never touched.
    let kept = setting(&rounds.replace("2000", "20000")).with_policy(|policy| policy.snip_keep_messages = 40);
    check("snip", kept, &["nothing: the cache is cold, but nothing is redundant"]);
}
