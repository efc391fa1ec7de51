//! Command lines taken apart.
//!
//! Two readers look at every line: the grammar of tree-sitter says what its parts are, and a small scanner that knows
//! only quotes and operators says where words begin and end. What they do not agree on, what the grammar cannot read and
//! what is known only when the line runs is a doubt, and a line with a doubt is never allowed part by part.

mod hatch;

mod naming;
mod read_only;
mod scan;
mod walk;
mod word;

use std::ops::Range;
use std::path::{Path, PathBuf};

pub(crate) use hatch::{
    Inner, file_name, hatch, inner, is_interpreter, is_recursive_reader, peel, runs_another, shows_content,
    unversioned,
};
pub(crate) use naming::rule_for;
pub(crate) use read_only::{Operand, OperandKind, Shown, is_builtin, read_only_operands, shown};
pub(crate) use walk::read;
pub(crate) use word::{Word, decode};

/// Longer lines are not taken apart.
const BYTES_MAX: usize = 32 << 10;

/// Deeper nesting is not followed.
const DEPTH_MAX: usize = 40;

/// A command line, taken apart.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    /// What it does, wherever in the line.
    pub(crate) parts: Vec<Part>,
    /// Why it may do more than that, each a part of a sentence that begins with "it".
    pub(crate) doubts: Vec<String>,
    /// Variables that the line did not set, in texts that are handed to commands.
    pub(crate) variables: Vec<String>,
    /// Parts that may run at the same time, or again after each other.
    tangles: Vec<Range<usize>>,
}

impl Script {
    /// Whether another part may change where the names in this one lead to, before it runs.
    pub(crate) fn is_shifted(&self, idx: usize) -> bool {
        let is_before = |other: usize| {
            other < idx || self.tangles.iter().any(|tangle| tangle.contains(&idx) && tangle.contains(&other))
        };
        let moves = |part: &Part| matches!(&part.deed, Deed::Run(words) if hatch::moves_names(peel(words)) && read_only_operands(words).is_none());
        self.parts.iter().enumerate().any(|(other, part)| other != idx && is_before(other) && moves(part))
    }
}

/// One thing that a command line does.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// As it stands in the line.
    pub(crate) text: String,
    /// Where the words of a command stand in the line.
    pub(crate) starts: Vec<usize>,
    /// What it does.
    pub(crate) deed: Deed,
    /// The directories that it may run in, as far as the line tells.
    pub(crate) directories: Vec<PathBuf>,
    /// Variables in it that the line did not set, and that may hold anything.
    pub(crate) variables: Vec<String>,
}

/// What a part does.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    /// Runs a program or something built into the shell.
    Run(Vec<Word>),
    /// Goes elsewhere.
    Enter(Word),
    /// Reads a file into something.
    Take(Word),
    /// Writes something to a file.
    Put(Word),
}

/// Whether a command line is read-only: nothing is changed by it, and it may run beside others that are.
pub fn is_read_only(command: &str) -> bool {
    let script = read(command, Path::new("/"), &|named, directory| directory.join(named));
    script.doubts.is_empty()
        && !script.parts.is_empty()
        && script.parts.iter().all(|part| match &part.deed {
            Deed::Run(words) => read_only_operands(words)
                .is_some_and(|operands| !operands.iter().any(|operand| operand.is_write())),
            Deed::Take(_) => true,
            // The next command would start elsewhere.
            Deed::Enter(_) | Deed::Put(_) => false,
        })
}

/// A line without what the shell passes over at its ends.
pub(crate) fn trimmed(command: &str) -> &str {
    command.trim_matches([' ', '\t', '\n'])
}

/// The words of a pattern in a rule.
pub(crate) fn split(text: &str) -> Vec<String> {
    let spans = scan::words(text).unwrap_or_default().spans;
    let decoded: Option<Vec<String>> =
        spans.iter().map(|span| text.get(span.clone()).and_then(|raw| decode(raw).text)).collect();
    match decoded {
        Some(words) if !words.is_empty() => words,
        _ => text.split_whitespace().map(String::from).collect(),
    }
}
