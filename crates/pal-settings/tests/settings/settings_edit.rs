//! Changes to settings files: comments stay, wrong values are refused, and the file stays private.

use std::os::unix::fs::PermissionsExt;

use pal_settings::{SettingsEdit, default_settings_text};
use serde_json::json;

use crate::World;

#[test]
fn values_are_set_and_removed_and_comments_stay() {
    let world = World::new()
        .user("# mine\nmodel = \"x\" # the old one\n\n[permissions]\n# careful\ndeny = [\"Read(.env)\"]\n");
    let path = world.path("home/settings.toml");
    let change = |name: &str, text: &str| {
        let mut edit = SettingsEdit::open(&path).unwrap();
        edit.set(name, text).unwrap();
        edit.save().unwrap();
    };
    change("model", "opus");
    change("permissions.mode", "plan");
    change("permissions.allow", "Read,Bash(git log:*)");
    change("max_turns", "7");
    change("threshold", "{ percent = 80 }");
    let text = std::fs::read_to_string(&path).unwrap();
    for kept in ["# mine", "# the old one", "# careful", "model = \"opus\""] {
        assert!(text.contains(kept), "{kept}\n{text}");
    }
    let settings = world.settings();
    assert_eq!(settings.model.as_deref(), Some("opus"));
    assert_eq!((settings.permissions.mode.as_str(), settings.spending.turns_max), ("plan", Some(7)));
    let allowed: Vec<&str> = settings.permissions.allow.iter().map(|rule| rule.value.as_str()).collect();
    assert_eq!(allowed, ["Read", "Bash(git log:*)"]);
    assert_eq!(settings.permissions.deny[0].value, "Read(.env)", "other values stay");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut edit = SettingsEdit::open(&path).unwrap();
    assert!(edit.unset("permissions.mode").unwrap() && !edit.unset("effort").unwrap());
    edit.save().unwrap();
    assert_eq!(world.settings().permissions.mode.as_str(), "default");
}

#[test]
fn entries_of_tables_are_set_one_by_one() {
    let world = World::new().user("env = { KEPT = \"yes\" }\n");
    let path = world.path("home/settings.toml");
    let mut edit = SettingsEdit::open(&path).unwrap();
    assert_eq!(edit.set("env.NUMBER", "7").unwrap(), json!("7"), "a variable is text");
    edit.set("spill.tool_characters.Bash", "20000").unwrap();
    edit.set("thresholds.claude-opus-5-5", "{ percent = 80 }").unwrap();
    edit.save().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    for set in ["KEPT = \"yes\"", "NUMBER = \"7\"", "Bash = 20000", "claude-opus-5-5 = { percent = 80 }"] {
        assert!(text.contains(set), "{set}\n{text}");
    }
    assert!(world.read().is_ok());
    let mut edit = SettingsEdit::open(&path).unwrap();
    assert!(edit.unset("env.KEPT").unwrap() && !edit.unset("env.KEPT").unwrap());
    edit.save().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("KEPT") && text.contains("NUMBER"), "{text}");
}

#[test]
fn wrong_changes_are_refused_with_a_next_step() {
    let world = World::new();
    let mut edit = SettingsEdit::open(&world.path("home/settings.toml")).unwrap();
    for (name, text, expected) in [
        ("modle", "x", "did you mean `model`?"),
        ("permissions", "x", "permissions.mode"),
        ("max_turns", "0", "at least 1"),
        ("max_turns", "many", "at least 1"),
        ("permissions.mode", "plann", "did you mean `plan`?"),
        ("permissions.deny", "Bash(", "does not end with `)`"),
        ("anthropic.api_key", "sk-x", "secret"),
        ("anthropic.base_url", "foo", "http://"),
        ("spill.tool_characters.Bash", "many", "integer"),
        ("env.", "x", "unknown setting"),
        ("model.opus", "x", "unknown setting"),
    ] {
        let error = edit.set(name, text).unwrap_err();
        assert!(error.to_string().contains(expected), "{name} = {text}: {error}");
        assert!(!error.hint().is_empty());
    }
    assert!(!world.path("home/settings.toml").exists());
}

#[test]
fn servers_are_put_into_tables_of_their_own() {
    let world = World::new().user("git = false\n");
    let path = world.path("home/settings.toml");
    let mut edit = SettingsEdit::open(&path).unwrap();
    edit.put(&["mcp_servers", "files"], &json!({"command": "npx", "args": ["-y", "x"], "env": {"A": "b"}}));
    edit.save().unwrap();
    let said = &world.settings().mcp.said[0].value["files"];
    assert_eq!(said, &json!({"command": "npx", "args": ["-y", "x"], "env": {"A": "b"}}));
    let mut edit = SettingsEdit::open(&path).unwrap();
    assert!(edit.remove(&["mcp_servers", "files"]) && !edit.remove(&["mcp_servers", "files"]));
    edit.save().unwrap();
    let settings = world.settings();
    assert!(settings.mcp.said.iter().all(|said| said.value.get("files").is_none()) && !settings.git.is_on);
}

#[test]
fn the_settings_of_a_new_file_are_valid_examples() {
    let text = default_settings_text();
    assert!(World::new().user(&text).settings().entries().iter().all(|entry| !entry.is_set()));
    let shown: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# ")).filter(|line| line.contains(" = ")).collect();
    assert!(shown.len() >= 8, "{text}");
    for line in shown {
        assert!(World::new().user(line).read().is_ok(), "{line}");
    }
}
