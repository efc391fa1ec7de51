//! Real summaries, as other agents recorded them, and extractive ones of real sessions, through the audit.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use memchr::memmem;
use pal_context::{AuditBudgets, AuditInput, AuditOutcome, audit};
use pal_extract::{ConversationFacts, extractive_summary, find_paths};
use pal_model::{Content, EntryBody, LogEntry, PriorUserMessages, SummaryAudit};

use pal_testkit::recorded_entries;

fn text(content: &Content) -> String {
    let texts = content.blocks().iter().filter_map(|block| block.string("text").or(block.string("content")));
    texts.map(|text| text.into_owned()).collect::<Vec<_>>().join("\n\n")
}

fn audited(
    facts: &ConversationFacts,
    text: &str,
    before: &[LogEntry],
    budgets: AuditBudgets,
) -> AuditOutcome {
    let lines: Vec<&str> = before.iter().map(|entry| entry.line.as_str()).collect();
    audit(&AuditInput {
        facts,
        carried: &PriorUserMessages::default(),
        summary: text,
        kept: &[],
        budgets,
        estimate: &|text| text.len().div_ceil(3) as u64,
        transcript: "the log",
        seen: &|path| lines.iter().any(|line| memmem::find(line.as_bytes(), path.as_bytes()).is_some()),
        confirmed: &|_| false,
        previous: None,
    })
}

const FULL: AuditBudgets = AuditBudgets { user_tokens: 12_000, repair_tokens: 4_000 };

/// Any audited summary is complete, and passes a second audit.
fn check_repaired(
    facts: &ConversationFacts,
    text: &str,
    before: &[LogEntry],
    budgets: AuditBudgets,
) -> SummaryAudit {
    let first = audited(facts, text, before, budgets);
    let again = audited(facts, &format!("{text}\n\n{}", first.repairs), before, budgets);
    assert_eq!(again.repairs, "");
    let figures = &first.audit;
    let found =
        figures.user_messages_verbatim + figures.user_messages_repaired + figures.user_messages_by_pointer;
    assert_eq!(found, figures.user_messages);
    assert_eq!(figures.user_messages, facts.words.len() as u64 + facts.omitted_words);
    first.audit
}

#[test]
#[ignore = "needs sessions of other agents: PAL_TEST_DATA"]
fn recorded_summaries_are_audited() {
    let (mut summaries, mut invented, mut named) = (0u64, 0u64, 0);
    let mut all = SummaryAudit::default();
    for file in pal_testkit::session_files() {
        let entries = recorded_entries(&file);
        let mut from = 0;
        for (index, entry) in entries.iter().enumerate() {
            let EntryBody::Boundary(boundary) = &entry.body else { continue };
            let text = text(&boundary.summary);
            let facts = ConversationFacts::from_entries(&entries[from..index]);
            if !text.is_empty() && facts.message_count > 0 {
                let figures = check_repaired(&facts, &text, &entries[..index], FULL);
                let name = file.file_name().unwrap().to_string_lossy();
                println!(
                    "{name}: {} bytes, messages {}/{}, paths {}/{}, todos {}/{}, error {:?}, invented {:?} {:?}",
                    text.len(),
                    figures.user_messages_verbatim,
                    figures.user_messages,
                    figures.paths_kept,
                    figures.paths,
                    figures.todos_kept,
                    figures.todos,
                    figures.error_kept,
                    figures.invented,
                    figures.invented_words
                );
                // Other agents name their own transcript in the message around the summary; the rest
                // occurred.
                assert!(
                    figures.invented.iter().all(|path| path.ends_with(".jsonl")),
                    "{:?}",
                    figures.invented
                );
                summaries += 1;
                named += find_paths(&text).len();
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
fn recorded_sessions_get_extractive_summaries_that_invent_nothing() {
    for file in pal_testkit::session_files() {
        let entries = recorded_entries(&file);
        let facts = ConversationFacts::from_entries(&entries);
        for (room, scale) in [(0, 10), (3_000, 10), (12_000, 5), (80_000, 1)] {
            let text = extractive_summary(&facts, room);
            assert!(
                text.len() <= room.max(600),
                "{} bytes in a room of {room}: {}",
                text.len(),
                file.display()
            );
            let budgets = AuditBudgets { user_tokens: 12_000 / scale, repair_tokens: 4_000 / scale };
            let figures = check_repaired(&facts, &text, &entries, budgets);
            assert_eq!(figures.invented, Vec::<String>::new(), "{} {room}", file.display());
            assert_eq!(figures.invented_words, Vec::<String>::new(), "{} {room}", file.display());
            assert_eq!(ConversationFacts::from_entries(&entries), facts);
        }
    }
}
