//! Real summaries, as other agents recorded them, and extractive ones of real sessions, through the audit.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;

use memchr::memmem;
use pal_context::{AuditBudgets, AuditInput, Audited, audit};
use pal_extract::{Facts, paths_named, summary};
use pal_import::{Measure, Options};
use pal_model::{Audit, Body, Carried, Content, Entry, Text};

struct Thirds;

impl Measure for Thirds {
    fn text(&self, _model: &str, text: &str) -> f64 {
        text.len() as f64 / 3.0
    }

    fn json(&self, _model: &str, json: &str) -> f64 {
        json.len() as f64 / 3.0
    }
}

fn entries(file: &Path) -> Vec<Entry> {
    let source = std::fs::read(file).unwrap();
    let Ok(imported) = pal_import::import(&source, &Options { measure: &Thirds, strict: false }) else {
        return Vec::new();
    };
    let log = Text::from(imported.log);
    log.lines().map(|line| Entry::parse(log.slice_of(line)).unwrap()).collect()
}

fn text(content: &Content) -> String {
    let texts = content.blocks().iter().filter_map(|block| block.string("text").or(block.string("content")));
    texts.map(|text| text.into_owned()).collect::<Vec<_>>().join("\n\n")
}

fn audited(facts: &Facts, text: &str, before: &[Entry], budgets: AuditBudgets) -> Audited {
    let lines: Vec<&str> = before.iter().map(|entry| entry.line.as_str()).collect();
    audit(&AuditInput {
        facts,
        carried: &Carried::default(),
        summary: text,
        kept: &[],
        budgets,
        estimate: &|text| text.len().div_ceil(3) as u64,
        transcript: "the log",
        seen: &|path| lines.iter().any(|line| memmem::find(line.as_bytes(), path.as_bytes()).is_some()),
    })
}

const FULL: AuditBudgets = AuditBudgets { user_tokens: 12_000, repair_tokens: 4_000 };

/// Whatever a summary was like, an audited one is complete, and says so when it is audited again.
fn check_repaired(facts: &Facts, text: &str, before: &[Entry], budgets: AuditBudgets) -> Audit {
    let first = audited(facts, text, before, budgets);
    let again = audited(facts, &format!("{text}\n\n{}", first.repairs), before, budgets);
    assert_eq!(again.repairs, "");
    let figures = &first.audit;
    let found =
        figures.user_messages_verbatim + figures.user_messages_repaired + figures.user_messages_by_pointer;
    assert_eq!(found, figures.user_messages);
    assert_eq!(figures.user_messages, facts.words.len() as u64 + facts.pointed);
    first.audit
}

#[test]
fn recorded_summaries_are_audited() {
    let (mut summaries, mut invented, mut named) = (0u64, 0u64, 0);
    let mut all = Audit::default();
    for file in pal_testkit::session_files() {
        let entries = entries(&file);
        let mut from = 0;
        for (index, entry) in entries.iter().enumerate() {
            let Body::Boundary(boundary) = &entry.body else { continue };
            let text = text(&boundary.summary);
            let facts = Facts::of_entries(&entries[from..index]);
            if !text.is_empty() && facts.messages > 0 {
                let figures = check_repaired(&facts, &text, &entries[..index], FULL);
                let name = file.file_name().unwrap().to_string_lossy();
                println!(
                    "{name}: {} bytes, messages {}/{}, paths {}/{}, todos {}/{}, error {:?}, invented {:?}",
                    text.len(),
                    figures.user_messages_verbatim,
                    figures.user_messages,
                    figures.paths_kept,
                    figures.paths,
                    figures.todos_kept,
                    figures.todos,
                    figures.error_kept,
                    figures.invented
                );
                // Other agents name their own transcript in the message around the summary; the rest was seen.
                assert!(
                    figures.invented.iter().all(|path| path.ends_with(".jsonl")),
                    "{:?}",
                    figures.invented
                );
                summaries += 1;
                named += paths_named(&text).len();
                invented += figures.invented.len() as u64;
                all.user_messages += figures.user_messages;
                all.user_messages_verbatim += figures.user_messages_verbatim;
                all.paths += figures.paths;
                all.paths_kept += figures.paths_kept;
            }
            from = index;
        }
    }
    println!(
        "{summaries} summaries: {}/{} messages word for word, {}/{} written files named, {invented} of {named} paths not seen",
        all.user_messages_verbatim, all.user_messages, all.paths_kept, all.paths
    );
}

#[test]
fn extractive_summaries_invent_nothing_and_are_mended() {
    for file in pal_testkit::session_files() {
        let entries = entries(&file);
        let facts = Facts::of_entries(&entries);
        for (room, scale) in [(0, 10), (3_000, 10), (12_000, 5), (80_000, 1)] {
            let text = summary(&facts, room);
            assert!(
                text.len() <= room.max(600),
                "{} bytes in a room of {room}: {}",
                text.len(),
                file.display()
            );
            let budgets = AuditBudgets { user_tokens: 12_000 / scale, repair_tokens: 4_000 / scale };
            let figures = check_repaired(&facts, &text, &entries, budgets);
            assert_eq!(figures.invented, Vec::<String>::new(), "{} {room}", file.display());
            assert_eq!(Facts::of_entries(&entries), facts);
        }
    }
}
