//! A session that was killed and goes on sends the same bytes as one that was not: real sessions through a log on
//! disk, resumed from its end.

use pal_model::{Body, Cards, Draft, Entry, IdSource, Origin, Timestamp};
use pal_store::{Log, Reader, write_whole};
use pal_testkit::{Soup, cases, session_files, soup};
use pal_view::{Estimator, Lens, RenderOptions, Scope, View};
use proptest::prelude::*;
use proptest::test_runner::Config;

use crate::program::imported;

const OPTIONS: RenderOptions = RenderOptions { max_tokens: 8_000, stream: true, spell_out_unseen: false };

fn view(entries: Vec<Entry>) -> View {
    let card = Cards::shipped().find("claude-opus-5-5").card;
    View::of(Lens { estimator: Estimator::shipped(card.generation), card, scope: Scope::Current }, entries)
}

/// The body and size that a view gives.
fn shown(view: &View) -> (String, u64, String) {
    (view.render(OPTIONS).body(), view.size().tokens, format!("{:?}", view.state()))
}

#[test]
fn real_sessions_resume_to_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let mut with_boundary = 0;
    for (number, file) in session_files().into_iter().enumerate() {
        let imported = imported(&file);
        let path = directory.path().join(format!("{number}.jsonl"));
        write_whole(&path, &imported.log).unwrap();
        let whole = Reader::open(&path).unwrap().whole_branch().unwrap();
        let opened = Log::open(&path, IdSource::seeded(9)).unwrap();
        assert!(whole.problems.is_empty() && opened.branch.problems.is_empty() && opened.torn.is_none());
        with_boundary += usize::from(opened.branch.entries.len() < whole.entries.len());
        let (mut from_tail, mut from_all) = (view(opened.branch.entries), view(whole.entries));
        assert_eq!(shown(&from_tail), shown(&from_all), "{}", file.display());
        // And they go on alike.
        let mut log = opened.log;
        let entry = log.append(Draft::user(Origin::Person, "\"go on\""), Timestamp::default()).unwrap();
        from_tail.push(entry.clone());
        from_all.push(entry);
        assert_eq!(shown(&from_tail), shown(&from_all), "{}", file.display());
        std::fs::remove_file(&path).unwrap();
    }
    println!("{with_boundary} sessions were resumed from a boundary");
}

const EVERYTHING: Soup = Soup { steps: 40, decisions: true, boundaries: true, rewinds: true, prefixes: true };

proptest! {
    #![proptest_config(Config { cases: cases(1_000), failure_persistence: None, ..Config::default() })]

    /// Any log on disk, resumed from its end, is the log read whole.
    #[test]
    fn any_log_resumes_to_the_same_bytes(entries in soup(EVERYTHING)) {
        prop_assume!(!entries.is_empty());
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.jsonl");
        let text: String = entries.iter().map(|entry| format!("{}\n", entry.line)).collect();
        std::fs::write(&path, text).unwrap();
        let reader = Reader::open(&path).unwrap();
        let (tail, whole) = (reader.branch().unwrap(), reader.whole_branch().unwrap());
        let counts = |entry: &&Entry| matches!(entry.body, Body::Boundary(_));
        prop_assert!(tail.entries.iter().filter(counts).count() <= whole.entries.iter().filter(counts).count());
        prop_assert_eq!(shown(&view(tail.entries)), shown(&view(whole.entries)));
    }
}
