//! What is said about settings that cannot be used.

use crate::World;

#[test]
fn a_typo_names_the_file_the_line_and_the_nearest_setting() {
    let cases = [
        (
            "git = true\nautocompact = false",
            "home/settings.toml, line 2: there is no setting `autocompact`; did you mean `auto_compact`?",
        ),
        (
            "[permissions]\nalow = []",
            "home/settings.toml, line 2: there is no setting `permissions.alow`; did you mean `permissions.allow`?",
        ),
        (
            "[permission]\nallow = []",
            "home/settings.toml, line 1: there is no setting `permission`; did you mean `permissions`?",
        ),
        ("bananas = 1", "home/settings.toml, line 1: there is no setting `bananas`."),
    ];
    for (text, wanted) in cases {
        assert_eq!(World::new().user(text).error(), wanted, "{text}");
    }
    let json = World::new().given("{\"sandbx\": \"on\"}").error();
    assert_eq!(json, "--settings, line 1: there is no setting `sandbx`; did you mean `sandbox`?");
}

#[test]
fn a_wrong_value_names_the_setting_and_what_it_wants() {
    let cases = [
        ("git = 1", "git = 1 does not fit: it wants true or false"),
        ("git = \"false\"", "git = \"false\" does not fit: it wants true or false"),
        ("max_turns = 0", "max_turns = 0 does not fit: it wants a whole number from 1"),
        ("git_limit_ms = -1", "git_limit_ms = -1 does not fit: it wants a whole number from 0"),
        ("max_cost_usd = -0.5", "it wants a number of US dollars above 0"),
        ("cache_lifetime = \"2h\"", "cache_lifetime = \"2h\" does not fit: it wants one of 5m, 1h"),
        ("effort = \"hihg\"", "low, medium, high, xhigh, max; did you mean `high`?"),
        ("sandbox = true", "it wants one of auto, on, off"),
        ("allow_includes = [\"docs/a.md\"]", "it wants a list of paths that begin with / or ~/"),
        ("trusted = \"/p\"", "it wants a list of paths"),
        ("permissions.allow = [\"Bash(\"]", "and the rule `Bash(` has a `(` and does not end with `)`"),
        ("permissions.allow = \"Bash\"", "it wants a list of rules such as"),
        ("permissions.deny = [5]", "it wants a list of rules such as"),
        ("permissions = 1", "there is no setting `permissions`: it is a table of settings"),
        ("threshold.percent = 0", "it wants one of { used = TOKENS }"),
        ("threshold = { used = 1, left = 2 }", "it wants one of { used = TOKENS }"),
        ("thresholds.m = 5", "it wants a table by model"),
        ("disabled = [\"spill\", \"flod\"]", "did you mean `fold`?"),
        ("telemetry.endpoint = \"localhost\"", "it wants an address that begins with http:// or https://"),
        ("hooks.PreTolUse = []", "did you mean `PreToolUse`?"),
        ("hooks.Stop = [{ hooks = [{ type = \"command\" }] }]", "it wants a command in each hook of Stop"),
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
fn what_is_no_file_of_settings_is_an_error_and_not_a_wait() {
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
