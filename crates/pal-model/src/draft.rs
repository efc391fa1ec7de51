//! Drafts: entries that have not been appended yet. A draft knows its kind and payload; id, parent and time are
//! given when it becomes a line.

use serde::Serialize;

use crate::json::{escape_into, fields};
use crate::{
    Aftermath, Boundary, Content, Decision, Entry, EntryError, EntryId, FORMAT_VERSION, Origin, Prefix,
    Repair, RequestSent, ResponseGot, ResponseId, Session, Text, Timestamp,
};

/// An entry without its place in a log.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The fields behind the envelope, each with a comma before it, `kind` first.
    payload: String,
    /// The id that it shall have, where it has to be a certain one.
    id: Option<EntryId>,
}

impl Draft {
    /// Something said on the user's side; `content` is raw JSON, a string or a list of blocks.
    pub fn user(origin: Origin, content: &str) -> Draft {
        let mut draft = Draft::of_kind("user", content.len() + 64);
        draft.string("origin", origin.name());
        draft.raw("content", content);
        draft
    }

    /// What tools answered, and what the session has to remember of it; `content` is a list of results as raw JSON.
    pub fn results(content: &str, aftermath: &Aftermath) -> Draft {
        let mut draft = Draft::user(Origin::Tool, content);
        // A struct of strings and numbers is always JSON.
        if !aftermath.is_empty()
            && let Ok(aftermath) = serde_json::to_string(aftermath)
        {
            draft.raw("aftermath", &aftermath);
        }
        draft
    }

    /// Something the model said; `content` is raw JSON.
    pub fn assistant(response: Option<&ResponseId>, model: Option<&str>, content: &str) -> Draft {
        let mut draft = Draft::of_kind("assistant", content.len() + 96);
        if let Some(response) = response {
            draft.string("response", response.as_str());
        }
        if let Some(model) = model {
            draft.string("model", model);
        }
        draft.raw("content", content);
        draft
    }

    /// Something the system adds for the model; `content` is raw JSON.
    pub fn attachment(what: &str, content: &str) -> Draft {
        let mut draft = Draft::of_kind("attachment", content.len() + 64);
        draft.string("what", what);
        draft.raw("content", content);
        draft
    }

    /// The same where it hands a file over.
    pub fn attachment_of_file(what: &str, file: &str, content: &str) -> Draft {
        let mut draft = Draft::attachment(what, content);
        draft.string("file", file);
        draft
    }

    /// Something that only the user sees; `content` is raw JSON.
    pub fn shown(content: &str) -> Draft {
        let mut draft = Draft::of_kind("virtual", content.len() + 32);
        draft.raw("content", content);
        draft
    }

    /// A record of another program that means nothing to the view, kept whole; `raw` is JSON.
    pub fn internal(what: &str, raw: &str) -> Draft {
        let mut draft = Draft::of_kind("internal", raw.len() + 64);
        draft.string("what", what);
        draft.raw("raw", raw);
        draft
    }

    /// What stands before the messages.
    pub fn prefix(prefix: &Prefix) -> Draft {
        let mut draft = Draft::of_kind("prefix", prefix.system.len() + prefix.tools.len() + 96);
        draft.raw("system", &prefix.system);
        draft.raw("tools", &prefix.tools);
        if !prefix.context.blocks().is_empty() {
            draft.content("context", &prefix.context);
        }
        if prefix.unseen_tokens > 0 {
            draft.raw("unseen_tokens", &prefix.unseen_tokens.to_string());
        }
        // Our own structs have string keys only, so this does not fail.
        if !prefix.notes.is_empty()
            && let Ok(notes) = serde_json::to_string(&prefix.notes)
        {
            draft.raw("notes", &notes);
        }
        draft
    }

    /// How the session began.
    pub fn session(session: &Session) -> Draft {
        Draft::of_kind("session", 128).with(session)
    }

    /// A request that leaves.
    pub fn request(request: &RequestSent) -> Draft {
        Draft::of_kind("request", 192).with(request)
    }

    /// A response that came back.
    pub fn response(response: &ResponseGot) -> Draft {
        Draft::of_kind("response", 256).with(response)
    }

    /// A decision; its kind names the entry's kind.
    pub fn decision(decision: &Decision) -> Draft {
        Draft { payload: String::with_capacity(256), id: None }.with(decision)
    }

    /// A compaction boundary, its summary included.
    pub fn boundary(boundary: &Boundary) -> Draft {
        let mut draft = Draft::of_kind("boundary", 1024).with(boundary);
        draft.content("summary", &boundary.summary);
        for (name, content) in [("lead", &boundary.lead), ("restored", &boundary.restored)] {
            if !content.blocks().is_empty() {
                draft.content(name, content);
            }
        }
        draft
    }

    /// How a branch continues across damage of the log.
    pub fn repair(repair: &Repair) -> Draft {
        Draft::of_kind("repair", 128).with(repair)
    }

    /// An entry of another log once more: its id and everything it says, unknown fields included. What it says of
    /// places in its own log goes along as it stands.
    pub fn copy_of(entry: &Entry) -> Draft {
        const ENVELOPE: [&str; 6] = ["v", "id", "parent", "parent_offset", "at", "checksum"];
        let mut draft = Draft { payload: String::with_capacity(entry.line.len()), id: Some(entry.id) };
        // A line that became an entry is an object.
        for (name, value) in fields(&entry.line).unwrap_or_default() {
            if !ENVELOPE.contains(&name.as_ref()) {
                draft.raw(&name, value);
            }
        }
        draft
    }

    /// The same with an id of its own: a log that it is appended to makes none.
    pub fn with_id(mut self, id: EntryId) -> Draft {
        self.id = Some(id);
        self
    }

    /// The id that it shall have, where it has to be a certain one.
    pub fn id(&self) -> Option<EntryId> {
        self.id
    }

    /// A field more, for what later programs or other agents add; `value` is raw JSON.
    pub fn extra(mut self, name: &str, value: &str) -> Draft {
        self.raw(name, value);
        self
    }

    /// The line of a log, without its line end. Line ends inside raw JSON, which may only stand between tokens,
    /// become spaces.
    pub fn into_line(
        self,
        id: EntryId,
        parent: Option<EntryId>,
        at: Timestamp,
        parent_offset: Option<u64>,
    ) -> String {
        use std::fmt::Write;
        let mut line = String::with_capacity(self.payload.len() + 192);
        // Writing into a string does not fail.
        let _ = write!(line, r#"{{"v":{FORMAT_VERSION},"id":"{id}","parent":"#);
        let _ = match parent {
            Some(parent) => write!(line, r#""{parent}""#),
            None => write!(line, "null"),
        };
        if let Some(offset) = parent_offset {
            let _ = write!(line, r#","parent_offset":{offset}"#);
        }
        let _ = write!(line, r#","at":"{at}""#);
        if memchr::memchr2(b'\n', b'\r', self.payload.as_bytes()).is_some() {
            line.extend(self.payload.chars().map(|c| if matches!(c, '\n' | '\r') { ' ' } else { c }));
        } else {
            line.push_str(&self.payload);
        }
        line.push('}');
        line
    }

    /// The entry of such a line, for what never stands in a log.
    pub fn into_entry(
        self,
        id: EntryId,
        parent: Option<EntryId>,
        at: Timestamp,
    ) -> Result<Entry, EntryError> {
        Entry::parse(Text::from(self.into_line(id, parent, at, None)))
    }

    fn of_kind(kind: &str, capacity: usize) -> Draft {
        let mut draft = Draft { payload: String::with_capacity(capacity + kind.len()), id: None };
        draft.string("kind", kind);
        draft
    }

    /// Adds all fields of a plain struct.
    fn with(mut self, fields: &impl Serialize) -> Draft {
        // Our own structs have string keys and finite numbers only, so this does not fail.
        if let Ok(object) = serde_json::to_string(fields)
            && let Some(inner) = object.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'))
            && !inner.is_empty()
        {
            self.payload.push(',');
            self.payload.push_str(inner);
        }
        self
    }

    fn raw(&mut self, name: &str, value: &str) {
        self.key(name);
        self.payload.push_str(value);
    }

    fn string(&mut self, name: &str, value: &str) {
        self.key(name);
        escape_into(&mut self.payload, value);
    }

    fn content(&mut self, name: &str, content: &Content) {
        self.key(name);
        self.payload.push('[');
        for (at, block) in content.blocks().iter().enumerate() {
            if at > 0 {
                self.payload.push(',');
            }
            self.payload.push_str(block.raw());
        }
        self.payload.push(']');
    }

    fn key(&mut self, name: &str) {
        self.payload.push(',');
        escape_into(&mut self.payload, name);
        self.payload.push(':');
    }
}
