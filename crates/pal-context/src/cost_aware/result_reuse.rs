//! Probability that removed results are needed again, by tool and by the number of newer results.
//!
//! [`observe_reuse`] observes reuse in a recorded log; `xtask fit` aggregates it into the table in
//! `policy_figures.rs`.

use std::borrow::Cow;

use pal_model::{BlockType, ContentBlock, EntryBody, LogEntry, ToolKind, ToolUseId, member, object_fields};
use rustc_hash::FxHashMap;

use super::{FittedFigures, fitted_figures};
use crate::visible_call::VisibleCall;

/// Age of a result, by the number of newer ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ResultAge {
    /// Fewer than 5 newer results.
    Fresh,
    /// Fewer than 15 newer results.
    Recent,
    /// Fewer than 40 newer results.
    Aged,
    /// 40 or more newer results.
    Old,
}

impl ResultAge {
    /// All ages, youngest first.
    pub const ALL: [ResultAge; 4] = [ResultAge::Fresh, ResultAge::Recent, ResultAge::Aged, ResultAge::Old];

    /// Age of a result with `newer` newer ones.
    pub fn of(newer: usize) -> ResultAge {
        match newer {
            0..5 => ResultAge::Fresh,
            5..15 => ResultAge::Recent,
            15..40 => ResultAge::Aged,
            _ => ResultAge::Old,
        }
    }

    /// Number of newer results at which the age begins.
    fn begins(self) -> usize {
        match self {
            ResultAge::Fresh => 0,
            ResultAge::Recent => 5,
            ResultAge::Aged => 15,
            ResultAge::Old => 40,
        }
    }
}

/// Later activity on the file that a result shows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FileActivity {
    /// None.
    Nothing,
    /// The file was changed more than once: it is being worked on.
    Changed,
    /// The file was shown again, so the earlier result is not missed.
    ShownAgain,
}

impl FileActivity {
    /// All kinds of activity.
    pub const ALL: [FileActivity; 3] =
        [FileActivity::Nothing, FileActivity::Changed, FileActivity::ShownAgain];
}

/// Minimum changes of a file that is being worked on.
const CHANGES_MIN: usize = 2;

/// Files of results, visited from the newest to the oldest.
#[derive(Default)]
pub(crate) struct FileHistory {
    newer: FxHashMap<String, NewerActivity>,
}

/// Activity on a file in newer results.
#[derive(Default)]
struct NewerActivity {
    shows_all: bool,
    reads: Vec<String>,
    changes: usize,
}

impl FileHistory {
    /// Returns the later activity for the result of a call; records the call for older results.
    pub(crate) fn since(&mut self, kind: ToolKind, path: Option<&str>, input: &str) -> FileActivity {
        let Some(path) = path else { return FileActivity::Nothing };
        let newer = self.newer.entry(path.to_owned()).or_default();
        match kind {
            ToolKind::Read => {
                let since = match newer.shows_all || newer.reads.iter().any(|other| other == input) {
                    true => FileActivity::ShownAgain,
                    false if newer.changes >= CHANGES_MIN => FileActivity::Changed,
                    false => FileActivity::Nothing,
                };
                let members = object_fields(input).unwrap_or_default();
                newer.shows_all |= ["offset", "limit"].iter().all(|name| member(&members, name).is_none());
                newer.reads.push(input.to_owned());
                since
            }
            ToolKind::Edit | ToolKind::Write => {
                newer.changes += 1;
                FileActivity::Nothing
            }
            _ => FileActivity::Nothing,
        }
    }
}

/// Probability that a result is needed again.
pub fn reuse_probability(
    figures: &FittedFigures,
    kind: ToolKind,
    age: ResultAge,
    since: FileActivity,
) -> f64 {
    match (kind, since) {
        (ToolKind::Read, FileActivity::Nothing) => figures.read_reuse[age as usize],
        (ToolKind::Read, FileActivity::Changed) => figures.changed_read_reuse[age as usize],
        _ => fitted_figures::OTHER_REUSE,
    }
}

/// Observation of one result at one age: was it needed later?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReuseObservation {
    /// Kind of the tool.
    pub kind: ToolKind,
    /// Age of the result.
    pub age: ResultAge,
    /// Activity on its file by then.
    pub since: FileActivity,
    /// Length in bytes.
    pub bytes: usize,
    /// True if it was needed later.
    pub is_needed: bool,
}

/// One result of a log.
struct LoggedResult<'a> {
    kind: ToolKind,
    path: Option<Cow<'a, str>>,
    input: &'a str,
    text: &'a str,
}

/// Observes reuse in a log. A file read is needed if the file is read again or changed, unless a newer read
/// shows it; any other result is needed if the same call returns the same again.
pub fn observe_reuse(entries: &[LogEntry]) -> Vec<ReuseObservation> {
    let results = results(entries);
    let mut found = Vec::new();
    for (at, result) in results.iter().enumerate() {
        let later = &results[at + 1..];
        let is_read = result.kind == ToolKind::Read;
        let touches = |other: &LoggedResult<'_>| match is_read {
            true => other.path == result.path && other.path.is_some() && other.is_about_a_file(),
            false => other.kind == result.kind && other.input == result.input && other.text == result.text,
        };
        let touched: Vec<usize> =
            later.iter().enumerate().filter(|(_, other)| touches(other)).map(|(at, _)| at).collect();
        for age in ResultAge::ALL {
            let newer = age.begins();
            // Too few newer results, or the same came back by then.
            if newer > later.len() || (!is_read && touched.first().is_some_and(|touch| *touch < newer)) {
                break;
            }
            let mut files = FileHistory::default();
            let behind = later[..newer].iter().rev().chain([result]);
            let since = behind.map(|one| files.since(one.kind, one.path.as_deref(), one.input)).last();
            let since = since.unwrap_or(FileActivity::Nothing);
            let is_needed = since != FileActivity::ShownAgain && touched.iter().any(|touch| *touch >= newer);
            found.push(ReuseObservation {
                kind: result.kind,
                age,
                since,
                bytes: result.text.len(),
                is_needed,
            });
        }
    }
    found
}

impl LoggedResult<'_> {
    fn is_about_a_file(&self) -> bool {
        matches!(self.kind, ToolKind::Read | ToolKind::Edit | ToolKind::Write)
    }
}

/// Results of well-known tools, in order.
fn results(entries: &[LogEntry]) -> Vec<LoggedResult<'_>> {
    let mut calls: FxHashMap<&ToolUseId, &ContentBlock> = FxHashMap::default();
    let mut results = Vec::new();
    for entry in entries {
        let content = match &entry.body {
            EntryBody::Assistant(assistant) => &assistant.content,
            EntryBody::User(user) => &user.content,
            EntryBody::Attachment(attachment) => &attachment.content,
            _ => continue,
        };
        for block in content.blocks() {
            match (block.kind(), block.tool_use_id()) {
                (BlockType::ToolUse, Some(id)) => {
                    calls.insert(id, block);
                }
                (BlockType::ToolResult, Some(id)) => {
                    // Each call is answered once.
                    let Some(call) = calls.remove(id).and_then(VisibleCall::read) else { continue };
                    let Some(kind) = call.kind else { continue };
                    let text = block.fields().and_then(|known| member(&known, "content")).unwrap_or_default();
                    results.push(LoggedResult { kind, path: call.path(), input: call.input, text });
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
        let fresh = observe_reuse(&entries).into_iter().filter(|need| need.age == ResultAge::Fresh);
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
    fn other_results_are_needed_if_the_same_recurs() {
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
    fn later_file_activity_is_classified() {
        let (whole, part) = (r#"{"file_path":"/a"}"#, r#"{"file_path":"/a","offset":5,"limit":9}"#);
        let other = r#"{"file_path":"/a","offset":50,"limit":9}"#;
        // Calls from the newest to the oldest; returns the activity for the last of them.
        let since = |calls: &[(ToolKind, &str)]| {
            let mut files = FileHistory::default();
            calls.iter().map(|(kind, input)| files.since(*kind, Some("/a"), input)).last().unwrap()
        };
        use ToolKind::{Edit, Read, Shell, Write};
        assert_eq!(since(&[(Read, whole)]), FileActivity::Nothing);
        assert_eq!(since(&[(Read, whole), (Read, part)]), FileActivity::ShownAgain, "all of it");
        assert_eq!(since(&[(Read, part), (Read, part)]), FileActivity::ShownAgain, "the same lines");
        assert_eq!(since(&[(Read, part), (Read, other)]), FileActivity::Nothing, "other lines");
        assert_eq!(since(&[(Read, part), (Read, whole)]), FileActivity::Nothing, "less of it");
        assert_eq!(since(&[(Edit, "{}"), (Read, whole)]), FileActivity::Nothing, "changed once");
        assert_eq!(since(&[(Edit, "{}"), (Write, "{}"), (Read, whole)]), FileActivity::Changed);
        assert_eq!(
            since(&[(Read, whole), (Edit, "{}"), (Edit, "{}"), (Read, whole)]),
            FileActivity::ShownAgain
        );
        assert_eq!(since(&[(Read, whole), (Shell, whole)]), FileActivity::Nothing, "no file is shown");
        let mut files = FileHistory::default();
        files.since(Read, Some("/b"), whole);
        assert_eq!(files.since(Read, Some("/a"), whole), FileActivity::Nothing, "another file");
        assert_eq!(files.since(Read, None, whole), FileActivity::Nothing);
    }
}
