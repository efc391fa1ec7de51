//! A session that was killed and goes on sends the same bytes as one that was not: real sessions through a log on
//! disk, resumed from its end.

use pal_model::{EntryBody, EntryDraft, IdSource, LogEntry, MessageOrigin, ModelCatalog, Timestamp};
use pal_store::{Log, LogReader, write_new_log};
use pal_testkit::{RandomLogOptions, cases, random_log, session_files};
use pal_view::{Estimator, Lens, RenderOptions, View, ViewScope};
use proptest::prelude::*;
use proptest::test_runner::Config;

use crate::program::imported;

const OPTIONS: RenderOptions = RenderOptions { max_tokens: 8_000, stream: true, spell_out_unseen: false };

fn view(entries: Vec<LogEntry>) -> View {
    let card = ModelCatalog::built_in().find("claude-opus-5-5").card;
    View::from_branch(
        Lens { estimator: Estimator::shipped(card.generation), card, scope: ViewScope::Current },
        entries,
    )
}

/// The body and size that a view gives.
fn shown(view: &View) -> (String, u64, String) {
    (view.render(OPTIONS).body(), view.size().tokens, format!("{:?}", view.state()))
}

#[test]
#[ignore = "needs sessions of other agents: PAL_TEST_DATA"]
fn recorded_sessions_resume_to_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let mut with_boundary = 0;
    for (number, file) in session_files().into_iter().enumerate() {
        let imported = imported(&file);
        let path = directory.path().join(format!("{number}.jsonl"));
        write_new_log(&path, &imported.log).unwrap();
        let whole = LogReader::open(&path).unwrap().whole_branch().unwrap();
        let opened = Log::open(&path, IdSource::seeded(9)).unwrap();
        assert!(whole.problems.is_empty() && opened.branch.problems.is_empty() && opened.torn.is_none());
        with_boundary += usize::from(opened.branch.entries.len() < whole.entries.len());
        let (mut from_tail, mut from_all) = (view(opened.branch.entries), view(whole.entries));
        assert_eq!(shown(&from_tail), shown(&from_all), "{}", file.display());
        // And they go on alike.
        let mut log = opened.log;
        let entry =
            log.append(EntryDraft::user(MessageOrigin::Person, "\"go on\""), Timestamp::default()).unwrap();
        from_tail.push(entry.clone());
        from_all.push(entry);
        assert_eq!(shown(&from_tail), shown(&from_all), "{}", file.display());
        std::fs::remove_file(&path).unwrap();
    }
    println!("{with_boundary} sessions were resumed from a boundary");
}

const EVERYTHING: RandomLogOptions =
    RandomLogOptions { steps: 40, decisions: true, boundaries: true, rewinds: true, prefixes: true };

proptest! {
    #![proptest_config(Config { cases: cases(1_000), failure_persistence: None, ..Config::default() })]

    /// Any log on disk, resumed from its end, is the log read whole.
    #[test]
    fn any_log_resumes_to_the_same_bytes(entries in random_log(EVERYTHING)) {
        prop_assume!(!entries.is_empty());
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.jsonl");
        let text: String = entries.iter().map(|entry| format!("{}\n", entry.line)).collect();
        std::fs::write(&path, text).unwrap();
        let reader = LogReader::open(&path).unwrap();
        let (tail, whole) = (reader.branch().unwrap(), reader.whole_branch().unwrap());
        let counts = |entry: &&LogEntry| matches!(entry.body, EntryBody::Boundary(_));
        prop_assert!(tail.entries.iter().filter(counts).count() <= whole.entries.iter().filter(counts).count());
        prop_assert_eq!(shown(&view(tail.entries)), shown(&view(whole.entries)));
    }
}
