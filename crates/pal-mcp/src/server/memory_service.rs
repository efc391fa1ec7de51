//! Executes tool calls; the error is a text for the client.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use pal_memory::{
    Author, MemoryError, MemoryFile, MemoryHeader, MemoryKind, MemoryLocation, MemoryStore, first_sentence,
    mask_secrets,
};
use pal_model::{Timestamp, escape_tags};
use pal_recall::{Recall, RecallRequest, answer_request};
use rmcp::model::JsonObject;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::server::tool_definitions;
use crate::server::tool_inputs::{MemoryReadInput, MemorySearchInput, MemoryWriteInput};

/// Default and maximum number of memories that a search returns.
const HITS_DEFAULT: usize = 10;
const HITS_MAX: usize = 50;
/// Maximum bytes of a memory that are returned.
const READ_BYTES_MAX: usize = 100_000;
/// Maximum bytes of a new memory.
const TEXT_BYTES_MAX: usize = 100_000;
/// Maximum characters of a name and of a description derived from the text.
const NAME_CHARACTERS: usize = 60;
const DESCRIPTION_CHARACTERS: usize = 120;

/// Memory and sessions of a project, offered to other agents.
#[derive(Clone, Debug)]
pub struct MemoryService {
    /// Memory of the project.
    pub memory: MemoryLocation,
    /// Directories of the project under the home of pal, whose sessions are searched.
    pub projects: Vec<PathBuf>,
    /// Refuse all writes.
    pub is_read_only: bool,
    /// Version of this program.
    pub version: String,
}

impl MemoryService {
    /// Executes a tool call.
    pub(crate) fn call(&self, client: &str, name: &str, input: JsonObject) -> Result<String, String> {
        match name {
            tool_definitions::SEARCH => self.search(&input_of(input)?),
            tool_definitions::READ => self.read(&input_of(input)?),
            tool_definitions::WRITE if self.is_read_only => Err(String::from("nothing can be written here")),
            tool_definitions::WRITE => self.write(client, input_of(input)?),
            tool_definitions::RECALL => self.recall(&input_of(input)?),
            _ => Err(format!("there is no tool {}", pal_model::quote_name(name, 60))),
        }
    }

    fn search(&self, asked: &MemorySearchInput) -> Result<String, String> {
        let most = asked.limit.unwrap_or(HITS_DEFAULT).clamp(1, HITS_MAX);
        let Some(mut memory) = self.existing()? else { return Ok(nothing_yet()) };
        let found = memory.search(&asked.query, most, now()).map_err(error_text)?;
        if found.is_empty() {
            let count = memory.list().map_err(error_text)?.len();
            return Ok(format!("None of the {count} memories fits. Try other words."));
        }
        let line = |listed: &pal_memory::MemorySummary| {
            let changed: String = listed.changed.to_string().chars().take(10).collect();
            let head = &listed.head;
            format!("- {} ({}, {changed}): {}", listed.slug, head.kind.name(), head.description)
        };
        let lines: Vec<String> = found.iter().map(|found| line(&found.memory)).collect();
        Ok(escape_tags(&lines.join("\n")).into_owned())
    }

    fn read(&self, asked: &MemoryReadInput) -> Result<String, String> {
        let memory = self.existing()?.ok_or_else(nothing_yet)?;
        let slug = memory.find(&asked.name).map_err(error_text)?;
        let file = memory.read_file(&slug).map_err(error_text)?;
        // Read-only access leaves no trace.
        if !self.is_read_only {
            memory.note_used(&slug, now(), None).map_err(error_text)?;
        }
        let end = file.floor_char_boundary(READ_BYTES_MAX.min(file.len()));
        let more = match file.len() - end {
            0 => String::new(),
            rest => format!("\n[{rest} more bytes: {}]", memory.path().join(format!("{slug}.md")).display()),
        };
        Ok(format!("{}{more}", escape_tags(&file[..end])))
    }

    fn write(&self, client: &str, asked: MemoryWriteInput) -> Result<String, String> {
        if asked.text.trim().is_empty() {
            return Err(String::from("there is nothing to remember: the text is empty"));
        }
        if asked.text.len() > TEXT_BYTES_MAX {
            return Err(format!(
                "a memory has at most {TEXT_BYTES_MAX} bytes; say what matters, or write several"
            ));
        }
        let by = Author::Named(format!("mcp {client}"));
        let mut memory = self.memory.open(now()).map_err(error_text)?;
        let (slug, head) = match &asked.replaces {
            Some(name) => {
                let slug = memory.find(name).map_err(error_text)?;
                let head = memory.read(&slug).map_err(error_text)?.head;
                (slug, head)
            }
            None => {
                let head = head_of(&asked.text, by.clone());
                let name = asked.name.as_deref().map(|name| mask_secrets(name).text.into_owned());
                (memory.unused_slug(name.as_deref().unwrap_or(&head.name)), head)
            }
        };
        let given = |given: Option<String>, known: String| {
            given.filter(|text| !text.trim().is_empty()).unwrap_or(known)
        };
        let head = MemoryHeader {
            name: given(asked.name, head.name),
            description: given(asked.description, head.description),
            kind: asked.kind.unwrap_or(head.kind),
            origin: by.clone(),
            ..head
        };
        let topic = MemoryFile::new(head, format!("{}\n", asked.text.trim_end()));
        let written = memory.write(&slug, &topic, &by, now()).map_err(error_text)?;
        let masked = match written.masked.len() {
            0 => String::new(),
            count => format!(" Not written, because they look like secrets: {count}."),
        };
        Ok(format!("Remembered as {} (change {}).{masked}", written.slug, written.point))
    }

    fn recall(&self, asked: &RecallRequest) -> Result<String, String> {
        let mut recalls: Vec<Recall> =
            self.projects.iter().map(|folder| Recall::of_project(folder)).collect();
        let text = answer_request(&mut recalls, None, asked, now(), &mut |_| true)?;
        Ok(escape_tags(&text).into_owned())
    }

    fn existing(&self) -> Result<Option<MemoryStore>, String> {
        self.memory.open_existing(now()).map_err(error_text)
    }
}

/// Front matter derived from a text.
fn head_of(text: &str, origin: Author) -> MemoryHeader {
    // Keep secrets out of the file name.
    let clean = mask_secrets(text).text;
    MemoryHeader {
        name: first_sentence(&clean, NAME_CHARACTERS),
        description: first_sentence(&clean, DESCRIPTION_CHARACTERS),
        kind: MemoryKind::Project,
        modified: None,
        origin,
    }
}

fn input_of<T: DeserializeOwned>(input: JsonObject) -> Result<T, String> {
    serde_json::from_value(Value::Object(input)).map_err(|error| format!("the input does not fit: {error}"))
}

fn nothing_yet() -> String {
    String::from("Nothing is remembered about this project yet.")
}

#[allow(clippy::needless_pass_by_value)]
fn error_text(error: MemoryError) -> String {
    error.to_string()
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_milliseconds(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
