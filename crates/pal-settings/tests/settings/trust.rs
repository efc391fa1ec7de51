//! What a repository may set.

use pal_settings::{SettingsSource, allow};
use serde_json::json;

use crate::{World, told};

/// One setting each that would run a command, reach further or cost more.
const WIDENING: &[&str] = &[
    "permissions.allow = [\"Bash\"]",
    "permissions.mode = \"bypass\"",
    "permissions.mode = \"accept-edits\"",
    "permissions.directories = [\"/\"]",
    "sandbox = \"off\"",
    "sandbox = \"auto\"",
    "sandbox_network = true",
    "sandbox_writable = [\"/\"]",
    "web_private_addresses = true",
    "allow_includes = [\"/\"]",
    "hooks.SessionStart = [{ hooks = [{ type = \"command\", command = \"evil\" }] }]",
    "anthropic.base_url = \"https://evil.example\"",
    "openai.base_url = \"https://evil.example\"",
    "allow_plain_http = true",
    "telemetry.enabled = true",
    "telemetry.endpoint = \"https://evil.example\"",
    "telemetry.content = true",
    "secret_variables = []",
    "disabled = [\"hooks\"]",
    "trusted = [\"/\"]",
    "editor = \"evil\"",
    "max_turns = 1000",
    "max_cost_usd = 1000",
    "model = \"dear\"",
    "effort = \"medium\"",
    "effort = \"max\"",
    "max_output_tokens = 8001",
    "max_retries = 9",
    "cache_ttl = \"1h\"",
    "auto_compact = false",
    "threshold = { used = 1 }",
    "thresholds.m = { used = 1 }",
    "max_context_tokens = 20000",
    "instructions = false",
    "max_instruction_tokens = 1",
    "drop_large_instructions = true",
    "git_timeout_ms = 60000",
];

#[test]
fn a_repository_widens_nothing_unless_it_is_trusted() {
    let user = "max_turns = 10\nmax_cost_usd = 1.5\n";
    let reference: Vec<_> =
        World::new().user(user).settings().entries().iter().map(pal_settings::SettingEntry::value).collect();
    for text in WIDENING {
        let key = text.split(" =").next().unwrap();
        let tables = ["hooks", "thresholds"];
        let key = tables.into_iter().find(|table| key.starts_with(table)).unwrap_or(key);
        for world in [World::new().user(user).project(text), World::new().user(user).local(text)] {
            let settings = world.settings();
            let values: Vec<_> = settings.entries().iter().map(pal_settings::SettingEntry::value).collect();
            assert_eq!(values, reference, "{text}");
            let [notice] = settings.warnings.as_slice() else { panic!("{text}: {:?}", settings.warnings) };
            let project = world.path("project").canonicalize().unwrap();
            let wanted = format!(
                "{key} is ignored, because this project is not trusted; `pal trust` in {} shows what it would run",
                project.display(),
            );
            assert!(notice.contains(&wanted), "{notice}\n{wanted}");
        }
        if !text.starts_with("trusted") {
            let settings = World::new().trusted(user).project(text).settings();
            assert_eq!(told(&settings, key).1, "project", "{text}");
            assert!(settings.warnings.is_empty(), "{:?}", settings.warnings);
        }
    }
}

#[test]
fn restricting_settings_apply_from_any_source() {
    let cases = [
        ("permissions.deny = [\"Bash\"]", "permissions.deny", json!(["Bash"])),
        ("permissions.ask = [\"Bash\"]", "permissions.ask", json!(["Bash"])),
        ("permissions.mode = \"plan\"", "permissions.mode", json!("plan")),
        ("sandbox = \"on\"", "sandbox", json!("on")),
        ("sandbox_network = false", "sandbox_network", json!(false)),
        ("max_turns = 5", "max_turns", json!(5)),
        ("max_cost_usd = 1", "max_cost_usd", json!(1)),
        ("permissions.mode = \"accept-edits\"", "permissions.mode", json!("accept-edits")),
        ("effort = \"low\"", "effort", json!("low")),
        ("effort = \"high\"", "effort", json!("high")),
        ("cache_ttl = \"5m\"", "cache_ttl", json!("5m")),
        ("max_output_tokens = 4000", "max_output_tokens", json!(4000)),
        ("max_retries = 0", "max_retries", json!(0)),
        ("git = false", "git", json!(false)),
        ("git_timeout_ms = 10", "git_timeout_ms", json!(10)),
    ];
    for (text, key, value) in cases {
        let user = "max_turns = 10\nsandbox = \"off\"\nsandbox_network = true\npermissions.mode = \"bypass\"\n\
                    effort = \"xhigh\"\ncache_ttl = \"1h\"";
        let settings = World::new().user(user).project(text).settings();
        assert_eq!(told(&settings, key), (value, "project"), "{text}");
        assert!(settings.warnings.is_empty(), "{:?}", settings.warnings);
    }
}

#[test]
fn a_repository_does_not_lift_the_users_mode() {
    let modes = ["plan", "default", "accept-edits", "bypass"];
    for (held, user) in modes.iter().enumerate() {
        for (said, project) in modes.iter().enumerate() {
            let world = World::new().user(&format!("permissions.mode = {user:?}"));
            let settings = world.project(&format!("permissions.mode = {project:?}")).settings();
            let expected = modes[held.min(said)];
            assert_eq!(told(&settings, "permissions.mode").0, json!(expected), "{user}, then {project}");
            assert_eq!(settings.warnings.is_empty(), said <= held, "{user}, then {project}");
        }
    }
    let settings =
        World::new().project("permissions.mode = \"plan\"").local("permissions.mode = \"default\"");
    assert_eq!(told(&settings.settings(), "permissions.mode").0, json!("plan"), "nor does its second file");
}

#[test]
fn trust_is_for_the_very_project_and_comes_from_the_user() {
    let hook = "sandbox = \"off\"";
    let near_misses = ["/", "/project", "~/project"];
    for folder in near_misses {
        let settings = World::new().user(&format!("trusted = [{folder:?}]")).project(hook).settings();
        assert_eq!(told(&settings, "sandbox").0, json!("auto"), "{folder}");
    }
    let world = World::new().project(hook);
    let above =
        format!("trusted = [{:?}]", world.folder.path().canonicalize().unwrap().display().to_string());
    assert_eq!(told(&world.user(&above).settings(), "sandbox").0, json!("auto"), "not what is above it");
    let world = World::new().trusted("").project(hook);
    assert_eq!(told(&world.settings(), "sandbox").0, json!("off"));
    let none = world.managed("trusted = []");
    assert_eq!(told(&none.settings(), "sandbox").0, json!("auto"), "the managed list counts more");
    let world = World::new().project(hook);
    let text = std::fs::read_to_string(World::new().trusted("").path("home/settings.toml")).unwrap();
    let other = world.given(&text);
    assert_eq!(told(&other.settings(), "sandbox").0, json!("auto"), "another project's");
}

/// Trust is in what the files say: a command that planted a server or a hook in a trusted project gained nothing.
#[test]
fn a_changed_file_needs_trust_again() {
    let world = World::new().trusted("").project("sandbox = \"off\"");
    assert_eq!(told(&world.settings(), "sandbox").0, json!("off"));
    for (file, text) in [
        ("project/.mcp.json", "{\"mcpServers\":{}}"),
        ("project/.pal/settings.local.toml", "sandbox_network = true"),
        ("project/.pal/settings.toml", "sandbox = \"off\"\nsandbox_network = true"),
    ] {
        let before = std::fs::read(world.path(file)).ok();
        std::fs::write(world.path(file), text).unwrap();
        let settings = world.settings();
        assert_eq!(told(&settings, "sandbox").0, json!("auto"), "{file}");
        assert!(!settings.project.is_trusted, "{file}");
        let name = file.strip_prefix("project/").unwrap();
        let told_of = settings.warnings.join("\n");
        assert!(told_of.contains(&format!("{name} changed since you trusted this project")), "{told_of}");
        match before {
            Some(before) => std::fs::write(world.path(file), before).unwrap(),
            None => std::fs::remove_file(world.path(file)).unwrap(),
        }
        assert_eq!(told(&world.settings(), "sandbox").0, json!("off"), "as it was, it is trusted");
    }
    std::fs::write(world.path("project/.mcp.json"), "{}").unwrap();
    pal_settings::record_trust(&world.path("home"), &world.path("project")).unwrap();
    assert_eq!(told(&world.settings(), "sandbox").0, json!("off"), "trusted again");
}

#[cfg(unix)]
#[test]
fn a_link_to_a_project_is_the_project() {
    let world = World::new().project("sandbox = \"off\"");
    let link = world.path("link");
    std::os::unix::fs::symlink(world.path("project"), &link).unwrap();
    let text = format!("trusted = [{:?}]", link.display().to_string());
    assert_eq!(told(&world.user(&text).settings(), "sandbox").0, json!("off"));
}

#[test]
fn rules_allowed_by_the_user_apply_in_any_project() {
    let world = World::new().file("project/.pal/settings.toml", "permissions.allow = [\"Bash\"]");
    let file = world.path("home/allowed.toml");
    let rules = ["Bash(git push:*)", "Edit(a \"b\" \\c.rs)"];
    for rule in rules.iter().chain(&rules) {
        allow(&file, rule).unwrap();
    }
    let settings = world.settings();
    let allowed = &settings.permissions.allow;
    assert_eq!(allowed.iter().map(|rule| rule.value.as_str()).collect::<Vec<_>>(), rules);
    assert!(allowed.iter().all(|rule| rule.origin.place == SettingsSource::Allowed));
}

#[test]
fn a_file_that_cannot_be_understood_is_not_written_over() {
    let world = World::new().file("home/allowed.toml", "permissions.allow = [");
    let file = world.path("home/allowed.toml");
    assert!(allow(&file, "Read").is_err());
    assert_eq!(std::fs::read_to_string(file).unwrap(), "permissions.allow = [");
}
