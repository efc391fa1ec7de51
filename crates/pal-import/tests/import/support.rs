//! Shared test support: an estimator, the laws of every log, and real sessions if available.

use std::collections::{BTreeMap, HashSet};

use pal_import::{ImportOptions, ImportedSession, import};
use pal_model::{EntryBody, LogEntry, MessageOrigin, SharedText};
use pal_testkit::ByteThirds;

pub(crate) fn lenient() -> ImportOptions<'static> {
    ImportOptions { measure: &ByteThirds, strict: false }
}

/// Imports a source and checks the laws of every import; returns the entries too.
pub(crate) fn imported(source: &[u8]) -> (ImportedSession, Vec<LogEntry>) {
    let imported = import(source, &lenient()).unwrap_or_else(|error| panic!("{error}"));
    let entries = check_log(&imported);
    assert_eq!(import(source, &lenient()).unwrap().log, imported.log, "the same bytes twice");
    (imported, entries)
}

/// The laws of every log that import writes.
pub(crate) fn check_log(imported: &ImportedSession) -> Vec<LogEntry> {
    assert!(imported.log.ends_with('\n'));
    let entries: Vec<LogEntry> = imported
        .log
        .lines()
        .map(|line| {
            LogEntry::parse(SharedText::from(line)).unwrap_or_else(|error| panic!("{error}: {line:.200}"))
        })
        .collect();
    let mut ids = HashSet::new();
    let mut parent = None;
    let mut places = BTreeMap::new();
    let mut offset = 0;
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    let mut open = HashSet::new();
    for entry in &entries {
        assert!(!matches!(entry.body, EntryBody::Unknown), "unknown body: {:.200}", entry.line);
        assert!(ids.insert(entry.id), "ids are unique");
        assert_eq!(entry.parent, parent, "each entry follows the one before");
        if let EntryBody::Request(request) = &entry.body {
            assert_eq!(request.last, parent, "a request covers all before it");
        }
        if let EntryBody::Boundary(boundary) = &entry.body {
            assert!(!boundary.summary.blocks().is_empty(), "a boundary has a summary");
            let prefix = boundary.snapshot.prefix.unwrap();
            assert_eq!(places[&prefix.id], prefix.offset.unwrap());
            if let Some(preserved) = &boundary.preserved {
                assert_eq!(places[&preserved.head], preserved.offset.unwrap());
                assert!(preserved.offset.unwrap() <= places[&preserved.tail]);
            }
        }
        match &entry.body {
            EntryBody::Response(response) => assert!(open.insert(response.response.clone()), "one end each"),
            EntryBody::Assistant(assistant) => assert!(assistant.response.is_some()),
            _ => {}
        }
        let kind = match &entry.body {
            EntryBody::Decision(_) => "decision".to_owned(),
            _ => entry.kind().0.to_string(),
        };
        *kinds.entry(kind).or_default() += 1;
        places.insert(entry.id, offset);
        offset += entry.line.len() as u64 + 1;
        parent = Some(entry.id);
    }
    let report = &imported.report;
    let reported: BTreeMap<String, u64> =
        report.entries.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect();
    assert_eq!(kinds, reported, "the report counts what was written");
    assert_eq!(kinds.get("request"), kinds.get("response"), "one request for each response");
    assert_eq!(kinds.get("internal").copied().unwrap_or(0), report.internal_records.len() as u64);
    assert_eq!(typed(&entries).len() as u64, report.user_messages);
    assert!(
        matches!(entries[0].body, EntryBody::Session(_)) && matches!(entries[1].body, EntryBody::Prefix(_))
    );
    for entry in &entries {
        if let EntryBody::Assistant(assistant) = &entry.body {
            assert!(open.contains(assistant.response.as_ref().unwrap()), "every response ends");
        }
    }
    entries
}

/// Typed texts, in order.
pub(crate) fn typed(entries: &[LogEntry]) -> Vec<String> {
    let texts = entries.iter().filter_map(|entry| match &entry.body {
        EntryBody::User(user) if user.origin == MessageOrigin::Person => Some(
            user.content
                .blocks()
                .iter()
                .filter_map(|block| block.string("text"))
                .collect::<Vec<_>>()
                .join("\n"),
        ),
        _ => None,
    });
    texts.collect()
}

/// Recorded sessions of one agent: list rows and bytes; none without `PAL_TEST_DATA`.
pub(crate) fn sessions(agent: &str) -> Vec<(serde_json::Value, Vec<u8>)> {
    let Some(data) = pal_testkit::data_dir() else { return Vec::new() };
    let list = std::fs::read_to_string(data.join("sessions.jsonl")).unwrap();
    let rows = list.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    rows.filter(|row| row["agent"] == agent)
        .map(|row| {
            let source = std::fs::read(data.join(row["file"].as_str().unwrap())).unwrap();
            (row, source)
        })
        .collect()
}
