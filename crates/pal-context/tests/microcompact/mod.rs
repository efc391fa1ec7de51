//! Microcompact: old results.

use pal_context::ForecastCondition;
use pal_model::ModelCatalog;
use pal_testkit::script;
use pal_view::View;

use crate::common::{LayerFixture, OPTIONS, check, spelled_out};

/// Eight calls, each with its result, one round each.
fn rounds(tools: &[&str], size: usize) -> String {
    let mut log = String::from("user: go\nsent\n");
    for (at, tool) in tools.iter().enumerate() {
        log += &format!("model m{at}: call c{at} {tool}\nresult c{at}: ~{size}~\nsent\n");
    }
    log + "model z: done\n"
}

fn card_without_clearing(log: &str) -> LayerFixture {
    LayerFixture::of("gpt-5.2", log).with_window(200_000)
}

#[test]
fn a_cold_cache_clears_all_but_the_newest() {
    let log = rounds(&["Bash"; 8], 3_000) + "user: and now?";
    let cold = || LayerFixture::of("claude-opus-4-6", &log).later(61);
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
    let reason = "the cache is warm, and a compaction comes before the window is full";
    check("microcompact", setting, &[&format!("nothing: {reason}")]);
    // Full, it is still cheaper to compact than to write most of the prompt again.
    let full = rounds(&["Bash"; 8], 80_000) + "user: more";
    check("microcompact", card_without_clearing(&full), &[&format!("nothing: {reason}")]);
    let setting = card_without_clearing(&log).with_policy(|policy| policy.early_clear = true);
    check("microcompact", setting.later(59), &["nothing: 6,813 tokens, acts from 160,000"]);
}

#[test]
fn pressure_clears_if_the_provider_cannot() {
    let log =
        rounds(&["Bash", "Task", "read_file", "mcp__a__b", "exec_command", "Grep", "Edit", "Read"], 100_000);
    let setting = || card_without_clearing(&(log.clone() + "user: more"));
    let cleared =
        |from: &str| format!("clear c0 c2 c4: 220,794 tokens are past {from}: 3 old results cleared");
    check("microcompact", setting().with_policy(|policy| policy.early_clear = true), &[&cleared("160,000")]);
    // Nothing else can make room: automatic compaction is off, waits for a refusal, or is forbidden.
    let mut off = setting();
    off.limits.auto_compact = None;
    check("microcompact", off, &[&cleared("177,000")]);
    check(
        "microcompact",
        setting().with_policy(|policy| policy.reactive_only = true),
        &[&cleared("177,000")],
    );
    let mut forbidden = setting();
    forbidden.blocked_by = Some("guard");
    check("microcompact", forbidden, &[&cleared("177,000")]);
}

const TOOLS: &str = "tools Read Bash Edit Write Task mcp__a__b\n";

#[test]
fn provider_clear_request_is_stable() {
    let asked_from = |trigger: u64, keep: &str, thinking: &str| {
        format!(
            r#"ask context_management {{"edits":[{{"type":"clear_thinking_20251015","keep":{thinking}}},{{"type":"clear_tool_uses_20250919","trigger":{{"type":"input_tokens","value":{trigger}}},"keep":{{"type":"tool_uses","value":{keep}}},"clear_at_least":{{"type":"input_tokens","value":20000}},"exclude_tools":["Task","mcp__a__b"],"clear_tool_inputs":["Edit","Write"]}}]}}"#
        )
    };
    let asked = |keep: &str, thinking: &str| asked_from(157_000, keep, thinking);
    let unless_early =
        |log: &str| LayerFixture::of("claude-opus-5-5", &format!("{TOOLS}{log}")).with_window(200_000);
    let setting = |log: &str| unless_early(log).with_policy(|policy| policy.early_clear = true);
    // Where only a compaction may be sent, which the provider reaches only if it counts more tokens.
    check("microcompact", unless_early("user: go"), &[&asked_from(177_000, "20", r#""all""#)]);
    check("microcompact", setting("user: go"), &[&asked("20", r#""all""#)]);
    // Close to the trigger it is settled how many results stay, and once settled it stays so.
    let log = rounds(&["Bash"; 12], 40_000) + "user: more\n";
    let mut full = setting(&log);
    let act = full.act("microcompact");
    assert_eq!(
        act.reason,
        "149,016 tokens, the provider clears from 157,000 on: the newest 3 results, about 40,000 tokens, will stay"
    );
    full.apply_action(&act);
    let full = check("microcompact", full, &[&asked("3", r#""all""#)]);
    // Old thinking stays: taking it out again at every turn would write the whole prompt each time.
    let kept = unless_early("user: go").with_policy(|policy| policy.cold_clear = false).later(70);
    check("microcompact", kept, &[&asked_from(177_000, "20", r#""all""#)]);
    // After an hour without a request the thinking of old turns goes, and stays away.
    let mut idle = full.with_policy(|policy| policy.cold_clear = false).later(70);
    idle.apply_action(&idle.act("microcompact"));
    let turn = r#"{"type":"thinking_turns","value":1}"#;
    check("microcompact", idle, &[&asked("3", turn)]);
}

#[test]
fn provider_clear_is_not_combined_with_compaction() {
    let setting = LayerFixture::of("claude-opus-5-5", &format!("{TOOLS}user: go"));
    check(
        "microcompact",
        setting.with_policy(|policy| policy.provider_compaction = true),
        &["nothing: the provider compacts, and does not clear beside that"],
    );
}

#[test]
fn bound_thinking_waits_for_a_user_turn() {
    let log = rounds(&["Bash"; 8], 3_000);
    let inside =
        LayerFixture::of("claude-opus-5-5", &(log.clone() + "model y: call z Bash\nresult z: ok")).later(90);
    check("microcompact", inside, &["nothing: the session declares no tools"]);
    let opens = LayerFixture::of("claude-opus-5-5", &(log + "user: back")).later(90);
    check(
        "microcompact",
        opens,
        &["clear c0 c1 c2: the cache is cold after 90 minutes: 3 old results cleared"],
    );
}

#[test]
fn memory_other_tools_and_short_results_are_never_cleared() {
    let mut log = String::from("user: go\nsent\n");
    log += "model m1: call a Read {\"file_path\":\"/p/memory/MEMORY.md\"}\nresult a: ~4000~\nsent\n";
    log += "model m2: call b mcp__x__y\nresult b: ~4000~\nsent\n";
    log += "model m3: call c Bash\nresult c: ok\nsent\n";
    log += "model m4: call d Task\nresult d: ~4000~\nsent\n";
    log += &rounds(&["Read"; 6], 4_000);
    check(
        "microcompact",
        LayerFixture::of("claude-opus-4-6", &(log + "user: back")).later(90),
        &["clear c0: the cache is cold after 90 minutes: 1 old result cleared"],
    );
}

#[test]
fn a_spilled_result_says_where_it_is() {
    let log = rounds(&["Bash"; 6], 3_000) + "spill c0: ~1500~\nuser: back";
    let setting = check(
        "microcompact",
        LayerFixture::of("claude-opus-4-6", &log).later(90),
        &["clear c0: the cache is cold after 90 minutes: 1 old result cleared"],
    );
    assert!(setting.checked_body().contains("[Old tool result content cleared] All of it is in /s/c0.txt."));
}

#[test]
fn pressure_hides_old_memories_and_needs_enough_tokens() {
    let early = |log: &str| card_without_clearing(log).with_policy(|policy| policy.early_clear = true);
    let reason = "177,259 tokens are past 160,000: 5 old results cleared, 1 old memory note hidden";
    let log = rounds(&["Bash"; 8], 80_000).replace("user: go\n", "user: go\nnote memory: ~2000~\n");
    check(
        "microcompact",
        early(&(log + "note memory: new\nuser: more\nnote memory: newest")),
        &[&format!("snip 2: {reason}"), &format!("clear c0 c1 c2 c3 c4: {reason}")],
    );
    let log = rounds(&["Task"; 8], 100_000) + "user: more";
    check(
        "microcompact",
        early(&log),
        &["nothing: under pressure, but old results have only 0 tokens, 0 to be freed"],
    );
}

#[test]
fn cache_edits_follow_the_card() {
    let own = "[models.editing]\nlike = \"claude-opus-5-5\"\ncache_edits = true\n";
    let card = ModelCatalog::built_in().with_overrides(own).unwrap().find("editing").card;
    let setting = |log: &str| LayerFixture::from_entries(card.clone(), script(&spelled_out(log)).unwrap());
    let eleven = rounds(&["Bash"; 11], 3_000) + "user: more";
    check("microcompact", setting(&eleven), &["nothing: 11 results in the cache, edits it from 12 on"]);
    let twelve = rounds(&["Bash"; 12], 3_000) + "model y: call z Bash\nresult z: ok";
    let before = setting(&twelve).view;
    let edited = check(
        "microcompact",
        setting(&twelve),
        &["edit cache c0 c1 c2 c3 c4 c5 c6: 7 old results deleted from the cache, 5 stay"],
    );
    let body = edited.checked_body();
    assert!(
        body.contains(r#"{"type":"cache_edits","edits":[{"type":"delete","cache_reference":"c0"}"#),
        "{body}"
    );
    assert!(body.contains(r#""cache_reference":"c0"}"#) && !body.contains("content cleared"));
    let chain = |view: &View| view.render(OPTIONS).block_fingerprints().collect::<Vec<_>>();
    assert!(chain(&edited.view).starts_with(&chain(&before)), "the messages keep their bytes");
    assert!(edited.view.size().tokens + 4_000 < before.size().tokens, "{:?}", edited.view.size());
    // Sent edits stay where they were sent; what follows is decided anew, and nothing is deleted twice.
    let more = rounds(&["Bash"; 4], 3_000)
        .replace(" c", " d")
        .replace(" dall", " call")
        .replace("user: go\nsent\n", "");
    let later = setting(&format!("{twelve}\ndelete c0 c1 c2 c3 c4 c5 c6\nsent\n{more}user: go on"));
    assert!(chain(&later.view).starts_with(&chain(&edited.view)), "sent edits are pinned");
    check("microcompact", later, &["nothing: 10 results in the cache, edits it from 12 on"]);
    // When the cache is lost, what was deleted in it is cleared here.
    let cold = setting(&(twelve + "\ndelete c0 c1 c2\nsent\nmodel x: ok\nuser: back")).later(90);
    let reason = "the cache is cold after 90 minutes: 8 old results cleared";
    check(
        "microcompact",
        cold,
        &[&format!("clear c0 c1 c2: {reason}"), &format!("clear c3 c4 c5 c6 c7: {reason}")],
    );
}

#[test]
fn unsent_results_are_never_cleared() {
    let calls: String = (0..8).map(|at| format!("model m: call c{at} Bash\n")).collect();
    let results: String = (0..8).map(|at| format!("result c{at}: ~3000~\n")).collect();
    let unseen = LayerFixture::of("claude-opus-4-6", &format!("user: go\nsent\n{calls}{results}")).later(90);
    check("microcompact", unseen, &["nothing: the session declares no tools"]);
}

/// What is foreseen: layer, moment, results, and whether anything is freed.
fn foreseen(setting: &LayerFixture) -> Vec<(ForecastCondition, Vec<String>, bool)> {
    let context = setting.context();
    let all = pal_context::LAYERS.iter().flat_map(|layer| layer.forecast(&context));
    let of_layer = all.filter(|one| one.layer == "microcompact");
    let ids = |ids: &[pal_model::ToolUseId]| ids.iter().map(|id| id.as_str().to_owned()).collect();
    of_layer.map(|one| (one.condition, ids(&one.results), one.tokens > 0)).collect()
}

#[test]
fn forecasts_match_later_actions() {
    let hour = ForecastCondition::Idle(std::time::Duration::from_secs(3_600));
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let log = rounds(&["Bash"; 8], 60_000) + "user: and now?";
    // Where the provider does not clear: all but five after an hour, all but three past the warning.
    let setting = card_without_clearing(&log).with_policy(|policy| policy.early_clear = true);
    let pressed = (ForecastCondition::Tokens(160_000), names(&["c0", "c1", "c2", "c3", "c4"]), true);
    assert_eq!(foreseen(&setting), [(hour, names(&["c0", "c1", "c2"]), true), pressed]);
    check(
        "microcompact",
        setting.later(61),
        &["clear c0 c1 c2: the cache is cold after 61 minutes: 3 old results cleared"],
    );
    // Where it does: from its trigger on, all but those that make 40 000 tokens; nothing as long as that is too little.
    let asking = |size: usize, is_early: bool| {
        let log = format!("{TOOLS}{}user: more\n", rounds(&["Bash"; 12], size));
        let provider_clears = LayerFixture::of("claude-opus-5-5", &log).with_window(200_000);
        foreseen(&provider_clears.with_policy(|policy| policy.early_clear = is_early))
    };
    let results: Vec<String> = (0..9).map(|at| format!("c{at}")).collect();
    for (is_early, trigger) in [(false, 177_000), (true, 157_000)] {
        let trigger = ForecastCondition::Tokens(trigger);
        assert_eq!(asking(40_000, is_early)[1], (trigger, results.clone(), true));
        assert_eq!(asking(100, is_early)[1], (trigger, Vec::new(), false));
    }
    let off = card_without_clearing(&log).with_policy(|policy| {
        (policy.cold_clear, policy.pressure) = (false, false);
    });
    assert_eq!(foreseen(&off), []);
}
