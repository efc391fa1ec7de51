//! Independent audit of summaries: what a summary kept of the messages it replaces.
//!
//! It reads only entries and summaries and shares no code with the summarizer.

use std::collections::BTreeSet;

use pal_model::{
    BlockType, Boundary, Content, ContentBlock, DecisionKind, EntryBody, EntryId, LogEntry, MessageOrigin,
    member_string, object_fields,
};
use pal_view::View;
use serde::Serialize;

use crate::replay::recorded_session::texts;

/// Audit of a summary against the messages it replaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AuditTotals {
    /// User messages that it replaces.
    pub user_messages: u64,
    /// Those it contains verbatim.
    pub user_messages_verbatim: u64,
    /// Those it references by their position in the log, as counted by the engine, and kept ones of which the view shows the
    /// beginning and the file with all of it.
    pub user_messages_by_pointer: u64,
    /// Files that calls named, or, where the engine made the summary, edited.
    pub paths: u64,
    /// Those of them that it names.
    pub paths_kept: u64,
    /// Files that it names and that occur nowhere in the replaced messages.
    pub invented: u64,
}

impl AuditTotals {
    /// Of a view that a compaction of the engine made, and all that was said before. Whether the words of people are in
    /// it is looked up here; the rest is what the engine says of itself.
    pub(crate) fn of_view(view: &View, said: &[LogEntry], boundary: &Boundary) -> AuditTotals {
        let own = boundary.audit.clone().unwrap_or_default();
        let mut shown: Vec<String> =
            [&boundary.lead, &boundary.summary].into_iter().flat_map(texts).collect();
        shown.extend(view.visible_blocks().flat_map(|(_, blocks)| texts(&blocks.into_iter().collect())));
        let mut audit = AuditTotals {
            paths: own.paths,
            paths_kept: own.paths_kept + own.paths_repaired,
            invented: own.invented.len() as u64,
            user_messages_by_pointer: own.user_messages_by_pointer,
            ..AuditTotals::default()
        };
        for entry in said {
            let EntryBody::User(user) = &entry.body else { continue };
            let words = texts(&user.content);
            if user.origin != MessageOrigin::Person || words.iter().all(|text| text.trim().is_empty()) {
                continue;
            }
            audit.user_messages += 1;
            let stands = words.iter().all(|words| shown.iter().any(|text| text.contains(words.trim())));
            audit.user_messages_verbatim += u64::from(stands);
            let reference = spill_reference(view, entry.id).filter(|_| !stands);
            let is_referenced =
                reference.is_some_and(|reference| shown.iter().any(|text| text.contains(reference.trim())));
            audit.user_messages_by_pointer += u64::from(is_referenced);
        }
        audit
    }

    /// Of a summary and the entries that it stands for. A summary among these is a source like any other.
    pub(crate) fn of(summary: &Content, entries: &[LogEntry]) -> AuditTotals {
        let summary = texts(summary).join("\n");
        let mut audit = AuditTotals::default();
        let mut paths = BTreeSet::new();
        for entry in entries {
            match &entry.body {
                EntryBody::User(user) if user.origin == MessageOrigin::Person => {
                    let said = texts(&user.content);
                    if said.iter().all(|text| text.trim().is_empty()) {
                        continue;
                    }
                    audit.user_messages += 1;
                    let stands = said.iter().all(|text| summary.contains(text.trim()));
                    audit.user_messages_verbatim += u64::from(stands);
                }
                EntryBody::Assistant(assistant) => {
                    paths.extend(assistant.content.blocks().iter().filter_map(path_of_call));
                }
                _ => {}
            }
        }
        audit.paths = paths.len() as u64;
        audit.paths_kept = paths.iter().filter(|path| summary.contains(tail(path))).count() as u64;
        let is_source = |name: &str| entries.iter().any(|entry| entry.line.contains(name));
        audit.invented = named_files(&summary).into_iter().filter(|name| !is_source(name)).count() as u64;
        audit
    }
}

/// The file that a call names.
fn path_of_call(block: &ContentBlock) -> Option<String> {
    const KEYS: [&str; 4] = ["file_path", "path", "notebook_path", "absolute_path"];
    if block.kind() != BlockType::ToolUse {
        return None;
    }
    let input = object_fields(block.field("input")?).ok()?;
    let path = KEYS.iter().find_map(|key| member_string(&input, key))?;
    (!path.trim().is_empty()).then(|| path.into_owned())
}

/// Text that stands for a kept message whose words are in a file; none if the message was summarized or is whole.
fn spill_reference(view: &View, message: EntryId) -> Option<&str> {
    view.visible_entries().find(|shown| shown.entry.id == message)?;
    view.branch().iter().find_map(|entry| match &entry.body {
        EntryBody::Decision(decision) => match &decision.kind {
            DecisionKind::Spill { entry: Some(spilled), text, .. } if *spilled == message => {
                Some(text.as_str())
            }
            _ => None,
        },
        _ => None,
    })
}

/// Identification of a file in prose: its name with its folder.
fn tail(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    let mut slashes = path.rmatch_indices('/').map(|(at, _)| at);
    match (slashes.next(), slashes.next()) {
        (Some(_), Some(second)) => path.get(second + 1..).unwrap_or(path),
        _ => path.trim_start_matches('/'),
    }
}

/// File names in a text that include a folder.
fn named_files(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '@' | '+' | '~' | ':');
    let words = text.split(|c: char| !is_part(c)).filter(|word| !word.contains("//"));
    let paths = words.filter_map(|word| {
        let word = word.split(':').next().unwrap_or(word).trim_end_matches('.');
        let (_, name) = word.rsplit_once('/')?;
        let (stem, extension) = name.rsplit_once('.')?;
        let is_extension =
            (1..=5).contains(&extension.len()) && extension.chars().all(|c| c.is_ascii_alphanumeric());
        (is_extension && !stem.is_empty() && extension.chars().any(|c| c.is_ascii_alphabetic()))
            .then_some(name)
    });
    paths.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pal_model::SharedText;

    fn entries(payloads: &[&str]) -> Vec<LogEntry> {
        let entry = |(at, payload): (usize, &&str)| {
            let line = format!(
                r#"{{"v":1,"id":"01890000-0000-7000-8000-{at:012}","parent":null,"at":"2026-11-15T09:00:00.000Z",{payload}}}"#
            );
            LogEntry::parse(SharedText::from(line)).unwrap()
        };
        payloads.iter().enumerate().map(entry).collect()
    }

    #[test]
    fn a_summary_is_held_against_what_it_stands_for() {
        let entries = entries(&[
            r#""kind":"user","origin":"person","content":"Fix the parser.\nKeep the tests.""#,
            r#""kind":"user","origin":"person","content":"And hurry.""#,
            r#""kind":"user","origin":"agent","content":"not a person""#,
            r#""kind":"assistant","content":[{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"/home/me/src/parse.rs"}},{"type":"tool_use","id":"t2","name":"Read","input":{"file_path":"/home/me/src/lex.rs"}}]"#,
        ]);
        let summary = Content::parse(&SharedText::from(
            r#""They said: Fix the parser.\nKeep the tests. See `src/parse.rs:12`, docs/made-up.md, and https://example.org/a/b.html; 3/4.5 of it.""#,
        ));
        let expected = AuditTotals {
            user_messages: 2,
            user_messages_verbatim: 1,
            paths: 2,
            paths_kept: 1,
            invented: 1,
            ..AuditTotals::default()
        };
        assert_eq!(AuditTotals::of(&summary, &entries), expected);
    }

    #[test]
    fn files_are_known_by_name_and_folder() {
        assert_eq!((tail("/a/b/c.rs"), tail("b/c.rs"), tail("/c.rs")), ("b/c.rs", "b/c.rs", "c.rs"));
        let found = named_files("src/a.rs, (lib/b.test.ts) and v1/2.0 or and/or ./x/.env ~/n/k.toml.");
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["a.rs", "b.test.ts", "k.toml"]);
    }
}
