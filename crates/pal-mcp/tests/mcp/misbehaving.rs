//! Servers that hang, die, flood and speak rubbish: nobody else is held up.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pal_mcp::{Reach, ServerConfig, Servers, State};
use pal_process::Cancel;

use crate::world::{World, is_running, settings, text, until};

fn call(world: &World, tool: &str) -> Result<String, String> {
    world.servers.call("one", tool, r#"{"text":"hello"}"#, &Cancel::new()).map(|blocks| text(&blocks))
}

#[test]
fn rubbish_and_noise_are_borne() {
    let world = World::new("chatty");
    world.ready();
    assert_eq!(call(&world, "echo").unwrap(), "hello");
    let failed = call(&world, "die").unwrap_err();
    assert!(failed.len() < 8 * 1024, "{} bytes of noise are kept", failed.len());
}

#[test]
fn a_call_that_is_never_answered_ends_and_the_server_is_told() {
    let world = World::new("plain");
    world.ready();
    let begun = Instant::now();
    let why = call(&world, "hang").unwrap_err();
    assert_eq!(why, "the server one did not answer within 2 s");
    assert!((1..10).contains(&begun.elapsed().as_secs()));
    until("it is told", || world.notes("one").contains(&String::from("got notifications/cancelled")));
    assert_eq!(call(&world, "echo").unwrap(), "hello", "it can still be called");
}

#[test]
fn a_call_that_is_given_up_ends_at_once_and_the_server_is_told() {
    let world = World::new("plain");
    world.ready();
    let cancel = Cancel::new();
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
fn one_that_dies_in_a_call_says_why_and_comes_back_once() {
    let world = World::new("plain");
    world.ready();
    let begun = Instant::now();
    let why = call(&world, "die").unwrap_err();
    assert!(why.contains("exit status: 9") && why.contains("out of memory"), "{why}");
    assert!(begun.elapsed() < Duration::from_millis(1_900), "nobody waited for the limit");
    assert!(matches!(world.state("one"), State::Gone(_)));
    assert!(
        world.tool_names().contains(&String::from("echo")),
        "what comes back when it is called is still offered"
    );
    assert_eq!(call(&world, "echo").unwrap(), "hello");
    assert_eq!(world.numbers("one", "pid").len(), 2);
    // It served, so it may die once more.
    call(&world, "die").unwrap_err();
    call(&world, "die").unwrap_err();
    until("it is given up", || world.tool_names().is_empty());
    let why = call(&world, "echo").unwrap_err();
    assert!(why.starts_with("the server one is not there"), "{why}");
    assert_eq!(world.numbers("one", "pid").len(), 3, "nobody starts it for ever");
    let told = world.servers.take_changes();
    assert!(told[0].contains("started again when it is called"), "{told:?}");
    assert!(told.last().unwrap().contains("not started again"), "{told:?}");
}

#[test]
fn one_that_does_not_come_up_is_told_of_and_costs_nothing() {
    let world = World::with(&[("one", "dies-at-once"), ("two", "plain")]);
    until("the other one comes up", || matches!(world.state("two"), State::Ready { .. }));
    until("this one has failed", || matches!(world.state("one"), State::Failed(_)));
    let State::Failed(why) = world.state("one") else { panic!() };
    assert!(why.contains("exit status: 3") && why.contains("cannot find the database"), "{why}");
    assert!(world.servers.take_changes()[0].starts_with("the MCP server one did not come up: "));
    assert!(call(&world, "echo").is_err());
    let missing = ServerConfig {
        name: String::from("none"),
        reach: Reach::Program {
            command: String::from("/nowhere/at-all"),
            arguments: Vec::new(),
            variables: BTreeMap::new(),
            directory: None,
        },
        start_limit: None,
        call_limit: None,
        place: String::new(),
    };
    let servers = Servers::start(vec![missing], settings(&tempfile::tempdir().unwrap()));
    until("it has failed", || matches!(&servers.states()[0].1, State::Failed(_)));
}

#[test]
fn one_that_never_answers_is_not_waited_for() {
    let world = World::with(&[("one", "mute"), ("two", "plain"), ("three", "no-list")]);
    until("the other one comes up", || matches!(world.state("two"), State::Ready { .. }));
    let begun = Instant::now();
    assert_eq!((world.state("one"), world.state("three")), (State::Starting, State::Starting));
    assert!(world.servers.tools().iter().all(|tool| tool.server == "two"));
    assert!(begun.elapsed() < Duration::from_millis(50));
    let begun = Instant::now();
    let why = call(&world, "echo").unwrap_err();
    assert!(why.contains("did not answer within 2 s") && begun.elapsed().as_secs() < 5, "{why}");
    let begun = Instant::now();
    assert!(!world.servers.await_one(Duration::from_millis(10), &Cancel::new()));
    assert!(begun.elapsed() < Duration::from_millis(500), "who is late is waited for only once");
    let numbers: Vec<i32> =
        ["one", "two", "three"].iter().flat_map(|name| world.numbers(name, "pid")).collect();
    let begun = Instant::now();
    drop(world);
    assert!(begun.elapsed() < Duration::from_secs(4));
    until("nothing is left", || !numbers.iter().any(|number| is_running(*number)));
}

#[test]
fn an_answer_that_is_too_large_is_cut_or_given_up() {
    let world = World::new("plain");
    world.ready();
    let huge = call(&world, "huge").unwrap();
    assert!(
        huge.len() < 1_100_000
            && huge.ends_with("[4000000 more bytes of this answer were left out; ask for less at once.]")
    );
    assert!(call(&world, "flood").is_err(), "what no line may hold is no answer");
    assert_eq!(call(&world, "echo").unwrap(), "hello", "and the server is still there");
}

#[test]
fn what_is_asked_wrongly_is_an_answer() {
    let world = World::new("plain");
    world.ready();
    assert_eq!(call(&world, "nothing").unwrap_err(), "no tool nothing");
    assert!(
        world
            .servers
            .call("none", "echo", "{}", &Cancel::new())
            .unwrap_err()
            .contains("no server of the name none")
    );
    assert!(world.servers.call("one", "echo", "[1]", &Cancel::new()).unwrap_err().contains("no JSON object"));
}

#[test]
fn an_address_where_nobody_listens_fails() {
    let text = r#"{"mcpServers": {"far": {"type": "http", "url": "http://127.0.0.1:9/mcp"}, "clear": {"url": "http://example.com/mcp"}}}"#;
    let parsed = pal_mcp::parse_file(text, "test", &|_| None).unwrap();
    let servers = Servers::start(parsed.servers, settings(&tempfile::tempdir().unwrap()));
    until("both have failed", || servers.states().iter().all(|(_, state)| matches!(state, State::Failed(_))));
    let State::Failed(why) = &servers.states()[0].1 else { panic!() };
    assert!(why.contains("without encryption"), "{why}");
}

#[test]
fn one_that_was_given_up_or_works_can_be_begun_with_anew() {
    let world = World::with(&[("one", "plain"), ("two", "dies-at-once")]);
    until("it comes up", || matches!(world.state("one"), State::Ready { .. }));
    until("the other has failed", || matches!(world.state("two"), State::Failed(_)));
    assert_eq!(call(&world, "echo").unwrap(), "hello");
    let first = world.numbers("one", "pid");
    world.servers.restart("one").unwrap();
    assert!(!matches!(world.state("one"), State::Gone(_)), "nobody takes it for dead");
    assert_eq!(call(&world, "echo").unwrap(), "hello");
    until("the first one is gone", || !is_running(first[0]));
    assert_eq!(world.numbers("one", "pid").len(), 2);
    world.servers.restart("two").unwrap();
    until("it fails once more", || matches!(world.state("two"), State::Failed(_)));
    assert!(world.servers.restart("three").is_err());
    world.servers.stop();
    assert!(world.servers.restart("one").is_err());
}
