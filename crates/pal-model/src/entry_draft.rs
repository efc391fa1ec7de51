//! Entry drafts: entries before they are appended. A draft holds kind and payload; id, parent and time are assigned
//! when it becomes a log line.

use serde::Serialize;

use crate::log_entry::FORMAT_VERSION;
use crate::raw_json::{escape_into, object_fields};
use crate::{
    Boundary, Content, Decision, EntryError, EntryId, LogEntry, LogRepair, MessageOrigin, PromptPrefix,
    RequestRecord, ResponseId, ResponseRecord, SessionStart, SharedText, Timestamp, ToolEffects,
};

/// An entry that has no position in a log yet.
#[derive(Clone, Debug)]
pub struct EntryDraft {
    /// Fields after the envelope, each preceded by a comma, `kind` first.
    payload: String,
    /// Required id; none lets the log assign one.
    id: Option<EntryId>,
}

impl EntryDraft {
    /// Creates a user message; `content` is raw JSON, a string or a list of blocks.
    pub fn user(origin: MessageOrigin, content: &str) -> EntryDraft {
        let mut draft = EntryDraft::with_kind("user", content.len() + 64);
        draft.string("origin", origin.name());
        draft.raw("content", content);
        draft
    }

    /// Creates a message of tool results with their effects; `content` is a list of `tool_result` blocks as raw JSON.
    pub fn tool_results(content: &str, aftermath: &ToolEffects) -> EntryDraft {
        let mut draft = EntryDraft::user(MessageOrigin::Tool, content);
        // A struct of strings and numbers is always JSON.
        if !aftermath.is_empty()
            && let Ok(aftermath) = serde_json::to_string(aftermath)
        {
            draft.raw("aftermath", &aftermath);
        }
        draft
    }

    /// Creates an assistant message; `content` is raw JSON.
    pub fn assistant(response: Option<&ResponseId>, model: Option<&str>, content: &str) -> EntryDraft {
        let mut draft = EntryDraft::with_kind("assistant", content.len() + 96);
        if let Some(response) = response {
            draft.string("response", response.as_str());
        }
        if let Some(model) = model {
            draft.string("model", model);
        }
        draft.raw("content", content);
        draft
    }

    /// Creates an attachment of the category `what`; `content` is raw JSON.
    pub fn attachment(what: &str, content: &str) -> EntryDraft {
        let mut draft = EntryDraft::with_kind("attachment", content.len() + 64);
        draft.string("what", what);
        draft.raw("content", content);
        draft
    }

    /// Creates an attachment that records the path of the attached file.
    pub fn file_attachment(what: &str, file: &str, content: &str) -> EntryDraft {
        let mut draft = EntryDraft::attachment(what, content);
        draft.string("file", file);
        draft
    }

    /// Creates an entry that only the user sees (`virtual`); `content` is raw JSON.
    pub fn user_only(content: &str) -> EntryDraft {
        let mut draft = EntryDraft::with_kind("virtual", content.len() + 32);
        draft.raw("content", content);
        draft
    }

    /// Creates an entry for a record of another program that has no meaning in the view; `raw` is JSON.
    pub fn internal(what: &str, raw: &str) -> EntryDraft {
        let mut draft = EntryDraft::with_kind("internal", raw.len() + 64);
        draft.string("what", what);
        draft.raw("raw", raw);
        draft
    }

    /// Creates a prefix entry.
    pub fn prefix(prefix: &PromptPrefix) -> EntryDraft {
        let mut draft = EntryDraft::with_kind("prefix", prefix.system.len() + prefix.tools.len() + 96);
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

    /// Creates the first entry of a session.
    pub fn session(session: &SessionStart) -> EntryDraft {
        EntryDraft::with_kind("session", 128).with_fields(session)
    }

    /// Creates a request record.
    pub fn request(request: &RequestRecord) -> EntryDraft {
        EntryDraft::with_kind("request", 192).with_fields(request)
    }

    /// Creates a response record.
    pub fn response(response: &ResponseRecord) -> EntryDraft {
        EntryDraft::with_kind("response", 256).with_fields(response)
    }

    /// Creates a decision; its kind is the entry's kind.
    pub fn decision(decision: &Decision) -> EntryDraft {
        EntryDraft { payload: String::with_capacity(256), id: None }.with_fields(decision)
    }

    /// Creates a compaction boundary, including its summary.
    pub fn boundary(boundary: &Boundary) -> EntryDraft {
        let mut draft = EntryDraft::with_kind("boundary", 1024).with_fields(boundary);
        draft.content("summary", &boundary.summary);
        for (name, content) in [("lead", &boundary.lead), ("restored", &boundary.restored)] {
            if !content.blocks().is_empty() {
                draft.content(name, content);
            }
        }
        draft
    }

    /// Creates a log repair.
    pub fn repair(repair: &LogRepair) -> EntryDraft {
        EntryDraft::with_kind("repair", 128).with_fields(repair)
    }

    /// Copies an entry of another log: its id and all payload fields, unknown ones included. Offsets into the other
    /// log are copied unchanged.
    pub fn copy_of(entry: &LogEntry) -> EntryDraft {
        const ENVELOPE: [&str; 6] = ["v", "id", "parent", "parent_offset", "at", "checksum"];
        let mut draft = EntryDraft { payload: String::with_capacity(entry.line.len()), id: Some(entry.id) };
        // A line that became an entry is an object.
        for (name, value) in object_fields(&entry.line).unwrap_or_default() {
            if !ENVELOPE.contains(&name.as_ref()) {
                draft.raw(&name, value);
            }
        }
        draft
    }

    /// Sets the id, so that the log does not assign one.
    pub fn with_id(mut self, id: EntryId) -> EntryDraft {
        self.id = Some(id);
        self
    }

    /// Returns the required id, if one was set.
    pub fn id(&self) -> Option<EntryId> {
        self.id
    }

    /// Adds a field that this program does not define; `value` is raw JSON.
    pub fn with_field(mut self, name: &str, value: &str) -> EntryDraft {
        self.raw(name, value);
        self
    }

    /// Returns the log line without its line ending. Line breaks between JSON tokens of the payload become spaces.
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

    /// Returns the parsed entry, for entries that are never written to a log.
    pub fn into_entry(
        self,
        id: EntryId,
        parent: Option<EntryId>,
        at: Timestamp,
    ) -> Result<LogEntry, EntryError> {
        LogEntry::parse(SharedText::from(self.into_line(id, parent, at, None)))
    }

    fn with_kind(kind: &str, capacity: usize) -> EntryDraft {
        let mut draft = EntryDraft { payload: String::with_capacity(capacity + kind.len()), id: None };
        draft.string("kind", kind);
        draft
    }

    /// Adds all fields of a struct.
    fn with_fields(mut self, fields: &impl Serialize) -> EntryDraft {
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
