//! Kills: a log cut at every byte of its end, and a writer process that is killed.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::Duration;

use pal_model::{IdSource, LogEntry, SharedText};
use pal_store::{Log, LogReader};

use crate::test_log::{TestLog, child, lines, now, role, said};

/// Five lines, the last three with characters of one to four bytes.
fn five_lines() -> Vec<u8> {
    let place = TestLog::new();
    let mut log = place.create();
    for text in ["one", "two", "drei ü", "四\\n\\\"{}", "fünf 🙂"] {
        log.append(said(text), now()).unwrap();
    }
    place.bytes()
}

/// Checks that a file of these bytes opens with exactly its whole lines and that all bytes are kept.
fn check_cut(bytes: &[u8]) {
    let place = TestLog::new();
    std::fs::write(&place.path, bytes).unwrap();
    let text = String::from_utf8_lossy(bytes).into_owned();
    let rest = text.rsplit('\n').next().unwrap();
    let is_whole = LogEntry::parse(SharedText::from(rest)).is_ok();
    let mut expected: Vec<&str> = text.lines().collect();
    if !rest.is_empty() && !is_whole {
        expected.pop();
    }
    let read_before = LogReader::open(&place.path).unwrap().whole_branch().unwrap();
    assert_eq!(lines(&read_before.entries), expected);

    let mut opened = place.open();
    assert_eq!(lines(&opened.branch.entries), expected);
    let kept = place.bytes();
    if rest.is_empty() || is_whole {
        assert!(opened.torn.is_none() && !place.torn().exists());
        assert!(kept.starts_with(bytes) && kept.len() - bytes.len() == usize::from(is_whole));
    } else {
        let torn = opened.torn.as_ref().unwrap();
        let set_aside = std::fs::read(&torn.path).unwrap();
        let set_aside = set_aside.strip_suffix(b"\n").unwrap();
        assert_eq!((&torn.path, torn.bytes), (&place.torn(), set_aside.len() as u64));
        assert_eq!([kept.as_slice(), set_aside].concat(), bytes);
    }
    let added = opened.log.append(said("after"), now()).unwrap();
    assert_eq!(added.parent, opened.branch.entries.last().map(|entry| entry.id));
    assert_eq!(added.parent_offset, None);
    drop(opened);
    let again = place.open();
    assert!(again.torn.is_none() && again.branch.problems.is_empty());
    assert_eq!(again.branch.entries.len(), expected.len() + 1);
}

#[test]
fn log_cut_at_any_byte_keeps_all_whole_lines() {
    let bytes = five_lines();
    // Down to the empty file, so through the first line as well.
    for length in 0..=bytes.len() {
        check_cut(&bytes[..length]);
    }
}

#[test]
fn torn_tails_accumulate_in_one_file() {
    let place = TestLog::new();
    place.create().append(said("one"), now()).unwrap();
    for torn in ["{\"v\":1,\"id", "\0\0\0\0", "{\"v\":1}\nnot json"] {
        let mut file = std::fs::OpenOptions::new().append(true).open(&place.path).unwrap();
        file.write_all(torn.as_bytes()).unwrap();
        let opened = place.open();
        assert_eq!(opened.torn.unwrap().bytes, torn.len() as u64);
        assert_eq!(opened.branch.entries.len(), 1);
    }
    let piled = std::fs::read(place.torn()).unwrap();
    assert_eq!(piled, b"{\"v\":1,\"id\n\0\0\0\0\n{\"v\":1}\nnot json\n");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        for path in [&place.path, &place.torn()] {
            assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}

#[test]
fn a_killed_writer_loses_nothing_acknowledged() {
    if let Some(path) = role("writer") {
        return write_for_ever(&path);
    }
    let (mut n_acknowledged, mut n_torn) = (0, 0);
    for round in 0..60u64 {
        let place = TestLog::new();
        drop(place.create());
        let acknowledged = run_and_kill(&place, Duration::from_micros(3_000 + round * 7919 % 20_000));
        let opened = place.open();
        assert!(opened.branch.problems.is_empty());
        // A resume leaves out the beginning of a long log; the file has all of it.
        let whole = LogReader::open(&place.path).unwrap().whole_branch().unwrap();
        let ids: Vec<String> = whole.entries.iter().map(|entry| entry.id.to_string()).collect();
        assert!(ids.starts_with(&acknowledged), "round {round}: {} of {}", ids.len(), acknowledged.len());
        n_torn += usize::from(opened.torn.is_some());
        n_acknowledged += acknowledged.len();
    }
    println!("{n_acknowledged} entries acknowledged, {n_torn} torn tails");
    assert!(n_acknowledged > 100, "the writers wrote next to nothing");
}

/// Ids that a writer acknowledged before it was killed.
fn run_and_kill(place: &TestLog, after: Duration) -> Vec<String> {
    const NAME: &str = "crash::a_killed_writer_loses_nothing_acknowledged";
    let mut writer = child(NAME, "writer", &place.path).stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(writer.stdout.take().unwrap());
    let reader = std::thread::spawn(move || {
        let lines = output.lines().map_while(Result::ok);
        // The test's name precedes the first line; the last may be cut, like the log.
        let ids = lines.filter_map(|line| Some(line.split_once("ack ")?.1.to_owned()));
        ids.filter(|id| id.len() == 36).collect()
    });
    std::thread::sleep(after);
    writer.kill().unwrap();
    writer.wait().unwrap();
    reader.join().unwrap()
}

fn write_for_ever(path: &std::path::Path) {
    let seed = u64::from(std::process::id());
    let mut log = Log::open(path, IdSource::seeded(seed)).unwrap().log;
    let mut out = std::io::stdout().lock();
    for number in 0u64.. {
        let text = "x".repeat((number as usize * 9_973) % 100_000);
        let entries = match number % 3 {
            0 => log.append_all(vec![said(&text), said("second")], now()).unwrap(),
            _ => vec![log.append(said(&text), now()).unwrap()],
        };
        for entry in entries {
            writeln!(out, "ack {}", entry.id).unwrap();
        }
    }
}
