//! Every kind of damage in many places: intact entries stay visible, damage is reported by line and byte, and
//! the session can continue.

use std::collections::HashSet;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use pal_model::{
    Boundary, ContentBlock, EntryBody, EntryDraft, EntryId, EntryRef, IdSource, LogEntry, PreservedPlacement,
    PreservedRange, SessionSnapshot, SharedText, Timestamp,
};
use pal_store::{AppendError, Log, LogCheck, LogProblem, LogReader};

use crate::test_log::{TestLog, lines, now, said};

/// An undamaged log and its expected content.
struct HealthyLog {
    bytes: Vec<u8>,
    /// The ids of the branch of the last entry, oldest first.
    branch: Vec<EntryId>,
    /// Ids that a resumed session sees.
    resumed: Vec<EntryId>,
}

fn later(minutes: i64) -> Timestamp {
    Timestamp::from_milliseconds(1_800_000_000_000 + minutes * 60_000)
}

fn ids(entries: &[LogEntry]) -> Vec<EntryId> {
    entries.iter().map(|entry| entry.id).collect()
}

impl HealthyLog {
    fn of(write: impl Fn(&mut Log)) -> HealthyLog {
        let place = TestLog::new();
        let mut log = place.create();
        write(&mut log);
        drop(log);
        HealthyLog::read(&place)
    }

    fn read(place: &TestLog) -> HealthyLog {
        let reader = LogReader::open(&place.path).unwrap();
        let branch = ids(&reader.whole_branch().unwrap().entries);
        let resumed = ids(&reader.branch().unwrap().entries);
        HealthyLog { bytes: place.bytes(), branch, resumed }
    }

    /// Same log as an earlier version wrote it, without checksums.
    fn without_checksums(&self) -> HealthyLog {
        let text = String::from_utf8(self.bytes.clone()).unwrap();
        assert!(!text.contains("parent_offset"), "offsets would have to change");
        let place = TestLog::new();
        let (mut plain, mut before) = (String::new(), 0);
        let mut moved = Vec::new();
        for line in text.lines() {
            moved.push((format!("\"offset\":{before}}}"), format!("\"offset\":{}}}", plain.len())));
            before += line.len() + 1;
            plain.push_str(line.split_once(",\"checksum\":").unwrap().0);
            for (old, new) in &moved {
                plain = plain.replace(old, new);
            }
            plain.push_str("}\n");
        }
        std::fs::write(&place.path, plain).unwrap();
        HealthyLog::read(&place)
    }

    fn lines(&self) -> Vec<&[u8]> {
        self.bytes.split_inclusive(|byte| *byte == b'\n').collect()
    }
}

/// Twelve entries, one after the other.
fn linear() -> HealthyLog {
    HealthyLog::of(|log| {
        for number in 0..12 {
            let text = format!("message {number} {}", "words ".repeat(number as usize * 3));
            log.append(said(&text), later(number)).unwrap();
        }
    })
}

/// An abandoned branch and a continued one.
fn branched() -> HealthyLog {
    HealthyLog::of(|log| {
        let first: Vec<EntryId> =
            (0..4).map(|n| log.append(said(&format!("start {n}")), later(n)).unwrap().id).collect();
        for number in 0..3 {
            log.append(said(&format!("left {number}")), later(10 + number)).unwrap();
        }
        log.rewind(first[3]).unwrap();
        for number in 0..5 {
            log.append(said(&format!("on {number}")), later(20 + number)).unwrap();
        }
    })
}

/// A boundary in the middle that preserves some earlier messages.
fn compacted() -> HealthyLog {
    HealthyLog::of(|log| {
        let prefix = log.append(said("stands for the prefix"), later(0)).unwrap().id;
        for number in 1..5 {
            log.append(said(&format!("summarised {number}")), later(number)).unwrap();
        }
        let kept: Vec<EntryId> =
            (0..3).map(|n| log.append(said(&format!("kept {n}")), later(10 + n)).unwrap().id).collect();
        let preserved = PreservedRange {
            head: kept[0],
            tail: kept[2],
            placement: PreservedPlacement::AfterSummary,
            offset: log.offset(kept[0]),
        };
        let prefix = Some(EntryRef { id: prefix, offset: log.offset(prefix) });
        let boundary = Boundary {
            preserved: Some(preserved),
            snapshot: SessionSnapshot { prefix, ..SessionSnapshot::default() },
            summary: [ContentBlock::text("what was said before")].into_iter().collect(),
            ..Boundary::default()
        };
        log.append(EntryDraft::boundary(&boundary), later(20)).unwrap();
        for number in 0..4 {
            log.append(said(&format!("after {number}")), later(30 + number)).unwrap();
        }
    })
}

/// All damaged variants of a log, by name.
fn damages(original: &HealthyLog) -> Vec<(String, Vec<u8>)> {
    let bytes = &original.bytes;
    let lines = original.lines();
    let mut damaged = Vec::new();
    let mut add = |name: String, bytes: Vec<u8>| damaged.push((name, bytes));
    for step in 0..90 {
        let at = step * (bytes.len() - 1) / 90 + step % 7;
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (step % 8);
        add(format!("bit {} of byte {at} flipped", step % 8), flipped);
    }
    let ends: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == b'\n').collect();
    for at in ends {
        let mut flipped = bytes.clone();
        flipped[at] = 0x0b;
        add(format!("line end at {at} flipped"), flipped);
    }
    for gone in 0..lines.len() {
        let rest: Vec<&[u8]> = [&lines[..gone], &lines[gone + 1..]].concat();
        add(format!("line {} missing", gone + 1), rest.concat());
    }
    for (one, two) in
        (0..lines.len()).flat_map(|one| [(one, one + 1), (one, one + 4), (one, lines.len() - 1)])
    {
        if two < lines.len() && one != two {
            let mut swapped = lines.clone();
            swapped.swap(one, two);
            add(format!("lines {} and {} swapped", one + 1, two + 1), swapped.concat());
        }
    }
    for line in 0..lines.len() {
        let mut beside = lines.clone();
        beside.insert(line, lines[line]);
        add(format!("line {} doubled", line + 1), beside.concat());
        let mut behind = lines.clone();
        behind.push(lines[line]);
        add(format!("line {} again at the end", line + 1), behind.concat());
    }
    for (run, step) in [(1, 9), (40, 7), (700, 5), (1_500, 3)] {
        for part in 0..step {
            let at = part * (bytes.len() - 1) / step;
            let mut zeros = bytes.clone();
            let end = (at + run).min(bytes.len());
            zeros[at..end].fill(0);
            add(format!("{run} zeros at {at}"), zeros);
        }
    }
    for part in 1..8 {
        let at = part * bytes.len() / 9;
        for gone in [1, 100, 900] {
            let mut cut = bytes.clone();
            cut.drain(at..(at + gone).min(bytes.len()));
            add(format!("{gone} bytes at {at} cut out"), cut);
        }
    }
    let other = HealthyLog::of(|log| {
        (0..5).for_each(|n| drop(log.append(said(&format!("other {n}")), later(n)).unwrap()));
    });
    let other: Vec<u8> = String::from_utf8(other.bytes).unwrap().replace("019", "01a").into_bytes();
    add(String::from("another log before it"), [other.as_slice(), bytes].concat());
    add(String::from("itself behind it"), [bytes.as_slice(), bytes].concat());
    add(String::from("CRLF"), String::from_utf8(bytes.clone()).unwrap().replace('\n', "\r\n").into_bytes());
    for line in 0..lines.len() {
        let edited = String::from_utf8(lines[line].to_vec()).unwrap();
        let edited = edited.replacen(" 2", " two, edited by hand", 1).replacen("kept", "edited", 1);
        if edited.as_bytes() != lines[line] {
            let rest: Vec<&[u8]> = [&lines[..line], &[edited.as_bytes()], &lines[line + 1..]].concat();
            add(format!("line {} edited", line + 1), rest.concat());
        }
    }
    damaged
}

/// Ids whose lines are unchanged in the damaged file.
fn intact(original: &HealthyLog, damaged: &[u8], wanted: &[EntryId]) -> Vec<EntryId> {
    let whole = |line: &[u8]| {
        let line = line.strip_suffix(b"\n").unwrap();
        memchr::memmem::find(damaged, line).is_some()
    };
    let of = |line: &&[u8]| {
        LogEntry::parse(SharedText::from(std::str::from_utf8(line).unwrap().trim_end())).unwrap().id
    };
    let there: HashSet<EntryId> = original.lines().iter().filter(|line| whole(line)).map(of).collect();
    wanted.iter().copied().filter(|id| there.contains(id)).collect()
}

/// Checks that `found` contains all of `wanted`, in order.
fn check_none_hidden(name: &str, wanted: &[EntryId], found: &[EntryId]) {
    let kept: Vec<EntryId> = found.iter().copied().filter(|id| wanted.contains(id)).collect();
    assert_eq!(kept, wanted, "{name}: {} of {} intact entries", kept.len(), wanted.len());
}

/// Reports whether the damaged file could come from an uninterrupted session.
fn leaves_a_healthy_log(damaged: &[u8], original: &HealthyLog) -> bool {
    // A missing last line was never there.
    original.bytes.starts_with(damaged) && damaged.last() == Some(&b'\n')
}

fn check(name: &str, original: &HealthyLog, damaged: &[u8], must_be_named: bool) {
    let place = TestLog::new();
    std::fs::write(&place.path, damaged).unwrap();
    let whole = LogReader::open(&place.path).unwrap().whole_branch().unwrap();
    let intact_branch = intact(original, damaged, &original.branch);
    check_none_hidden(name, &intact_branch, &ids(&whole.entries));
    if must_be_named && !leaves_a_healthy_log(damaged, original) {
        let checked = LogReader::open(&place.path).unwrap().check(&mut |_, _| ()).unwrap();
        // A check reports damage on abandoned branches; a read reports what it meets.
        let is_on_branch = intact_branch.len() < original.branch.len();
        for problems in
            [Some(&checked.problems), is_on_branch.then_some(&whole.problems)].into_iter().flatten()
        {
            let problem = problems.iter().find_map(LogProblem::line);
            let text = String::from_utf8_lossy(damaged);
            let line = problem.unwrap_or_else(|| panic!("{name}: nothing is named in\n{text}"));
            assert!(line.number >= 1 && line.offset < damaged.len() as u64, "{name}: {line}");
        }
    }

    let mut opened = place.open();
    let intact_resumed = intact(original, damaged, &original.resumed);
    check_none_hidden(name, &intact_resumed, &ids(&opened.branch.entries));
    assert_eq!(opened.log.head(), opened.branch.entries.last().map(|entry| entry.id), "{name}");
    let added = opened.log.append(said("on"), later(90)).unwrap();
    drop(opened);
    let again = place.open();
    assert_eq!(again.branch.entries.last().unwrap().id, added.id, "{name}");
    check_none_hidden(name, &intact_resumed, &ids(&again.branch.entries));
    let before = place.bytes();
    repair(name, &place, again.log);
    assert!(place.bytes().starts_with(&before), "{name}: a repair only appends");
    let repaired = LogReader::open(&place.path).unwrap();
    let whole = repaired.whole_branch().unwrap();
    assert!(whole.problems.is_empty(), "{name}, repaired: {:?}", whole.problems);
    check_none_hidden(name, &intact_branch, &ids(&whole.entries));
    let branch = repaired.branch().unwrap();
    let lost = branch.problems.iter().all(|problem| problem.line().is_none());
    assert!(lost, "{name}, repaired: {:?}", branch.problems);
    check_none_hidden(name, &intact_resumed, &ids(&branch.entries));
    drop(repaired);
    // From now on it is read as fast as any other log: earlier damage is not examined.
    let mut opened = place.open();
    opened.log.append(said("and on"), later(91)).unwrap();
    drop(opened);
    assert!(place.open().torn.is_none());
}

fn repair(name: &str, place: &TestLog, mut log: Log) {
    let LogCheck { repair, .. } = LogReader::open(&place.path).unwrap().check(&mut |_, _| ()).unwrap();
    if let Some(repair) = repair {
        let entry = log.append(EntryDraft::repair(&repair), later(90)).unwrap();
        assert!(matches!(&entry.body, EntryBody::Repair(read) if **read == repair), "{name}");
    }
    let check = LogReader::open(&place.path).unwrap().check(&mut |_, _| ()).unwrap();
    assert!(check.problems.is_empty() && check.repair.is_none(), "{name}: {check:?}");
}

#[test]
fn any_single_damage_is_reported_and_hides_nothing_intact() {
    let mut tried = 0;
    for (shape, original) in [("linear", linear()), ("branched", branched()), ("compacted", compacted())] {
        for (name, damaged) in damages(&original) {
            // No remaining entry depends on the last entry of an abandoned branch.
            let is_noticed = (shape, name.as_str()) != ("branched", "line 7 missing");
            check(&format!("{shape}: {name}"), &original, &damaged, is_noticed);
            tried += 1;
        }
    }
    println!("{tried} damaged logs");
    assert!(tried > 600);
}

#[test]
fn logs_without_checksums_are_valid_and_recoverable() {
    for original in [linear().without_checksums(), compacted().without_checksums()] {
        let place = TestLog::new();
        std::fs::write(&place.path, &original.bytes).unwrap();
        let check_of = LogReader::open(&place.path).unwrap().check(&mut |_, _| ()).unwrap();
        assert!(check_of.problems.is_empty() && check_of.sealed == 0, "{check_of:?}");
        for (name, damaged) in damages(&original) {
            // Without a checksum, an altered line that still parses goes unnoticed.
            let may_say_otherwise = ["bit ", "1 bytes ", "line 10 edited", "line 9 edited"];
            if !may_say_otherwise.iter().any(|begin| name.starts_with(begin)) {
                check(&name, &original, &damaged, false);
            }
        }
    }
}

#[test]
fn altered_decision_hides_nothing() {
    let original = compacted();
    let text = std::str::from_utf8(&original.bytes).unwrap();
    // Alter the summary but keep its checksum.
    let place = TestLog::new();
    std::fs::write(&place.path, text.replace("what was said before", "nothing")).unwrap();
    let branch = LogReader::open(&place.path).unwrap().branch().unwrap();
    assert_eq!(ids(&branch.entries), original.branch, "all messages are back in sight");
    let problem = branch.problems[0].to_string();
    assert!(problem.contains("line 9 (byte ") && problem.contains("not applied"), "{problem}");
}

#[test]
fn damaged_version_does_not_refuse_the_log() {
    let original = linear();
    let text = std::str::from_utf8(&original.bytes).unwrap();
    let place = TestLog::new();
    std::fs::write(&place.path, text.replacen("{\"v\":1,", "{\"v\":3,", 1)).unwrap();
    let branch = place.open().branch;
    assert_eq!(ids(&branch.entries), original.branch[1..]);
    assert!(branch.problems[0].to_string().contains("skipped line 1 (byte 0,"), "{:?}", branch.problems);
}

#[test]
fn new_damage_at_a_repaired_place_is_reported() {
    let original = linear();
    let place = TestLog::new();
    let text = std::str::from_utf8(&original.bytes).unwrap();
    std::fs::write(&place.path, text.replacen("message 5", "message X", 1)).unwrap();
    let opened = place.open();
    assert_eq!(opened.branch.problems.len(), 1);
    repair("altered", &place, opened.log);
    assert!(place.open().branch.problems.is_empty());
    let text = String::from_utf8(place.bytes()).unwrap();
    std::fs::write(&place.path, text.replacen("message X", "message Y", 1)).unwrap();
    assert_eq!(place.open().branch.problems.len(), 1);
}

#[test]
fn appended_lines_carry_their_checksum() {
    let place = TestLog::new();
    let mut log = place.create();
    let entries = log.append_all(vec![said("one"), said("two")], now()).unwrap();
    drop(log);
    assert!(entries.iter().all(|entry| entry.line.contains("\"checksum\":\"")));
    let check = LogReader::open(&place.path).unwrap().check(&mut |_, _| ()).unwrap();
    assert_eq!((check.lines, check.entries, check.sealed, check.branch), (2, 2, 2, 2));
    assert!(check.problems.is_empty() && check.repair.is_none());
    assert_eq!(lines(&place.open().branch.entries), lines(&entries));
    drop(Log::open(&place.path, IdSource::seeded(3)));
}

/// Appends to a log after its file was changed, and checks the error and the rescued copy.
fn check_changed(expected: &str, change: impl Fn(&TestLog)) {
    let place = TestLog::new();
    let mut log = place.create();
    let entries = log.append_all(vec![said("one"), said("two")], now()).unwrap();
    change(&place);
    let error = log.append(said("three"), now()).unwrap_err();
    let AppendError::Changed { lines: unsaved, .. } = &error else { panic!("{error}") };
    assert!(error.to_string().contains(expected), "{error}");
    let saved = log.rescue(&entries, unsaved).unwrap();
    let error = log.append(said("four"), now()).unwrap_err();
    let AppendError::Changed { lines: unsaved, .. } = &error else { panic!("{error}") };
    assert_eq!(log.rescue(&entries, unsaved).unwrap(), saved, "one file is enough");
    let mode = std::fs::metadata(&saved).unwrap().permissions().mode();
    assert_eq!((mode & 0o777, saved.parent()), (0o600, place.path.parent()));
    drop(log);
    let opened = Log::open(&saved, IdSource::seeded(9)).unwrap();
    assert!(opened.branch.entries.len() >= 3 && opened.torn.is_none(), "{:?}", opened.branch);
    let text = std::fs::read_to_string(&saved).unwrap();
    for said in ["\"one\"", "\"two\"", "\"three\"", "\"four\""] {
        assert_eq!(text.matches(said).count(), 1, "{said}");
    }
}

#[test]
fn open_log_that_was_deleted_replaced_or_cut_is_rescued() {
    check_changed("was deleted while", |place| std::fs::remove_file(&place.path).unwrap());
    check_changed("was deleted while", |place| {
        std::fs::remove_dir_all(place.path.parent().unwrap()).unwrap()
    });
    check_changed("was replaced by another file", |place| {
        std::fs::rename(&place.path, place.path.with_extension("old")).unwrap();
        std::fs::write(&place.path, "other\n").unwrap();
    });
    check_changed("changed by another program", |place| std::fs::write(&place.path, "").unwrap());
    check_changed("changed by another program", |place| {
        let mut file = std::fs::OpenOptions::new().append(true).open(&place.path).unwrap();
        file.write_all(b"a line of somebody else\n").unwrap();
    });
}
