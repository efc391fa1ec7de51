//! Records that are not part of the conversation, with the reason.

use std::fmt;

/// A record stored as an `internal` entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InternalRecord {
    /// Source line, counted from 1; for a single-object source, the message number.
    pub line: u64,
    /// Record type, in the other agent's terms if it has one.
    pub what: String,
    /// Reason why it is not part of the conversation.
    pub reason: InternalReason,
    /// Details of a bad line.
    pub detail: Option<String>,
}

/// Reason why a record is not part of the conversation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum InternalReason {
    /// The other agent's own records: progress, snapshots, modes, timings.
    Bookkeeping,
    /// It has no content for the model.
    NothingForTheModel,
    /// It belongs to a subagent.
    Sidechain,
    /// A record with the same id was read before.
    Replayed,
    /// It repeats another record.
    Repeated,
    /// The neighboring entry carries its content.
    CarriedByNeighbour,
    /// Reasoning that cannot be sent again.
    Reasoning,
    /// A boundary without a summary, which does not end the view.
    NoSummary,
    /// Unknown record type.
    UnknownRecord,
    /// A line that could not be parsed.
    BadLine,
}

impl fmt::Display for InternalReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            InternalReason::Bookkeeping => "bookkeeping of the other agent",
            InternalReason::NothingForTheModel => "nothing in it for the model",
            InternalReason::Sidechain => "part of a subagent's conversation",
            InternalReason::Replayed => "replayed: already read under the same id",
            InternalReason::Repeated => "repeats another record",
            InternalReason::CarriedByNeighbour => "carried by the entry beside it",
            InternalReason::Reasoning => "reasoning that cannot be sent again",
            InternalReason::NoSummary => "a boundary without a summary",
            InternalReason::UnknownRecord => "unknown type",
            InternalReason::BadLine => "bad line",
        })
    }
}
