//! Setting pal up: `pal init`, `pal doctor`, `pal login`, `pal config set`, `pal mcp add`, `pal help`, and the settings of
//! other agents as the program uses them.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::program::{CommandOutput, TestHome};

/// A user with a home directory and a project.
struct SetupWorld {
    home: TestHome,
}

impl SetupWorld {
    fn new() -> SetupWorld {
        let home = TestHome::new();
        for folder in ["user/.claude", "user/.codex", "project/.git", "project/.claude"] {
            std::fs::create_dir_all(home.path().join(folder)).unwrap();
        }
        SetupWorld { home }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn run_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> CommandOutput {
        let user = self.path("user").display().to_string();
        let path = std::env::var("PATH").unwrap();
        let all = [&[("HOME", user.as_str()), ("PATH", path.as_str())], variables].concat();
        self.home.run_in_with(&self.path("project"), arguments, &all)
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        self.run_with(arguments, &[])
    }

    /// The value of a setting and the source of its last part.
    fn setting(&self, key: &str) -> (Value, String) {
        let said = self.run(&["config", "--json", key]);
        let entries: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}", said.err));
        let from = entries[0]["from"].as_array().unwrap().last().unwrap()["source"].clone();
        (entries[0]["value"].clone(), from.as_str().unwrap_or_default().to_owned())
    }
}

#[test]
fn settings_are_changed_from_the_command_line() {
    let world = SetupWorld::new();
    let said = world.run(&["config", "set", "permissions.deny", "Read(.env),Bash(rm:*)"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert_eq!(world.setting("permissions.deny").0, json!(["Read(.env)", "Bash(rm:*)"]));
    assert_eq!(world.run(&["config", "set", "model", "opus", "--scope", "project"]).code, 0);
    assert!(
        std::fs::read_to_string(world.path("project/.pal/settings.toml"))
            .unwrap()
            .contains("model = \"opus\"")
    );
    let said = world.run_with(&["config", "set", "effort", "low"], &[("PAL_EFFORT", "high")]);
    assert!(said.out.contains("no effect now: PAL_EFFORT"), "{}", said.out);
    assert_eq!(world.run(&["config", "unset", "permissions.deny"]).code, 0);
    assert_eq!(world.setting("permissions.deny").0, json!([]));
    let said = world.run(&["config", "unset", "permissions.deny"]);
    assert!(said.code == 1 && said.err.contains("hint"), "{}", said.err);
    let mode = std::fs::metadata(world.path("pal/settings.toml")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_broken_settings_file_can_be_edited_and_is_checked() {
    let world = SetupWorld::new();
    std::fs::create_dir_all(world.path("pal")).unwrap();
    world.home.file("pal/settings.toml", "modle = \"x\"\n");
    let said = world.run(&["doctor"]);
    assert!(said.code == 1 && said.out.contains("did you mean `model`?"), "{}{}", said.out, said.err);
    let said = world.run_with(&["config", "edit"], &[("EDITOR", "sed -i s/modle/model/")]);
    assert!(said.code == 0 && said.out.contains("is valid"), "{}{}", said.out, said.err);
    assert_eq!(world.setting("model").0, json!("x"));
    let said = world.run_with(&["config", "edit"], &[("EDITOR", "sed -i s/model/modle/")]);
    assert!(said.code == 1 && said.err.contains("modle"), "a mistake is found right away: {}", said.err);
}

#[test]
fn the_doctor_shows_the_pauses_that_were_counted() {
    let world = SetupWorld::new();
    let pauses = |variables: &[(&str, &str)]| {
        let said = world.run_with(&["doctor"], variables);
        let line = said.out.lines().find(|line| line.contains(" pauses "));
        line.unwrap_or_else(|| panic!("{}{}", said.out, said.err)).to_owned()
    };
    assert!(pauses(&[]).ends_with("none counted in this project yet"), "{}", pauses(&[]));
    let directory = world.path("project").canonicalize().unwrap();
    let project = pal_store::slug(&directory);
    let hours = json!({"9": [6, 1, 0, 0], "14": [2, 1, 0, 0]});
    let table = json!({"version": 1, "projects": [{"project": project, "hours": hours}]});
    std::fs::create_dir_all(world.path("pal")).unwrap();
    world.home.file("pal/learned-pauses.json", table.to_string());
    let line = "80% up to 5 minutes, 20% up to 15 minutes, 0% up to an hour, 0% longer, from 10 pauses in this project";
    assert!(pauses(&[]).ends_with(line), "{}", pauses(&[]));
    let off = pauses(&[("PAL_DISABLE_PAUSE_HISTORY", "1")]);
    assert!(off.contains("not counted") && off.contains("PAL_DISABLE_PAUSE_HISTORY"), "{off}");
}

#[test]
fn servers_are_added_listed_and_removed() {
    let world = SetupWorld::new();
    let said = world.run(&["mcp", "add", "files", "--env", "ROOT=${HOME}", "--", "sh", "-c", "cat"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let url = "https://tracker.example.com/mcp";
    let said = world.run(&["mcp", "add", "tracker", url, "--header", "Authorization: Bearer ${T}"]);
    assert_eq!(said.code, 0, "{}", said.err);
    // `-e` is the short form, and a server is not overwritten.
    let said = world.run(&["mcp", "add", "short", "-e", "A=b", "--", "sh"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let said = world.run(&["mcp", "add", "short", "--", "other"]);
    assert!(said.code == 2 && said.err.contains("`pal mcp remove short`"), "{}", said.err);
    let said = world.run_with(&["mcp", "list"], &[("T", "x")]);
    assert!(said.out.contains("short") && !said.out.contains("other"), "{}", said.out);
    assert_eq!(world.run(&["mcp", "remove", "short"]).code, 0);
    world.home.file("user/.claude.json", r#"{"mcpServers": {"theirs": {"command": "their-server"}}}"#);
    let list = || -> Vec<Value> {
        let said = world.run_with(&["mcp", "list", "--json"], &[("T", "secret-token")]);
        assert!(!said.out.contains("secret-token"), "{}", said.out);
        serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}{}", said.out, said.err))
    };
    let names = |servers: &[Value]| {
        servers.iter().map(|server| server["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let servers = list();
    assert_eq!(names(&servers), ["files", "theirs", "tracker"]);
    assert_eq!(servers[0]["target"], json!("sh -c cat"));
    assert!(servers[1]["from"].as_str().unwrap().contains(".claude.json"));
    let said = world.run_with(&["mcp", "list"], &[("T", "x")]);
    assert!(said.out.contains("their-server") && said.out.contains(url), "{}", said.out);
    assert_eq!(world.run_with(&["mcp", "remove", "files"], &[("T", "x")]).code, 0);
    let said = world.run_with(&["mcp", "remove", "theirs"], &[("T", "x")]);
    assert!(said.out.contains("does not start it any more"), "{}{}", said.out, said.err);
    let servers = list();
    assert_eq!(names(&servers), ["theirs", "tracker"]);
    assert_eq!((&servers[0]["starts"], &servers[1]["starts"]), (&json!(false), &json!(true)));
    let text = std::fs::read_to_string(world.path("user/.claude.json")).unwrap();
    assert!(text.contains("their-server"), "files of other agents are never changed");
}

#[test]
fn a_stored_key_is_private_used_and_removed() {
    let world = SetupWorld::new();
    let user = world.path("user").display().to_string();
    let login = |key: &str, provider: &str| {
        let mut command = world.home.command(&["login", provider]);
        command.env("HOME", &user);
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), key.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let said = login("sk-ant-api03-very-secret\n", "anthropic");
    let out = String::from_utf8(said.stdout).unwrap();
    assert!(said.status.success() && !out.contains("very-secret") && out.contains("keys.json"), "{out}");
    let mode = std::fs::metadata(world.path("pal/keys.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(world.setting("anthropic.api_key").0, json!("set"));
    let said = world.run(&["doctor", "--json"]);
    let checks: Vec<Value> = serde_json::from_str(&said.out).unwrap();
    let model = checks.iter().find(|check| check["check"] == "model").unwrap();
    assert_eq!(model["state"], json!("ok"), "{model}");
    let keys = checks.iter().find(|check| check["check"] == "keys").unwrap();
    assert!(keys["text"].as_str().unwrap().ends_with("keys.json"), "{keys}");
    assert!(!said.out.contains("very-secret"));
    let said = world.run_with(&["doctor"], &[("ANTHROPIC_API_KEY", "k")]);
    assert!(said.out.contains("! keys      anthropic: ANTHROPIC_API_KEY, which goes before"), "{}", said.out);
    let warnings = said.out.lines().filter(|line| line.starts_with("! ")).count();
    assert!(said.out.contains(&format!("No problems, {warnings} warning")), "{}", said.out);
    for (key, provider, expected) in [
        ("sk-ant-api03-x", "openai", "for Claude"),
        ("sk-proj-x", "anthropic", "for OpenAI"),
        ("", "anthropic", "no key"),
        ("two words", "anthropic", "spaces"),
        ("sk-ant-oat01-x", "anthropic", "subscription"),
    ] {
        let said = login(key, provider);
        let err = String::from_utf8(said.stderr).unwrap();
        assert!(
            said.status.code() == Some(2) && err.contains(expected) && err.contains("hint"),
            "{key}: {err}"
        );
    }
    assert_eq!(world.run(&["logout"]).code, 0);
    assert_eq!(world.setting("anthropic.api_key").0, json!("not set"));
    // A file that others can read is refused before it is used.
    std::fs::set_permissions(world.path("pal/keys.json"), std::fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(world.run(&["config", "model"]).code, 1);
}

/// A keyring that keeps its key in a file beside it, and writes down its arguments.
const KEYRING: &str = r#"#!/bin/sh
echo "$@" >> "$0.calls"
case "$1" in
store) [ -e "$0.locked" ] && { echo "the keyring is locked" >&2; exit 1; }; cat > "$0.key" ;;
lookup) cat "$0.key" ;;
search) [ -e "$0.down" ] && { echo "Cannot autolaunch D-Bus" >&2; exit 1; }; [ -e "$0.key" ] && echo "[/1]"; exit 0 ;;
clear) [ -e "$0.locked" ] && exit 1; rm "$0.key" ;;
esac
"#;

#[test]
fn a_hook_of_another_type_is_a_warning_and_no_missing_program() {
    let world = SetupWorld::new();
    world.home.file(
        "user/.claude/settings.json",
        r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "http", "url": "https://guard.example"}]}]}}"#,
    );
    let said = world.run_with(&["doctor", "--json"], &[("ANTHROPIC_API_KEY", "k")]);
    let checks: Vec<Value> = serde_json::from_str(&said.out).unwrap();
    let states = |name: &str| -> Vec<&str> {
        let named = checks.iter().filter(|check| check["check"] == name);
        named.map(|check| check["state"].as_str().unwrap()).collect()
    };
    assert_eq!(states("hooks"), ["ok"], "{}", said.out);
    let warning = |check: &&Value| check["text"].as_str().unwrap().contains("the type http is not supported");
    assert_eq!(checks.iter().find(warning).unwrap()["state"], "warning", "{}", said.out);
}

#[test]
fn the_system_keyring_takes_a_key_if_there_is_one() {
    if cfg!(target_os = "macos") {
        return;
    }
    let world = SetupWorld::new();
    std::fs::create_dir_all(world.path("bin")).unwrap();
    let tool = world.home.file("bin/secret-tool", KEYRING);
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", world.path("bin").display(), std::env::var("PATH").unwrap());
    let user = world.path("user").display().to_string();
    let login = |arguments: &[&str]| {
        let mut command = world.home.command(&[&["login"], arguments].concat());
        command.env("HOME", &user).env("PATH", &path);
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"sk-ant-api03-very-secret\n").unwrap();
        let said = child.wait_with_output().unwrap();
        assert!(said.status.success());
        (String::from_utf8(said.stdout).unwrap(), String::from_utf8(said.stderr).unwrap())
    };
    let read = |name: &str| std::fs::read_to_string(world.path(name)).unwrap_or_default();
    let (out, _) = login(&[]);
    assert!(out.contains("system keyring") && out.contains("secret-tool"), "{out}");
    assert!(!read("pal/keys.json").contains("secret") && read("bin/secret-tool.key").contains("very-secret"));
    assert!(!read("bin/secret-tool.calls").contains("very-secret"), "a key is no argument");
    let run = |arguments: &[&str]| world.run_with(arguments, &[("PATH", path.as_str())]);
    assert_eq!(world.setting("anthropic.api_key").1, "the system keyring");
    let said = run(&["doctor", "--json"]);
    let checks: Vec<Value> = serde_json::from_str(&said.out).unwrap();
    let model = checks.iter().find(|check| check["check"] == "model").unwrap();
    assert_eq!(model["state"], json!("ok"), "{model}");
    let keys = checks.iter().find(|check| check["check"] == "keys").unwrap();
    assert_eq!((&keys["state"], &keys["text"]), (&json!("ok"), &json!("anthropic: the system keyring")));
    assert!(!said.out.contains("very-secret"));
    let out = run(&["logout"]).out;
    assert!(out.contains("Removed the key for anthropic from the system keyring."), "{out}");
    assert!(!world.path("bin/secret-tool.key").exists());
    let out = run(&["logout"]).out;
    assert!(out.contains("No key for anthropic is stored in the system keyring or in "), "{out}");

    // A key is stored in one place: the other loses an earlier one.
    login(&[]);
    let (out, _) = login(&["--file"]);
    assert!(out.contains("keys.json") && read("pal/keys.json").contains("very-secret"), "{out}");
    assert!(out.contains("Removed the earlier key from the system keyring."), "{out}");
    assert!(!world.path("bin/secret-tool.key").exists());
    let (out, _) = login(&[]);
    assert!(out.contains("Removed the earlier key from ") && out.contains("keys.json"), "{out}");
    assert!(!read("pal/keys.json").contains("very-secret"));

    // A key that another version left in the keyring goes with the one of the file.
    login(&["--file"]);
    world.home.file("bin/secret-tool.key", "sk-ant-api03-very-secret-old");
    let out = run(&["logout"]).out;
    assert!(out.contains("from the system keyring and from ") && out.contains("keys.json"), "{out}");
    assert!(!world.path("bin/secret-tool.key").exists() && !read("pal/keys.json").contains("very-secret"));

    // A keyring that cannot be reached may still have a key.
    login(&["--file"]);
    world.home.file("bin/secret-tool.down", "");
    let said = run(&["logout"]);
    assert!(said.out.contains("Removed the key for anthropic from "), "{}", said.out);
    assert!(said.err.contains("Cannot autolaunch D-Bus; if it has one, the key stays there"), "{}", said.err);
    std::fs::remove_file(world.path("bin/secret-tool.down")).unwrap();
    world.home.file("bin/secret-tool.locked", "");
    let (out, err) = login(&[]);
    assert!(err.contains("locked") && out.contains("keys.json"), "{out}{err}");
}

#[test]
fn init_says_what_is_used_and_what_is_not() {
    let world = SetupWorld::new();
    world.home.file(
        "user/.claude/settings.json",
        r#"{"permissions": {"deny": ["Read(.env)", "Bash(rm:*)"], "allow": ["Nope(x)"]}, "enabledPlugins": {"a@b": true}}"#,
    );
    world.home.file("project/.claude/settings.json", r#"{"permissions": {"allow": ["Bash(make:*)"]}}"#);
    std::fs::create_dir_all(world.path("user/.claude/projects/x")).unwrap();
    world.home.file("user/.claude/projects/x/one.jsonl", "{}");
    let said = world.run_with(&["init"], &[("ANTHROPIC_API_KEY", "sk-very-secret")]);
    assert_eq!(said.code, 0, "{}", said.err);
    for words in [
        "anthropic.api_key from ANTHROPIC_API_KEY",
        "permissions.deny (2)",
        "the plugin a@b",
        "Nope(x)",
        "1 session file",
        "wrote ",
        ".claude/settings.json wait for `pal trust`",
    ] {
        assert!(said.out.contains(words), "{words}\n{}", said.out);
    }
    assert!(!said.out.contains("very-secret"));
    let text = std::fs::read_to_string(world.path("pal/settings.toml")).unwrap();
    assert!(text.contains("# model = \"opus\""), "{text}");
    let said = world.run(&["init", "--yes"]);
    assert!(said.out.contains("stays as it is") && said.out.contains("trusted"), "{}", said.out);
    assert_eq!(world.setting("permissions.allow").0, json!(["Bash(make:*)"]));
}

#[test]
fn variables_of_the_settings_reach_the_program_and_what_it_starts() {
    let world = SetupWorld::new();
    world.home.file(
        "user/.claude/settings.json",
        r#"{"env": {"PAL_EFFORT": "max", "MY_FLAG": "from-settings"}, "apiKeyHelper": "printf \"$MY_FLAG\" > \"$HOME/seen\"; echo k"}"#,
    );
    assert_eq!(world.setting("effort"), (json!("max"), String::from("PAL_EFFORT")));
    let said = world.run(&["doctor"]);
    assert!(said.out.contains("hooks") || said.out.contains("model"), "{}", said.out);
    assert_eq!(std::fs::read_to_string(world.path("user/seen")).unwrap(), "from-settings", "{}", said.out);
    let said = world.run(&["config", "env"]);
    assert!(
        said.out.contains("MY_FLAG") && !said.out.contains("from-settings"),
        "values may be secret: {}",
        said.out
    );
    // The restarted program does not enter the directory twice.
    let said = world.home.run_in_with(
        world.home.path(),
        &["--cd", "project", "-p", "x"],
        &[
            ("HOME", world.path("user").to_str().unwrap()),
            ("ANTHROPIC_BASE_URL", "http://127.0.0.1:1"),
            ("PAL_MAX_RETRIES", "0"),
        ],
    );
    assert!(!said.err.contains("No such file"), "{}", said.err);
}

#[test]
fn pages_are_shown_to_installed_users() {
    let world = SetupWorld::new();
    let said = world.run(&["help"]);
    assert!(said.code == 0 && said.out.contains("permissions") && said.out.contains("setup"), "{}", said.out);
    assert!(world.run(&["help", "docs/permissions.md"]).out.starts_with("# Permissions"));
    assert!(world.run(&["help", "gc"]).out.contains("Usage: pal gc"));
    for flag in ["-v", "-V", "--version"] {
        assert!(world.run(&[flag]).out.starts_with("pal "), "{flag}");
    }
}

#[test]
fn unused_settings_are_named_once() {
    let world = SetupWorld::new();
    world.home.file("user/.claude/settings.json", r#"{"enabledPlugins": {"a@b": true}}"#);
    let run = || {
        world
            .run_with(&["-p", "x"], &[("ANTHROPIC_BASE_URL", "http://127.0.0.1:1"), ("PAL_MAX_RETRIES", "0")])
    };
    assert!(run().err.contains("the plugin a@b"));
    assert!(!run().err.contains("the plugin a@b"));
    world.home.file("user/.claude/settings.json", r#"{"enabledPlugins": {}, "attribution": {}}"#);
    assert!(run().err.contains("attribution"), "a new one is named");
}

#[test]
fn a_worktree_of_its_own() {
    let world = SetupWorld::new();
    let repository = world.path("repository");
    std::fs::create_dir_all(&repository).unwrap();
    let git = |arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.args(["-c", "user.name=x", "-c", "user.email=x@x"]).args(arguments).current_dir(&repository);
        assert!(command.status().unwrap().success(), "{arguments:?}");
    };
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "one"]);
    let path = std::env::var("PATH").unwrap();
    let variables =
        [("PATH", path.as_str()), ("ANTHROPIC_BASE_URL", "http://127.0.0.1:1"), ("PAL_MAX_RETRIES", "0")];
    for _ in 0..2 {
        let said = world.home.run_in_with(&repository, &["-p", "x", "--worktree", "fix"], &variables);
        assert!(said.err.contains(".worktrees/fix") && said.err.contains("pal/fix"), "{}", said.err);
    }
    assert!(repository.join(".worktrees/fix/.git").exists());
    let said = world.home.run_in_with(world.home.path(), &["-p", "x", "-w"], &variables);
    assert!(said.code == 2 && said.err.contains("git repository"), "{}", said.err);
}
