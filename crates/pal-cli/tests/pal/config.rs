//! `pal config`, and settings from all places as the program reads them.

use std::path::PathBuf;

use crate::program::{CommandOutput, TestHome};

/// A home, and a project that people stand in.
struct ConfigProject {
    home: TestHome,
}

impl ConfigProject {
    fn new() -> ConfigProject {
        let home = TestHome::new();
        std::fs::create_dir_all(home.path().join("pal")).unwrap();
        std::fs::create_dir_all(home.path().join("project/.pal")).unwrap();
        std::fs::create_dir_all(home.path().join("project/.git")).unwrap();
        std::fs::create_dir_all(home.path().join("project/src/deep")).unwrap();
        ConfigProject { home }
    }

    fn root(&self) -> PathBuf {
        self.home.path().join("project")
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        self.home.run_in(&self.root().join("src/deep"), arguments)
    }
}

#[test]
fn every_setting_is_shown_with_its_source() {
    let project = ConfigProject::new();
    project.home.file("pal/settings.toml", "effort = \"high\"\n");
    project.home.file("project/.pal/settings.toml", "\ngit = false\npermissions.deny = [\"Read(.env)\"]\n");
    let said = project.run(&["config", "--settings", "max_turns = 4"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let line = |key: &str| said.out.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
    assert!(
        line("effort").contains("high") && line("effort").contains("pal/settings.toml:1"),
        "{}",
        said.out
    );
    assert!(line("git ").contains("false") && line("git ").contains("/.pal/settings.toml:2"), "{}", said.out);
    assert!(
        line("max_turns").contains(" 4 ") && line("max_turns").ends_with("--settings"),
        "{}",
        line("max_turns")
    );
    assert!(line("sandbox ").contains("auto") && line("sandbox ").ends_with("default"), "{}", said.out);
    assert!(said.out.lines().all(|line| !line.contains('\x1b')), "no colours where nobody looks");
}

#[test]
fn json_has_the_same_settings() {
    let project = ConfigProject::new();
    project.home.file("pal/settings.toml", "permissions.deny = [\"Bash(rm:*)\"]\n");
    project.home.file("project/.pal/settings.toml", "permissions.deny = [\"Read(.env)\"]\n");
    let said = project.run(&["config", "--json", "permissions.deny"]);
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let entry = &json[0];
    assert_eq!(entry["value"], serde_json::json!(["Bash(rm:*)", "Read(.env)"]));
    assert_eq!(
        (&entry["default"], &entry["key"]),
        (&serde_json::json!([]), &serde_json::json!("permissions.deny"))
    );
    let places: Vec<&str> =
        entry["from"].as_array().unwrap().iter().map(|from| from["place"].as_str().unwrap()).collect();
    assert_eq!(places, ["user", "project"]);
    assert!(entry["from"][1]["source"].as_str().unwrap().ends_with("project/.pal/settings.toml"));
    let all = project.run(&["config", "--json"]);
    let all: serde_json::Value = serde_json::from_str(&all.out).unwrap();
    assert!(all.as_array().unwrap().len() > 30);
}

#[test]
fn api_keys_are_never_shown() {
    let home = TestHome::new();
    let key = [("ANTHROPIC_API_KEY", "sk-very-secret")];
    for arguments in [&["config"][..], &["config", "--json"], &["config", "anthropic.api_key"]] {
        let said = home.run_with_environment(arguments, &key);
        assert!(!said.out.contains("very-secret") && said.out.contains("ANTHROPIC_API_KEY"), "{}", said.out);
    }
    let said = home.run_with_environment(&["config", "anthropic.api_key"], &key);
    assert!(said.out.contains("  set  "), "{}", said.out);
}

#[test]
fn a_typo_gets_a_suggestion() {
    let project = ConfigProject::new();
    let said = project.run(&["config", "sandox"]);
    assert!(said.code == 1 && said.err.contains("did you mean `sandbox`?"), "{}", said.err);
    let path = project.home.file("pal/settings.toml", "git = true\nautocompact = true\n");
    let said = project.run(&["config"]);
    let wanted = format!("{path}, line 2: `autocompact` is not a setting; did you mean `auto_compact`?");
    assert!(said.code == 1 && said.err.contains(&wanted), "{}", said.err);
}

#[test]
fn the_notice_names_the_command_that_trusts_the_project() {
    let project = ConfigProject::new();
    project.home.file("project/.pal/settings.toml", "sandbox = \"off\"\n");
    let value = |said: &CommandOutput| {
        serde_json::from_str::<serde_json::Value>(&said.out).unwrap()[0]["value"].clone()
    };
    let said = project.run(&["config", "--json", "sandbox"]);
    assert_eq!(value(&said), "auto");
    assert!(said.err.contains("sandbox is ignored"), "{}", said.err);
    assert!(said.err.contains("`pal trust` in "), "{}", said.err);
    let said = project.run(&["trust"]);
    assert!(said.code != 0 && said.out.contains("sandbox = \"off\""), "{}", said.out);
    assert_eq!(project.run(&["trust", "--yes"]).code, 0);
    let said = project.run(&["config", "--json", "sandbox"]);
    assert_eq!((value(&said), said.err.as_str()), (serde_json::json!("off"), ""));
    // Trust is in what the files say.
    project.home.file("project/.mcp.json", "{\"mcpServers\":{}}");
    let said = project.run(&["config", "--json", "sandbox"]);
    assert_eq!(value(&said), "auto");
    assert!(said.err.contains(".mcp.json changed since you trusted this project"), "{}", said.err);
}

#[test]
fn switches_of_flags_toml_are_shown() {
    let project = ConfigProject::new();
    project.home.file("pal/flags.toml", "disabled = [\"fold\", \"web_fetch\"]\n");
    let said = project.run(&["config"]);
    assert!(said.out.ends_with("switched off by flags.toml: fold, web_fetch\n"), "{}", said.out);
    project.home.file("pal/flags.toml", "disabled = [\"flod\"]\n");
    let said = project.run(&["config"]);
    assert!(said.code == 0 && said.err.contains("did you mean `fold`?"), "{}", said.err);
}
