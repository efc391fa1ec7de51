//! How likely something that leaves the view is needed again: by its tool, and by how many results are newer.
//!
//! [`needs`] reads it off a log that tells what happened; `xtask fit` sums that up, and the sums stand in `fitted.rs`.

use std::borrow::Cow;

use pal_model::{Block, BlockType, Body, Entry, ToolKind, ToolUseId, fields, member};
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

/// What came behind a result and tells how much it is wanted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Since {
    /// Nothing of that kind.
    Nothing,
    /// The file that it shows was changed more than once: it is being worked on.
    Changed,
    /// The file that it shows was shown again, and what is in sight twice is not missed once.
    ShownAgain,
}

impl Since {
    /// All of them.
    pub const ALL: [Since; 3] = [Since::Nothing, Since::Changed, Since::ShownAgain];
}

/// Changes of a file from which on it is being worked on.
const CHANGES_LEAST: usize = 2;

/// The files that results are about, looked at from the newest to the oldest.
#[derive(Default)]
pub(crate) struct Files {
    newer: FxHashMap<String, Newer>,
}

/// What newer results have of a file.
#[derive(Default)]
struct Newer {
    shows_all: bool,
    reads: Vec<String>,
    changes: usize,
}

impl Files {
    /// What came behind the result of a call; the call is remembered for those before it.
    pub(crate) fn since(&mut self, kind: ToolKind, path: Option<&str>, input: &str) -> Since {
        let Some(path) = path else { return Since::Nothing };
        let newer = self.newer.entry(path.to_owned()).or_default();
        match kind {
            ToolKind::Read => {
                let since = match newer.shows_all || newer.reads.iter().any(|other| other == input) {
                    true => Since::ShownAgain,
                    false if newer.changes >= CHANGES_LEAST => Since::Changed,
                    false => Since::Nothing,
                };
                let members = fields(input).unwrap_or_default();
                newer.shows_all |= ["offset", "limit"].iter().all(|name| member(&members, name).is_none());
                newer.reads.push(input.to_owned());
                since
            }
            ToolKind::Edit | ToolKind::Write => {
                newer.changes += 1;
                Since::Nothing
            }
            _ => Since::Nothing,
        }
    }
}

/// How likely a result is needed again, as recorded sessions have it.
pub fn share_needed(kind: ToolKind, age: NeedAge, since: Since) -> f64 {
    fitted::needed(kind, age, since)
}

/// A result that had come to an age, and whether it was needed after that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Need {
    /// What the tool does.
    pub kind: ToolKind,
    /// How old it was.
    pub age: NeedAge,
    /// What had come behind it by then.
    pub since: Since,
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

/// What was needed again in a log. A file that was read is needed when it is read again or changed, unless a newer read shows
/// it; any other result is needed when the same call returns the same once more.
pub fn needs(entries: &[Entry]) -> Vec<Need> {
    let results = results(entries);
    let mut found = Vec::new();
    for (at, result) in results.iter().enumerate() {
        let later = &results[at + 1..];
        let is_read = result.kind == ToolKind::Read;
        let touches = |other: &Result<'_>| match is_read {
            true => other.path == result.path && other.path.is_some() && other.is_about_a_file(),
            false => other.kind == result.kind && other.input == result.input && other.text == result.text,
        };
        let touched: Vec<usize> =
            later.iter().enumerate().filter(|(_, other)| touches(other)).map(|(at, _)| at).collect();
        for age in NeedAge::ALL {
            let newer = age.begins();
            // Too few came after it, or the same came back by then.
            if newer > later.len() || (!is_read && touched.first().is_some_and(|touch| *touch < newer)) {
                break;
            }
            let mut files = Files::default();
            let behind = later[..newer].iter().rev().chain([result]);
            let since = behind.map(|one| files.since(one.kind, one.path.as_deref(), one.input)).last();
            let since = since.unwrap_or(Since::Nothing);
            let is_needed = since != Since::ShownAgain && touched.iter().any(|touch| *touch >= newer);
            found.push(Need { kind: result.kind, age, since, bytes: result.text.len(), is_needed });
        }
    }
    found
}

impl Result<'_> {
    fn is_about_a_file(&self) -> bool {
        matches!(self.kind, ToolKind::Read | ToolKind::Edit | ToolKind::Write)
    }
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
    fn a_read_is_needed_when_the_file_is_read_again_or_changed() {
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
                (ToolKind::Read, true),
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

    #[test]
    fn what_came_behind_a_result_tells_how_much_it_is_wanted() {
        let (whole, part) = (r#"{"file_path":"/a"}"#, r#"{"file_path":"/a","offset":5,"limit":9}"#);
        let other = r#"{"file_path":"/a","offset":50,"limit":9}"#;
        // Calls from the newest to the oldest, and what holds of the last of them.
        let since = |calls: &[(ToolKind, &str)]| {
            let mut files = Files::default();
            calls.iter().map(|(kind, input)| files.since(*kind, Some("/a"), input)).last().unwrap()
        };
        use ToolKind::{Edit, Read, Shell, Write};
        assert_eq!(since(&[(Read, whole)]), Since::Nothing);
        assert_eq!(since(&[(Read, whole), (Read, part)]), Since::ShownAgain, "all of it");
        assert_eq!(since(&[(Read, part), (Read, part)]), Since::ShownAgain, "the same lines");
        assert_eq!(since(&[(Read, part), (Read, other)]), Since::Nothing, "other lines");
        assert_eq!(since(&[(Read, part), (Read, whole)]), Since::Nothing, "less of it");
        assert_eq!(since(&[(Edit, "{}"), (Read, whole)]), Since::Nothing, "changed once");
        assert_eq!(since(&[(Edit, "{}"), (Write, "{}"), (Read, whole)]), Since::Changed);
        assert_eq!(since(&[(Read, whole), (Edit, "{}"), (Edit, "{}"), (Read, whole)]), Since::ShownAgain);
        assert_eq!(since(&[(Read, whole), (Shell, whole)]), Since::Nothing, "no file is shown");
        let mut files = Files::default();
        files.since(Read, Some("/b"), whole);
        assert_eq!(files.since(Read, Some("/a"), whole), Since::Nothing, "another file");
        assert_eq!(files.since(Read, None, whole), Since::Nothing);
    }
}
