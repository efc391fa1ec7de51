//! One message: what it says, and the line of JSON that it travels as.
//!
//! The line is made once, when the message is sealed, or is the one that was read. It is what is passed on, so kinds
//! and fields that this program does not know come through unchanged.

use std::fmt;
use std::str::FromStr;

use pal_model::{EntryId, IdError, Text, Timestamp, escape_into, fields, member, member_string};
use smol_str::SmolStr;

use crate::name::{Address, Name};

/// The longest line of a message, in bytes. What is longer belongs in a file that the message names.
pub const MESSAGE_BYTES_MAX: usize = 256 * 1024;

/// The id of one message, a UUID of version 7: a message that is sent again after a failure keeps it. Two are equal if
/// all 128 bits are.
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

/// What a message is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Something to read.
    Text,
    /// Asks an agent to end.
    ShutdownRequest,
    /// Answers that.
    ShutdownResponse {
        /// Whether the agent ends.
        accepted: bool,
    },
    /// Asks whether a plan may be carried out.
    PlanApprovalRequest {
        /// The plan.
        plan: Text,
    },
    /// Answers that.
    PlanApproval {
        /// Whether the plan may be carried out.
        accepted: bool,
        /// What to change, or what to look out for.
        feedback: Option<Text>,
    },
    /// A kind, or a form of a known kind, that this program does not know, by its name.
    Unknown(SmolStr),
}

impl Kind {
    /// The name that stands in the line.
    pub fn name(&self) -> &str {
        match self {
            Kind::Text => "text",
            Kind::ShutdownRequest => "shutdown_request",
            Kind::ShutdownResponse { .. } => "shutdown_response",
            Kind::PlanApprovalRequest { .. } => "plan_approval_request",
            Kind::PlanApproval { .. } => "plan_approval",
            Kind::Unknown(name) => name,
        }
    }
}

/// What is to be sent, before it has an id and a time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Draft {
    /// Who writes.
    pub from: Name,
    /// To whom.
    pub to: Address,
    /// What for.
    pub kind: Kind,
    /// A few words for lists and previews.
    pub summary: Text,
    /// What is said.
    pub text: Text,
    /// The request that this answers.
    pub answers: Option<MessageId>,
}

/// A message with its id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// Who wrote it.
    pub from: Name,
    /// To whom.
    pub to: Address,
    /// What for.
    pub kind: Kind,
    /// A few words for lists and previews.
    pub summary: Text,
    /// What is said.
    pub text: Text,
    /// The request that this answers.
    pub answers: Option<MessageId>,
    /// When it was written.
    pub at: Timestamp,
    line: Text,
}

/// A message that cannot be, or a line that is none.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// Not a JSON object.
    #[error("not a JSON object: {0}")]
    Json(#[from] pal_model::JsonError),
    /// More than one line.
    #[error("a message is one line of JSON, and this has several")]
    Lines,
    /// A field is missing or malformed.
    #[error("field `{0}` of a message is missing or malformed")]
    Field(&'static str),
    /// Longer than a message may be.
    #[error(
        "the message has {bytes} bytes and may have {MESSAGE_BYTES_MAX}; write it to a file and send the path"
    )]
    TooLong {
        /// How long its line is.
        bytes: usize,
    },
}

impl Draft {
    /// A message to read.
    pub fn text(from: Name, to: impl Into<Address>, summary: &str, text: &str) -> Draft {
        Draft {
            from,
            to: to.into(),
            kind: Kind::Text,
            summary: summary.into(),
            text: text.into(),
            answers: None,
        }
    }

    /// The message, with the line that it travels as.
    pub fn seal(self, id: MessageId, at: Timestamp) -> Result<Message, MessageError> {
        let line = self.line(id, at);
        within_limit(&line)?;
        let Draft { from, to, kind, summary, text, answers } = self;
        Ok(Message { id, from, to, kind, summary, text, answers, at, line: Text::from(line) })
    }

    /// The id stands first, so that it is found without reading the rest.
    fn line(&self, id: MessageId, at: Timestamp) -> String {
        let mut line = format!(r#"{{"id":"{id}","from":"{}","to":"#, self.from);
        escape_into(&mut line, &self.to.to_string());
        line.push_str(&format!(r#","at":"{at}""#));
        push_string(&mut line, "kind", self.kind.name());
        if let Some(answers) = self.answers {
            push_string(&mut line, "answers", &answers.to_string());
        }
        match &self.kind {
            Kind::ShutdownResponse { accepted } => push_accepted(&mut line, *accepted),
            Kind::PlanApprovalRequest { plan } => push_string(&mut line, "plan", plan),
            Kind::PlanApproval { accepted, feedback } => {
                push_accepted(&mut line, *accepted);
                if let Some(feedback) = feedback {
                    push_string(&mut line, "feedback", feedback);
                }
            }
            Kind::Text | Kind::ShutdownRequest | Kind::Unknown(_) => {}
        }
        push_string(&mut line, "summary", &self.summary);
        push_string(&mut line, "text", &self.text);
        line.push('}');
        line
    }
}

impl Message {
    /// The line that it travels as, without its line end. Unknown fields are in here.
    pub fn line(&self) -> &str {
        &self.line
    }

    /// Reads one line.
    pub fn parse(line: &str) -> Result<Message, MessageError> {
        let line = line.trim();
        within_limit(line)?;
        if line.contains('\n') {
            return Err(MessageError::Lines);
        }
        let fields = fields(line)?;
        let string = |name| member_string(&fields, name);
        let text = |name| Text::from(string(name).unwrap_or_default().as_ref());
        let answers = match member(&fields, "answers") {
            None | Some("null") => None,
            Some(_) => Some(parsed(string("answers"), "answers")?),
        };
        Ok(Message {
            id: parsed(string("id"), "id")?,
            from: parsed(string("from"), "from")?,
            to: parsed(string("to"), "to")?,
            kind: kind(&fields).ok_or(MessageError::Field("kind"))?,
            summary: text("summary"),
            text: text("text"),
            answers,
            at: parsed(string("at"), "at")?,
            line: Text::from(line),
        })
    }
}

/// The id of the message in a line, without reading the rest where the line is one of ours.
pub(crate) fn id_of(line: &str) -> Option<MessageId> {
    let first = line.strip_prefix(r#"{"id":""#).and_then(|rest| rest.get(..36));
    let whole = || member_string(&fields(line).ok()?, "id")?.parse().ok();
    // A line that is cut off or spoiled is no message, whatever its beginning.
    let is_whole = line.ends_with('}');
    first.filter(|_| is_whole).and_then(|id| id.parse().ok()).or_else(whole)
}

fn within_limit(line: &str) -> Result<(), MessageError> {
    match line.len() {
        bytes if bytes > MESSAGE_BYTES_MAX => Err(MessageError::TooLong { bytes }),
        _ => Ok(()),
    }
}

fn parsed<T: FromStr>(text: Option<impl AsRef<str>>, name: &'static str) -> Result<T, MessageError> {
    text.and_then(|text| text.as_ref().parse().ok()).ok_or(MessageError::Field(name))
}

/// A known kind without what it needs is unknown.
fn kind(fields: &[pal_model::Field<'_>]) -> Option<Kind> {
    let name = member_string(fields, "kind")?;
    let accepted = || member(fields, "accepted").and_then(|value| value.parse::<bool>().ok());
    let text = |name| member_string(fields, name).map(|text| Text::from(text.as_ref()));
    let kind = match name.as_ref() {
        "text" => Some(Kind::Text),
        "shutdown_request" => Some(Kind::ShutdownRequest),
        "shutdown_response" => accepted().map(|accepted| Kind::ShutdownResponse { accepted }),
        "plan_approval_request" => text("plan").map(|plan| Kind::PlanApprovalRequest { plan }),
        "plan_approval" => {
            accepted().map(|accepted| Kind::PlanApproval { accepted, feedback: text("feedback") })
        }
        _ => None,
    };
    Some(kind.unwrap_or_else(|| Kind::Unknown(SmolStr::new(&name))))
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
