//! Which place counts.

use std::time::Duration;

use pal_settings::{EstimatorSetting, KillSwitch, PolicySetting, SandboxSetting};
use pal_view::{CacheTtl, CompactionThreshold};
use serde_json::json;

use crate::{World, entry, told};

#[test]
fn the_nearer_place_counts_and_the_managed_one_most() {
    let mut world = World::new();
    // A repository may ask for less, so each place asks for less than the one before.
    let mut steps = Vec::new();
    steps.push(told(&world.settings(), "max_output_tokens"));
    world = world.user("max_output_tokens = 7");
    steps.push(told(&world.settings(), "max_output_tokens"));
    world = world.project("max_output_tokens = 6");
    steps.push(told(&world.settings(), "max_output_tokens"));
    world = world.local("max_output_tokens = 5");
    steps.push(told(&world.settings(), "max_output_tokens"));
    world = world.given("max_output_tokens = 4");
    steps.push(told(&world.settings(), "max_output_tokens"));
    world = world.variable("PAL_MAX_OUTPUT_TOKENS", "3");
    steps.push(told(&world.settings(), "max_output_tokens"));
    world = world.flag("--max-output-tokens", "max_output_tokens", json!(2));
    steps.push(told(&world.settings(), "max_output_tokens"));
    world = world.managed("max_output_tokens = 1");
    steps.push(told(&world.settings(), "max_output_tokens"));
    let wanted = ["default", "user", "project", "local", "--settings", "environment", "flag", "managed"];
    let wanted: Vec<_> = wanted.iter().enumerate().map(|(at, place)| (json!(8 - at), *place)).collect();
    assert_eq!(steps[0], (json!(8_000), "default"));
    assert_eq!(steps[1..], wanted[1..]);
    assert_eq!(world.settings().spending.output_tokens_max, 1);
    assert_eq!(told(&world.settings(), "git"), (json!(true), "default"), "what it does not set is others'");
}

#[test]
fn a_value_knows_its_file_and_line() {
    let world = World::new().user("git = true\n\n[permissions]\nmode = \"plan\"\n");
    let settings = world.settings();
    let origin = &entry(&settings, "permissions.mode").parts[0].origin;
    assert_eq!(
        (origin.line, origin.source.as_str()),
        (Some(4), world.path("home/settings.toml").to_str().unwrap())
    );
    let world = world.variable("PAL_GIT", "0");
    assert_eq!(entry(&world.settings(), "git").parts[0].origin.source, "PAL_GIT");
}

#[test]
fn rules_of_all_places_hold_together() {
    let world = World::new()
        .trusted("[permissions]\nallow = [\"Read\"]\ndeny = [\"Bash(rm:*)\"]")
        .project("[permissions]\nallow = [\"Bash(cargo test:*)\"]\nask = [\"WebFetch\"]")
        .local("[permissions]\ndeny = [\"Read(.env)\"]")
        .managed("[permissions]\ndeny = [\"WebFetch\"]");
    let settings = world.settings();
    let rules = |rules: &[pal_settings::ResolvedSetting<String>]| -> Vec<String> {
        rules.iter().map(|rule| format!("{} {}", rule.origin.place.name(), rule.value)).collect()
    };
    assert_eq!(rules(&settings.permissions.allow), ["user Read", "project Bash(cargo test:*)"]);
    assert_eq!(rules(&settings.permissions.ask), ["project WebFetch"]);
    assert_eq!(
        rules(&settings.permissions.deny),
        ["user Bash(rm:*)", "local Read(.env)", "managed WebFetch"]
    );
    assert_eq!(entry(&settings, "permissions.allow").value(), json!(["Read", "Bash(cargo test:*)"]));
}

#[test]
fn hooks_of_all_places_run() {
    let hook = "[[hooks.Stop]]\nhooks = [{ type = \"command\", command = \"true\" }]\n";
    let world = World::new().trusted(hook).project(hook).given(
        r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "http", "url": "http://x"}]}]}}"#,
    );
    let settings = world.settings();
    let places: Vec<&str> = settings.hooks.iter().map(|hooks| hooks.origin.place.name()).collect();
    assert_eq!(places, ["user", "project", "--settings"]);
    assert_eq!(settings.warnings.len(), 1, "{:?}", settings.warnings);
    assert!(settings.warnings[0].contains("http is not supported"), "{:?}", settings.warnings);
}

#[test]
fn settings_can_be_given_as_a_file_as_toml_and_as_json() {
    let world =
        World::new().file("more.json", "{\n  \"git\": false,\n  \"telemetry\": {\"enabled\": true}\n}");
    let path = world.path("more.json").display().to_string();
    let settings = world.given(&path).settings();
    assert!(!settings.git.is_on && settings.telemetry.is_on);
    let origin = &entry(&settings, "telemetry.enabled").parts[0].origin;
    assert_eq!((origin.source.as_str(), origin.line), (path.as_str(), Some(3)));
    for text in ["git = false", "{\"git\": false}", " {\"git\": false} "] {
        assert!(!World::new().given(text).settings().git.is_on, "{text}");
    }
    let lost = World::new().given("more.toml").error();
    assert!(lost.contains("no such file"), "{lost}");
}

#[test]
fn every_setting_reaches_what_it_is_about() {
    let text = r#"
model = "m"
effort = "xhigh"
cache_ttl = "1h"
estimator = "classic"
auto_compact = false
threshold.percent = 80
thresholds = { mine = { left = 50000 } }
max_context_tokens = 100000
instructions = false
max_instruction_tokens = 5
drop_large_instructions = true
allow_includes = ["~/a.md", "/srv/b.md"]
git = false
git_timeout_ms = 7
sandbox = "on"
sandbox_network = true
sandbox_writable = ["/srv"]
max_turns = 3
max_tokens_total = 4
max_cost_usd = 0.5
web_private_addresses = true
secret_variables = ["TOKEN"]
editor = "ed"
idle_timeout_s = 9
max_stalled_turns = 21
max_fruitless_turns = 22
connect_timeout_s = 11
send_timeout_s = 12
header_timeout_s = 13
first_event_timeout_s = 14
content_gap_timeout_s = 15
response_timeout_s = 16
max_response_mb = 17
max_command_output_mb = 18
max_outputs_mb = 19
permissions = { mode = "accept-edits", directories = ["/other"] }
telemetry = { endpoint = "http://localhost:4318", content = true }
anthropic.base_url = "https://a.example"
"#;
    let settings = World::new().user(text).variable("HOME", "/home/u").settings();
    assert_eq!((settings.model.as_deref(), settings.effort.as_deref()), (Some("m"), Some("xhigh")));
    assert_eq!(settings.cache_ttl, Some(CacheTtl::Hour1));
    assert_eq!(settings.estimator, EstimatorSetting::Classic);
    let window = settings.window_for("m");
    assert_eq!((window.auto_compact, window.max_context_tokens), (false, Some(100_000)));
    assert_eq!(window.threshold, CompactionThreshold::Percent(80.0));
    assert_eq!(settings.window_for("mine").threshold, CompactionThreshold::Left(50_000));
    let instructions = &settings.instructions;
    assert_eq!((instructions.is_on, instructions.tokens_max, instructions.drops_largest), (false, 5, true));
    assert_eq!(instructions.allowed, ["/home/u/a.md", "/srv/b.md"].map(std::path::PathBuf::from));
    assert_eq!((settings.git.is_on, settings.git.limit), (false, Duration::from_millis(7)));
    assert_eq!((settings.sandbox.when, settings.sandbox.network), (SandboxSetting::On, true));
    assert_eq!(settings.sandbox.writable.len(), 1);
    let spending = settings.spending;
    assert_eq!(
        (spending.turns_max, spending.tokens_max, spending.cost_usd_max),
        (Some(3), Some(4), Some(0.5))
    );
    assert!(settings.web_private_addresses);
    assert_eq!((settings.secret_variables.len(), settings.editor.as_deref()), (1, Some("ed")));
    assert_eq!(settings.idle_timeout.as_secs(), 9);
    assert_eq!((spending.stalled_turns_max, spending.fruitless_turns_max), (21, 22));
    let limits = &settings.response_limits;
    let times = [
        limits.connect,
        limits.send,
        limits.headers.unwrap(),
        limits.first_event,
        limits.content_gap,
        limits.answer,
    ];
    assert_eq!(times.map(|time| time.as_secs()), [11, 12, 13, 14, 15, 16]);
    assert_eq!(limits.bytes_max, 17 << 20);
    let outputs = settings.output_limits;
    assert_eq!((outputs.command_bytes_max, outputs.total_bytes_max), (18 << 20, 19 << 20));
    assert_eq!(settings.permissions.mode, "accept-edits");
    assert_eq!(settings.permissions.directories.len(), 1);
    assert_eq!(settings.telemetry.endpoint.as_deref(), Some("http://localhost:4318"));
    assert!(settings.telemetry.with_content && !settings.telemetry.is_on);
    assert_eq!(settings.endpoints.anthropic.as_deref(), Some("https://a.example"));
    assert!(settings.warnings.is_empty(), "{:?}", settings.warnings);
}

#[test]
fn one_threshold_from_nearer_counts_more_than_those_of_models() {
    let world = World::new().user("threshold.used = 9\nthresholds = { mine = { left = 50000 } }");
    assert_eq!(world.settings().window_for("mine").threshold, CompactionThreshold::Left(50_000));
    let world = world.variable("PAL_AUTOCOMPACT_PCT", "62.5");
    assert_eq!(world.settings().window_for("mine").threshold, CompactionThreshold::Percent(62.5));
}

#[test]
fn variables_that_make_no_sense_are_told_of_and_ignored() {
    for value in ["0", "-5", "100.1", "NaN", "many"] {
        let settings = World::new().variable("PAL_AUTOCOMPACT_PCT", value).settings();
        assert_eq!(settings.window_for("m").threshold, CompactionThreshold::Standard, "{value}");
        assert_eq!(settings.warnings.len(), 1, "{value}");
    }
    let cases =
        [("PAL_GIT", "maybe"), ("PAL_MAX_TURNS", "0"), ("PAL_SANDBOX", "of"), ("PAL_MAX_COST_USD", "inf")];
    for (name, value) in cases {
        let warnings = World::new().variable(name, value).settings().warnings;
        assert!(warnings.len() == 1 && warnings[0].starts_with(name), "{warnings:?}");
    }
    let empty =
        World::new().variable("PAL_GIT", "").variable("EDITOR", "ed").variable("VISUAL", " ").settings();
    assert!(
        empty.warnings.is_empty() && empty.editor.as_deref() == Some("ed"),
        "an empty variable is not set"
    );
}

#[test]
fn secrets_are_kept_and_never_shown() {
    let world = World::new().variable("ANTHROPIC_API_KEY", "sk-very-secret");
    let settings = world.settings();
    assert_eq!(told(&settings, "anthropic.api_key"), (json!("set"), "environment"));
    assert_eq!(told(&settings, "openai.api_key"), (json!("not set"), "default"));
    assert!(settings.secrets.anthropic_api_key.is_some());
    assert!(!format!("{:?}{:?}", settings.entries(), settings.secrets).contains("very-secret"));
    let error = world.user("[anthropic]\napi_key = \"sk-very-secret\"").error();
    assert!(error.contains("anthropic.api_key") && !error.contains("very-secret"), "{error}");
}

#[test]
fn names_of_the_last_release_work_and_warn() {
    let world = World::new().user("fidelity = 0.25\npolicy = \"thrifty\"\n").variable("PAL_PINGS", "1");
    let settings = world.settings();
    let figures = settings.context_policy().cost_aware.unwrap();
    assert_eq!((figures.loss_weight, figures.cache_keepalive), (0.25, true));
    assert_eq!(settings.policy, PolicySetting::CostAware);
    let warnings = settings.warnings.join("\n");
    for (former, current) in [
        ("`fidelity`", "`loss_weight`"),
        ("PAL_PINGS", "`PAL_CACHE_KEEPALIVE`"),
        ("\"thrifty\"", "\"cost-aware\""),
    ] {
        assert!(warnings.contains(former) && warnings.contains(current), "{warnings}");
    }
    assert!(warnings.contains("line 1"), "{warnings}");
    let switched =
        World::new().user("disabled = [\"cache_marks\"]").variable("PAL_DISABLE_CACHE_MARKS", "1").settings();
    assert!(switched.switches.is_off(KillSwitch::CacheBreakpoints));
    assert_eq!(switched.warnings.len(), 2, "{:?}", switched.warnings);
    let variable = World::new().variable("PAL_POLICY", "classic").settings();
    assert_eq!((variable.policy, variable.warnings.len()), (PolicySetting::Threshold, 1));
}

#[test]
fn prices_and_budgets_are_read() {
    let standard = World::new().settings();
    assert_eq!((standard.alerts.cold_turn, standard.alerts.cache_break), (Some(0.5), Some(1.0)));
    assert_eq!((standard.spending.subagent_usd_max, standard.spending.daily_usd_max), (None, None));
    let text = "cold_turn_warning_usd = 0\ncache_break_alarm_usd = 2.5\nmax_subagent_cost_usd = 0.2\n\
                max_daily_cost_usd = 10\ncompaction.model = \"claude-haiku-4-5\"\nidle_compaction = true\n";
    let set = World::new().user(text).settings();
    assert_eq!((set.alerts.cold_turn, set.alerts.cache_break), (None, Some(2.5)));
    assert_eq!((set.spending.subagent_usd_max, set.spending.daily_usd_max), (Some(0.2), Some(10.0)));
    let policy = set.context_policy();
    assert_eq!(policy.compaction_model.as_deref(), Some("claude-haiku-4-5"));
    assert!(policy.idle_compaction && !standard.context_policy_of(PolicySetting::Threshold).idle_compaction);
    assert!(standard.context_policy_of(PolicySetting::CostAware).idle_compaction);
    let off = World::new().user("idle_compaction = false\n").settings();
    assert!(!off.context_policy_of(PolicySetting::CostAware).idle_compaction);
}
