//! One message and its JSON line.
//!
//! The line is built once, when the message is sealed, or kept as it was read. It is passed on verbatim, so
//! that unknown kinds and fields survive.

use std::fmt;
use std::str::FromStr;

use pal_model::{EntryId, IdError, SharedText, Timestamp, escape_into, member, member_string, object_fields};
use smol_str::SmolStr;

use crate::address::{Address, AgentName};

/// Maximum length of a message line, in bytes. Put longer content into a file and send its path.
pub const MESSAGE_BYTES_MAX: usize = 256 * 1024;

/// Id of a message, a version 7 UUID. A message that is sent again after a failure keeps its id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(EntryId);

impl From<EntryId> for MessageId {
    fn from(id: EntryId) -> MessageId {
        MessageId(id)
    }
}

impl FromStr for MessageId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<MessageId, IdError> {
        text.parse().map(MessageId)
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Purpose of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MessageKind {
    /// Text to read.
    Text,
    /// Request to end an agent.
    ShutdownRequest,
    /// Response to a shutdown request.
    ShutdownResponse {
        /// The agent ends.
        accepted: bool,
    },
    /// Request to approve a plan.
    PlanApprovalRequest {
        /// Text of the plan.
        plan: SharedText,
    },
    /// Response to a plan approval request.
    PlanApproval {
        /// The plan is approved.
        accepted: bool,
        /// Requested changes or remarks.
        feedback: Option<SharedText>,
    },
    /// Request to restart the MCP server whose name is the body.
    RestartServer,
    /// Unknown kind, or an unknown form of a known kind, by name.
    Unknown(SmolStr),
}

impl MessageKind {
    /// Name in the JSON line.
    pub fn name(&self) -> &str {
        match self {
            MessageKind::Text => "text",
            MessageKind::ShutdownRequest => "shutdown_request",
            MessageKind::ShutdownResponse { .. } => "shutdown_response",
            MessageKind::PlanApprovalRequest { .. } => "plan_approval_request",
            MessageKind::PlanApproval { .. } => "plan_approval",
            MessageKind::RestartServer => "restart_server",
            MessageKind::Unknown(name) => name,
        }
    }
}

/// A message without id and time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EnvelopeDraft {
    /// Sender.
    pub from: AgentName,
    /// Recipient.
    pub to: Address,
    /// Purpose.
    pub kind: MessageKind,
    /// Short text for lists and previews.
    pub summary: SharedText,
    /// Body.
    pub text: SharedText,
    /// Request that this message answers.
    pub answers: Option<MessageId>,
}

/// A message with its id and time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// Message id.
    pub id: MessageId,
    /// Sender.
    pub from: AgentName,
    /// Recipient.
    pub to: Address,
    /// Purpose.
    pub kind: MessageKind,
    /// Short text for lists and previews.
    pub summary: SharedText,
    /// Body.
    pub text: SharedText,
    /// Request that this message answers.
    pub answers: Option<MessageId>,
    /// Time of sending.
    pub at: Timestamp,
    line: SharedText,
}

/// An invalid message or line.
#[derive(Debug, thiserror::Error)]
pub enum EnvelopeError {
    /// The line is not a JSON object.
    #[error("not a JSON object: {0}")]
    Json(#[from] pal_model::JsonError),
    /// The text has more than one line.
    #[error("a message is one line of JSON, and this has several")]
    Lines,
    /// A field is missing or malformed.
    #[error("field `{0}` of a message is missing or malformed")]
    Field(&'static str),
    /// The line exceeds [`MESSAGE_BYTES_MAX`].
    #[error(
        "the message has {bytes} bytes and may have {MESSAGE_BYTES_MAX}; write it to a file and send the path"
    )]
    TooLong {
        /// Length of the line.
        bytes: usize,
    },
}

impl EnvelopeDraft {
    /// Makes a text message.
    pub fn text(from: AgentName, to: impl Into<Address>, summary: &str, text: &str) -> EnvelopeDraft {
        EnvelopeDraft {
            from,
            to: to.into(),
            kind: MessageKind::Text,
            summary: summary.into(),
            text: text.into(),
            answers: None,
        }
    }

    /// Completes the message and builds its line.
    pub fn seal(self, id: MessageId, at: Timestamp) -> Result<Envelope, EnvelopeError> {
        let line = self.line(id, at);
        within_limit(&line)?;
        let EnvelopeDraft { from, to, kind, summary, text, answers } = self;
        Ok(Envelope { id, from, to, kind, summary, text, answers, at, line: SharedText::from(line) })
    }

    /// Builds the line, with the id first so that it can be found without parsing the rest.
    fn line(&self, id: MessageId, at: Timestamp) -> String {
        let mut line = format!(r#"{{"id":"{id}","from":"{}","to":"#, self.from);
        escape_into(&mut line, &self.to.to_string());
        line.push_str(&format!(r#","at":"{at}""#));
        push_string(&mut line, "kind", self.kind.name());
        if let Some(answers) = self.answers {
            push_string(&mut line, "answers", &answers.to_string());
        }
        match &self.kind {
            MessageKind::ShutdownResponse { accepted } => push_accepted(&mut line, *accepted),
            MessageKind::PlanApprovalRequest { plan } => push_string(&mut line, "plan", plan),
            MessageKind::PlanApproval { accepted, feedback } => {
                push_accepted(&mut line, *accepted);
                if let Some(feedback) = feedback {
                    push_string(&mut line, "feedback", feedback);
                }
            }
            MessageKind::Text
            | MessageKind::ShutdownRequest
            | MessageKind::RestartServer
            | MessageKind::Unknown(_) => {}
        }
        push_string(&mut line, "summary", &self.summary);
        push_string(&mut line, "text", &self.text);
        line.push('}');
        line
    }
}

impl Envelope {
    /// JSON line without line end, including unknown fields.
    pub fn line(&self) -> &str {
        &self.line
    }

    /// Parses one line.
    pub fn parse(line: &str) -> Result<Envelope, EnvelopeError> {
        let line = line.trim();
        within_limit(line)?;
        if line.contains('\n') {
            return Err(EnvelopeError::Lines);
        }
        let fields = object_fields(line)?;
        let string = |name| member_string(&fields, name);
        let text = |name| SharedText::from(string(name).unwrap_or_default().as_ref());
        let answers = match member(&fields, "answers") {
            None | Some("null") => None,
            Some(_) => Some(parsed(string("answers"), "answers")?),
        };
        Ok(Envelope {
            id: parsed(string("id"), "id")?,
            from: parsed(string("from"), "from")?,
            to: parsed(string("to"), "to")?,
            kind: kind(&fields).ok_or(EnvelopeError::Field("kind"))?,
            summary: text("summary"),
            text: text("text"),
            answers,
            at: parsed(string("at"), "at")?,
            line: SharedText::from(line),
        })
    }
}

/// Id of the message in a line, without parsing the rest if this program wrote it.
pub(crate) fn id_of(line: &str) -> Option<MessageId> {
    let first = line.strip_prefix(r#"{"id":""#).and_then(|rest| rest.get(..36));
    let whole = || member_string(&object_fields(line).ok()?, "id")?.parse().ok();
    // A truncated or corrupt line is not a message.
    let is_whole = line.ends_with('}');
    first.filter(|_| is_whole).and_then(|id| id.parse().ok()).or_else(whole)
}

fn within_limit(line: &str) -> Result<(), EnvelopeError> {
    match line.len() {
        bytes if bytes > MESSAGE_BYTES_MAX => Err(EnvelopeError::TooLong { bytes }),
        _ => Ok(()),
    }
}

fn parsed<T: FromStr>(text: Option<impl AsRef<str>>, name: &'static str) -> Result<T, EnvelopeError> {
    text.and_then(|text| text.as_ref().parse().ok()).ok_or(EnvelopeError::Field(name))
}

/// Parses the kind; a known kind without its fields is unknown.
fn kind(fields: &[pal_model::JsonField<'_>]) -> Option<MessageKind> {
    let name = member_string(fields, "kind")?;
    let accepted = || member(fields, "accepted").and_then(|value| value.parse::<bool>().ok());
    let text = |name| member_string(fields, name).map(|text| SharedText::from(text.as_ref()));
    let kind = match name.as_ref() {
        "text" => Some(MessageKind::Text),
        "shutdown_request" => Some(MessageKind::ShutdownRequest),
        "restart_server" => Some(MessageKind::RestartServer),
        "shutdown_response" => accepted().map(|accepted| MessageKind::ShutdownResponse { accepted }),
        "plan_approval_request" => text("plan").map(|plan| MessageKind::PlanApprovalRequest { plan }),
        "plan_approval" => {
            accepted().map(|accepted| MessageKind::PlanApproval { accepted, feedback: text("feedback") })
        }
        _ => None,
    };
    Some(kind.unwrap_or_else(|| MessageKind::Unknown(SmolStr::new(&name))))
}

fn push_string(line: &mut String, name: &str, value: &str) {
    line.push_str(",\"");
    line.push_str(name);
    line.push_str("\":");
    escape_into(line, value);
}

fn push_accepted(line: &mut String, accepted: bool) {
    line.push_str(if accepted { ",\"accepted\":true" } else { ",\"accepted\":false" });
}

#[cfg(test)]
mod tests;
