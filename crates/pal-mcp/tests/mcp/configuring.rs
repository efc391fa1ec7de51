//! What files say of servers.

use std::time::Duration;

use pal_mcp::{Reach, parse_file};

fn environment(name: &str) -> Option<String> {
    (name == "TOKEN").then(|| String::from("secret"))
}

fn wrong(server: &str) -> String {
    let text = format!(r#"{{"mcpServers": {{"tracker": {server}}}}}"#);
    parse_file(&text, ".mcp.json", &environment).unwrap_err().to_string()
}

#[test]
fn programs_and_addresses_are_read() {
    let text = r#"{"mcpServers": {
        "web": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}, "timeout": 5000},
        "local": {"command": "npx", "args": ["-y", "${PACKAGE:-server}"], "env": {"KEY": "${TOKEN}"}, "cwd": "sub", "startup_timeout": 100},
        "old": {"type": "sse", "url": "http://localhost:1/sse"},
        "off": {"disabled": true},
        "odd": {"command": "x", "colour": "red"}
    }}"#;
    let parsed = parse_file(text, ".mcp.json", &environment).unwrap();
    let names: Vec<&str> = parsed.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["local", "odd", "old", "web"]);
    assert_eq!(parsed.warnings, [".mcp.json: server `odd`: `colour` is not known and ignored"]);
    let local = &parsed.servers[0];
    assert_eq!(local.start_limit, Some(Duration::from_millis(100)));
    let Reach::Program { arguments, variables, directory, .. } = &local.reach else { panic!() };
    assert_eq!(arguments, &["-y", "server"]);
    assert_eq!(
        (variables["KEY"].as_str(), directory.as_deref()),
        ("secret", Some(std::path::Path::new("sub")))
    );
    let web = &parsed.servers[3];
    assert_eq!(web.call_limit, Some(Duration::from_secs(5)));
    let Reach::Address { headers, .. } = &web.reach else { panic!() };
    assert_eq!(headers["Authorization"], "Bearer secret");
    let shown = format!("{parsed:?}");
    assert!(!shown.contains("secret"), "keys are shown to nobody: {shown}");
}

#[test]
fn a_mistake_names_file_server_and_key() {
    for (server, said) in [
        ("7", "server `tracker`: it wants an object"),
        ("{}", "server `tracker`: it has neither a `command` nor a `url`"),
        (r#"{"command": "x", "url": "https://x"}"#, "server `tracker`: it has a `command` and a `url`"),
        (r#"{"command": ""}"#, "server `tracker`, `command`: it is empty"),
        (r#"{"command": ["x"]}"#, "server `tracker`, `command`: it wants a text"),
        (r#"{"command": "x", "args": "y"}"#, "server `tracker`, `args`: it wants a list"),
        (r#"{"command": "x", "env": {"A": 1}}"#, "server `tracker`, `env.A`: it wants a text"),
        (
            r#"{"command": "x", "env": {"A": "${GONE}"}}"#,
            "server `tracker`, `env.A`: the variable GONE is not set",
        ),
        (r#"{"type": "stdio"}"#, "server `tracker`, `command`: it is missing"),
        (r#"{"type": "http"}"#, "server `tracker`, `url`: it is missing"),
        (r#"{"type": "pigeon", "command": "x"}"#, "server `tracker`, `type`: it wants"),
        (r#"{"url": "ftp://x"}"#, "server `tracker`, `url`: it wants an address"),
        (r#"{"command": "x", "timeout": -1}"#, "server `tracker`, `timeout`: it wants"),
        (r#"{"command": "x", "disabled": "no"}"#, "server `tracker`, `disabled`: it wants"),
    ] {
        let shown = wrong(server);
        assert!(shown.starts_with(&format!(".mcp.json: {said}")), "{server}: {shown}");
    }
    for (text, said) in
        [("{", "it is no JSON"), ("{}", "`mcpServers`: it is missing"), (r#"{"mcpServers": []}"#, "by name")]
    {
        let shown = parse_file(text, ".mcp.json", &environment).unwrap_err().to_string();
        assert!(shown.contains(said), "{shown}");
    }
    for name in ["", "a__b", "_a", "a_", "naïve", "a\\n"] {
        let text = format!(r#"{{"mcpServers": {{"{name}": {{"command": "x"}}}}}}"#);
        assert!(parse_file(&text, ".mcp.json", &environment).is_err(), "{name}");
    }
}
