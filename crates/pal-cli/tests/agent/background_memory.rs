//! Durable memory that is written in the background: drawn from conversations, and put in order by dreams.

mod dreams;
mod extraction;
mod races;
mod sandbox;
mod terminal;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use pal_sim::ModelPrompt;
use serde_json::{Value, json};

use crate::test_world::{RunOutput, TestWorld, finish};

/// Words by which a request of the fork is known that draws memories.
const FORK: &str = "The conversation rests. Before it goes on";

/// Is true for requests of the extraction fork.
fn is_fork(ask: &ModelPrompt<'_>) -> bool {
    ask.messages.iter().rev().take(10).any(|message| message.blocks.concat().contains(FORK))
}

/// Is true for requests of a dream.
fn is_dream(ask: &ModelPrompt<'_>) -> bool {
    ask.system.concat().contains("You keep the memory of a project in order.")
}

/// Is true if the last message has tool results: it is not the first turn.
fn turns(ask: &ModelPrompt<'_>) -> usize {
    ask.messages.iter().filter(|message| message.role == pal_model::Role::Assistant).count()
}

/// The file of a memory.
fn memory(name: &str, kind: &str, text: &str) -> String {
    format!("---\nname: {name}\ndescription: About {name}\ntype: {kind}\n---\n\n{text}\n")
}

/// A call that writes a memory.
fn write(directory: &Path, slug: &str, text: &str) -> (&'static str, Value) {
    let path = directory.join(format!("{slug}.md"));
    ("Write", json!({"file_path": path, "content": memory(slug, "project", text)}))
}

impl TestWorld {
    /// The memory directory of the repository.
    fn memory(&self) -> PathBuf {
        let project = pal_project::find_project(&self.repository().canonicalize().unwrap());
        pal_memory::MemoryLocation::of_project(&self.pal(), &project).directory
    }

    /// Adds a memory as a person does.
    fn remember(&self, name: &str, text: &str) {
        let said = finish(self.command(&["memory", "add", "--name", name, text]).spawn().unwrap());
        assert_eq!(said.code, 0, "{}", said.err);
    }

    /// `pal -p` that draws memories from every conversation.
    fn learning(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&[&["-p"], arguments].concat());
        command.env("PAL_EXTRACTION", "true").env("PAL_EXTRACTION_TOKENS", "0");
        command
    }

    /// `pal dream`.
    fn dreaming(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&[&["dream"], arguments].concat());
        command.env("PAL_DREAMING", "true");
        command
    }

    fn dream(&self, arguments: &[&str]) -> RunOutput {
        finish(self.dreaming(arguments).spawn().unwrap())
    }

    /// The memories as they are, without what is ours alone.
    fn memories(&self) -> BTreeMap<String, String> {
        let files = std::fs::read_dir(self.memory()).into_iter().flatten().flatten();
        let named = files.map(|file| (file.file_name().into_string().unwrap(), file.path()));
        let visible = named.filter(|(name, path)| !name.starts_with('.') && path.is_file());
        visible.map(|(name, path)| (name, std::fs::read_to_string(path).unwrap())).collect()
    }
}
