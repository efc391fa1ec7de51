//! Index over sessions on disk: results, incremental updates, and robustness.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use pal_model::{
    Decision, DecisionKind, EntryDraft, EntryId, IdSource, MessageOrigin, Timestamp, escape_into,
};
use pal_recall::{PartSpeaker, Recall, RecallQuery, RecallResults, search_all};
use pal_store::{Log, log_path};

fn now() -> Timestamp {
    Timestamp::from_milliseconds(1_800_000_000_000)
}

/// A project with sessions.
struct TestProject {
    folder: tempfile::TempDir,
}

impl TestProject {
    fn new() -> TestProject {
        TestProject { folder: tempfile::tempdir().unwrap() }
    }

    fn session(&self, name: &str) -> PathBuf {
        self.folder.path().join("sessions").join(name)
    }

    fn file(&self, name: &str, text: &[u8]) {
        let path = self.folder.path().join("sessions").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Appends user messages to the log of a session or subagent.
    fn say(&self, session: &str, texts: &[&str]) -> Vec<EntryId> {
        let path = log_path(&self.session(session));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let name: u64 = session.bytes().zip(1_u64..).map(|(letter, at)| u64::from(letter) * at).sum();
        let ids = IdSource::seeded(path.metadata().map_or(0, |metadata| metadata.len()) * 10_000 + name);
        let mut log = match path.exists() {
            true => Log::open(&path, ids).unwrap().log,
            false => Log::create(&path, ids).unwrap(),
        };
        let said = texts.iter().map(|text| {
            log.append(EntryDraft::user(MessageOrigin::Person, &quoted(text)), now()).unwrap().id
        });
        said.collect()
    }

    fn recall(&self) -> Recall {
        Recall::of_project(self.folder.path())
    }

    /// Updates the index; returns the bytes read.
    fn update(&self) -> u64 {
        let updated = self.recall().update(&mut |_| true).unwrap();
        assert!(updated.unreadable.is_empty() && !updated.is_behind, "{updated:?}");
        updated.bytes
    }

    fn found(&self, query: &str) -> RecallResults {
        let mut recall = self.recall();
        recall.update(&mut |_| true).unwrap();
        search(&mut recall, query)
    }

    /// Texts of exact results.
    fn texts(&self, query: &str) -> Vec<String> {
        let found = self.found(query);
        let places = found.passages.into_iter().filter(|place| !found.is_partial && place.has_all_words);
        places.map(|place| place.passage.text).collect()
    }
}

fn search(recall: &mut Recall, query: &str) -> RecallResults {
    recall
        .search(&RecallQuery { query, session: None, limit: 10, context_lines: 1, now: now(), caller: None })
        .unwrap()
}

fn quoted(text: &str) -> String {
    let mut quoted = String::new();
    escape_into(&mut quoted, text);
    quoted
}

fn append(path: &Path, bytes: &[u8]) {
    std::fs::OpenOptions::new().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

#[test]
fn passages_carry_speaker_position_and_time() {
    let world = TestProject::new();
    let long = format!(
        "{}before\nthe Parser fails on empty input\nafter\n{}",
        "line\n".repeat(900),
        "more\n".repeat(900)
    );
    let ids = world.say("0199", &["Mend the lexer, please.", &long]);
    let found = world.found("parser INPUT");
    assert_eq!(found.passages.len(), 1, "{found:?}");
    let place = &found.passages[0];
    assert_eq!(place.passage.text, "before\nthe Parser fails on empty input\nafter");
    assert_eq!((place.passage.line, place.line), (901, 2), "of the text, and of the log");
    assert_eq!(
        (place.session.as_str(), place.speaker.clone(), place.entry),
        ("0199", PartSpeaker::Person, Some(ids[1]))
    );
    assert_eq!(place.description.title(), Some("Mend the lexer, please."));
    let log = std::fs::read(&place.file).unwrap();
    assert!(String::from_utf8_lossy(&log[place.offset as usize..]).contains("the Parser fails"));
    let marked: Vec<&str> =
        place.passage.marks.iter().map(|mark| &place.passage.text[mark.clone()]).collect();
    assert_eq!(marked, ["Parser", "input"]);
}

#[test]
fn update_reads_only_appended_bytes() {
    let world = TestProject::new();
    world.say("one", &["the first words"]);
    let log = log_path(&world.session("one"));
    assert_eq!(world.update(), log.metadata().unwrap().len());
    assert_eq!(world.update(), 0);
    let before = log.metadata().unwrap().len();
    world.say("one", &["the second words"]);
    world.say("two", &["of another session"]);
    let other = log_path(&world.session("two")).metadata().unwrap().len();
    assert_eq!(world.update(), log.metadata().unwrap().len() - before + other);
    assert_eq!(world.texts("second words"), ["the second words"]);
    assert_eq!(world.texts("first words"), ["the first words"]);
}

#[test]
fn torn_and_damaged_lines_are_skipped() {
    let world = TestProject::new();
    world.say("one", &["apples are kept"]);
    let log = log_path(&world.session("one"));
    let whole = std::fs::read(&log).unwrap();
    append(&log, b"no entry at all\n\xff\xfe\n{\"v\":99,\"kind\":\"user\"}\n");
    append(&log, &String::from_utf8_lossy(&whole).replace("apples", "pears").into_bytes());
    let torn = String::from_utf8_lossy(&whole).replace("apples", "cherries").into_bytes();
    let (first, rest) = torn.split_at(torn.len() - 9);
    append(&log, first);
    assert_eq!(world.texts("apples"), ["apples are kept"]);
    assert_eq!(world.texts("pears"), ["pears are kept"], "behind lines that are none");
    assert!(world.found("cherries").passages.is_empty(), "it is not whole yet");
    append(&log, rest);
    assert_eq!(world.texts("cherries"), ["cherries are kept"]);
}

#[test]
fn passages_come_with_what_was_said_around_them() {
    let world = TestProject::new();
    let long = format!("It is closed. {}", "And so on. ".repeat(80));
    world.say("one", &["Which port does the gateway use?", "4010", &long]);
    world.say("two", &["Nothing of note."]);
    let found = world.found("gateway port");
    assert_eq!(found.passages.len(), 1, "what is shown beside a passage is not shown again: {found:?}");
    let place = &found.passages[0];
    let nearby = |text: &Option<pal_recall::NearbyText>| {
        text.as_ref().map(|nearby| (nearby.text.clone(), nearby.is_cut_after, nearby.speaker.clone()))
    };
    assert_eq!(nearby(&place.nearby.before), None);
    assert_eq!(nearby(&place.nearby.after), Some((String::from("4010"), false, PartSpeaker::Person)));
    let middle = world.found("4010").passages.remove(0);
    let (after, is_cut, _) = nearby(&middle.nearby.after).unwrap();
    assert!(is_cut && after.starts_with("It is closed.") && after.len() <= 500, "{after}");
    let end = world.found("note").passages.remove(0);
    assert_eq!(
        (nearby(&end.nearby.before), nearby(&end.nearby.after)),
        (None, None),
        "another session is not around it"
    );
}

#[test]
fn passages_with_all_words_do_not_hide_the_others() {
    let world = TestProject::new();
    world.say("one", &["The gateway uses port 4010 because 4000 was taken."]);
    world.say("two", &["The gateway of the old office."]);
    let texts = |query: &str| -> Vec<(String, bool)> {
        let found = world.found(query);
        assert!(!found.is_partial);
        found.passages.into_iter().map(|place| (place.session, place.has_all_words)).collect()
    };
    assert_eq!(texts("gateway port"), [(String::from("one"), true), (String::from("two"), false)]);
}

#[test]
fn rare_words_beat_repeated_common_ones() {
    let world = TestProject::new();
    for at in 0..30 {
        world.say(
            &format!("pip-{at}"),
            &["Requirement already satisfied: numpy in the python of this machine"],
        );
    }
    world.say("zeppelin", &["The requirement of the zeppelin project: it must land."]);
    let found = world.found("is the requirement already satisfied for zeppelin python");
    assert_eq!(found.passages[0].session, "zeppelin", "{found:?}");
}

#[test]
fn dates_and_words_of_the_newest_state_are_resolved() {
    let world = TestProject::new();
    let say = |session: &str, days_ago: i64, text: &str| {
        let path = log_path(&world.session(session));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut log = Log::create(&path, IdSource::seeded(days_ago as u64)).unwrap();
        let at = Timestamp::from_milliseconds(now().milliseconds() - days_ago * 86_400_000);
        log.append(EntryDraft::user(MessageOrigin::Person, &quoted(text)), at).unwrap();
    };
    say("early", 200, "The deploy target is the old cluster.");
    say("middle", 40, "The deploy target is some cluster.");
    say("late", 2, "The deploy target is a new cluster, at last.");
    let first = |query: &str| world.found(query).passages.remove(0).session;
    assert_eq!(first("deploy target 40 days ago"), "middle");
    assert_eq!(first("what is the deploy target now"), "late");
    assert_eq!(world.found("2 days ago").passages.len(), 1, "a day alone gives its prompts");
    assert_eq!(first("2 days ago"), "late");
}

#[test]
fn replaced_and_removed_files_are_forgotten() {
    let world = TestProject::new();
    world.say("one", &["about apples", "and about nuts"]);
    world.say("two", &["about pears"]);
    assert_eq!(world.texts("apples").len() + world.texts("pears").len(), 2);
    std::fs::remove_file(log_path(&world.session("one"))).unwrap();
    world.say(
        "one",
        &["about plums, in a log that is longer than the one before, so that its length says nothing of it"],
    );
    std::fs::remove_dir_all(world.session("two")).unwrap();
    assert_eq!(world.texts("plums").len(), 1);
    for gone in ["apples", "nuts", "pears"] {
        assert!(world.found(gone).passages.is_empty(), "{gone}");
    }
}

#[test]
fn agents_outputs_and_spilled_results_are_found_once() {
    let world = TestProject::new();
    world.say("one", &["the main log"]);
    world.say("one/agents/scout", &["walnut, said the scout"]);
    world.say("one/agents/scout/agents/second", &["hazelnut, said the second"]);
    world.file(
        "one/outputs/a.txt",
        format!("{}chestnut\n{}", "noise\n".repeat(2_000), "noise\n".repeat(9)).as_bytes(),
    );
    world.file("one/tool-results/b.txt", b"peanut in \xff a result");
    let place = |query: &str| {
        let found = world.found(query);
        assert_eq!(found.passages.len(), 1, "{query}: {found:?}");
        found.passages.into_iter().next().unwrap()
    };
    assert_eq!(place("walnut").agent.as_deref(), Some("scout"));
    assert_eq!(place("hazelnut").agent.as_deref(), Some("scout/second"));
    let output = place("chestnut");
    assert_eq!((output.speaker, output.line, output.entry), (PartSpeaker::Output, 2_000, None));
    assert_eq!(output.passage.text, "noise\nchestnut\nnoise");
    assert_eq!(output.offset, 1_999 * 6);
    assert_eq!(place("peanut").passage.text, "peanut in ? a result");

    // The log holds the spilled text, so its file is not found separately.
    let path = log_path(&world.session("one"));
    let mut log = Log::open(&path, IdSource::seeded(77)).unwrap().log;
    log.append(EntryDraft::user(MessageOrigin::Tool, &quoted("peanut in the log")), now()).unwrap();
    let kind = DecisionKind::Spill {
        tool_use_id: None,
        entry: None,
        path: String::from("tool-results/b.txt"),
        text: String::from("short"),
    };
    log.append(
        EntryDraft::decision(&Decision {
            kind,
            reason: String::new(),
            cost: pal_model::DecisionCost::default(),
        }),
        now(),
    )
    .unwrap();
    assert_eq!(place("peanut").passage.text, "peanut in the log");
}

#[test]
fn growing_output_is_found() {
    let world = TestProject::new();
    world.file("one/background/a.txt", b"one\ntwo, half");
    assert_eq!(world.texts("half"), ["one\ntwo, half"]);
    append(&world.session("one/background/a.txt"), b"way there\nthree\n");
    assert_eq!(world.texts("halfway"), ["one\ntwo, halfway there\nthree"]);
    assert!(world.found("half").is_partial, "the word is another now");
    assert_eq!(world.update(), 0);
    append(&world.session("one/background/a.txt"), b"four without an end");
    assert!(world.update() > 0);
    assert_eq!(world.update(), 0, "what did not grow is not read again");
}

#[test]
fn index_is_private_and_rebuilt_when_corrupt() {
    let world = TestProject::new();
    world.say("one", &["apples"]);
    world.update();
    let index = world.folder.path().join("recall.db");
    assert_eq!(index.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::write(&index, "no database at all, but long enough to look like one".repeat(100)).unwrap();
    assert_eq!(world.texts("apples"), ["apples"]);
    // An index with corrupt inner pages opens, but fails in use.
    let mut bytes = std::fs::read(&index).unwrap();
    for ending in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{ending}", index.display()));
    }
    let from = bytes.len().min(4_096);
    bytes[from..].fill(0x5a);
    std::fs::write(&index, bytes).unwrap();
    assert_eq!(world.texts("apples"), ["apples"]);
}

#[test]
fn read_only_directory_is_searchable() {
    let world = TestProject::new();
    world.say("one", &["apples"]);
    world.say("two", &["apples of another"]);
    let mut recall = Recall::of_log(&log_path(&world.session("one")));
    recall.update(&mut |_| true).unwrap();
    assert_eq!(search(&mut recall, "apple").passages.len(), 1);
    assert!(!world.folder.path().join("recall.db").exists());
    let mut nowhere = Recall::of_project(Path::new("/nowhere/at/all"));
    assert_eq!(nowhere.update(&mut |_| true).unwrap().bytes, 0);
    assert!(search(&mut nowhere, "apple").passages.is_empty());
}

#[test]
fn concurrent_updates_share_the_work() {
    let world = TestProject::new();
    let texts: Vec<String> = (0..40).map(|at| format!("number {at} {}", "and so on ".repeat(400))).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for session in ["one", "two", "three"] {
        world.say(session, &texts);
    }
    let total: u64 = ["one", "two", "three"]
        .iter()
        .map(|name| log_path(&world.session(name)).metadata().unwrap().len())
        .sum();
    let read: u64 = std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..4).map(|_| scope.spawn(|| world.recall().update(&mut |_| true).unwrap().bytes)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    assert_eq!(read, total, "nothing is read twice");
    assert_eq!(world.found("number 17").passages.iter().filter(|place| place.words == 2).count(), 3);
}

#[test]
fn update_can_be_stopped_and_resumed() {
    let world = TestProject::new();
    world.say("one", &["apples"]);
    world.say("two", &["pears"]);
    let mut asked = 0;
    let updated = world.recall().update(&mut |progress| {
        asked += 1;
        assert!(progress.total > progress.done);
        asked < 2
    });
    assert!(updated.unwrap().is_behind);
    let mut recall = world.recall();
    assert_eq!(search(&mut recall, "apples").passages.len(), 1, "what was done stays");
    assert!(search(&mut recall, "pears").passages.is_empty());
    assert!(world.update() > 0);
    assert_eq!(search(&mut recall, "pears").passages.len(), 1);
}

#[test]
fn entry_is_shown_with_its_neighbors() {
    let world = TestProject::new();
    let ids = world.say("one", &["first", "second", "third", "fourth"]);
    world.update();
    let texts = |id: EntryId, before: usize, after: usize| {
        let shown = world.recall().entry(id, before, after).unwrap().unwrap();
        let texts: Vec<String> = shown.entries.iter().map(|entry| entry.parts[0].text.clone()).collect();
        (texts.join(" "), shown.requested)
    };
    assert_eq!(texts(ids[2], 0, 0), (String::from("third"), 0));
    assert_eq!(texts(ids[2], 1, 1), (String::from("second third fourth"), 1));
    assert_eq!(texts(ids[0], 5, 1), (String::from("first second"), 0));
    assert_eq!(texts(ids[3], 9, 9), (String::from("first second third fourth"), 3));
    assert!(world.recall().entry(EntryId::from_bits(7), 0, 0).unwrap().is_none());
}

#[test]
fn odd_requests_get_sensible_answers() {
    let world = TestProject::new();
    world.say("one", &["to be or not to be", "the retryPolicy has a \"backoff\" (exponential)"]);
    for odd in
        ["\"", "'", "NEAR(", "a AND", "* OR -", "f0:", "{", "^x", "\0", "", "   ", "🦀", "->", "((((\"\"\"\""]
    {
        world.found(odd);
    }
    let found = world.found("\"exponential backoff\"");
    assert!(found.passages.is_empty(), "the words are there, the phrase is not");
    let found = world.found("\"the retryPolicy\" pineapples");
    assert!(found.is_partial && found.passages.len() == 1, "the phrase is there, a word is not: {found:?}");
    assert_eq!(
        world.texts("to be"),
        ["to be or not to be"],
        "words that say nothing, if there are no others"
    );
    let some = world.found("policy of pineapples");
    assert!(some.is_partial && some.passages.len() == 1, "{some:?}");
    let begun = world.found("expon");
    assert!(begun.is_partial && begun.passages.len() == 1, "{begun:?}");
}

#[test]
fn misspelt_words_are_corrected_over_all_indexes() {
    let (one, two) = (TestProject::new(), TestProject::new());
    one.say("one", &["The integration of the documentation"]);
    one.say("two", &["review of the results"]);
    two.say("two", &["resume from the checkpoint", "a document"]);
    let mut recalls = [one.recall(), two.recall()];
    for recall in &mut recalls {
        recall.update(&mut |_| true).unwrap();
    }
    for (query, corrected, text) in [
        ("integraton documenation", "integr document", "The integration"),
        ("documenation", "document", "document"),
        ("checkpiont resume", "checkpoint", "resume from"),
        // Nothing has both: passages with one of them, still corrected.
        ("documenation reveiw", "document review", "review of"),
    ] {
        let wanted =
            RecallQuery { query, session: None, limit: 9, context_lines: 0, now: now(), caller: None };
        let found = search_all(&mut recalls, &wanted).unwrap();
        let terms: Vec<&str> = found.corrections.iter().map(|(_, term)| term.as_str()).collect();
        assert_eq!(terms.join(" "), corrected, "{query}");
        assert!(found.is_partial && found.lacks_words == query.ends_with("reveiw"), "{query}: {found:?}");
        let has_text = |place: &pal_recall::PassageHit| place.passage.text.contains(text);
        assert!(found.passages.iter().any(has_text), "{query}: {found:?}");
    }
}

#[test]
fn unindexed_text_is_found_by_scanning() {
    let world = TestProject::new();
    world.say("one", &["The walrus lives on ice.", "The heron stands in water.", "Nothing of note."]);
    world.say("two", &["A walrus and a heron met."]);
    let mut recall = world.recall();
    let updated = recall.update(&mut |_| false).unwrap();
    assert!(updated.is_behind && updated.bytes == 0, "{updated:?}");
    let wanted =
        |query, session| RecallQuery { query, session, limit: 5, context_lines: 0, now: now(), caller: None };
    assert!(recall.search(&wanted("walrus", None)).unwrap().passages.is_empty(), "nothing is indexed");
    let texts = |found: &RecallResults| -> Vec<String> {
        found.passages.iter().map(|place| place.passage.text.clone()).collect()
    };
    let found = recall.search_unindexed(&wanted("heron walrus", None)).unwrap();
    assert_eq!((texts(&found), found.is_partial), (vec![String::from("A walrus and a heron met.")], false));
    assert_eq!((found.passages[0].line, found.passages[0].session.as_str()), (1, "two"));
    let found = recall.search_unindexed(&wanted("herons", Some("one"))).unwrap();
    assert_eq!(texts(&found), ["The heron stands in water."]);
    let found = recall.search_unindexed(&wanted("walrus zebra", Some("one"))).unwrap();
    assert_eq!((texts(&found), found.is_partial), (vec![String::from("The walrus lives on ice.")], true));
    // Indexed text is not searched twice.
    recall.update(&mut |_| true).unwrap();
    assert!(recall.search_unindexed(&wanted("walrus", None)).unwrap().passages.is_empty());
}

#[test]
fn exact_word_is_found_among_similar_ones() {
    let world = TestProject::new();
    let filler = "a line that says nothing, again and again; ".repeat(20_000);
    let said: Vec<String> = (1..=12).map(|number| format!("marmot{number} {filler}")).collect();
    world.say("one", &said.iter().map(String::as_str).collect::<Vec<_>>());
    let wanted = RecallQuery {
        query: "marmot1 again",
        session: None,
        limit: 5,
        context_lines: 0,
        now: now(),
        caller: None,
    };
    let found = world.recall().search_unindexed(&wanted).unwrap();
    assert_eq!((found.passages.len(), found.is_partial), (1, false), "{found:?}");
    assert!(found.passages[0].passage.text.starts_with("marmot1 "), "{found:?}");
}

#[test]
fn damaged_lines_are_reported_every_time() {
    let world = TestProject::new();
    world.say("one", &["walrus", "heron", "otter", "marmot"]);
    let path = log_path(&world.session("one"));
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[1].insert(0, '[');
    lines[2] = lines[2].replace("otter", "beaver");
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    for _ in 0..2 {
        let updated = world.recall().update(&mut |_| true).unwrap();
        assert_eq!(updated.damaged.len(), 2, "{updated:?}");
        assert!(updated.damaged[0].contains("line 2 (byte "), "{updated:?}");
        assert!(updated.damaged[1].contains("line 3 (byte ") && updated.damaged[1].contains("altered"));
    }
    assert_eq!(world.texts("marmot"), ["marmot"]);
    assert_eq!(world.texts("walrus"), ["walrus"]);
    // Other line ends change nothing.
    std::fs::write(&path, text.replace('\n', "\r\n")).unwrap();
    assert_eq!(world.texts("otter"), ["otter"]);
}
