//! Log entries: one JSON object per line of a session's log.

use crate::raw_json::{JsonField, object_fields, unescape};
use crate::{
    AssistantMessage, Attachment, Boundary, Content, Decision, DecisionKind, EntryId, LogRepair,
    MessageOrigin, PromptPrefix, RequestRecord, ResponseRecord, SessionStart, SharedText, Timestamp,
    UserMessage,
};
use smol_str::SmolStr;

/// Log format version written to the field `v`; newer versions are refused.
pub(crate) const FORMAT_VERSION: u64 = 1;

/// One entry of a log: the typed body and the raw line that it was read from.
#[derive(Clone, Debug)]
pub struct LogEntry {
    /// Unique within the log.
    pub id: EntryId,
    /// Preceding entry of the branch; none for the first.
    pub parent: Option<EntryId>,
    /// Byte offset of the parent's line; present only if the parent is not the previous line.
    pub parent_offset: Option<u64>,
    /// Time of the append.
    pub at: Timestamp,
    /// Typed payload.
    pub body: EntryBody,
    /// Raw line of the log without its line ending, unknown fields included.
    pub line: SharedText,
}

/// Payload of an entry, by kind.
#[derive(Clone, Debug)]
pub enum EntryBody {
    /// First entry of a session.
    Session(SessionStart),
    /// Message of the user's side: prompts, tool results, agent notices.
    User(UserMessage),
    /// Output of the model.
    Assistant(AssistantMessage),
    /// Content that the program adds for the model.
    Attachment(Attachment),
    /// System prompt, tools and context that precede the messages.
    Prefix(PromptPrefix),
    /// Record of a request sent to the provider.
    Request(RequestRecord),
    /// Record of a response from the provider.
    Response(ResponseRecord),
    /// Change of what the model sees.
    Decision(Decision),
    /// Compaction boundary: the view restarts here with a summary.
    Boundary(Box<Boundary>),
    /// Shown to the user and never sent to the model.
    Virtual,
    /// Record of another program, kept for the round trip; never sent.
    Internal,
    /// Links that continue the branch across a damaged range of the log.
    Repair(Box<LogRepair>),
    /// Unknown kind, or a malformed payload of a known kind.
    Unknown,
}

/// Kind of an entry, by its name in the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EntryKind(pub SmolStr);

/// Error of reading a log line as an entry.
#[derive(Debug, thiserror::Error)]
pub enum EntryError {
    /// The line is not a JSON object.
    #[error("not a JSON object: {0}")]
    Json(#[from] crate::raw_json::JsonError),
    /// A field of the envelope is missing or malformed.
    #[error("field `{0}` is missing or malformed")]
    Field(&'static str),
    /// The line was written in a newer log format.
    #[error("format version {0} is newer than this program knows (it knows {FORMAT_VERSION}): update pal")]
    Version(u64),
}

impl LogEntry {
    /// Parses one line of a log. A malformed payload yields [`EntryBody::Unknown`]; only the envelope can fail.
    pub fn parse(line: SharedText) -> Result<LogEntry, EntryError> {
        let fields = object_fields(&line)?;
        let envelope = EntryEnvelope::read(&fields)?;
        let body = envelope.body(&fields, &line);
        Ok(LogEntry {
            id: envelope.id,
            parent: envelope.parent,
            parent_offset: envelope.parent_offset,
            at: envelope.at,
            body,
            line,
        })
    }

    /// Returns the `kind` field of the raw line; empty if it is missing.
    pub fn kind(&self) -> EntryKind {
        let kind = object_fields(&self.line).ok().and_then(|fields| {
            fields
                .iter()
                .find(|(key, _)| key == "kind")
                .and_then(|(_, value)| unescape(value))
                .map(SmolStr::new)
        });
        EntryKind(kind.unwrap_or_default())
    }

    /// Replaces a body that hides other entries from the view by [`EntryBody::Unknown`]; other bodies stay. For entries
    /// whose line fails its checksum: a corrupt entry must not hide intact ones.
    pub fn drop_hiding_body(&mut self) {
        use DecisionKind::{CacheEdit, Clear, Fold, ProviderClear, Snip, Spill, Strip};
        let hides = match &self.body {
            EntryBody::Boundary(_) | EntryBody::Repair(_) => true,
            EntryBody::Decision(decision) => matches!(
                decision.kind,
                Spill { .. }
                    | Snip { .. }
                    | Clear { .. }
                    | Fold { .. }
                    | Strip { .. }
                    | CacheEdit { .. }
                    | ProviderClear { .. }
            ),
            _ => false,
        };
        if hides {
            self.body = EntryBody::Unknown;
        }
    }

    /// Returns the decision kind if the entry is a decision.
    pub fn decision(&self) -> Option<&DecisionKind> {
        match &self.body {
            EntryBody::Decision(decision) => Some(&decision.kind),
            _ => None,
        }
    }
}

/// Fields common to all entries.
struct EntryEnvelope {
    id: EntryId,
    parent: Option<EntryId>,
    parent_offset: Option<u64>,
    at: Timestamp,
    kind: SmolStr,
}

impl EntryEnvelope {
    fn read(fields: &[JsonField<'_>]) -> Result<EntryEnvelope, EntryError> {
        let find = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, value)| *value);
        let version: u64 = find("v").and_then(|v| v.parse().ok()).ok_or(EntryError::Field("v"))?;
        if version > FORMAT_VERSION {
            return Err(EntryError::Version(version));
        }
        let id = find("id").and_then(unescape).and_then(|id| id.parse().ok());
        let parent = match find("parent") {
            None | Some("null") => None,
            Some(parent) => {
                Some(unescape(parent).and_then(|id| id.parse().ok()).ok_or(EntryError::Field("parent"))?)
            }
        };
        Ok(EntryEnvelope {
            id: id.ok_or(EntryError::Field("id"))?,
            parent,
            parent_offset: find("parent_offset").and_then(|offset| offset.parse().ok()),
            at: find("at")
                .and_then(unescape)
                .and_then(|at| at.parse().ok())
                .ok_or(EntryError::Field("at"))?,
            kind: find("kind").and_then(unescape).map(SmolStr::new).ok_or(EntryError::Field("kind"))?,
        })
    }

    fn body(&self, fields: &[JsonField<'_>], line: &SharedText) -> EntryBody {
        let find = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, value)| *value);
        let content = |name| find(name).map_or(Content::default(), |raw| Content::parse(&line.slice_of(raw)));
        let string = |name: &str| find(name).and_then(unescape);
        let array = |name| line.slice_of(find(name).filter(|raw| raw.starts_with('[')).unwrap_or("[]"));
        match self.kind.as_str() {
            "user" => EntryBody::User(UserMessage {
                origin: string("origin")
                    .map_or(MessageOrigin::Person, |name| MessageOrigin::from_name(&name)),
                content: content("content"),
                tool_effects: find("aftermath")
                    .and_then(|raw| serde_json::from_str(raw).ok())
                    .unwrap_or_default(),
            }),
            "assistant" => EntryBody::Assistant(AssistantMessage {
                response: string("response").map(|id| id.as_ref().into()),
                model: string("model").map(SmolStr::new),
                content: content("content"),
            }),
            "attachment" => EntryBody::Attachment(Attachment {
                what: string("what").map(SmolStr::new).unwrap_or_default(),
                content: content("content"),
                file: string("file").map(std::borrow::Cow::into_owned),
            }),
            "prefix" => EntryBody::Prefix(PromptPrefix {
                system: array("system"),
                tools: array("tools"),
                context: content("context"),
                unseen_tokens: find("unseen_tokens").and_then(|count| count.parse().ok()).unwrap_or(0),
                notes: find("notes").and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default(),
            }),
            "boundary" => match serde_json::from_str::<Boundary>(line) {
                Ok(boundary) => EntryBody::Boundary(Box::new(Boundary {
                    summary: content("summary"),
                    lead: content("lead"),
                    restored: content("restored"),
                    ..boundary
                })),
                Err(_) => EntryBody::Unknown,
            },
            "session" => serde_json::from_str(line).map_or(EntryBody::Unknown, EntryBody::Session),
            "request" => serde_json::from_str(line).map_or(EntryBody::Unknown, EntryBody::Request),
            "response" => serde_json::from_str(line).map_or(EntryBody::Unknown, EntryBody::Response),
            "virtual" => EntryBody::Virtual,
            "internal" => EntryBody::Internal,
            "repair" => serde_json::from_str(line)
                .map_or(EntryBody::Unknown, |repair: LogRepair| EntryBody::Repair(Box::new(repair))),
            kind if DecisionKind::NAMES.contains(&kind) => {
                serde_json::from_str(line).map_or(EntryBody::Unknown, EntryBody::Decision)
            }
            _ => EntryBody::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockType, DecisionCost, EntryDraft, IdSource};

    fn parse(payload: &str) -> LogEntry {
        let line = format!(
            r#"{{"v":1,"id":"01890000-0000-7000-8000-000000000001","parent":null,"at":"2026-11-15T09:00:00.000Z",{payload}}}"#
        );
        LogEntry::parse(SharedText::from(line)).unwrap()
    }

    #[test]
    fn unknown_kinds_and_fields_are_kept() {
        let entry = parse(r#""kind":"hologram","beam":[1e2, {"a" : "\/"}]"#);
        assert!(matches!(entry.body, EntryBody::Unknown));
        assert_eq!(entry.kind().0, "hologram");
        assert!(entry.line.contains(r#"[1e2, {"a" : "\/"}]"#));
        let entry = parse(r#""kind":"clear","tool_use_ids":["a"],"text":"gone","mood":7"#);
        assert!(matches!(entry.decision(), Some(DecisionKind::Clear { .. })));
    }

    #[test]
    fn malformed_payload_parses_as_unknown() {
        for payload in
            [r#""kind":"clear""#, r#""kind":"request","source":7"#, r#""kind":"boundary","snapshot":7"#]
        {
            assert!(matches!(parse(payload).body, EntryBody::Unknown), "{payload}");
        }
        assert!(
            matches!(parse(r#""kind":"user""#).body, EntryBody::User(user) if user.content.blocks().is_empty())
        );
    }

    #[test]
    fn only_a_body_that_hides_others_is_disarmed() {
        for payload in [
            r#""kind":"clear","tool_use_ids":["a"],"text":"gone""#,
            r#""kind":"snip","entries":["01890000-0000-7000-8000-000000000002"]"#,
            r#""kind":"boundary","summary":"all of it","snapshot":{}"#,
            r#""kind":"repair","crlf_before":7"#,
        ] {
            let mut entry = parse(payload);
            assert!(!matches!(entry.body, EntryBody::Unknown), "{payload}");
            entry.drop_hiding_body();
            assert!(matches!(entry.body, EntryBody::Unknown), "{payload}");
        }
        let undo = r#""kind":"undo","target":"01890000-0000-7000-8000-000000000002""#;
        for payload in [undo, r#""kind":"pin","text":"a""#, r#""kind":"user","content":"a""#] {
            let mut entry = parse(payload);
            entry.drop_hiding_body();
            assert!(!matches!(entry.body, EntryBody::Unknown), "{payload}");
        }
    }

    #[test]
    fn newer_format_version_is_refused() {
        let line = r#"{"v":2,"id":"01890000-0000-7000-8000-000000000001","at":"2026-11-15T09:00:00.000Z","kind":"user"}"#;
        assert!(matches!(LogEntry::parse(SharedText::from(line)), Err(EntryError::Version(2))));
        assert!(matches!(LogEntry::parse(SharedText::from("{}")), Err(EntryError::Field("v"))));
        assert!(matches!(LogEntry::parse(SharedText::from("[")), Err(EntryError::Json(_))));
    }

    #[test]
    fn copy_keeps_id_and_payload_but_not_the_envelope() {
        let original =
            parse(r#""kind":"user","origin":"person","content":"a \u00e9","mood":[1e2, {"x" : 1}]"#);
        let sealed = parse(r#""kind":"user","content":"a","checksum":"0123456789abcdef""#);
        let copy = EntryDraft::copy_of(&sealed).into_line(sealed.id, None, sealed.at, None);
        assert!(!copy.contains("checksum"), "the checksum of another line: {copy}");
        let draft = EntryDraft::copy_of(&original);
        assert_eq!(draft.id(), Some(original.id));
        let at: Timestamp = "2026-11-16T10:00:00.000Z".parse().unwrap();
        let parent = IdSource::seeded(3).next_id(at);
        let copy = LogEntry::parse(SharedText::from(draft.into_line(original.id, Some(parent), at, Some(9))))
            .unwrap();
        assert_eq!(
            (copy.id, copy.parent, copy.parent_offset, copy.at),
            (original.id, Some(parent), Some(9), at)
        );
        let payload = |entry: &LogEntry| entry.line[entry.line.find(r#""kind""#).unwrap()..].to_owned();
        assert_eq!(payload(&copy), payload(&original), "byte for byte");
        assert_eq!(EntryDraft::user_only("1").id(), None);
        assert_eq!(EntryDraft::user_only("1").with_id(parent).id(), Some(parent));
    }

    #[test]
    fn drafts_round_trip() {
        let at: Timestamp = "2026-11-15T09:00:00.123Z".parse().unwrap();
        let mut ids = IdSource::seeded(1);
        let (first, second) = (ids.next_id(at), ids.next_id(at));
        let kinds = [
            DecisionKind::Clear { tool_use_ids: vec!["toolu_1".into()], text: "gone".into() },
            DecisionKind::Fold { head: first, tail: second, text: "short".into() },
            DecisionKind::Undo { target: first },
            DecisionKind::Pin { text: "never \"forget\"".into() },
        ];
        for kind in kinds {
            let cost = DecisionCost { tokens_freed: 10, tokens_rewritten: 3, thinking_dropped: 1 };
            let decision = Decision { kind, reason: "because".into(), cost };
            let line = EntryDraft::decision(&decision).into_line(second, Some(first), at, Some(77));
            let entry = LogEntry::parse(SharedText::from(line)).unwrap();
            assert_eq!(
                (entry.id, entry.parent, entry.parent_offset, entry.at),
                (second, Some(first), Some(77), at)
            );
            assert!(matches!(&entry.body, EntryBody::Decision(read) if *read == decision));
        }
        let draft = EntryDraft::user(
            MessageOrigin::Tool,
            r#"[{"type":"tool_result","tool_use_id":"toolu_1","content":"ok"}]"#,
        );
        let entry = LogEntry::parse(SharedText::from(draft.into_line(first, None, at, None))).unwrap();
        let EntryBody::User(user) = entry.body else { panic!() };
        assert_eq!(
            (user.origin, user.content.blocks()[0].kind()),
            (MessageOrigin::Tool, BlockType::ToolResult)
        );
    }
}
