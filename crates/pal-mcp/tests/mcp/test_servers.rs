//! Scripted servers in a temporary directory.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pal_mcp::{McpServerConfig, ServerPool, ServerPoolSettings, ServerState, ServerTransport};
use pal_model::ContentBlock;

use crate::scripted_server::{NOTES, SCRIPT};

/// A longer wait is a hang.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct TestServers {
    folder: tempfile::TempDir,
    pub(crate) servers: ServerPool,
}

impl TestServers {
    /// Starts one server with this script and a call timeout of two seconds.
    pub(crate) fn new(script: &str) -> TestServers {
        TestServers::with(&[("one", script)])
    }

    pub(crate) fn with(scripts: &[(&str, &str)]) -> TestServers {
        let folder = tempfile::tempdir().unwrap();
        let configs = scripts.iter().map(|(name, script)| McpServerConfig {
            name: (*name).to_owned(),
            transport: scripted(script, &folder.path().join(format!("{name}.notes"))),
            start_limit: None,
            call_limit: None,
            source: String::from("test"),
        });
        let servers = ServerPool::start(configs.collect(), settings(&folder));
        TestServers { folder, servers }
    }

    /// Lines that a server recorded.
    pub(crate) fn notes(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join(format!("{name}.notes")));
        text.unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Numbers that a server recorded after a word.
    pub(crate) fn numbers(&self, name: &str, word: &str) -> Vec<i32> {
        let notes = self.notes(name);
        notes.iter().filter_map(|note| note.strip_prefix(word)?.trim().parse().ok()).collect()
    }

    pub(crate) fn state(&self, name: &str) -> ServerState {
        let states = self.servers.states();
        states.into_iter().find(|(known, _)| known == name).unwrap().1
    }

    pub(crate) fn ready(&self) {
        until("it comes up", || matches!(self.state("one"), ServerState::Ready { .. }));
    }

    pub(crate) fn tool_names(&self) -> Vec<String> {
        self.servers.tools().into_iter().map(|tool| tool.name).collect()
    }
}

pub(crate) fn settings(folder: &tempfile::TempDir) -> ServerPoolSettings {
    ServerPoolSettings {
        directory: folder.path().to_owned(),
        variables: std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "HOME").collect(),
        allows_plain_http: false,
        start_limit: Duration::from_secs(10),
        call_limit: Duration::from_secs(2),
        images: true,
        documents: true,
        version: String::from("0"),
        host: None,
    }
}

fn scripted(script: &str, notes: &std::path::Path) -> ServerTransport {
    let variables = BTreeMap::from([
        (SCRIPT.to_owned(), script.to_owned()),
        (NOTES.to_owned(), notes.display().to_string()),
    ]);
    let command = std::env::current_exe().unwrap().display().to_string();
    let arguments =
        ["scripted_server::play", "--exact", "--nocapture", "--test-threads=1"].map(String::from).to_vec();
    ServerTransport::Stdio { command, arguments, variables, directory: None }
}

/// Waits until a condition holds.
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what}: it did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Concatenated texts of a result.
pub(crate) fn text(blocks: &[ContentBlock]) -> String {
    blocks.iter().filter_map(|block| Some(block.string("text")?.into_owned())).collect()
}

/// Reports whether a process runs; zombies do not count.
pub(crate) fn is_running(number: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}
