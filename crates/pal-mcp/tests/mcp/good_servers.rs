//! A well-behaved server.

use pal_mcp::ServerState;
use pal_process::CancelToken;

use crate::test_servers::{TestServers, is_running, text, until};

#[test]
fn server_starts_in_the_background_and_is_called() {
    let world = TestServers::new("plain slow");
    assert_eq!(world.state("one"), ServerState::Starting, "nobody waited for it");
    assert!(world.servers.tools().is_empty());
    world.ready();
    let names = world.tool_names();
    assert_eq!(
        names,
        ["change", "die", "echo", "flood", "hang", "huge", "zebra"],
        "sorted, and only those with a name"
    );
    assert_eq!(world.state("one"), ServerState::Ready { tools: 7, resources: 2, prompts: 1 });
    let said = world.servers.call("one", "echo", r#"{"text":"hello"}"#, &CancelToken::new()).unwrap();
    assert_eq!(text(&said), "hello");
    assert!(world.servers.take_changes().is_empty(), "nothing that anybody has to know");
}

#[test]
fn descriptions_are_bounded_and_cleaned() {
    let world = TestServers::new("plain");
    world.ready();
    let tools = world.servers.tools();
    let about = |name: &str| tools.iter().find(|tool| tool.name == name).unwrap().clone();
    assert_eq!(about("echo").description, "Says it again");
    assert!(about("echo").is_read_only && !about("die").is_read_only);
    assert!(about("zebra").description.len() <= 2 * 1024 + '…'.len_utf8());
    assert!(about("echo").schema.contains(r#""type":"object""#));
    assert_eq!(
        world.servers.instructions(),
        [(String::from("one"), String::from("Ask for the echo first.[31m"))]
    );
}

#[test]
fn resources_and_prompts_are_listed_and_read() {
    let world = TestServers::new("plain");
    world.ready();
    let resources: Vec<(String, bool)> =
        world.servers.resources().into_iter().map(|resource| (resource.uri, resource.is_template)).collect();
    assert_eq!(resources, [(String::from("note://one"), false), (String::from("note://{name}"), true)]);
    let read = world.servers.read_resource("one", "note://one", &CancelToken::new()).unwrap();
    assert_eq!(text(&read), "note://one:\nwhat the note says");
    let prompts = world.servers.prompts();
    assert_eq!(
        (prompts[0].name.as_str(), &prompts[0].arguments[..]),
        ("greet", &[(String::from("who"), true)][..])
    );
    let prompt = world.servers.get_prompt("one", "greet", r#"{"who":"Ada"}"#, &CancelToken::new()).unwrap();
    assert_eq!(text(&prompt), "Greet Ada.");
}

#[test]
fn list_changes_are_debounced() {
    let world = TestServers::new("plain");
    world.ready();
    let said = world.servers.call("one", "change", "{}", &CancelToken::new()).unwrap();
    assert_eq!(text(&said), "changed");
    until("the new tool is there", || world.tool_names().contains(&String::from("newcomer")));
    assert!(!world.tool_names().contains(&String::from("zebra")));
    assert_eq!(world.servers.take_changes(), ["the MCP server one changed its tools: 1 added, 1 removed"]);
    let looks = world.notes("one").iter().filter(|note| *note == "got tools/list").count();
    assert!(looks <= 3, "{looks} looks at the list");
}

#[test]
fn server_without_handshake_is_supported() {
    let world = TestServers::new("newest");
    world.ready();
    let said = world.servers.call("one", "echo", r#"{"text":"anew"}"#, &CancelToken::new()).unwrap();
    assert_eq!(text(&said), "anew");
    assert!(world.notes("one").contains(&String::from("got server/discover")));
}

#[test]
fn server_and_children_end_with_the_session() {
    let world = TestServers::with(&[("one", "child"), ("two", "child")]);
    until("all are up", || !world.servers.is_any_starting());
    let mut numbers = Vec::new();
    for name in ["one", "two"] {
        numbers.extend(world.numbers(name, "pid"));
        numbers.extend(world.numbers(name, "child"));
    }
    assert_eq!(numbers.len(), 4);
    assert!(numbers.iter().all(|number| is_running(*number)));
    world.servers.stop();
    until("all are gone", || !numbers.iter().any(|number| is_running(*number)));
    assert!(world.servers.call("one", "echo", "{}", &CancelToken::new()).is_err());
    world.servers.stop();
}
