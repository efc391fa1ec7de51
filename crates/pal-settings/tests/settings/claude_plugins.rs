//! Plugins of Claude Code: which are loaded, and what of them counts.

use pal_settings::Settings;
use serde_json::{Value, json};

use crate::{World, told};

/// Installs a plugin with these files, as Claude Code does.
fn with_plugin(world: World, files: &[(&str, &str)]) -> World {
    let root = world.path("user/.claude/plugins/cache/acme/tools/1.0.0");
    for (name, text) in files {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let list = json!({"version": 2, "plugins": {"tools@acme": [
        {"scope": "project", "projectPath": "/elsewhere", "installPath": "/nowhere"},
        {"scope": "user", "installPath": root, "version": "1.0.0"},
    ]}});
    world.file("user/.claude/plugins/installed_plugins.json", &list.to_string())
}

const ENABLED: &str = r#"{"enabledPlugins": {"tools@acme": true}}"#;
const MANIFEST: (&str, &str) = (".claude-plugin/plugin.json", r#"{"name": "tools", "version": "1.0.0"}"#);
const HOOKS: (&str, &str) = (
    "hooks/hooks.json",
    r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/guard.sh"}]}]}}"#,
);
const SERVERS: (&str, &str) =
    (".mcp.json", r#"{"mcpServers": {"files": {"command": "${CLAUDE_PLUGIN_ROOT}/serve", "args": ["x"]}}}"#);

fn names(settings: &Settings) -> Vec<&str> {
    settings.imported.plugins.iter().map(|plugin| plugin.name.as_str()).collect()
}

#[test]
fn an_enabled_plugin_brings_its_hooks_servers_and_folders() {
    let world = with_plugin(World::new().claude_user(ENABLED), &[MANIFEST, HOOKS, SERVERS]);
    let settings = world.settings();
    assert_eq!(names(&settings), ["tools"]);
    let root = world.path("user/.claude/plugins/cache/acme/tools/1.0.0");
    let command = &settings.hooks[0].value.groups[0].commands[0].command;
    assert!(command.contains("export CLAUDE_PLUGIN_ROOT"), "{command}");
    assert!(command.ends_with(&format!("; {}/guard.sh", root.display())), "{command}");
    let servers = told(&settings, "mcp_servers").0;
    let server = &servers["plugin:tools:files"];
    assert_eq!(server["command"], json!(root.join("serve")), "{servers}");
    assert_eq!(server["env"]["CLAUDE_PLUGIN_ROOT"], json!(root));
    let plugin = &settings.imported.plugins[0];
    assert_eq!(
        (&plugin.commands[0], &plugin.agents[0], &plugin.skills[0]),
        (&root.join("commands"), &root.join("agents"), &root.join("skills"))
    );
    assert!(settings.warnings.is_empty(), "{:?}", settings.warnings);
}

#[test]
fn a_manifest_names_more_files_but_none_outside() {
    let manifest = r#"{"name": "kit", "commands": ["./extra", "../../outside"], "mcpServers": {"one": {"command": "serve"}},
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "stop"}]}]}}"#;
    let world = with_plugin(World::new().claude_user(ENABLED), &[(".claude-plugin/plugin.json", manifest)]);
    let settings = world.settings();
    let commands: Vec<String> =
        settings.imported.plugins[0].commands.iter().map(|path| path.display().to_string()).collect();
    assert!(commands.len() == 2 && commands[1].ends_with("1.0.0/extra"), "{commands:?}");
    assert!(told(&settings, "mcp_servers").0["plugin:kit:one"].is_object());
    assert!(settings.hooks[0].value.groups[0].commands[0].command.ends_with("; stop"));
}

#[test]
fn hooks_that_cannot_be_read_let_every_call_ask() {
    for broken in [("hooks/hooks.json", "{"), (".claude-plugin/plugin.json", "[]")] {
        let settings = with_plugin(World::new().claude_user(ENABLED), &[broken]).settings();
        assert!(!settings.permissions.ask.is_empty(), "{broken:?}");
        assert!(
            settings.warnings.iter().any(|warning| warning.contains("every tool call asks")),
            "{broken:?}"
        );
    }
}

#[test]
fn a_project_chooses_plugins_only_if_it_is_trusted() {
    let files = [MANIFEST, HOOKS];
    let with = |user: &str, project: &str| {
        let world = with_plugin(World::new().claude_user(user), &files);
        world.file("project/.claude/settings.json", project)
    };
    let off = r#"{"enabledPlugins": {"tools@acme": false}}"#;
    let guarded = with(ENABLED, off);
    let settings = guarded.settings();
    assert_eq!((names(&settings), settings.hooks.len()), (vec!["tools"], 1), "a guard stays");
    assert!(
        settings.warnings.iter().any(|warning| warning.contains("enabledPlugins")),
        "{:?}",
        settings.warnings
    );
    assert!(names(&guarded.trust_now().settings()).is_empty());
    let enabling = with("{}", ENABLED);
    assert!(names(&enabling.settings()).is_empty());
    assert_eq!(names(&enabling.trust_now().settings()), ["tools"]);
}

#[test]
fn plugins_that_are_not_enabled_are_not_read() {
    let world = with_plugin(World::new().claude_user("{}"), &[MANIFEST, HOOKS, SERVERS]);
    let settings = world.settings();
    assert!(names(&settings).is_empty() && settings.hooks.is_empty());
    assert_eq!(told(&settings, "mcp_servers").0, Value::Object(Default::default()));
}

#[test]
fn the_administrator_and_the_command_line_choose_last() {
    let off = r#"{"enabledPlugins": {"tools@acme": false}}"#;
    let mut world = with_plugin(World::new().claude_user(ENABLED), &[MANIFEST]);
    world.given = Some(off.to_owned());
    assert!(names(&world.settings()).is_empty());
    let world = world.file("claude-managed/managed-settings.json", ENABLED);
    assert_eq!(names(&world.settings()), ["tools"]);
}

#[test]
fn a_plugin_of_a_directory_is_read_there() {
    let world = with_plugin(World::new().claude_user(ENABLED), &[MANIFEST]);
    let market = world.path("market");
    std::fs::create_dir_all(market.join(".claude-plugin")).unwrap();
    std::fs::create_dir_all(market.join("tools/.claude-plugin")).unwrap();
    let known =
        json!({"acme": {"source": {"source": "directory", "path": market}, "installLocation": market}});
    let world = world
        .file("user/.claude/plugins/known_marketplaces.json", &known.to_string())
        .file(
            "market/.claude-plugin/marketplace.json",
            r#"{"name": "acme", "plugins": [{"name": "tools", "source": "./tools"}]}"#,
        )
        .file("market/tools/.claude-plugin/plugin.json", r#"{"name": "newer"}"#);
    assert_eq!(names(&world.settings()), ["newer"]);
}
