//! Settings of Codex, Gemini CLI and opencode: the model, its provider and MCP servers.

use serde_json::{Value, json};

use crate::World;

fn servers(world: &World) -> Value {
    let mut all = json!({});
    for said in &world.settings().mcp.said {
        all.as_object_mut().unwrap().extend(said.value.as_object().unwrap().clone());
    }
    all
}

#[test]
fn servers_of_all_agents_are_used_and_claude_code_wins() {
    let world = World::new()
        .with_user_home()
        .file(
            "user/.codex/config.toml",
            "[mcp_servers.docs]\ncommand = \"codex-docs\"\nargs = [\"-v\"]\nstartup_timeout_sec = 2.5\ntool_timeout_sec = 9\n\
             [mcp_servers.web]\nurl = \"https://web.example/mcp\"\nbearer_token_env_var = \"WEB_TOKEN\"\nenabled = false\n",
        )
        .file(
            "user/.gemini/settings.json",
            r#"{"mcpServers": {"docs": {"command": "gemini-docs"}, "g": {"httpUrl": "https://g.example/mcp", "trust": true}}}"#,
        )
        .file(
            "user/.config/opencode/opencode.json",
            r#"{"mcp": {"o": {"type": "local", "command": ["bun", "x", "o"], "environment": {"A": "b"}, "enabled": true},
                "r": {"type": "remote", "url": "https://r.example"}, "broken": {"type": "local"}}}"#,
        )
        .file("user/.claude.json", r#"{"mcpServers": {"c": {"command": "claude"}}}"#);
    let all = servers(&world);
    assert_eq!(
        all["docs"],
        json!({"command": "codex-docs", "args": ["-v"], "startup_timeout": 2500, "timeout": 9000})
    );
    assert_eq!(
        all["web"],
        json!({"url": "https://web.example/mcp", "type": "http", "disabled": true, "headers": {"Authorization": "Bearer ${WEB_TOKEN}"}})
    );
    assert_eq!(all["g"], json!({"url": "https://g.example/mcp", "type": "http"}));
    assert_eq!(all["o"], json!({"command": "bun", "args": ["x", "o"], "env": {"A": "b"}}));
    assert_eq!((&all["r"]["url"], &all["c"]["command"]), (&json!("https://r.example"), &json!("claude")));
    assert!(world.settings().imported.unused.iter().any(|unused| unused.contains("broken")));
    let world = world.user("mcp_servers.docs.command = \"mine\"");
    assert_eq!(servers(&world)["docs"]["command"], json!("mine"));
}

#[test]
fn the_model_of_codex_counts_if_only_it_can_be_reached() {
    let config = "model = \"gpt-x\"\nmodel_provider = \"acme\"\napproval_policy = \"never\"\n\
                  [model_providers.acme]\nbase_url = \"https://acme.example/v1\"\nenv_key = \"ACME_KEY\"\nwire_api = \"chat\"\n";
    let world = || World::new().with_user_home().file("user/.codex/config.toml", config);
    let settings = world().settings();
    assert!(settings.model.is_none() && settings.endpoints.openai.is_none(), "there is no key");
    assert!(settings.imported.unused[0].contains("approval_policy"), "{:?}", settings.imported.unused);
    let settings = world().variable("ACME_KEY", "k").settings();
    assert_eq!((settings.model.as_deref(), settings.provider.as_deref()), (Some("gpt-x"), Some("chat")));
    assert_eq!(settings.endpoints.openai.as_deref(), Some("https://acme.example/v1"));
    assert!(settings.secrets.openai_api_key.is_some());
    let settings = world().variable("ACME_KEY", "k").variable("OPENAI_API_KEY", "other").settings();
    let key =
        settings.secrets.openai_api_key.map(|key| secrecy::ExposeSecret::expose_secret(&key).to_owned());
    assert_eq!(key.as_deref(), Some("k"), "each server gets its own key");
    let settings = world().variable("ACME_KEY", "k").variable("ANTHROPIC_API_KEY", "a").settings();
    assert!(settings.model.is_none(), "Claude is the default where there is a key for it");
}

#[test]
fn variables_of_claude_code_choose_model_and_provider() {
    let settings = World::new()
        .variable("ANTHROPIC_MODEL", "sonnet")
        .variable("ANTHROPIC_SMALL_FAST_MODEL", "haiku")
        .variable("CLAUDE_CODE_USE_BEDROCK", "1")
        .settings();
    assert_eq!((settings.model.as_deref(), settings.small_model.as_deref()), (Some("sonnet"), Some("haiku")));
    assert_eq!(settings.provider.as_deref(), Some("bedrock"));
    assert!(World::new().variable("CLAUDE_CODE_USE_BEDROCK", "0").settings().provider.is_none());
}

#[test]
fn a_wrong_base_url_is_never_replaced_by_the_providers_own() {
    let settings = World::new().variable("ANTHROPIC_BASE_URL", "foo").settings();
    assert_eq!(settings.endpoints.anthropic.as_deref(), Some("foo"), "a connection to it fails");
}

#[test]
fn instruction_files_of_opencode_are_listed() {
    let world = World::new().with_user_home().file(
        "user/.config/opencode/opencode.json",
        r#"{"instructions": ["~/style.md", "https://example.com/rules.md"]}"#,
    );
    let world = world.file("project/opencode.json", r#"{"instructions": ["docs/*.md"]}"#);
    let settings = world.settings();
    let listed: Vec<(&str, pal_settings::SettingsSource)> = settings
        .instructions
        .listed
        .iter()
        .map(|listed| (listed.value.as_str(), listed.origin.place))
        .collect();
    use pal_settings::SettingsSource::{Project, User};
    assert_eq!(listed, [("~/style.md", User), ("docs/*.md", Project)]);
    let unused = settings.imported.unused.join("\n");
    assert!(unused.contains("https://example.com/rules.md"), "{unused}");
}
