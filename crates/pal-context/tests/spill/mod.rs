//! Spill: long results and pastes.

use crate::common::{LayerFixture, check};
use pal_context::{ActionKind, CondenseMode, CondenseModes};
use pal_model::{DecisionKind, LogEntry, ModelCard, ModelCatalog, TokenGeneration};
use pal_testkit::script;
use pal_view::Estimator;

const MODEL: &str = "claude-opus-4-6";

fn setting(log: &str) -> LayerFixture {
    LayerFixture::of(MODEL, log).with_window(200_000)
}

#[test]
fn a_long_result_goes_to_disk_and_a_short_one_is_kept() {
    let log =
        "user: go\nsent\nmodel m1: call a Bash\nmodel m1: call b Read\nresult a: ~50001~\nresult b: ~50000~";
    let setting = check(
        "spill",
        setting(log),
        &[
            "spill a to tool-results/a.txt: Bash result of 50,001 characters is over 50,000",
            "keep b: 1 result short enough to stay whole",
        ],
    );
    let body = setting.checked_body();
    assert!(body.contains("All of it is in /s/tool-results/a.txt"), "{body}");
}

#[test]
fn sent_results_are_not_inspected() {
    let log = "user: go\nsent\nmodel m1: call a Bash\nresult a: ~90000~\nsent\nmodel m2: ok\nuser: more";
    check("spill", setting(log), &["nothing: nothing new to look at"]);
}

#[test]
fn the_largest_of_a_message_go_first_until_the_rest_fits() {
    let mut log = String::from("user: go\nsent\n");
    for (id, size) in [("a", 45_000), ("b", 48_000), ("c", 46_000), ("d", 47_000), ("e", 30_000)] {
        log += &format!("model m1: call {id} Bash\n");
        log += &format!("result {id}: ~{size}~\n");
    }
    check(
        "spill",
        setting(&log),
        &[
            "spill b to tool-results/b.txt: the results of this message have 216,000 characters, over 200,000: the Bash result of 48,000 is shown in part",
            "keep a c d e: 4 results short enough to stay whole",
        ],
    );
}

#[test]
fn spill_thresholds_are_configurable_and_scale_with_the_window() {
    let log =
        "user: go\nsent\nmodel m1: call a Bash\nmodel m1: call b Read\nresult a: ~9000~\nresult b: ~9000~";
    let by_tool = |setting: LayerFixture| {
        setting.with_policy(|policy| policy.spill_characters_by_tool = [("Bash".into(), 8_000)].into())
    };
    check(
        "spill",
        by_tool(setting(log)),
        &[
            "spill a to tool-results/a.txt: Bash result of 9,000 characters is over 8,000",
            "keep b: 1 result short enough to stay whole",
        ],
    );
    check(
        "spill",
        setting(log).with_window(30_000),
        &[
            "spill a to tool-results/a.txt: Bash result of 9,000 characters is over 7,500",
            "spill b to tool-results/b.txt: Read result of 9,000 characters is over 7,500",
        ],
    );
}

#[test]
fn a_long_paste_keeps_its_beginning_and_its_end() {
    let log = "user: what is this? ~250000~ explain the last part\nsent compact";
    let setting = check(
        "spill",
        setting(log),
        &["spill 1 to tool-results/user-ENTRY.txt: text of the user of 250,036 characters is over 200,000"],
    );
    let body = setting.checked_body();
    assert!(body.contains("what is this?") && body.contains("explain the last part") && body.len() < 12_000);
}

#[test]
fn pages_of_a_spilled_file_are_not_spilled_again() {
    let page = |size: usize| {
        format!(
            "user: go\nsent\nmodel m1: call a Read {{\"file_path\":\"/s/tool-results/x.txt\",\"offset\":100}}\nmodel m1: call b Bash\nresult a: ~{size}~\nresult b: short"
        )
    };
    check("spill", setting(&page(90_000)), &["keep a b: 2 results short enough to stay whole"]);
    let setting = check(
        "spill",
        setting(&page(280_000)),
        &[
            "spill a to tool-results/x.txt (there already): the results of this message have 280,005 characters, over 200,000: the Read result of 280,000 is shown in part",
            "keep b: 1 result short enough to stay whole",
        ],
    );
    let body = setting.checked_body();
    assert!(body.contains("Read on from line 7242,"), "{}", &body[body.len() - 700..]);
}

#[test]
fn spill_files_have_extensions_and_safe_names() {
    let json = format!("[{}1]", "1234567, ".repeat(7_000));
    let id = "call|x.1";
    let log = format!("user: go\nsent\nmodel m1: call {id} Bash\nresult {id}: {json}");
    let act = setting(&log).act("spill");
    let ActionKind::Decide(proposals) = act.kind else { panic!("{act:?}") };
    let DecisionKind::Spill { path, text, .. } = &proposals[0].decision.kind else { panic!() };
    assert!(path.starts_with("tool-results/call_x_1_") && path.ends_with(".json"), "{path}");
    assert!(text.contains(path.as_str()));
    assert_eq!(proposals[0].file.as_ref().unwrap().text, json);
    assert!(proposals[0].decision.cost.tokens_freed > 10_000, "{:?}", proposals[0].decision.cost);
    assert_eq!(proposals[0].decision.cost.tokens_rewritten, 0);
}

#[test]
fn a_result_with_a_picture_stays_unless_its_text_alone_is_too_long() {
    let image =
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}"#;
    let log = |size: usize| {
        let text = "word ".repeat(size / 5);
        format!(
            "user: go\nsent\nmodel m1: call a Bash\nraw user [{{\"type\":\"tool_result\",\"tool_use_id\":\"a\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}},{image}]}}]"
        )
    };
    check("spill", setting(&log(40_000)), &["keep a: 1 result short enough to stay whole"]);
    let setting = check(
        "spill",
        setting(&log(60_000)),
        &["spill a to tool-results/a.txt: Bash result of 60,000 characters is over 50,000"],
    );
    assert!(setting.checked_body().contains("1 pictures or documents"));
}

#[test]
fn disabled_layers_do_nothing() {
    let log = "user: go\nsent\nmodel m1: call a Bash\nresult a: ~90000~";
    let off = setting(log).with_policy(|policy| (policy.spill, policy.condense) = (false, false));
    check("spill", off, &["nothing: switched off"]);
}

/// A session that has just run a command with this output.
fn output_of(command: &str, output: &str) -> Vec<LogEntry> {
    let result = serde_json::json!([{"type": "tool_result", "tool_use_id": "a", "content": output}]);
    let call = serde_json::json!({ "command": command });
    script(&format!("user: go\nsent\nmodel m1: call a Bash {call}\nraw user {result}")).unwrap()
}

/// Decides about the output on a window of 1,000,000 tokens; returns the reason of the spill, if it is one.
fn condensed(
    card: ModelCard,
    command: &str,
    output: &str,
    change: impl FnOnce(&mut LayerFixture),
) -> Option<String> {
    let mut setting = LayerFixture::from_entries(card, output_of(command, output));
    change(&mut setting);
    let ActionKind::Decide(proposals) = setting.act("spill").kind else { return None };
    let spilled = |decision: &pal_model::Decision| matches!(decision.kind, DecisionKind::Spill { .. });
    proposals.into_iter().map(|proposal| proposal.decision).find(spilled).map(|decision| decision.reason)
}

/// A diff of 12,500 characters, a table of 400 rows, and a build log.
fn verbose_outputs() -> [(&'static str, &'static str, String); 3] {
    let hunk = |at: usize| {
        format!(
            "@@ -{at},3 +{at},3 @@\n fn keep_{at}() {{}}\n-fn old_{at}() {{}}\n+fn new_{at}() {{}}\n fn more_{at}() {{}}\n"
        )
    };
    let diff = (0..150).map(hunk).collect::<String>();
    let row = |at: usize| format!("{at},name {at},{}\n", at * 31);
    let log = |at: usize| format!("   Compiling part-{at} v0.1.0\n");
    [
        (
            "diff",
            "git diff",
            format!("diff --git a/src/a.rs b/src/a.rs\n--- a/src/a.rs\n+++ b/src/a.rs\n{diff}"),
        ),
        ("table", "./report", format!("id,name,score\n{}", (0..400).map(row).collect::<String>())),
        ("build log", "cargo build", (0..200).map(log).collect()),
    ]
}

#[test]
fn data_is_condensed_only_where_it_has_no_room() {
    let card = ModelCatalog::built_in().find(MODEL).card;
    for (format, command, output) in verbose_outputs() {
        let reason = |change: fn(&mut LayerFixture)| condensed(card.clone(), command, &output, change);
        let is_log = format == "build log";
        let expected = format!(", {format}, is condensed");
        let is_condensed = |reason: Option<String>| reason.is_some_and(|reason| reason.ends_with(&expected));
        assert_eq!(is_condensed(reason(|_| {})), is_log, "{format}: there is room");
        assert!(is_condensed(reason(|setting| setting.limits.warning = 1)), "{format}: past the warning");
        let over = condensed(card.clone(), command, &output, |setting| {
            setting.policy.spill_characters = output.len() as u64 - 1;
        });
        assert!(is_condensed(over), "{format}: it would be spilled");
        let off = CondenseModes {
            build_logs: CondenseMode::Never,
            diffs: CondenseMode::Never,
            tables: CondenseMode::Never,
            ..CondenseModes::STANDARD
        };
        let never = condensed(card.clone(), command, &output, |setting| {
            setting.limits.warning = 1;
            setting.policy.condense_modes = off;
        });
        assert_eq!(never, None, "{format}");
    }
}

#[test]
fn data_that_would_enter_a_higher_price_tier_is_condensed() {
    let mut card = ModelCatalog::built_in().find("claude-haiku-5-5").card;
    let [(_, command, diff), ..] = verbose_outputs();
    let is_condensed = |card: &ModelCard| condensed(card.clone(), command, &diff, |_| {}).is_some();
    assert!(!is_condensed(&card));
    card.price_tier.as_mut().unwrap().above = 1_000;
    assert!(is_condensed(&card));
}

#[test]
fn dense_text_counts_by_its_tokens() {
    let chinese = "模型从未见过的内容不能被压缩掉。".repeat(3_000);
    let mut log = String::from("user: go\nsent\n");
    for id in ["a", "b", "c", "d"] {
        log += &format!("model m1: call {id} Bash\nresult {id}: {chinese}\n");
    }
    let setting = setting(&log);
    let tokens = setting.view.size().tokens;
    assert!(tokens > 150_000, "{tokens}");
    let act = setting.act("spill");
    let ActionKind::Decide(proposals) = act.kind else { panic!("{act:?}") };
    assert_eq!(proposals.len(), 4, "48,000 characters are under the budget, and their tokens are not");
    for proposal in &proposals {
        let reason = &proposal.decision.reason;
        assert!(reason.ends_with(" tokens is over 25,000 tokens"), "{reason}");
    }
}

/// Chinese text of about this many tokens.
fn chinese(tokens: u64) -> String {
    let estimator = Estimator::shipped(TokenGeneration::Claude46);
    let line = "模型从未见过的内容不能被压缩掉。";
    line.repeat((tokens as f64 / estimator.text(&line.repeat(100)) * 100.0) as usize)
}

#[test]
fn messages_that_a_compaction_could_not_keep_are_shown_in_part() {
    let reasons = |prompt: u64, window: u64| -> Vec<String> {
        let mut log = String::from("user: go\nsent\nmodel m0: ~40000~\nuser: look\nsent\n");
        for id in ["a", "b", "c", "d"] {
            log += &format!("model m1: call {id} Read\nresult {id}: {}\n", chinese(3_600));
        }
        log += &format!("user: {}", chinese(prompt));
        let ActionKind::Decide(proposals) = setting(&log).with_window(window).act("spill").kind else {
            return Vec::new();
        };
        let changes = proposals.into_iter().filter(|proposal| proposal.file.is_some());
        changes.map(|proposal| proposal.decision.reason).collect()
    };
    // Each text is within its budget. A result goes before a prompt of up to twice its size.
    let small = reasons(6_800, 30_000);
    assert!(small.len() == 1 && small[0].starts_with("Read result: "), "{small:?}");
    assert!(small[0].contains("tokens wait for an answer, and a compaction can keep"), "{small:?}");
    let large = reasons(13_500, 30_000);
    assert!(large.len() == 1 && large[0].starts_with("text of the user: "), "{large:?}");
    // With room for everything, nothing is shortened.
    assert_eq!(reasons(13_500, 200_000), [""; 0]);
}

#[test]
fn many_long_results_share_the_room_of_their_previews() {
    let mut log = String::from("user: go\nsent\nuser: look\nsent\n");
    for id in 0..8 {
        log += &format!("model m1: call c{id} Bash\n");
    }
    for id in 0..8 {
        log += &format!("result c{id}: ~9000~\n");
    }
    let full = setting(&log).with_window(8_192);
    let ActionKind::Decide(proposals) = full.act("spill").kind else { panic!("nothing is spilled") };
    let shown: Vec<usize> = proposals
        .iter()
        .filter_map(|proposal| match &proposal.decision.kind {
            DecisionKind::Spill { text, .. } => Some(text.len()),
            _ => None,
        })
        .collect();
    // A preview alone has 2,000 bytes, and eight of them would fill the window.
    assert_eq!(shown.len(), 8);
    assert!(shown.iter().all(|bytes| *bytes < 1_200), "{shown:?}");
}
