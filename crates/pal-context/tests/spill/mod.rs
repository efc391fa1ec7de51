//! Spill: long results and pastes.

use crate::common::{LayerFixture, check};
use pal_context::ActionKind;
use pal_model::DecisionKind;

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
