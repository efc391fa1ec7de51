//! Servers that hang, die, flood and send garbage do not affect others.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pal_mcp::{McpServerConfig, ServerPool, ServerState, ServerTransport};
use pal_process::CancelToken;

use crate::test_servers::{TestServers, is_running, settings, text, until};

fn call(world: &TestServers, tool: &str) -> Result<String, String> {
    world.servers.call("one", tool, r#"{"text":"hello"}"#, &CancelToken::new()).map(|blocks| text(&blocks))
}

#[test]
fn garbage_output_is_tolerated() {
    let world = TestServers::new("chatty");
    world.ready();
    assert_eq!(call(&world, "echo").unwrap(), "hello");
    let failed = call(&world, "die").unwrap_err();
    assert!(failed.len() < 8 * 1024, "{} bytes of noise are kept", failed.len());
}

#[test]
fn unanswered_call_times_out_and_is_cancelled() {
    let world = TestServers::new("plain");
    world.ready();
    let begun = Instant::now();
    let why = call(&world, "hang").unwrap_err();
    assert_eq!(why, "the server one did not answer within 2 s");
    assert!((1..10).contains(&begun.elapsed().as_secs()));
    until("it is told", || world.notes("one").contains(&String::from("got notifications/cancelled")));
    assert_eq!(call(&world, "echo").unwrap(), "hello", "it can still be called");
}

#[test]
fn cancelled_call_ends_at_once() {
    let world = TestServers::new("plain");
    world.ready();
    let cancel = CancelToken::new();
    let wish = cancel.clone();
    let waiting = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        wish.cancel();
    });
    let begun = Instant::now();
    let why = world.servers.call("one", "hang", "{}", &cancel).unwrap_err();
    assert!(why.contains("Interrupted") && begun.elapsed() < Duration::from_millis(1_500), "{why}");
    waiting.join().unwrap();
    until("it is told", || world.notes("one").contains(&String::from("got notifications/cancelled")));
}

#[test]
fn server_that_dies_in_a_call_restarts_once() {
    let world = TestServers::new("plain");
    world.ready();
    let begun = Instant::now();
    let why = call(&world, "die").unwrap_err();
    assert!(why.contains("exit status: 9") && why.contains("out of memory"), "{why}");
    assert!(begun.elapsed() < Duration::from_millis(1_900), "nobody waited for the limit");
    assert!(matches!(world.state("one"), ServerState::Gone(_)));
    assert!(
        world.tool_names().contains(&String::from("echo")),
        "what comes back when it is called is still offered"
    );
    assert_eq!(call(&world, "echo").unwrap(), "hello");
    assert_eq!(world.numbers("one", "pid").len(), 2);
    // It has answered, so it may die once more.
    call(&world, "die").unwrap_err();
    call(&world, "die").unwrap_err();
    until("it is given up", || world.tool_names().is_empty());
    let why = call(&world, "echo").unwrap_err();
    assert!(why.starts_with("the server one is not there"), "{why}");
    assert_eq!(world.numbers("one", "pid").len(), 3, "nobody starts it for ever");
    let told = world.servers.take_changes();
    assert!(told[0].contains("restarts with the next call"), "{told:?}");
    assert!(told.last().unwrap().contains("not restarted"), "{told:?}");
}

#[test]
fn failed_start_is_reported_without_delay() {
    let world = TestServers::with(&[("one", "dies-at-once"), ("two", "plain")]);
    until("the other one comes up", || matches!(world.state("two"), ServerState::Ready { .. }));
    until("this one has failed", || matches!(world.state("one"), ServerState::Failed(_)));
    let ServerState::Failed(why) = world.state("one") else { panic!() };
    assert!(why.contains("exit status: 3") && why.contains("cannot find the database"), "{why}");
    assert!(world.servers.take_changes()[0].starts_with("the MCP server one failed to start: "));
    assert!(call(&world, "echo").is_err());
    let missing = McpServerConfig {
        name: String::from("none"),
        transport: ServerTransport::Stdio {
            command: String::from("/nowhere/at-all"),
            arguments: Vec::new(),
            variables: BTreeMap::new(),
            directory: None,
        },
        start_limit: None,
        call_limit: None,
        source: String::new(),
    };
    let servers = ServerPool::start(vec![missing], settings(&tempfile::tempdir().unwrap()));
    until("it has failed", || matches!(&servers.states()[0].1, ServerState::Failed(_)));
}

#[test]
fn silent_server_is_not_waited_for() {
    let world = TestServers::with(&[("one", "mute"), ("two", "plain"), ("three", "no-list")]);
    until("the other one comes up", || matches!(world.state("two"), ServerState::Ready { .. }));
    let begun = Instant::now();
    assert_eq!((world.state("one"), world.state("three")), (ServerState::Starting, ServerState::Starting));
    assert!(world.servers.tools().iter().all(|tool| tool.server == "two"));
    assert!(begun.elapsed() < Duration::from_millis(50));
    let begun = Instant::now();
    let why = call(&world, "echo").unwrap_err();
    assert!(why.contains("did not answer within 2 s") && begun.elapsed().as_secs() < 5, "{why}");
    let begun = Instant::now();
    assert!(!world.servers.wait_for_server(Duration::from_millis(10), &CancelToken::new()));
    assert!(begun.elapsed() < Duration::from_millis(500), "who is late is waited for only once");
    let numbers: Vec<i32> =
        ["one", "two", "three"].iter().flat_map(|name| world.numbers(name, "pid")).collect();
    let begun = Instant::now();
    drop(world);
    assert!(begun.elapsed() < Duration::from_secs(4));
    until("nothing is left", || !numbers.iter().any(|number| is_running(*number)));
}

#[test]
fn oversized_answer_is_whole_or_refused() {
    let world = TestServers::new("plain");
    world.ready();
    let huge = call(&world, "huge").unwrap();
    assert_eq!(huge.len(), 5_000_000, "the agent stores it");
    assert!(call(&world, "flood").is_err(), "what no line may hold is no answer");
    assert_eq!(call(&world, "echo").unwrap(), "hello", "and the server is still there");
}

#[test]
fn invalid_requests_return_errors() {
    let world = TestServers::new("plain");
    world.ready();
    assert_eq!(call(&world, "nothing").unwrap_err(), "no tool nothing");
    assert!(
        world
            .servers
            .call("none", "echo", "{}", &CancelToken::new())
            .unwrap_err()
            .contains("no server of the name none")
    );
    assert!(
        world.servers.call("one", "echo", "[1]", &CancelToken::new()).unwrap_err().contains("no JSON object")
    );
}

#[test]
fn unreachable_address_fails() {
    let text = r#"{"mcpServers": {"far": {"type": "http", "url": "http://127.0.0.1:9/mcp"}, "clear": {"url": "http://example.com/mcp"}}}"#;
    let parsed = pal_mcp::parse_file(text, "test", &|_| None).unwrap();
    let servers = ServerPool::start(parsed.servers, settings(&tempfile::tempdir().unwrap()));
    until("both have failed", || {
        servers.states().iter().all(|(_, state)| matches!(state, ServerState::Failed(_)))
    });
    let ServerState::Failed(why) = &servers.states()[0].1 else { panic!() };
    assert!(why.contains("without encryption"), "{why}");
}

#[test]
fn any_server_can_be_restarted() {
    let world = TestServers::with(&[("one", "plain"), ("two", "dies-at-once")]);
    until("it comes up", || matches!(world.state("one"), ServerState::Ready { .. }));
    until("the other has failed", || matches!(world.state("two"), ServerState::Failed(_)));
    assert_eq!(call(&world, "echo").unwrap(), "hello");
    let first = world.numbers("one", "pid");
    world.servers.restart("one").unwrap();
    assert!(!matches!(world.state("one"), ServerState::Gone(_)), "nobody takes it for dead");
    assert_eq!(call(&world, "echo").unwrap(), "hello");
    until("the first one is gone", || !is_running(first[0]));
    assert_eq!(world.numbers("one", "pid").len(), 2);
    world.servers.restart("two").unwrap();
    until("it fails once more", || matches!(world.state("two"), ServerState::Failed(_)));
    assert!(world.servers.restart("three").is_err());
    world.servers.stop();
    assert!(world.servers.restart("one").is_err());
}
