//! Configuration files.

use std::time::Duration;

use pal_mcp::{ServerTransport, parse_file};

fn environment(name: &str) -> Option<String> {
    (name == "TOKEN").then(|| String::from("secret"))
}

fn wrong(server: &str) -> String {
    let text = format!(r#"{{"mcpServers": {{"tracker": {server}}}}}"#);
    parse_file(&text, ".mcp.json", &environment).unwrap_err().to_string()
}

#[test]
fn both_transports_are_parsed() {
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
    assert_eq!(parsed.warnings, [".mcp.json: server `odd`: unknown key `colour` is ignored"]);
    let local = &parsed.servers[0];
    assert_eq!(local.start_limit, Some(Duration::from_millis(100)));
    let ServerTransport::Stdio { arguments, variables, directory, .. } = &local.transport else { panic!() };
    assert_eq!(arguments, &["-y", "server"]);
    assert_eq!(
        (variables["KEY"].as_str(), directory.as_deref()),
        ("secret", Some(std::path::Path::new("sub")))
    );
    let web = &parsed.servers[3];
    assert_eq!(web.call_limit, Some(Duration::from_secs(5)));
    let ServerTransport::Http { headers, .. } = &web.transport else { panic!() };
    assert_eq!(headers["Authorization"], "Bearer secret");
    let shown = format!("{parsed:?}");
    assert!(!shown.contains("secret"), "keys are shown to nobody: {shown}");
}

#[test]
fn config_error_names_file_server_and_key() {
    for (server, said) in [
        ("7", "server `tracker`: expected an object"),
        ("{}", "server `tracker`: it has neither a `command` nor a `url`"),
        (r#"{"command": "x", "url": "https://x"}"#, "server `tracker`: it has both a `command` and a `url`"),
        (r#"{"command": ""}"#, "server `tracker`, `command`: it is empty"),
        (r#"{"command": ["x"]}"#, "server `tracker`, `command`: expected a string"),
        (r#"{"command": "x", "args": "y"}"#, "server `tracker`, `args`: expected a list"),
        (r#"{"command": "x", "env": {"A": 1}}"#, "server `tracker`, `env.A`: expected a string"),
        (
            r#"{"command": "x", "env": {"A": "${GONE}"}}"#,
            "server `tracker`, `env.A`: the variable GONE is not set",
        ),
        (r#"{"type": "stdio"}"#, "server `tracker`, `command`: it is missing"),
        (r#"{"type": "http"}"#, "server `tracker`, `url`: it is missing"),
        (r#"{"type": "pigeon", "command": "x"}"#, "server `tracker`, `type`: expected"),
        (r#"{"url": "ftp://x"}"#, "server `tracker`, `url`: expected an address"),
        (r#"{"command": "x", "timeout": -1}"#, "server `tracker`, `timeout`: expected"),
        (r#"{"command": "x", "disabled": "no"}"#, "server `tracker`, `disabled`: expected"),
    ] {
        let shown = wrong(server);
        assert!(shown.starts_with(&format!(".mcp.json: {said}")), "{server}: {shown}");
    }
    for (text, said) in
        [("{", "not valid JSON"), ("{}", "`mcpServers`: it is missing"), (r#"{"mcpServers": []}"#, "by name")]
    {
        let shown = parse_file(text, ".mcp.json", &environment).unwrap_err().to_string();
        assert!(shown.contains(said), "{shown}");
    }
    for name in ["", "a__b", "_a", "a_", "naïve", "a\\n"] {
        let text = format!(r#"{{"mcpServers": {{"{name}": {{"command": "x"}}}}}}"#);
        assert!(parse_file(&text, ".mcp.json", &environment).is_err(), "{name}");
    }
}
