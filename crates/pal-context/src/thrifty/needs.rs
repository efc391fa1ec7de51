//! How likely something that leaves the view is needed again: by its tool, and by how many results are newer.
//!
//! [`needs`] reads it off a log that tells what happened; `xtask fit` sums that up, and the sums stand in `fitted.rs`.

use std::borrow::Cow;

use pal_model::{Block, BlockType, Body, Entry, ToolKind, ToolUseId, member};
use rustc_hash::FxHashMap;

use super::fitted;
use crate::call::Call;

/// How many results are newer than one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum NeedAge {
    /// Fewer than 5.
    Fresh,
    /// Fewer than 15.
    Recent,
    /// Fewer than 40.
    Aged,
    /// More.
    Old,
}

impl NeedAge {
    /// All ages, youngest first.
    pub const ALL: [NeedAge; 4] = [NeedAge::Fresh, NeedAge::Recent, NeedAge::Aged, NeedAge::Old];

    /// The age of a result with so many newer ones.
    pub fn of(newer: usize) -> NeedAge {
        match newer {
            0..5 => NeedAge::Fresh,
            5..15 => NeedAge::Recent,
            15..40 => NeedAge::Aged,
            _ => NeedAge::Old,
        }
    }

    /// How many newer results there are when it begins.
    fn begins(self) -> usize {
        match self {
            NeedAge::Fresh => 0,
            NeedAge::Recent => 5,
            NeedAge::Aged => 15,
            NeedAge::Old => 40,
        }
    }
}

/// How likely a result is needed again, as recorded sessions have it.
pub fn share_needed(kind: ToolKind, age: NeedAge) -> f64 {
    fitted::needed(kind, age)
}

/// A result that had come to an age, and whether it was needed after that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Need {
    /// What the tool does.
    pub kind: ToolKind,
    /// How old it was.
    pub age: NeedAge,
    /// Its length in bytes.
    pub bytes: usize,
    /// Whether it was needed later.
    pub is_needed: bool,
}

/// What became of one result of a log.
struct Result<'a> {
    kind: ToolKind,
    path: Option<Cow<'a, str>>,
    input: &'a str,
    text: &'a str,
}

/// What was needed again in a log. A file that was read is needed when it is changed next: whoever reads it again would have
/// done so in any case. Any other result is needed when the same call returns the same once more.
pub fn needs(entries: &[Entry]) -> Vec<Need> {
    let results = results(entries);
    let mut found = Vec::new();
    for (at, result) in results.iter().enumerate() {
        let later = &results[at + 1..];
        let touches = |other: &Result<'_>| match result.kind {
            ToolKind::Read => {
                let changes = matches!(other.kind, ToolKind::Read | ToolKind::Edit | ToolKind::Write);
                changes && other.path.is_some() && other.path == result.path
            }
            _ => other.kind == result.kind && other.input == result.input && other.text == result.text,
        };
        let replaced = later.iter().position(|other| other.kind == result.kind && touches(other));
        let touched: Vec<usize> =
            later.iter().enumerate().filter(|(_, other)| touches(other)).map(|(at, _)| at).collect();
        for age in NeedAge::ALL {
            let newer = age.begins();
            // Too few came after it, or a later one has taken its place by then.
            if newer > later.len() || replaced.is_some_and(|replaced| replaced < newer) {
                break;
            }
            let next = touched.iter().find(|touch| **touch >= newer).map(|touch| &later[*touch]);
            let is_needed =
                next.is_some_and(|next| result.kind != ToolKind::Read || next.kind != ToolKind::Read);
            found.push(Need { kind: result.kind, age, bytes: result.text.len(), is_needed });
        }
    }
    found
}

/// The results of the tools that every program has, in order.
fn results(entries: &[Entry]) -> Vec<Result<'_>> {
    let mut calls: FxHashMap<&ToolUseId, &Block> = FxHashMap::default();
    let mut results = Vec::new();
    for entry in entries {
        let content = match &entry.body {
            Body::Assistant(assistant) => &assistant.content,
            Body::User(user) => &user.content,
            Body::Attachment(attachment) => &attachment.content,
            _ => continue,
        };
        for block in content.blocks() {
            match (block.kind(), block.tool_use_id()) {
                (BlockType::ToolUse, Some(id)) => {
                    calls.insert(id, block);
                }
                (BlockType::ToolResult, Some(id)) => {
                    // Each call is answered once.
                    let Some(call) = calls.remove(id).and_then(Call::read) else { continue };
                    let Some(kind) = call.kind else { continue };
                    let text = block.fields().and_then(|known| member(&known, "content")).unwrap_or_default();
                    results.push(Result { kind, path: call.path(), input: call.input, text });
                }
                _ => {}
            }
        }
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;
    use pal_testkit::script;

    fn check(log: &str) -> Vec<(ToolKind, bool)> {
        let entries = script(log).unwrap();
        let fresh = needs(&entries).into_iter().filter(|need| need.age == NeedAge::Fresh);
        fresh.map(|need| (need.kind, need.is_needed)).collect()
    }

    #[test]
    fn a_read_is_needed_when_the_file_is_changed_next() {
        let log = r#"
            user: go
            model m0: call r0 Read {"file_path":"/a"}
            result r0: one
            model m1: call r1 Read {"file_path":"/a"}
            result r1: one
            model m2: call r2 Read {"file_path":"/b"}
            result r2: two
            model m3: call e1 Edit {"file_path":"/a","old_string":"o","new_string":"p"}
            result e1: done
        "#;
        assert_eq!(
            check(log),
            [
                (ToolKind::Read, false),
                (ToolKind::Read, true),
                (ToolKind::Read, false),
                (ToolKind::Edit, false)
            ]
        );
    }

    #[test]
    fn other_results_are_needed_when_the_same_comes_back() {
        let log = r#"
            user: go
            model m1: call b1 Bash {"command":"cat a"}
            result b1: one
            model m2: call b2 Bash {"command":"date"}
            result b2: noon
            model m3: call b3 Bash {"command":"cat a"}
            result b3: one
            model m4: call b4 Bash {"command":"date"}
            result b4: one o'clock
        "#;
        let shell = |is_needed| (ToolKind::Shell, is_needed);
        assert_eq!(check(log), [shell(true), shell(false), shell(false), shell(false)]);
    }
}
