//! What was kept aside: records that are no part of the conversation, each with the reason.

use std::fmt;

/// One record that became an `internal` entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptAside {
    /// The line of the source, counted from 1; for a source that is one object, the number of the message.
    pub line: u64,
    /// What it is, in the other agent's word where there is one.
    pub what: String,
    /// Why it is not part of the conversation.
    pub reason: Reason,
    /// More about a bad line.
    pub detail: Option<String>,
}

/// Why a record was kept aside.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
    /// The other agent's own records: progress, snapshots, modes, timings.
    Bookkeeping,
    /// It carries nothing that the model would read.
    NothingForTheModel,
    /// It belongs to a subagent.
    Sidechain,
    /// It was already read, under the same id.
    Replayed,
    /// It repeats what another record says.
    Doubled,
    /// Its meaning is in the entry beside it.
    Beside,
    /// Reasoning that cannot be sent again.
    Reasoning,
    /// A boundary without a summary: the view goes on over it.
    NoSummary,
    /// Of a type that the importer does not know.
    UnknownRecord,
    /// A line that could not be read.
    BadLine,
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Reason::Bookkeeping => "bookkeeping of the other agent",
            Reason::NothingForTheModel => "nothing in it for the model",
            Reason::Sidechain => "part of a subagent's conversation",
            Reason::Replayed => "replayed: already read under the same id",
            Reason::Doubled => "repeats another record",
            Reason::Beside => "carried by the entry beside it",
            Reason::Reasoning => "reasoning that cannot be sent again",
            Reason::NoSummary => "a boundary without a summary",
            Reason::UnknownRecord => "unknown type",
            Reason::BadLine => "bad line",
        })
    }
}
