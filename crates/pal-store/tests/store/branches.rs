//! Branches, boundaries and undo: resume gives what the naive reader gives, for any tree and any offsets; no
//! damage makes it hang or panic.

use pal_model::{
    Boundary, ContentBlock, EntryBody, EntryDraft, EntryId, EntryRef, IdSource, LogEntry, PreservedPlacement,
    PreservedRange, PromptPrefix, SessionSnapshot, SharedText,
};
use pal_store::{Log, LogReader, OpenError, ReadError};
use proptest::prelude::*;

use crate::naive_resume;
use crate::test_log::{TestLog, lines, now, said, undo};

/// A boundary with a summary.
fn boundary(preserved: Option<PreservedRange>, snapshot: SessionSnapshot) -> EntryDraft {
    let summary = [ContentBlock::text("what was said before")].into_iter().collect();
    EntryDraft::boundary(&Boundary { preserved, snapshot, summary, ..Boundary::default() })
}

/// One step of a session. Numbers choose among the existing entries.
#[derive(Clone, Debug)]
enum SessionStep {
    Say { bytes: usize },
    SayMany { count: usize },
    Prefix,
    Rewind { to: usize },
    Boundary { preserved: Option<(usize, usize)>, prefix: Option<usize>, offsets: BoundaryOffsets },
    Undo { target: usize },
    Reopen,
}

/// Offsets that a boundary stores.
#[derive(Clone, Copy, Debug)]
enum BoundaryOffsets {
    Right,
    Missing,
    Wrong(u64),
}

fn steps() -> impl Strategy<Value = Vec<SessionStep>> {
    // Some lines are longer than a segment.
    let bytes = prop_oneof![8 => 0..200usize, 2 => 50_000..120_000usize, 1 => 250_000..600_000usize];
    let offsets = prop_oneof![
        4 => Just(BoundaryOffsets::Right),
        1 => Just(BoundaryOffsets::Missing),
        1 => (0..3_000u64).prop_map(BoundaryOffsets::Wrong),
        1 => any::<u64>().prop_map(BoundaryOffsets::Wrong),
    ];
    let preserved = proptest::option::of((any::<usize>(), any::<usize>()));
    let step = prop_oneof![
        8 => bytes.prop_map(|bytes| SessionStep::Say { bytes }),
        2 => (0..5usize).prop_map(|count| SessionStep::SayMany { count }),
        1 => Just(SessionStep::Prefix),
        3 => any::<usize>().prop_map(|to| SessionStep::Rewind { to }),
        3 => (preserved, proptest::option::of(any::<usize>()), offsets)
            .prop_map(|(preserved, prefix, offsets)| SessionStep::Boundary { preserved, prefix, offsets }),
        3 => any::<usize>().prop_map(|target| SessionStep::Undo { target }),
        1 => Just(SessionStep::Reopen),
    ];
    proptest::collection::vec(step, 1..60)
}

/// A session written step by step, with all its entries in file order.
struct TestSession {
    place: TestLog,
    log: Option<Log>,
    entries: Vec<LogEntry>,
}

impl TestSession {
    fn run(steps: &[SessionStep]) -> TestSession {
        let place = TestLog::new();
        let log = Some(place.create());
        let mut session = TestSession { place, log, entries: Vec::new() };
        session.append(vec![said("start")]);
        for step in steps {
            session.step(step);
        }
        session
    }

    fn step(&mut self, step: &SessionStep) {
        match step {
            SessionStep::Say { bytes } => self.append(vec![said(&"é".repeat(bytes / 2))]),
            SessionStep::SayMany { count } => {
                self.append((0..*count).map(|n| said(&n.to_string())).collect())
            }
            SessionStep::Prefix => self.append(vec![prefix()]),
            SessionStep::Rewind { to } => self.rewind(self.entries[to % self.entries.len()].id),
            SessionStep::Boundary { preserved, prefix, offsets } => {
                let draft = self.boundary(*preserved, *prefix, *offsets);
                self.append(vec![draft]);
            }
            SessionStep::Undo { target } => {
                let target = self.undoable(*target);
                self.append(vec![undo(target)]);
            }
            SessionStep::Reopen => {
                self.log = None;
                let opened =
                    Log::open(&self.place.path, IdSource::seeded(self.entries.len() as u64)).unwrap();
                self.log = Some(opened.log);
            }
        }
    }

    fn append(&mut self, drafts: Vec<EntryDraft>) {
        let appended = self.log.as_mut().unwrap().append_all(drafts, now()).unwrap();
        self.entries.extend(appended);
    }

    fn rewind(&mut self, to: EntryId) {
        let found = self.log.as_mut().unwrap().rewind(to).unwrap();
        let expected = naive_resume::select(&naive_resume::branch(&self.entries, to));
        assert_eq!(lines(&found.entries), lines(&expected));
    }

    /// One of the newest decisions and boundaries of the branch, else any entry.
    fn undoable(&self, choice: usize) -> EntryId {
        let is_undoable =
            |entry: &&LogEntry| entry.decision().is_some() || matches!(entry.body, EntryBody::Boundary(_));
        let branch = self.branch();
        let newest: Vec<&LogEntry> = branch.iter().rev().filter(is_undoable).take(3).collect();
        match newest.len() {
            0 => self.entries[choice % self.entries.len()].id,
            count => newest[choice % count].id,
        }
    }

    fn branch(&self) -> Vec<LogEntry> {
        naive_resume::branch(&self.entries, self.log.as_ref().unwrap().head().unwrap())
    }

    /// A boundary that preserves two entries of the branch and everything between them.
    fn boundary(
        &self,
        preserved: Option<(usize, usize)>,
        prefix: Option<usize>,
        offsets: BoundaryOffsets,
    ) -> EntryDraft {
        let branch = self.branch();
        let offset = |id: EntryId| match offsets {
            BoundaryOffsets::Right => Some(self.offset(id)),
            BoundaryOffsets::Missing => None,
            BoundaryOffsets::Wrong(offset) => Some(offset),
        };
        let preserved = preserved.map(|(one, two)| {
            let (one, two) = (one % branch.len(), two % branch.len());
            let head = branch[one.min(two)].id;
            let tail = branch[one.max(two)].id;
            PreservedRange { head, tail, placement: Default::default(), offset: offset(head) }
        });
        let prefix = prefix.map(|at| branch[at % branch.len()].id);
        let prefix = prefix.map(|id| EntryRef { id, offset: offset(id) });
        let snapshot = SessionSnapshot { prefix, ..SessionSnapshot::default() };
        boundary(preserved, snapshot)
    }

    fn offset(&self, id: EntryId) -> u64 {
        let before = self.entries.iter().take_while(|entry| entry.id != id);
        let offset = before.map(|entry| entry.line.len() as u64 + 1).sum();
        assert!(self.log.as_ref().unwrap().offset(id).is_none_or(|known| known == offset));
        offset
    }
}

fn prefix() -> EntryDraft {
    let empty = SharedText::from("[]");
    let (system, tools) = (empty.clone(), empty);
    EntryDraft::prefix(&PromptPrefix {
        system,
        tools,
        context: Default::default(),
        unseen_tokens: 0,
        notes: Default::default(),
    })
}

/// Runs the steps and compares all ways of reading with the naive reader.
fn check(steps: &[SessionStep]) {
    let mut session = TestSession::run(steps);
    session.log = None;
    let all = naive_resume::read(&session.place.bytes());
    assert_eq!(lines(&all), lines(&session.entries));
    let branch = naive_resume::branch(&all, all.last().unwrap().id);

    let opened = session.place.open();
    assert_eq!(lines(&opened.branch.entries), lines(&naive_resume::select(&branch)));
    assert!(opened.branch.problems.is_empty(), "{:?}", opened.branch.problems);
    let reader = LogReader::open(&session.place.path).unwrap();
    assert_eq!(lines(&reader.branch().unwrap().entries), lines(&opened.branch.entries));
    assert_eq!(lines(&reader.whole_branch().unwrap().entries), lines(&branch));
    let read: Vec<LogEntry> = reader.lines().map(|line| line.unwrap().entry).collect();
    assert_eq!(lines(&read), lines(&all));

    // An entry stores the offset of its parent exactly if that is not the previous line.
    let mut previous = None;
    for entry in &all {
        let expected = entry.parent.filter(|parent| Some(*parent) != previous);
        let found = entry.parent_offset.map(|offset| {
            let start = session.place.bytes().split_off(offset as usize);
            let line = String::from_utf8(start).unwrap().lines().next().unwrap().to_owned();
            LogEntry::parse(SharedText::from(line)).unwrap().id
        });
        assert_eq!(found, expected);
        previous = Some(entry.id);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn resume_of_any_tree_equals_a_full_read(steps in steps()) {
        check(&steps);
    }

    #[test]
    fn no_damage_makes_it_hang_or_panic(steps in steps(), damage in proptest::collection::vec(damage(), 1..6)) {
        check_damaged(&steps, &damage);
    }
}

/// One kind of damage to a file.
#[derive(Clone, Debug)]
enum FileDamage {
    Byte {
        at: usize,
        to: u8,
    },
    Cut {
        at: usize,
    },
    DropLine {
        line: usize,
    },
    RepeatLine {
        line: usize,
    },
    MoveLine {
        line: usize,
    },
    /// Sets all offsets of parents and preserved messages to this value.
    Offsets {
        to: usize,
    },
}

fn damage() -> impl Strategy<Value = FileDamage> {
    prop_oneof![
        3 => (any::<usize>(), any::<u8>()).prop_map(|(at, to)| FileDamage::Byte { at, to }),
        2 => (any::<usize>(), Just(b'\n')).prop_map(|(at, to)| FileDamage::Byte { at, to }),
        1 => any::<usize>().prop_map(|at| FileDamage::Cut { at }),
        1 => any::<usize>().prop_map(|line| FileDamage::DropLine { line }),
        1 => any::<usize>().prop_map(|line| FileDamage::RepeatLine { line }),
        1 => any::<usize>().prop_map(|line| FileDamage::MoveLine { line }),
        2 => any::<usize>().prop_map(|to| FileDamage::Offsets { to }),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: &FileDamage) {
    if bytes.is_empty() {
        return;
    }
    let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let count = lines.len();
    match damage {
        FileDamage::Byte { at, to } => {
            let at = at % bytes.len();
            bytes[at] = *to;
            return;
        }
        FileDamage::Cut { at } => return bytes.truncate(at % bytes.len()),
        FileDamage::DropLine { line } => drop(lines.remove(line % count)),
        FileDamage::RepeatLine { line } => lines.push(lines[line % count].clone()),
        FileDamage::MoveLine { line } => {
            let line = lines.remove(line % count);
            lines.insert(0, line);
        }
        FileDamage::Offsets { to } => {
            let to = to % (bytes.len() * 2);
            for line in &mut lines {
                let text = String::from_utf8_lossy(line).into_owned();
                *line = with_offsets(&text, to).into_bytes();
            }
        }
    }
    *bytes = lines.concat();
}

/// Replaces the number after each `offset":`.
fn with_offsets(line: &str, to: usize) -> String {
    let mut parts = line.split("offset\":");
    let mut changed = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        changed.push_str(&format!("offset\":{to}"));
        changed.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    changed
}

fn check_damaged(steps: &[SessionStep], damage: &[FileDamage]) {
    let mut session = TestSession::run(steps);
    session.log = None;
    let mut bytes = session.place.bytes();
    for damage in damage {
        apply(&mut bytes, damage);
    }
    std::fs::write(&session.place.path, &bytes).unwrap();
    let reader = LogReader::open(&session.place.path).unwrap();
    let number = |line: Result<pal_store::LogLine, ReadError>| match line {
        Ok(line) => line.number,
        Err(ReadError::Bad(bad)) => bad.number,
        Err(ReadError::File(error)) => panic!("{error}"),
    };
    // A line that holds several entries, because line ends were lost, is listed more than once.
    let numbers: Vec<u64> = reader.lines().map(number).collect();
    let n_lines = numbers.len();
    assert_eq!(
        numbers.last().copied().unwrap_or(0),
        bytes.split_inclusive(|byte| *byte == b'\n').count() as u64
    );
    let read = reader.branch().map(|branch| branch.entries);
    let whole = reader.whole_branch();
    // A new seed, because an earlier one would repeat its ids.
    match Log::open(&session.place.path, IdSource::seeded(u64::MAX)) {
        Ok(mut opened) => {
            assert_eq!(lines(&opened.branch.entries), lines(&read.unwrap()));
            match whole {
                Ok(whole) => assert!(whole.entries.len() <= n_lines),
                // Damage can change the version of a line that the view does not need.
                Err(error) => assert!(matches!(error, OpenError::Newer { .. }), "{error}"),
            }
            let added = opened.log.append(said("on"), now()).unwrap();
            drop(opened);
            let again = session.place.open();
            assert!(again.torn.is_none());
            assert_eq!(again.branch.entries.last().unwrap().id, added.id);
        }
        Err(error) => assert_eq!(std::fs::read(&session.place.path).unwrap(), bytes, "{error}"),
    }
}

/// Entry `n` with parent `parent`, whose stored offset may be wrong.
fn line(n: u32, parent: u32, place: Option<u64>) -> String {
    let id = |n: u32| format!("01890000-0000-7000-8000-{n:012}");
    let parent = if parent == 0 { "null".into() } else { format!("\"{}\"", id(parent)) };
    let place = place.map(|place| format!(",\"parent_offset\":{place}")).unwrap_or_default();
    format!(
        "{{\"v\":1,\"id\":\"{}\",\"parent\":{parent}{place},\"at\":\"2026-11-15T09:00:00.000Z\",\"kind\":\"virtual\"}}\n",
        id(n)
    )
}

#[test]
fn wrong_offsets_are_ignored() {
    let (one, two) = (line(1, 0, None), line(2, 1, None));
    let third = (one.len() + two.len()) as u64;
    // Into the middle of a line, to a line end, to another entry, to itself, forwards, past the end.
    for place in [5, one.len() as u64 - 1, one.len() as u64, third, third + 1, third + 1_000, u64::MAX] {
        let place_of_log = TestLog::new();
        std::fs::write(&place_of_log.path, [one.as_str(), &two, &line(3, 1, Some(place))].concat()).unwrap();
        let opened = place_of_log.open();
        let ids: Vec<u128> = opened.branch.entries.iter().map(|entry| entry.id.bits() & 0xf).collect();
        assert_eq!(ids, [1, 3], "offset {place}");
        assert!(opened.branch.problems.is_empty());
    }
}

#[test]
fn cycles_end_and_lost_parents_are_reported() {
    // 1 follows 3, 3 follows 2, 2 follows 1; 5 follows a missing entry; 6 follows itself.
    let cases = [
        ([line(1, 3, Some(400)), line(2, 1, None), line(3, 2, None)], vec![1, 2, 3]),
        ([line(1, 0, None), line(2, 1, None), line(5, 4, None)], vec![1, 2, 5]),
        ([line(1, 0, None), line(2, 1, None), line(6, 6, Some(0))], vec![1, 2, 6]),
    ];
    for (text, expected) in cases {
        let place = TestLog::new();
        std::fs::write(&place.path, text.concat()).unwrap();
        let opened = place.open();
        let ids: Vec<u128> = opened.branch.entries.iter().map(|entry| entry.id.bits() & 0xf).collect();
        assert_eq!(ids, expected);
        let problem = opened.branch.problems[0].to_string();
        assert!(problem.contains("which is not in the log"), "{problem}");
    }
}

#[test]
fn lost_preserved_messages_are_reported() {
    let place = TestLog::new();
    let mut log = place.create();
    log.append(said("one"), now()).unwrap();
    let (head, tail) = (EntryId::from_bits(1), EntryId::from_bits(2));
    let preserved = Some(PreservedRange { head, tail, placement: Default::default(), offset: Some(0) });
    let prefix = Some(EntryRef { id: head, offset: None });
    let snapshot = SessionSnapshot { prefix, ..SessionSnapshot::default() };
    log.append(boundary(preserved, snapshot), now()).unwrap();
    drop(log);
    let branch = place.open().branch;
    assert_eq!(branch.entries.len(), 1);
    let problems: Vec<String> = branch.problems.iter().map(ToString::to_string).collect();
    assert!(
        problems[0].contains("only its summary remains") && problems[1].contains("rendered again"),
        "{problems:?}"
    );
}

#[test]
fn resume_reads_only_what_the_view_needs() {
    let place = TestLog::new();
    let mut log = place.create();
    let say = |log: &mut Log, text: &str| log.append(said(text), now()).unwrap().id;
    let prefix = log.append(prefix(), now()).unwrap().id;
    let before = [say(&mut log, "summarised"), say(&mut log, "summarised, too")];
    let head = say(&mut log, "kept 1");
    say(&mut log, "not kept: another branch");
    log.rewind(head).unwrap();
    let tail = say(&mut log, "kept 2");
    let preserved =
        PreservedRange { head, tail, placement: PreservedPlacement::BeforeSummary, offset: log.offset(head) };
    let snapshot = SessionSnapshot {
        prefix: Some(EntryRef { id: prefix, offset: log.offset(prefix) }),
        ..SessionSnapshot::default()
    };
    log.append(boundary(Some(preserved), snapshot), now()).unwrap();
    let back_to = say(&mut log, "after");
    let dropped = say(&mut log, "after, on another branch");
    log.rewind(back_to).unwrap();
    say(&mut log, "last");

    // Overwrite everything that is not needed; reading it would fail.
    let mut bytes = place.bytes();
    for id in [before[0], before[1], dropped] {
        let line = bytes[log.offset(id).unwrap() as usize..].iter_mut();
        line.take_while(|byte| **byte != b'\n').for_each(|byte| *byte = 0xff);
    }
    drop(log);
    let expected = naive_resume::select(&naive_resume::branch(
        &naive_resume::read(&place.bytes()),
        place.open().log.head().unwrap(),
    ));
    std::fs::write(&place.path, &bytes).unwrap();
    let opened = place.open();
    assert_eq!(lines(&opened.branch.entries), lines(&expected));
    assert_eq!(opened.branch.entries.len(), 6);
    assert!(opened.branch.problems.is_empty(), "{:?}", opened.branch.problems);
}

/// Reads lines at the edges of segments.
#[test]
fn lines_at_segment_edges_are_read() {
    const SEGMENT: usize = 256 << 10;
    let place = TestLog::new();
    let mut log = place.create();
    let overhead = log.append(said(""), now()).unwrap().line.len() + 1;
    for size in (SEGMENT - 3..SEGMENT + 4).chain([4 * SEGMENT - 1, 4 * SEGMENT, 4 * SEGMENT + 1, 9 * SEGMENT])
    {
        log.append(said(&"m".repeat(size - overhead)), now()).unwrap();
        log.append(said("short"), now()).unwrap();
    }
    drop(log);
    let all = naive_resume::read(&place.bytes());
    let opened = place.open();
    assert_eq!(lines(&opened.branch.entries), lines(&all));
    let reader = LogReader::open(&place.path).unwrap();
    let read: Vec<LogEntry> = reader.lines().map(|line| line.unwrap().entry).collect();
    assert_eq!(lines(&read), lines(&all));
}

#[test]
fn skim_visits_ancestors_on_the_branch() {
    let place = TestLog::new();
    let mut log = place.create();
    let first = log.append(said("one"), now()).unwrap().id;
    let second = log.append(said(&"long ".repeat(2_000_000)), now()).unwrap().id;
    log.append(said("left"), now()).unwrap();
    log.rewind(second).unwrap();
    let last = log.append_all(vec![undo(first), said("two"), said("three")], now()).unwrap();
    drop(log);
    let reader = LogReader::open(&place.path).unwrap();
    let mut heads = Vec::new();
    reader.skim_ancestors(last[2].id, &mut |head| heads.push(head.clone())).unwrap();
    let ids: Vec<EntryId> = heads.iter().map(|head| head.id).collect();
    assert_eq!(ids, [last[1].id, last[0].id, second, first]);
    let kinds: Vec<&str> = heads.iter().map(|head| head.kind.as_str()).collect();
    assert_eq!(kinds, ["user", "undo", "user", "user"]);
    assert_eq!((heads[0].origin.as_deref(), heads[1].origin.as_deref()), (Some("person"), None));
    let bytes = reader.branch().unwrap().entries[1].line.len() as u64;
    assert_eq!((heads[2].id, heads[2].bytes), (second, bytes));
}
