//! Carrying calls out: what a tool answers, or why not.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use pal_memory::{Author, Head, Kind, Memory, MemoryError, Place, Topic, first_sentence, mask_secrets};
use pal_model::{Timestamp, defuse};
use pal_recall::{Asked, Recall, answer};
use rmcp::model::JsonObject;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::asked::{Read, Search, Write};
use crate::offered;

/// Memories that a search gives unless it asks for another number.
const FOUND: usize = 10;
const FOUND_MAX: usize = 50;
/// Bytes of a memory that is shown.
const SHOWN_MOST: usize = 100_000;
/// Bytes of a memory that comes in.
const TEXT_MOST: usize = 100_000;
/// Characters of a name and of a description that are taken from a text.
const NAME_CHARACTERS: usize = 60;
const DESCRIPTION_CHARACTERS: usize = 120;

/// What is offered.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Where the memories of the project are.
    pub memory: Place,
    /// The folders of the project under our home, whose sessions are recalled.
    pub projects: Vec<PathBuf>,
    /// Whether nothing can be written.
    pub is_read_only: bool,
    /// The version of this program.
    pub version: String,
}

impl Offer {
    /// Carries a call out.
    pub(crate) fn call(&self, client: &str, name: &str, input: JsonObject) -> Result<String, String> {
        match name {
            offered::SEARCH => self.search(&input_of(input)?),
            offered::READ => self.read(&input_of(input)?),
            offered::WRITE if self.is_read_only => Err(String::from("nothing can be written here")),
            offered::WRITE => self.write(client, input_of(input)?),
            offered::RECALL => self.recall(&input_of(input)?),
            _ => Err(format!("there is no tool {}", pal_model::one_line(name, 60))),
        }
    }

    fn search(&self, asked: &Search) -> Result<String, String> {
        let most = asked.limit.unwrap_or(FOUND).clamp(1, FOUND_MAX);
        let Some(mut memory) = self.existing()? else { return Ok(nothing_yet()) };
        let found = memory.search(&asked.query, most, now()).map_err(words)?;
        if found.is_empty() {
            let count = memory.list().map_err(words)?.len();
            return Ok(format!("None of the {count} memories fits. Try other words."));
        }
        let line = |listed: &pal_memory::Listed| {
            let changed: String = listed.changed.to_string().chars().take(10).collect();
            let head = &listed.head;
            format!("- {} ({}, {changed}): {}", listed.slug, head.kind.name(), head.description)
        };
        let lines: Vec<String> = found.iter().map(|found| line(&found.memory)).collect();
        Ok(defuse(&lines.join("\n")).into_owned())
    }

    fn read(&self, asked: &Read) -> Result<String, String> {
        let memory = self.existing()?.ok_or_else(nothing_yet)?;
        let slug = memory.find(&asked.name).map_err(words)?;
        let file = memory.read_file(&slug).map_err(words)?;
        // Who cannot write leaves no trace, either.
        if !self.is_read_only {
            memory.note_used(&slug, now(), None).map_err(words)?;
        }
        let end = file.floor_char_boundary(SHOWN_MOST.min(file.len()));
        let more = match file.len() - end {
            0 => String::new(),
            rest => format!("\n[{rest} more bytes: {}]", memory.path().join(format!("{slug}.md")).display()),
        };
        Ok(format!("{}{more}", defuse(&file[..end])))
    }

    fn write(&self, client: &str, asked: Write) -> Result<String, String> {
        if asked.text.trim().is_empty() {
            return Err(String::from("there is nothing to remember: the text is empty"));
        }
        if asked.text.len() > TEXT_MOST {
            return Err(format!(
                "a memory has at most {TEXT_MOST} bytes; say what matters, or write several"
            ));
        }
        let by = Author::Named(format!("mcp {client}"));
        let mut memory = self.memory.open(now()).map_err(words)?;
        let (slug, head) = match &asked.replaces {
            Some(name) => {
                let slug = memory.find(name).map_err(words)?;
                let head = memory.read(&slug).map_err(words)?.head;
                (slug, head)
            }
            None => {
                let head = head_of(&asked.text, by.clone());
                let name = asked.name.as_deref().map(|name| mask_secrets(name).text.into_owned());
                (memory.free_slug(name.as_deref().unwrap_or(&head.name)), head)
            }
        };
        let given = |given: Option<String>, known: String| {
            given.filter(|text| !text.trim().is_empty()).unwrap_or(known)
        };
        let head = Head {
            name: given(asked.name, head.name),
            description: given(asked.description, head.description),
            kind: asked.kind.unwrap_or(head.kind),
            origin: by.clone(),
            ..head
        };
        let topic = Topic::new(head, format!("{}\n", asked.text.trim_end()));
        let written = memory.write(&slug, &topic, &by, now()).map_err(words)?;
        let masked = match written.masked.len() {
            0 => String::new(),
            count => format!(" Not written, because they look like secrets: {count}."),
        };
        Ok(format!("Remembered as {} (change {}).{masked}", written.slug, written.point))
    }

    fn recall(&self, asked: &Asked) -> Result<String, String> {
        let mut recalls: Vec<Recall> =
            self.projects.iter().map(|folder| Recall::of_project(folder)).collect();
        let text = answer(&mut recalls, None, asked, now(), &mut |_| true)?;
        Ok(defuse(&text).into_owned())
    }

    fn existing(&self) -> Result<Option<Memory>, String> {
        self.memory.open_existing(now()).map_err(words)
    }
}

/// What is said of a text that comes without more.
fn head_of(text: &str, origin: Author) -> Head {
    // What is taken out of the text must not carry a secret into the name of a file.
    let clean = mask_secrets(text).text;
    Head {
        name: first_sentence(&clean, NAME_CHARACTERS),
        description: first_sentence(&clean, DESCRIPTION_CHARACTERS),
        kind: Kind::Project,
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
fn words(error: MemoryError) -> String {
    error.to_string()
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_milliseconds(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
