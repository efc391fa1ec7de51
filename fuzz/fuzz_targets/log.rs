//! Arbitrary bytes as a log on disk: reading and opening neither panic nor hang, no byte is lost, and the session
//! can continue.
#![no_main]

use std::cell::OnceCell;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use pal_model::{EntryDraft, IdSource, LogEntry, MessageOrigin, Timestamp};
use pal_store::{Log, LogReader, ReadError};
use tempfile::TempDir;

thread_local! {
    static DIRECTORY: OnceCell<TempDir> = const { OnceCell::new() };
}

fuzz_target!(|bytes: &[u8]| {
    DIRECTORY.with(|directory| {
        let directory = directory.get_or_init(|| {
            let memory = Path::new("/dev/shm");
            let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
            made.expect("a temporary directory")
        });
        check(bytes, &directory.path().join("log.jsonl"), &directory.path().join("log.jsonl.torn"));
    });
});

fn check(bytes: &[u8], path: &Path, torn_path: &Path) {
    let _ = std::fs::remove_file(torn_path);
    std::fs::write(path, bytes).unwrap();

    let reader = LogReader::open(path).unwrap();
    let whole = check_lines(&reader, bytes);
    let read = reader.branch();
    let read_whole = reader.whole_branch();
    assert!(read_whole.iter().all(|branch| branch.entries.len() <= whole));
    drop(reader);
    assert_eq!(std::fs::read(path).unwrap(), bytes, "reading changed the log");

    let opened = Log::open(path, IdSource::seeded(1));
    let kept = std::fs::read(path).unwrap();
    let set_aside = std::fs::read(torn_path).unwrap_or_default();
    let Ok(mut opened) = opened else {
        assert!(kept == bytes && set_aside.is_empty(), "a log that was not opened was changed");
        return;
    };
    match &opened.torn {
        Some(torn) => {
            let set_aside = &set_aside[..torn.bytes as usize];
            assert_eq!([kept.as_slice(), set_aside].concat(), bytes, "bytes were lost");
        }
        None => {
            assert!(set_aside.is_empty());
            assert!(kept == bytes || kept.strip_suffix(b"\n") == Some(bytes), "bytes were lost");
        }
    }
    let read = read.expect("what can be opened can be read");
    assert_eq!(lines(&read.entries), lines(&opened.branch.entries), "reading and opening differ");

    let draft = EntryDraft::user(MessageOrigin::Person, "\"go on\"");
    let added = opened.log.append(draft, Timestamp::from_milliseconds(1_800_000_000_000)).unwrap();
    let mut expected: Vec<String> = lines(&opened.branch.entries).into_iter().map(str::to_owned).collect();
    expected.push(added.line.to_string());
    drop(opened);
    let again = Log::open(path, IdSource::seeded(2)).expect("what was opened can be opened again");
    assert!(again.torn.is_none(), "an append left a torn end");
    assert_eq!(lines(&again.branch.entries), expected, "what was appended is not there");
    assert_eq!(again.log.head(), Some(added.id));
}

/// Checks that every byte belongs to one line, in order; returns the number of entries.
fn check_lines(reader: &LogReader, bytes: &[u8]) -> usize {
    let mut at = 0;
    let mut entries = 0;
    for line in reader.lines() {
        let (offset, length) = match line {
            Ok(line) => {
                entries += 1;
                (line.offset, line.entry.line.len() as u64 + 1)
            }
            Err(ReadError::Bad(bad)) => (bad.offset, bad.bytes),
            Err(ReadError::File(error)) => panic!("{error}"),
        };
        assert_eq!(offset, at, "a gap between lines");
        at += length;
    }
    let lacks_line_end = u64::from(!bytes.is_empty() && !bytes.ends_with(b"\n"));
    assert!(at == bytes.len() as u64 || at == bytes.len() as u64 + lacks_line_end, "lines end at {at}");
    entries
}

fn lines(entries: &[LogEntry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.line.as_str()).collect()
}
