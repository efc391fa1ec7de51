//! MCP servers in a session: found, called, asked about; and the beginning of requests stays as it is whatever they do.

use std::time::{Duration, Instant};

use pal_model::Role;
use serde_json::{Value, json};

use crate::test_world::{TestWorld, finish};
use pal_agent_testkit::{ProviderSetup, calls, says};

const FREELY: [&str; 3] = ["--permission-mode", "bypass", "--no-sandbox"];

/// A server as a shell script. It says what it is called with, may change its list or die when it is called, and may come up
/// late or never.
const SERVER: &str = r#"
tools='{"name":"look","description":"Looks","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"change","description":"Changes","inputSchema":{"type":"object"}},{"name":"die","description":"Dies","inputSchema":{"type":"object"}}'
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
text() { reply "{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
echo "began $$" >> "$NOTES"
[ -z "$LATE" ] || sleep "$LATE"
while IFS= read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p')
    case "$line" in
    *'"method":"initialize"'*) reply '{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"resources":{},"prompts":{}},"serverInfo":{"name":"s","version":"1"},"instructions":"Look before you change."}' ;;
    *'"method":"tools/list"'*) reply "{\"tools\":[$tools]}" ;;
    *'"method":"resources/list"'*) reply '{"resources":[{"uri":"note://one","name":"one"}]}' ;;
    *'"method":"resources/templates/list"'*) reply '{"resourceTemplates":[]}' ;;
    *'"method":"prompts/list"'*) reply '{"prompts":[{"name":"greet","description":"Greets somebody","arguments":[{"name":"who","required":true}]}]}' ;;
    *'"method":"prompts/get"'*)
        who=$(printf '%s' "$line" | sed -n 's/.*"who":"\([^"]*\)".*/\1/p')
        reply "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"Greet them, with who=$who\"}}]}" ;;
    *'"method":"resources/read"'*) reply '{"contents":[{"uri":"note://one","text":"what the note says"}]}' ;;
    *'"name":"look"'*) text "looked" ;;
    *'"name":"change"'*)
        tools='{"name":"fresh","description":"Is new","inputSchema":{"type":"object"}}'
        echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
        text "changed" ;;
    *'"name":"die"'*) exit 7 ;;
    *'"name":"fresh"'*) text "fresh indeed" ;;
    esac
done
"#;

impl TestWorld {
    /// Value of `--mcp-config`: servers by name, each with its start delay.
    pub(crate) fn servers(&self, servers: &[(&str, &str)]) -> String {
        self.file("server.sh", SERVER);
        let server = |(name, late): &(&str, &str)| {
            let variables = json!({"LATE": late, "NOTES": self.pal().join("notes").display().to_string()});
            ((*name).to_owned(), json!({"command": "sh", "args": ["server.sh"], "env": variables}))
        };
        json!({"mcpServers": servers.iter().map(server).collect::<serde_json::Map<String, Value>>()})
            .to_string()
    }

    /// Starts of a server.
    fn starts(&self) -> usize {
        std::fs::read_to_string(self.pal().join("notes")).unwrap_or_default().lines().count()
    }

    /// All requests begin alike, and each repeats the one before it.
    fn begins_alike(&self) {
        let asked = self.provider.heard().asked.clone();
        for pair in asked.windows(2) {
            assert_eq!(pair[1].departs_from(&pair[0]), None);
        }
        assert!(asked.len() > 2);
        let listed = asked[0].head.concat();
        assert!(listed.contains(r#""name":"CallTool""#) && !listed.contains(r#""name":"mcp__"#), "{listed}");
        assert!(listed.contains("MCP servers of this session: "));
        assert!(!listed.contains("Look before you change"), "what a server says stands behind what was sent");
    }
}

fn through(name: &str) -> (&'static str, Value) {
    ("CallTool", json!({"name": name, "input": {"deep": {"a": [1, 2]}}}))
}

/// A model that makes these calls, one an answer, and then says what the last one returned.
fn caller(steps: Vec<(&'static str, Value)>) -> ProviderSetup {
    ProviderSetup::answers(move |at, _| match steps.get(at) {
        Some(step) => calls(&format!("Step {at}."), std::slice::from_ref(step)),
        None => says("Done."),
    })
}

fn search(query: &str) -> (&'static str, Value) {
    ("ToolSearch", json!({"query": query}))
}

#[test]
fn a_tool_is_found_and_called_and_the_list_may_change_meanwhile() {
    let world = TestWorld::new(caller(vec![
        search("look"),
        through("mcp__s__look"),
        through("mcp__s__change"),
        ("Bash", json!({"command": "sleep 1"})),
        search("fresh"),
        through("mcp__s__fresh"),
        through("mcp__s__look"),
    ]));
    let config = world.servers(&[("s", "")]);
    let said = world.run(&["--permission-mode", "bypass", "--no-sandbox", "--mcp-config", &config, "go"]);
    assert_eq!(said.code, 0, "{}", said.err);
    world.begins_alike();
    let told = world.provider.heard().asked.last().unwrap().text();
    let refused = "`mcp__s__look` is none of them";
    for words in ["looked", "changed", "fresh indeed", "Look before you change", refused] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert!(
        told.contains("mcp__s__fresh: Is new") && told.contains("Tools that are no longer there"),
        "{told}"
    );
    assert_eq!(world.starts(), 1);
}

#[test]
fn tools_need_a_rule_even_if_the_server_calls_them_read_only() {
    let steps = || {
        vec![
            search("look"),
            through("mcp__s__look"),
            ("ListMcpResources", json!({})),
            through("ReadMcpResource"),
        ]
    };
    let world = TestWorld::new(caller(steps()));
    let config = world.servers(&[("s", "")]);
    let said = world.run(&["--output-format", "json", "--mcp-config", &config, "go"]);
    let denials = said.lines()[0]["permission_denials"].as_array().cloned().unwrap();
    assert_eq!((denials.len(), &denials[0]["rule"]), (2, &json!("mcp__s__look")), "{}", said.out);
    assert_eq!(denials[0]["tool_input"], json!({"deep": {"a": [1, 2]}}), "{}", said.out);
    for (rule, denied) in
        [("mcp__s", 0), ("mcp__s__*", 0), ("mcp__s__look", 0), ("mcp__s__change", 1), ("mcp__t", 1)]
    {
        let world = TestWorld::new(caller(vec![search("look"), through("mcp__s__look")]));
        let config = world.servers(&[("s", "")]);
        let said =
            world.run(&["--output-format", "json", "--allowed-tools", rule, "--mcp-config", &config, "go"]);
        let denials = said.lines()[0]["permission_denials"].as_array().unwrap().len();
        assert_eq!(denials, denied, "{rule}: {}", said.out);
    }
    let world = TestWorld::new(caller(vec![
        search("resources"),
        ("CallTool", json!({"name": "ListMcpResources", "input": {}})),
        ("CallTool", json!({"name": "ReadMcpResource", "input": {"server": "s", "uri": "note://one"}})),
    ]));
    let config = world.servers(&[("s", "")]);
    let said = world.run(&["--allowed-tools", "ReadMcpResource", "--mcp-config", &config, "go"]);
    let told = world.provider.heard().asked.last().unwrap().text();
    assert!(told.contains("s: note://one") && told.contains("what the note says"), "{told} {}", said.err);
}

#[test]
fn hooks_get_the_name_of_the_called_tool() {
    let world = TestWorld::new(caller(vec![search("look"), through("mcp__s__look")]));
    let config = world.servers(&[("s", "")]);
    std::fs::write(
        world.pal().join("settings.toml"),
        "[[hooks.PreToolUse]]\nmatcher = \"mcp__s__.*\"\nhooks = [{ type = \"command\", command = \"cat > heard.json; echo no >&2; exit 2\" }]\n",
    )
    .unwrap();
    let said = world.run(&["--permission-mode", "bypass", "--no-sandbox", "--mcp-config", &config, "go"]);
    let heard: Value =
        serde_json::from_str(&world.text("heard.json")).unwrap_or_else(|_| panic!("{}", said.err));
    assert_eq!((&heard["tool_name"], &heard["mcp_server"]), (&json!("mcp__s__look"), &json!("s")));
    assert!(!world.provider.heard().asked.last().unwrap().text().contains("looked"));
}

#[test]
fn a_failing_server_delays_no_turn_and_a_dead_one_restarts() {
    let world = TestWorld::new(caller(vec![
        ("Bash", json!({"command": "true"})),
        search("look"),
        through("mcp__s__die"),
        through("mcp__s__look"),
    ]));
    let config = world.servers(&[("never", "1000"), ("s", "")]);
    let begun = Instant::now();
    let said = world.run(&[
        "--verbose",
        "--permission-mode",
        "bypass",
        "--no-sandbox",
        "--mcp-config",
        &config,
        "go",
    ]);
    let took = begun.elapsed();
    assert_eq!(said.code, 0, "{}", said.err);
    world.begins_alike();
    let told = world.provider.heard().asked.last().unwrap().text();
    assert!(told.contains("went away before it answered: it ended with exit status: 7"), "{told}");
    assert!(told.contains("looked"), "{told}");
    assert!(said.err.contains("the MCP server s stopped"), "{}", said.err);
    assert_eq!(world.starts(), 3);
    assert!(took < Duration::from_secs(9), "nobody waited for the one that never comes up: {took:?}");
    let notes = std::fs::read_to_string(world.pal().join("notes")).unwrap();
    for number in notes.lines().filter_map(|line| line.strip_prefix("began ")) {
        let until = Instant::now() + Duration::from_secs(20);
        while runs(number) {
            assert!(Instant::now() < until, "{number} is left behind");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Is true while a server runs. A killed one stays listed as a zombie until its parent reaps it.
fn runs(number: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
    stat.split_once("(sh) ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[test]
fn only_a_search_for_its_tools_waits_for_a_late_server() {
    let world = TestWorld::new(caller(vec![
        ("Bash", json!({"command": "true"})),
        search("look"),
        through("mcp__s__look"),
    ]));
    let config = world.servers(&[("s", "1")]);
    let said = world.run(&["--permission-mode", "bypass", "--no-sandbox", "--mcp-config", &config, "go"]);
    let asked = world.provider.heard().asked.clone();
    assert!(!asked[1].text().contains("mcp__s__look"), "the second request left before it was there");
    assert!(asked.last().unwrap().text().contains("looked"), "{}", said.err);
    world.begins_alike();
}

#[test]
fn the_project_file_needs_a_trusted_project() {
    let run = |settings: &str, more: &[&str]| {
        let world = TestWorld::new(caller(vec![search("look"), through("mcp__s__look")]));
        let config = world.servers(&[("s", "")]);
        world.file(".mcp.json", &config);
        let project = world.repository().canonicalize().unwrap().display().to_string();
        std::fs::write(world.pal().join("settings.toml"), settings.replace("PROJECT", &project)).unwrap();
        let said = world.run(&[&["--permission-mode", "bypass", "--no-sandbox"], more, &["go"]].concat());
        (world.starts(), said.err)
    };
    let (starts, told) = run("", &[]);
    assert!(starts == 0 && told.contains(".mcp.json") && told.contains("is not trusted"), "{told}");
    let trusting = "trusted = [\"PROJECT\"]\n";
    assert_eq!(run(trusting, &[]).0, 1);
    for more in [&["--bare"][..], &["--strict-mcp-config"]] {
        assert_eq!(run(trusting, more).0, 0, "{more:?}");
    }
    assert_eq!(run("trusted = [\"PROJECT\"]\ndisabled = [\"mcp\"]\n", &[]).0, 0);
    let own = "[mcp_servers.own]\ncommand = \"sh\"\nargs = [\"server.sh\"]\nenv = { NOTES = \"${PAL_HOME}/notes\" }\n";
    assert_eq!(run(own, &[]).0, 1, "a server of the user's own settings needs no trust");
}

#[test]
fn a_config_error_names_file_server_and_key() {
    let world = TestWorld::new(caller(Vec::new()));
    world.file(
        "servers.json",
        r#"{"mcpServers": {"tracker": {"command": "x", "env": {"KEY": "${NOT_THERE}"}}}}"#,
    );
    for (given, words) in [
        ("servers.json", "servers.json: server `tracker`, `env.KEY`: the variable NOT_THERE is not set"),
        (r#"{"mcpServers": {"a": {}}}"#, "--mcp-config: server `a`: it has neither"),
        ("nowhere.json", "nowhere.json"),
    ] {
        let said = world.run(&["--mcp-config", given, "go"]);
        assert!(said.code != 0 && said.err.contains(words), "{}", said.err);
    }
}

#[test]
fn server_instructions_are_not_system_messages() {
    let world = TestWorld::new(caller(vec![
        search("look"),
        through("mcp__s__change"),
        ("Bash", json!({"command": "sleep 1"})),
    ]));
    let config = world.servers(&[("s", "")]);
    let said = world.run(&["--permission-mode", "bypass", "--no-sandbox", "--mcp-config", &config, "go"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let heard = world.provider.heard();
    let asked = heard.asked.last().unwrap();
    let words = ["Look before you change", "Looks", "Is new"];
    let blocks = |is_system: bool| {
        let blocks = asked.blocks.iter().filter(move |(role, _)| (*role == Role::System) == is_system);
        blocks.map(|(_, block)| block.to_string()).collect::<Vec<String>>().join("\n")
    };
    for word in words {
        assert!(blocks(false).contains(word), "{word} is told: {}", blocks(false));
        assert!(!blocks(true).contains(word), "{word} speaks as the system: {}", blocks(true));
        assert!(!asked.head.concat().contains(word), "{word}");
    }
    // Reminders speak for the system as well.
    let user = blocks(false);
    let reminders =
        user.split("<system-reminder>").skip(1).filter_map(|rest| rest.split("</system-reminder>").next());
    for reminder in reminders {
        assert!(!words.iter().any(|word| reminder.contains(word)), "{reminder}");
    }
    assert!(user.contains("mcp__s__fresh") || blocks(true).contains("mcp__s__fresh"));
}

#[test]
fn a_server_restarts_in_running_sessions_from_outside() {
    let world = TestWorld::new(ProviderSetup::answers(|at, _| match at {
        0 => calls(
            "I wait.",
            &[("Bash", json!({"command": "for i in $(seq 200); do test -e go && break; sleep 0.1; done"}))],
        ),
        _ => says("Done."),
    }));
    let run = |arguments: &[&str]| finish(world.command(arguments).spawn().unwrap());
    let said = run(&["mcp", "restart", "one"]);
    assert!(said.code == 1 && said.err.contains("no session is running"), "{}", said.err);
    let config = world.servers(&[("one", "")]);
    let child = world.spawn(&[&FREELY[..], &["--mcp-config", &config, "work"]].concat());
    let patience = Duration::from_secs(20);
    assert!(world.provider.wait_until(patience, |heard| !heard.asked.is_empty()));
    let begun = Instant::now();
    while world.starts() < 1 && begun.elapsed() < patience {
        std::thread::sleep(Duration::from_millis(20));
    }
    let said = run(&["mcp", "restart", "two"]);
    assert!(said.code == 1 && said.err.contains("no server of the name two"), "{}", said.err);
    let said = run(&["mcp", "restart", "one"]);
    assert!(
        said.code == 0 && said.out.starts_with("one is restarting in repository-"),
        "{}{}",
        said.out,
        said.err
    );
    while world.starts() < 2 && begun.elapsed() < patience {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(world.starts(), 2);
    world.file("go", "");
    let ended = finish(child);
    assert_eq!(ended.code, 0, "{}", ended.err);
    let heard = world.provider.heard();
    assert!(
        !heard.asked.iter().any(|asked| asked.text().contains("A message from")),
        "the model is not told"
    );
}
