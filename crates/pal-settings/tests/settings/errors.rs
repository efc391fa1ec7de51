//! What is said about settings that cannot be used.

use crate::World;

#[test]
fn a_typo_names_the_file_the_line_and_the_nearest_setting() {
    let cases = [
        (
            "git = true\nautocompact = false",
            "home/settings.toml, line 2: `autocompact` is not a setting; did you mean `auto_compact`?",
        ),
        (
            "[permissions]\nalow = []",
            "home/settings.toml, line 2: `permissions.alow` is not a setting; did you mean `permissions.allow`?",
        ),
        (
            "[permission]\nallow = []",
            "home/settings.toml, line 1: `permission` is not a setting; did you mean `permissions`?",
        ),
        ("bananas = 1", "home/settings.toml, line 1: `bananas` is not a setting."),
    ];
    for (text, wanted) in cases {
        assert_eq!(World::new().user(text).error(), wanted, "{text}");
    }
    let json = World::new().given("{\"sandbx\": \"on\"}").error();
    assert_eq!(json, "--settings, line 1: `sandbx` is not a setting; did you mean `sandbox`?");
}

#[test]
fn a_wrong_value_names_the_setting_and_what_it_wants() {
    let cases = [
        ("git = 1", "git = 1 is not valid: expected true or false"),
        ("git = \"false\"", "git = \"false\" is not valid: expected true or false"),
        ("max_turns = 0", "max_turns = 0 is not valid: expected an integer of at least 1"),
        ("git_timeout_ms = -1", "git_timeout_ms = -1 is not valid: expected an integer of at least 0"),
        ("max_cost_usd = -0.5", "expected an amount in US dollars above 0"),
        ("cold_turn_warning_usd = -1", "expected an amount in US dollars, or 0 for never"),
        ("cache_ttl = \"2h\"", "cache_ttl = \"2h\" is not valid: expected one of 5m, 1h"),
        ("effort = \"hihg\"", "low, medium, high, xhigh, max; did you mean `high`?"),
        ("sandbox = true", "expected one of auto, on, off"),
        ("allow_includes = [\"docs/a.md\"]", "expected a list of paths that start with / or ~/"),
        ("trusted = \"/p\"", "expected a list of paths"),
        ("permissions.allow = [\"Bash(\"]", "and the rule `Bash(` has a `(` but does not end with `)`"),
        ("permissions.allow = \"Bash\"", "expected a list of rules such as"),
        ("permissions.deny = [5]", "expected a list of rules such as"),
        ("permissions = 1", "`permissions` is not a setting, but a table with this name"),
        ("threshold.percent = 0", "expected one of { used = TOKENS }"),
        ("threshold = { used = 1, left = 2 }", "expected one of { used = TOKENS }"),
        ("thresholds.m = 5", "expected a table by model"),
        ("disabled = [\"spill\", \"flod\"]", "did you mean `fold`?"),
        ("telemetry.endpoint = \"localhost\"", "expected a URL that starts with http:// or https://"),
        ("hooks.PreTolUse = []", "did you mean `PreToolUse`?"),
        ("hooks.Stop = [{ hooks = [{ type = \"command\" }] }]", "expected a command in each hook of Stop"),
        ("hooks.Stop = [{ matcher = \"(\", hooks = [] }]", "a regular expression"),
    ];
    for (text, wanted) in cases {
        let error = World::new().user(text).error();
        assert!(
            error.starts_with("home/settings.toml, line 1: ") && error.contains(wanted),
            "{text}\n{error}"
        );
    }
}

#[test]
fn pipe_or_directory_as_settings_file_is_an_error() {
    let broken = World::new().user("git = ").error();
    assert!(broken.starts_with("home/settings.toml: ") && broken.contains("line 1"), "{broken}");
    let world = World::new();
    std::fs::create_dir(world.path("home/settings.toml")).unwrap();
    assert!(world.error().contains("no regular file"));
    let large = format!("# {}", "x".repeat(2 << 20));
    assert!(World::new().project(&large).error().contains("too large"));
    #[cfg(unix)]
    {
        let world = World::new();
        std::os::unix::fs::symlink("/dev/zero", world.path("project/.pal/settings.toml")).unwrap();
        assert!(world.error().contains("no regular file"));
    }
    let world = World::new();
    std::fs::remove_dir(world.path("project/.pal")).unwrap();
    std::fs::write(world.path("project/.pal"), "").unwrap();
    assert!(world.settings().git.is_on, "a project without settings has none");
}
