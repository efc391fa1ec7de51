//! Entries: the records of a log, one JSON object a line.

use crate::json::{Field, fields, unescape};
use crate::{
    Assistant, Attachment, Boundary, Content, Decision, DecisionKind, EntryId, Origin, Prefix, Repair,
    RequestSent, ResponseGot, Session, Text, Timestamp, User,
};
use smol_str::SmolStr;

/// The version that this program writes into `v`.
pub const FORMAT_VERSION: u64 = 1;

/// One record of a log.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its id.
    pub id: EntryId,
    /// The entry that it follows; none for the first.
    pub parent: Option<EntryId>,
    /// Where the parent's line starts, given when the parent is not the previous line.
    pub parent_offset: Option<u64>,
    /// When it was appended.
    pub at: Timestamp,
    /// What it says.
    pub body: Body,
    /// The line as it stands in the log, without its line end. Unknown fields are in here.
    pub line: Text,
}

/// What an entry says.
#[derive(Clone, Debug)]
pub enum Body {
    /// How the session began.
    Session(Session),
    /// Said on the user's side.
    User(User),
    /// Said by the model.
    Assistant(Assistant),
    /// Added by the system for the model.
    Attachment(Attachment),
    /// What stands before the messages.
    Prefix(Prefix),
    /// A request left.
    Request(RequestSent),
    /// A response came back.
    Response(ResponseGot),
    /// What the model sees was changed.
    Decision(Decision),
    /// The view begins anew here.
    Boundary(Box<Boundary>),
    /// Shown to the user only.
    Virtual,
    /// Kept from elsewhere; never leaves.
    Internal,
    /// How the branch continues across damage of the log.
    Repair(Box<Repair>),
    /// A kind, or a form of a known kind, that this program does not know.
    Unknown,
}

/// The kind of an entry by its name in the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kind(pub SmolStr);

/// A line that is no entry.
#[derive(Debug, thiserror::Error)]
pub enum EntryError {
    /// Not a JSON object.
    #[error("not a JSON object: {0}")]
    Json(#[from] crate::json::JsonError),
    /// A field of the envelope is missing or malformed.
    #[error("field `{0}` is missing or malformed")]
    Field(&'static str),
    /// Written by a program with a newer format.
    #[error("format version {0} is newer than this program knows (it knows {FORMAT_VERSION}): update pal")]
    Version(u64),
}

impl Entry {
    /// Reads one line of a log.
    pub fn parse(line: Text) -> Result<Entry, EntryError> {
        let fields = fields(&line)?;
        let envelope = Envelope::read(&fields)?;
        let body = envelope.body(&fields, &line);
        Ok(Entry {
            id: envelope.id,
            parent: envelope.parent,
            parent_offset: envelope.parent_offset,
            at: envelope.at,
            body,
            line,
        })
    }

    /// The kind's name as it stands in the log.
    pub fn kind(&self) -> Kind {
        let kind = fields(&self.line).ok().and_then(|fields| {
            fields
                .iter()
                .find(|(key, _)| key == "kind")
                .and_then(|(_, value)| unescape(value))
                .map(SmolStr::new)
        });
        Kind(kind.unwrap_or_default())
    }

    /// Drops the body if it hides other entries from the view, for an entry whose line was altered: what it says may be
    /// wrong, and nothing that is intact may disappear because of it. Any other body stays.
    pub fn disarm(&mut self) {
        use DecisionKind::{CacheEdit, Clear, Fold, ProviderClear, Snip, Spill, Strip};
        let hides = match &self.body {
            Body::Boundary(_) | Body::Repair(_) => true,
            Body::Decision(decision) => matches!(
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
            self.body = Body::Unknown;
        }
    }

    /// The entry's decision, if it is one.
    pub fn decision(&self) -> Option<&DecisionKind> {
        match &self.body {
            Body::Decision(decision) => Some(&decision.kind),
            _ => None,
        }
    }
}

/// The fields that every entry has.
struct Envelope {
    id: EntryId,
    parent: Option<EntryId>,
    parent_offset: Option<u64>,
    at: Timestamp,
    kind: SmolStr,
}

impl Envelope {
    fn read(fields: &[Field<'_>]) -> Result<Envelope, EntryError> {
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
        Ok(Envelope {
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

    fn body(&self, fields: &[Field<'_>], line: &Text) -> Body {
        let find = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, value)| *value);
        let content = |name| find(name).map_or(Content::default(), |raw| Content::parse(&line.slice_of(raw)));
        let string = |name: &str| find(name).and_then(unescape);
        let array = |name| line.slice_of(find(name).filter(|raw| raw.starts_with('[')).unwrap_or("[]"));
        match self.kind.as_str() {
            "user" => Body::User(User {
                origin: string("origin").map_or(Origin::Person, |name| Origin::from_name(&name)),
                content: content("content"),
                aftermath: find("aftermath")
                    .and_then(|raw| serde_json::from_str(raw).ok())
                    .unwrap_or_default(),
            }),
            "assistant" => Body::Assistant(Assistant {
                response: string("response").map(|id| id.as_ref().into()),
                model: string("model").map(SmolStr::new),
                content: content("content"),
            }),
            "attachment" => Body::Attachment(Attachment {
                what: string("what").map(SmolStr::new).unwrap_or_default(),
                content: content("content"),
                file: string("file").map(std::borrow::Cow::into_owned),
            }),
            "prefix" => Body::Prefix(Prefix {
                system: array("system"),
                tools: array("tools"),
                context: content("context"),
                unseen_tokens: find("unseen_tokens").and_then(|count| count.parse().ok()).unwrap_or(0),
                notes: find("notes").and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default(),
            }),
            "boundary" => match serde_json::from_str::<Boundary>(line) {
                Ok(boundary) => Body::Boundary(Box::new(Boundary {
                    summary: content("summary"),
                    lead: content("lead"),
                    restored: content("restored"),
                    ..boundary
                })),
                Err(_) => Body::Unknown,
            },
            "session" => serde_json::from_str(line).map_or(Body::Unknown, Body::Session),
            "request" => serde_json::from_str(line).map_or(Body::Unknown, Body::Request),
            "response" => serde_json::from_str(line).map_or(Body::Unknown, Body::Response),
            "virtual" => Body::Virtual,
            "internal" => Body::Internal,
            "repair" => serde_json::from_str(line)
                .map_or(Body::Unknown, |repair: Repair| Body::Repair(Box::new(repair))),
            kind if DecisionKind::NAMES.contains(&kind) => {
                serde_json::from_str(line).map_or(Body::Unknown, Body::Decision)
            }
            _ => Body::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockType, Cost, Draft, IdSource};

    fn parse(payload: &str) -> Entry {
        let line = format!(
            r#"{{"v":1,"id":"01890000-0000-7000-8000-000000000001","parent":null,"at":"2026-11-15T09:00:00.000Z",{payload}}}"#
        );
        Entry::parse(Text::from(line)).unwrap()
    }

    #[test]
    fn a_later_kind_and_later_fields_are_kept() {
        let entry = parse(r#""kind":"hologram","beam":[1e2, {"a" : "\/"}]"#);
        assert!(matches!(entry.body, Body::Unknown));
        assert_eq!(entry.kind().0, "hologram");
        assert!(entry.line.contains(r#"[1e2, {"a" : "\/"}]"#));
        let entry = parse(r#""kind":"clear","tool_use_ids":["a"],"text":"gone","mood":7"#);
        assert!(matches!(entry.decision(), Some(DecisionKind::Clear { .. })));
    }

    #[test]
    fn a_malformed_payload_is_unknown_not_an_error() {
        for payload in
            [r#""kind":"clear""#, r#""kind":"request","source":7"#, r#""kind":"boundary","snapshot":7"#]
        {
            assert!(matches!(parse(payload).body, Body::Unknown), "{payload}");
        }
        assert!(
            matches!(parse(r#""kind":"user""#).body, Body::User(user) if user.content.blocks().is_empty())
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
            assert!(!matches!(entry.body, Body::Unknown), "{payload}");
            entry.disarm();
            assert!(matches!(entry.body, Body::Unknown), "{payload}");
        }
        let undo = r#""kind":"undo","target":"01890000-0000-7000-8000-000000000002""#;
        for payload in [undo, r#""kind":"pin","text":"a""#, r#""kind":"user","content":"a""#] {
            let mut entry = parse(payload);
            entry.disarm();
            assert!(!matches!(entry.body, Body::Unknown), "{payload}");
        }
    }

    #[test]
    fn a_newer_format_is_refused() {
        let line = r#"{"v":2,"id":"01890000-0000-7000-8000-000000000001","at":"2026-11-15T09:00:00.000Z","kind":"user"}"#;
        assert!(matches!(Entry::parse(Text::from(line)), Err(EntryError::Version(2))));
        assert!(matches!(Entry::parse(Text::from("{}")), Err(EntryError::Field("v"))));
        assert!(matches!(Entry::parse(Text::from("[")), Err(EntryError::Json(_))));
    }

    #[test]
    fn a_copy_says_the_same_under_the_same_id_elsewhere() {
        let original =
            parse(r#""kind":"user","origin":"person","content":"a \u00e9","mood":[1e2, {"x" : 1}]"#);
        let sealed = parse(r#""kind":"user","content":"a","checksum":"0123456789abcdef""#);
        let copy = Draft::copy_of(&sealed).into_line(sealed.id, None, sealed.at, None);
        assert!(!copy.contains("checksum"), "the checksum of another line: {copy}");
        let draft = Draft::copy_of(&original);
        assert_eq!(draft.id(), Some(original.id));
        let at: Timestamp = "2026-11-16T10:00:00.000Z".parse().unwrap();
        let parent = IdSource::seeded(3).next_id(at);
        let copy = Entry::parse(Text::from(draft.into_line(original.id, Some(parent), at, Some(9)))).unwrap();
        assert_eq!(
            (copy.id, copy.parent, copy.parent_offset, copy.at),
            (original.id, Some(parent), Some(9), at)
        );
        let payload = |entry: &Entry| entry.line[entry.line.find(r#""kind""#).unwrap()..].to_owned();
        assert_eq!(payload(&copy), payload(&original), "byte for byte");
        assert_eq!(Draft::shown("1").id(), None);
        assert_eq!(Draft::shown("1").with_id(parent).id(), Some(parent));
    }

    #[test]
    fn drafts_read_back_as_they_were_written() {
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
            let cost = Cost { tokens_freed: 10, tokens_rewritten: 3, thinking_dropped: 1 };
            let decision = Decision { kind, reason: "because".into(), cost };
            let line = Draft::decision(&decision).into_line(second, Some(first), at, Some(77));
            let entry = Entry::parse(Text::from(line)).unwrap();
            assert_eq!(
                (entry.id, entry.parent, entry.parent_offset, entry.at),
                (second, Some(first), Some(77), at)
            );
            assert!(matches!(&entry.body, Body::Decision(read) if *read == decision));
        }
        let draft =
            Draft::user(Origin::Tool, r#"[{"type":"tool_result","tool_use_id":"toolu_1","content":"ok"}]"#);
        let entry = Entry::parse(Text::from(draft.into_line(first, None, at, None))).unwrap();
        let Body::User(user) = entry.body else { panic!() };
        assert_eq!((user.origin, user.content.blocks()[0].kind()), (Origin::Tool, BlockType::ToolResult));
    }
}
