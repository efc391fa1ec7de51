//! Guarantees of the audit, on chosen cases and as laws.

use pal_extract::{TaskItem, ToolFailure, TouchedFile, UserWords, contains_bounded};
use pal_model::{EntryId, PriorUserMessage};
use proptest::prelude::*;

use super::*;

const LOG: &str = "/s/log.jsonl";

/// Four bytes per token; any rule will do.
fn estimate(text: &str) -> u64 {
    text.len().div_ceil(4) as u64
}

fn words(number: u128, text: &str) -> UserWords {
    UserWords { entry: Some(EntryId::from_bits(number)), text: text.to_owned() }
}

fn written(path: &str, last: usize) -> TouchedFile {
    TouchedFile { path: path.to_owned(), reads: 0, writes: 1, change: None, last_call_number: last }
}

fn task(what: &str, status: &str) -> TaskItem {
    TaskItem { text: what.to_owned(), status: status.to_owned() }
}

fn trouble(line: &str) -> ToolFailure {
    ToolFailure { call: "Bash make".into(), lines: vec![line.to_owned()], user_reply: None, follow_up: None }
}

/// A session with one of everything.
fn facts() -> ConversationFacts {
    ConversationFacts {
        words: vec![
            words(1, "Fix the parser.\n  Keep the tabs."),
            words(2, "ok"),
            words(3, "Never touch vendor/"),
        ],
        files: vec![
            written("/r/a/src/lib.rs", 1),
            written("/r/b/src/lib.rs", 2),
            written("/r/b/src/date.rs", 3),
        ],
        failures: vec![trouble("error: old"), trouble("error[E0382]: use of moved value")],
        tasks: vec![task("update the changelog", "pending"), task("fix it", "completed")],
        ..ConversationFacts::default()
    }
}

const GOOD: &str = "The user:\nFix the parser.\n  Keep the tabs.\n- ok\n- Never touch vendor/\nEdited /r/a/src/lib.rs, \
    `b/src/lib.rs` and src/date.rs:12.\nerror[E0382]: use of moved value\nTo do: Update the   changelog.";

struct AuditCase<'a> {
    facts: &'a ConversationFacts,
    carried: PriorUserMessages,
    kept: &'a [&'a str],
    budgets: AuditBudgets,
    previous: Option<&'a SummaryAudit>,
    /// Output of the tools, as it is in the log.
    log: &'a str,
}

impl<'a> AuditCase<'a> {
    /// A first summary with nothing kept and room for every repair.
    fn of(facts: &'a ConversationFacts) -> AuditCase<'a> {
        AuditCase {
            facts,
            carried: PriorUserMessages::default(),
            kept: &[],
            budgets: AuditBudgets { user_tokens: 12_000, repair_tokens: 4_000 },
            previous: None,
            log: "cat docs/seen.md: ls src gives main.rs",
        }
    }

    fn run(&self, summary: &str) -> AuditOutcome {
        audit(&AuditInput {
            facts: self.facts,
            carried: &self.carried,
            summary,
            kept: self.kept,
            budgets: self.budgets,
            estimate: &estimate,
            transcript: LOG,
            seen: &|text| self.log.contains(text),
            confirmed: &|text| self.log.contains(text),
            previous: self.previous,
        })
    }
}

fn run(facts: &ConversationFacts, summary: &str) -> AuditOutcome {
    AuditCase::of(facts).run(summary)
}

#[test]
fn a_good_summary_needs_no_repair() {
    let audited = run(&facts(), GOOD);
    assert_eq!(audited.repairs, "");
    let wanted = SummaryAudit {
        user_messages: 3,
        user_messages_verbatim: 3,
        paths: 3,
        paths_kept: 3,
        todos: 1,
        todos_kept: 1,
        error_kept: Some(true),
        ..SummaryAudit::default()
    };
    assert_eq!(audited.audit, wanted);
    assert_eq!(audited.carried.messages.len(), 3);
    assert_eq!(run(&ConversationFacts::default(), "").audit, SummaryAudit::default());
}

#[test]
fn missing_items_are_appended() {
    let audited = run(&facts(), "Tokens were fixed in src/lib.rs, as in `Fix the parser. Keep the tabs.`");
    let figures = &audited.audit;
    // `ok` inside of a word, words with other white space and an end that two files share do not count.
    assert_eq!((figures.user_messages_verbatim, figures.user_messages_repaired), (0, 3));
    assert_eq!((figures.paths_kept, figures.paths_repaired), (0, 3));
    assert_eq!((figures.todos_repaired, figures.error_kept), (1, Some(false)));
    for part in [
        RESTORED_HEADING,
        "<user_message>\nFix the parser.\n  Keep the tabs.\n</user_message>\n<user_message>\nok\n</user_message>",
        "- Edited: /r/b/src/date.rs\n- Edited: /r/b/src/lib.rs\n- Edited: /r/a/src/lib.rs\n",
        "- An open task, pending: update the changelog\n",
        "- The last error: Bash make: error[E0382]: use of moved value\n",
    ] {
        assert!(audited.repairs.contains(part), "{part}\n{}", audited.repairs);
    }
    assert!(!audited.repairs.contains("error: old") && !audited.repairs.contains("fix it"));
}

#[test]
fn kept_messages_count_as_visible() {
    let kept = ["Never touch vendor/", "Fix the parser.\n  Keep the tabs."];
    let facts = facts();
    let audited = AuditCase { kept: &kept, ..AuditCase::of(&facts) }.run("ok");
    assert_eq!((audited.audit.user_messages_verbatim, audited.audit.user_messages_repaired), (3, 0));
    assert_eq!(audited.carried.messages.len(), 3, "what is kept now may be gone next time");
}

#[test]
fn earlier_words_are_carried_and_counted_once() {
    let carried = PriorUserMessages {
        messages: vec![
            PriorUserMessage { entry: EntryId::from_bits(90), text: "the very first wish".into() },
            PriorUserMessage {
                entry: EntryId::from_bits(1),
                text: "Fix the parser.\n  Keep the tabs.".into(),
            },
        ],
        omitted: 4,
    };
    let facts = facts();
    let audited = AuditCase { carried, ..AuditCase::of(&facts) }.run(GOOD);
    assert_eq!((audited.audit.user_messages, audited.audit.user_messages_verbatim), (8, 3));
    assert_eq!((audited.audit.user_messages_repaired, audited.audit.user_messages_by_pointer), (1, 4));
    assert!(audited.repairs.contains("the very first wish") && audited.repairs.contains("The 4 earliest"));
    assert_eq!((audited.carried.messages.len(), audited.carried.omitted), (4, 4));
    assert_eq!(audited.carried.messages[0].text, "the very first wish");
}

#[test]
fn over_budget_newest_messages_stay_and_others_get_a_pointer() {
    let facts = ConversationFacts {
        words: (0..40).map(|at| words(at, &format!("wish {at}: {}", "x".repeat(400)))).collect(),
        ..ConversationFacts::default()
    };
    let budgets = AuditBudgets { user_tokens: 1_200, repair_tokens: 400 };
    let audited = AuditCase { budgets, ..AuditCase::of(&facts) }.run("nothing");
    let repaired = audited.audit.user_messages_repaired;
    assert!((7..=10).contains(&repaired), "{repaired}");
    assert_eq!(audited.audit.user_messages_by_pointer, 40 - repaired);
    assert!(audited.repairs.contains("wish 39: ") && !audited.repairs.contains("wish 0: "));
    assert!(
        audited.repairs.contains(&format!("The {} earliest", 40 - repaired)) && audited.repairs.contains(LOG)
    );
    assert!(estimate(&audited.repairs) <= 1_600);
    assert!(audited.carried.messages.len() as u64 + audited.carried.omitted == 40);

    let long = "y".repeat(100_000);
    let facts =
        ConversationFacts { words: vec![words(1, &long), words(2, "short")], ..ConversationFacts::default() };
    let audited = AuditCase { budgets, ..AuditCase::of(&facts) }.run("nothing");
    assert_eq!((audited.audit.user_messages_repaired, audited.audit.user_messages_by_pointer), (1, 1));
    assert!(audited.repairs.contains(&"y".repeat(400)) && audited.repairs.len() < 2_000);
    assert!(
        audited.repairs.contains(&EntryId::from_bits(1).to_string()) && audited.repairs.contains("short")
    );
}

#[test]
fn short_words_count_only_as_a_whole_message() {
    let facts = ConversationFacts { words: vec![words(1, "commit")], ..ConversationFacts::default() };
    let verbatim = |summary: &str| run(&facts, summary).audit.user_messages_verbatim == 1;
    for summary in [
        "The last commit was made.",
        "to commit",
        "commit: done",
        "don'commit'",
        "\"x.\" commit \"y\"",
        "- commit it",
    ] {
        assert!(!verbatim(summary), "{summary}");
        let audited = run(&facts, summary);
        let whole = format!("{summary}\n\n{}", audited.repairs);
        assert_eq!((audited.audit.user_messages_repaired, run(&facts, &whole).repairs.as_str()), (1, ""));
    }
    for summary in [
        "commit",
        "x\n  commit  \ny",
        "- commit",
        "   * commit",
        "12. commit",
        "said \"commit\", so",
        "said “commit”",
        "said `commit`.",
        "- \"commit\"",
    ] {
        assert!(verbatim(summary), "{summary}");
    }
    let long = "commit all of it and then push it to the fork";
    let facts = ConversationFacts { words: vec![words(1, long)], ..ConversationFacts::default() };
    assert_eq!(run(&facts, &format!("The user said {long}, and so")).audit.user_messages_verbatim, 1);
}

#[test]
fn message_with_several_texts_counts_once() {
    let facts = ConversationFacts {
        words: vec![words(1, "look at this"), words(1, "and at that"), words(2, "go")],
        ..ConversationFacts::default()
    };
    let audited = run(&facts, "- look at this\n- go");
    let figures = &audited.audit;
    assert_eq!(
        (figures.user_messages, figures.user_messages_verbatim, figures.user_messages_repaired),
        (2, 1, 1)
    );
    assert!(audited.repairs.contains("and at that") && !audited.repairs.contains("look at this"));
    assert_eq!((audited.carried.messages.len(), audited.carried.omitted), (3, 0));
    let budgets = AuditBudgets { user_tokens: 0, repair_tokens: 0 };
    let audited = AuditCase { budgets, ..AuditCase::of(&facts) }.run("nothing");
    assert_eq!((audited.audit.user_messages_by_pointer, audited.carried.omitted), (2, 2));
}

#[test]
fn paths_are_found_as_logs_spell_them() {
    let log = r#"{"a":"docs\/seen\/one.md caf\u00e9\/men\u00FC.md docs/r\u00e9sum\u00e9.md"}"#;
    let facts = ConversationFacts::default();
    let summary = "Read docs/seen/one.md, docs/résumé.md and docs/naïve.md.";
    assert_eq!(AuditCase { log, ..AuditCase::of(&facts) }.run(summary).audit.invented, ["docs/naïve.md"]);
    assert_eq!(named_paths::escaped("a\"b"), ["a\\\"b"]);
    assert!(named_paths::escaped("main.rs").is_empty());
}

#[test]
fn invented_paths_are_flagged() {
    let summary =
        "Changed src/ghost.rs, docs/seen.md, src/main.rs and /r/b/src/date.rs; and/or https://x.io/a.html.";
    let audited = run(&facts(), summary);
    assert_eq!(audited.audit.invented, ["src/ghost.rs"]);
    assert!(
        audited.repairs.contains("- Not seen in the session, so check before relying on it: src/ghost.rs\n")
    );
}

#[test]
fn flagged_paths_stay_flagged_until_a_tool_shows_them() {
    let summary = "Changed src/ghost.rs and docs/old.md.";
    let first = run(&facts(), &summary.replace(" and docs/old.md", ""));
    // The summary is part of the next stretch now, and the model has talked about it.
    let mut later = ConversationFacts {
        earlier_summaries: vec![format!("{summary}\n\n{}", first.repairs)],
        model_texts: vec!["I look at /r/b/src/ghost.rs.".into()],
        ..facts()
    };
    let again = |facts: &ConversationFacts, summary: &str| {
        AuditCase { previous: Some(&first.audit), ..AuditCase::of(facts) }.run(summary).audit.invented
    };
    assert_eq!(again(&later, summary), ["src/ghost.rs"], "what was not flagged counts as seen");
    assert_eq!(again(&later, "Changed /r/b/src/ghost.rs."), ["/r/b/src/ghost.rs"]);
    later.files.push(written("/r/b/src/ghost.rs", 9));
    assert!(again(&later, summary).is_empty(), "it was written since");
}

#[test]
fn invented_user_words_are_flagged() {
    let list = |items: &str| format!("{GOOD}\n## 6. All user messages\n{items}\n\n## 7. Pending tasks\nNone");
    for (summary, invented) in [
        (list("- Fix the parser.\n  Keep the tabs.\n- ok\n- \"Never touch vendor/\""), vec![]),
        (list("- Fix the parser … the tabs [… 20 more bytes]\n- None seen."), vec![]),
        (list("- Fix that parser and keep all the tabs"), vec![]),
        (list("- Fix the parser.\n- Delete the old branches"), vec!["Delete the old branches"]),
        (list("1. “Push it to production”, twice"), vec!["Push it to production"]),
        (format!("{GOOD}\nThe user said \"deploy it on friday\"."), vec!["deploy it on friday"]),
        (format!("{GOOD}\nThe user said \"never touch vendor/\" and \"ls src gives main\"."), vec![]),
        (format!("{GOOD}\nThe error \"deploy it on friday\" is new."), vec![]),
    ] {
        let audited = run(&facts(), &summary);
        assert_eq!(audited.audit.invented_words, invented, "{summary}");
        let is_told = audited.repairs.contains("but the user never wrote them: ");
        assert_eq!(is_told, !invented.is_empty(), "{}", audited.repairs);
        // The next summary repeats them: the earlier one is no evidence, as long as all messages are known.
        let facts = ConversationFacts {
            earlier_summaries: vec![format!("{summary}\n\n{}", audited.repairs)],
            has_earlier_words: true,
            ..facts()
        };
        assert_eq!(run(&facts, &summary).audit.invented_words, invented, "{summary}");
        // If some are in the log only, the summary counts, except for what was flagged in it.
        let facts = ConversationFacts { omitted_words: 2, ..facts };
        let case = AuditCase { previous: Some(&audited.audit), ..AuditCase::of(&facts) };
        assert_eq!(case.run(&summary).audit.invented_words, invented, "{summary}");
    }
}

#[test]
fn open_items_of_the_previous_summary_are_restored() {
    let earlier = "## 7. Pending tasks\n- [pending] write the migration guide\n- [pending] release version two\n\
        - fix it\n- bump the minimum compiler version\n\n## 8. Current work\n- x";
    let facts = ConversationFacts { earlier_summaries: vec![earlier.to_owned()], ..facts() };
    let audited = run(&facts, &format!("{GOOD}\nThe minimum version of the compiler was bumped."));
    assert_eq!((audited.audit.todos, audited.audit.todos_kept, audited.audit.todos_repaired), (4, 2, 2));
    assert!(audited.repairs.contains("not named in this one: write the migration guide\n"));
    assert!(audited.repairs.contains("not named in this one: release version two\n"));
    assert!(!audited.repairs.contains("one: fix it"), "a list of tasks says that it is done");
}

fn any_text() -> impl Strategy<Value = String> {
    "([a-c]{1,3}|ok|yes|src/[a-c]\\.rs|- |the user|\n## 6. All user messages\n|\"|every word|…|\n|é| ){0,12}"
}

fn any_facts() -> impl Strategy<Value = ConversationFacts> {
    let said = prop::collection::vec((0u128..8, any_text()), 0..8);
    let paths = prop::collection::vec("(/r/|\\./)?([a-c]/){0,2}[a-c]{1,2}\\.rs", 0..6);
    let tasks = prop::collection::vec((any_text(), prop::bool::ANY), 0..4);
    (said, paths, tasks, prop::option::of(any_text()), prop::option::of(any_text()), 0u64..3).prop_map(
        |(said, paths, tasks, error, earlier, pointed)| ConversationFacts {
            words: said
                .iter()
                .map(|(number, text)| words(*number, text.trim()))
                .filter(|w| !w.text.is_empty())
                .collect(),
            files: paths.iter().enumerate().map(|(at, path)| written(path, at)).collect(),
            tasks: tasks
                .iter()
                .map(|(what, open)| task(what, if *open { "pending" } else { "done" }))
                .collect(),
            failures: error.iter().filter_map(|text| text.split_whitespace().next().map(trouble)).collect(),
            earlier_summaries: earlier.iter().map(|items| format!("## 7. Pending tasks\n{items}")).collect(),
            omitted_words: pointed,
            ..ConversationFacts::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(pal_testkit::cases(1_000)))]

    #[test]
    fn audit_is_complete_idempotent_and_within_budget(
        facts in any_facts(),
        summary in any_text(),
        kept in prop::collection::vec(any_text(), 0..3),
        user_tokens in 0u64..400,
        repair_tokens in 0u64..200,
    ) {
        let kept: Vec<&str> = kept.iter().map(String::as_str).collect();
        let budgets = AuditBudgets { user_tokens, repair_tokens };
        let case = AuditCase { kept: &kept, budgets, ..AuditCase::of(&facts) };
        let AuditOutcome { repairs, audit, carried } = case.run(&summary);
        let whole = format!("{summary}\n\n{repairs}");

        let is_there = |text: &str| contains_bounded(&whole, text) || kept.iter().any(|kept| contains_bounded(kept, text));
        let of = |entry| facts.words.iter().filter(move |words| words.entry == entry);
        let entries: std::collections::BTreeSet<_> = facts.words.iter().map(|words| words.entry).collect();
        let there = entries.iter().filter(|entry| of(**entry).all(|words| is_there(&words.text))).count() as u64;
        prop_assert!(there >= audit.user_messages_verbatim + audit.user_messages_repaired);
        prop_assert_eq!(
            audit.user_messages,
            audit.user_messages_verbatim + audit.user_messages_repaired + audit.user_messages_by_pointer
        );
        prop_assert_eq!(audit.user_messages, entries.len() as u64 + facts.omitted_words);
        prop_assert!(audit.user_messages_by_pointer == 0 || whole.contains(LOG));
        let carried_entries: std::collections::BTreeSet<_> = carried.messages.iter().map(|words| words.entry).collect();
        prop_assert_eq!(carried_entries.len() as u64 + carried.omitted, audit.user_messages);
        prop_assert!(audit.paths_kept + audit.paths_repaired <= audit.paths);

        // Pointers are written even if there is no room for anything else.
        let pointers = 2 * estimate(&"p".repeat(330));
        prop_assert!(estimate(&repairs) <= user_tokens + repair_tokens + pointers, "{}", repairs);

        let again = case.run(&whole);
        prop_assert_eq!(&again.repairs, "");
        prop_assert_eq!(&again.carried, &carried);
        prop_assert_eq!(again.audit.invented, audit.invented);
        prop_assert_eq!(again.audit.invented_words, audit.invented_words);
    }

    #[test]
    fn everything_is_kept_with_enough_room(facts in any_facts(), summary in any_text()) {
        let audited = run(&facts, &summary);
        let again = run(&facts, &format!("{summary}\n\n{}", audited.repairs));
        let entries: std::collections::BTreeSet<_> = facts.words.iter().map(|words| words.entry).collect();
        prop_assert_eq!(again.audit.user_messages_verbatim, entries.len() as u64);
        prop_assert_eq!(again.audit.paths_kept, again.audit.paths);
        prop_assert_eq!(again.audit.todos_kept, again.audit.todos);
        prop_assert_ne!(again.audit.error_kept, Some(false));
    }
}
