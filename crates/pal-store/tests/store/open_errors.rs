//! Refused files and their messages; lines that are read back unchanged.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use pal_model::{EntryBody, EntryDraft, EntryId, IdSource, MessageOrigin};
use pal_store::{AppendError, Log, LogReader, OpenError, ReadError, RewindError, create_private_directory};

use crate::test_log::{TestLog, child, lines, now, role, said};

fn refusal(path: &Path) -> String {
    let written = Log::open(path, IdSource::seeded(1)).err().expect("opened").to_string();
    let read = LogReader::open(path).and_then(|reader| reader.branch());
    // A reader may get less, but never blocks or panics.
    drop(read);
    assert!(written.contains(&path.display().to_string()), "{written}");
    written
}

#[test]
fn every_open_error_names_file_and_remedy() {
    let place = TestLog::new();
    let at = |name: &str| place.directory.path().join(name);

    assert!(refusal(&at("none.jsonl")).contains("check the path"));
    let missing = at("missing").join("log.jsonl");
    assert!(refusal(&missing).contains("its directory must exist"));
    let error = Log::create(&missing, IdSource::seeded(1)).err().unwrap().to_string();
    assert!(error.contains("its directory must exist"), "{error}");

    assert!(refusal(place.directory.path()).contains("is a directory"));

    let pipe = at("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(refusal(&pipe).contains("is a pipe"));
    assert!(matches!(LogReader::open(&pipe), Err(OpenError::NotAFile { what: "a pipe", .. })));
    assert!(refusal(Path::new("/dev/null")).contains("is a device"));

    symlink(at("a"), at("b")).unwrap();
    symlink(at("b"), at("a")).unwrap();
    assert!(refusal(&at("a")).contains("links lead in a circle"));

    std::fs::write(at("file"), "x").unwrap();
    assert!(refusal(&at("file").join("log.jsonl")).contains("is a file, not a directory"));

    drop(place.create());
    assert!(matches!(Log::create(&place.path, IdSource::seeded(1)), Err(OpenError::Exists { .. })));
}

#[test]
fn foreign_files_are_refused_and_unchanged() {
    let newer = r#"{"v":9,"id":"01890000-0000-7000-8000-000000000001","parent":null,"at":"2026-11-15T09:00:00.000Z","kind":"user"}"#;
    let quoted = format!("# A text about logs\n{}\nand\nmore\n", newer.replace("\"v\":9", "\"v\":1"));
    let cases: [(&[u8], &str); 9] = [
        (quoted.as_bytes(), "is not a log"),
        (b"hello", "is not a log"),
        (b"hello\n", "is not a log"),
        (b"\n", "is not a log"),
        (b"# A title\n\nSome text\nand more", "is not a log"),
        (b"{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n", "is not a log"),
        (b"\xff\xfe\x00\x01", "not UTF-8"),
        (b"{\"v\":1}\n{\"v\":1}\n", "is not a log"),
        (newer.as_bytes(), "update pal"),
    ];
    for (bytes, words) in cases {
        let place = TestLog::new();
        std::fs::write(&place.path, bytes).unwrap();
        let error = refusal(&place.path);
        assert!(error.contains(words), "{error}");
        assert_eq!(place.bytes(), bytes);
        assert!(!place.torn().exists());
    }
}

#[test]
fn refused_log_is_unchanged() {
    let place = TestLog::new();
    let mut log = place.create();
    log.append(said("one"), now()).unwrap();
    log.append(said("two"), now()).unwrap();
    drop(log);
    let written = String::from_utf8(place.bytes()).unwrap();
    // Only a newer program can read the first line, which shows when the walk reaches it. Without a checksum
    // the version does not count as damage.
    let (first, rest) = written.split_once('\n').unwrap();
    let first = first.split_once(",\"checksum\"").unwrap().0.replacen("\"v\":1", "\"v\":2", 1);
    let newer = format!("{first}}}\n{rest}");
    for bytes in [format!("{newer}{{\"v\":1,\"id"), newer.trim_end().to_owned(), newer] {
        std::fs::write(&place.path, &bytes).unwrap();
        assert!(refusal(&place.path).contains("update pal"));
        assert_eq!(place.bytes(), bytes.as_bytes());
        assert!(!place.torn().exists());
    }
}

#[test]
fn missing_write_permission_is_reported() {
    // Root ignores modes, but cannot create files in /proc.
    let error = Log::create(Path::new("/proc/log.jsonl"), IdSource::seeded(1)).err().unwrap();
    assert!(matches!(&error, OpenError::File(_)), "{error}");
    if ignores_modes() {
        println!("partly skipped: root may write where modes forbid it");
        return;
    }
    let place = TestLog::new();
    drop(place.create());
    std::fs::set_permissions(&place.path, PermissionsExt::from_mode(0o400)).unwrap();
    assert!(refusal(&place.path).contains("check the owner and the permissions"));
    std::fs::set_permissions(place.directory.path(), PermissionsExt::from_mode(0o500)).unwrap();
    let error = Log::create(&place.directory.path().join("new"), IdSource::seeded(1)).err().unwrap();
    assert!(error.to_string().contains("check the owner and the permissions"), "{error}");
}

/// Reports whether this process may write despite the mode, as root may.
fn ignores_modes() -> bool {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::set_permissions(file.path(), PermissionsExt::from_mode(0o400)).unwrap();
    std::fs::OpenOptions::new().append(true).open(file.path()).is_ok()
}

#[test]
fn read_only_disk_is_reported() {
    let place = TestLog::new();
    let disk = place.directory.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mount = |arguments: &[&str]| {
        Command::new("mount").args(arguments).arg(&disk).output().is_ok_and(|output| output.status.success())
    };
    if !mount(&["-t", "tmpfs", "-o", "size=64k", "none"]) {
        println!("skipped: no right to mount a small disk here");
        return;
    }
    let path = disk.join("log.jsonl");
    let result = std::panic::catch_unwind(|| {
        let mut log = Log::create(&path, IdSource::seeded(1)).unwrap();
        log.append(said("one"), now()).unwrap();
        drop(log);
        assert!(mount(&["-o", "remount,ro"]));
        assert!(refusal(&path).contains("mounted read-only"));
        let error = Log::create(&disk.join("new"), IdSource::seeded(1)).err().unwrap().to_string();
        assert!(error.contains("mounted read-only"), "{error}");
        assert_eq!(LogReader::open(&path).unwrap().branch().unwrap().entries.len(), 1);
    });
    assert!(Command::new("umount").arg(&disk).status().unwrap().success());
    result.unwrap();
}

#[test]
fn second_writer_learns_the_lock_holder() {
    const NAME: &str = "open_errors::second_writer_learns_the_lock_holder";
    if let Some(path) = role("holder") {
        let _log = Log::open(&path, IdSource::seeded(1)).unwrap();
        println!("holding");
        std::thread::sleep(std::time::Duration::from_secs(60));
        return;
    }
    let place = TestLog::new();
    let log = place.create();
    let error = Log::open(&place.path, IdSource::seeded(2)).err().unwrap();
    let OpenError::Locked { pid, .. } = &error else { panic!("{error}") };
    assert!(pid.is_none_or(|pid| pid == std::process::id()));
    // Readers need no lock.
    assert!(LogReader::open(&place.path).unwrap().branch().unwrap().entries.is_empty());
    drop(log);
    drop(place.open());

    let mut holder = child(NAME, "holder", &place.path).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = std::io::BufReader::new(holder.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("holding") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut output, &mut line).unwrap() > 0, "no lock was taken");
    }
    let error = refusal(&place.path);
    assert!(error.contains("open in another pal process") && error.contains("close that one"), "{error}");
    if std::fs::read_to_string("/proc/locks").is_ok_and(|locks| locks.contains("FLOCK")) {
        assert!(error.contains(&format!("process {}", holder.id())), "{error}");
    }
    holder.kill().unwrap();
    holder.wait().unwrap();
    drop(place.open());
}

#[test]
fn unknown_kinds_and_fields_are_preserved() {
    let envelope = |n: u32, rest: &str| {
        let parent =
            if n == 1 { "null".into() } else { format!("\"01890000-0000-7000-8000-00000000000{}\"", n - 1) };
        format!(
            "{{\"kind\" : \"{rest},\"v\":1,\"id\":\"01890000-0000-7000-8000-00000000000{n}\",\"parent\":{parent},\"at\":\"2026-11-15T09:00:00.000Z\"}}"
        )
    };
    let text = [
        envelope(1, r#"hologram","beam":[1e2, 23456789012345678901234567]"#),
        envelope(2, r#"user","content":[{"type":"odd","x":"\/ \ud83d"}],"mood":{"a" :null}"#),
        envelope(3, r#"clear","tool_use_ids":7"#),
    ];
    let mut file = text.join("\n");
    file.push('\n');
    let place = TestLog::new();
    std::fs::write(&place.path, &file).unwrap();
    let reader = LogReader::open(&place.path).unwrap();
    let copied: String = reader.lines().map(|line| format!("{}\n", line.unwrap().entry.line)).collect();
    assert_eq!(copied, file);
    let opened = place.open();
    assert_eq!(lines(&opened.branch.entries), text);
    assert!(matches!(opened.branch.entries[0].body, EntryBody::Unknown));
    assert!(opened.branch.problems.is_empty());
}

#[test]
fn bad_lines_in_the_middle_are_reported_and_kept() {
    let place = TestLog::new();
    let mut log = place.create();
    let ids: Vec<EntryId> = (0..6).map(|n| log.append(said(&n.to_string()), now()).unwrap().id).collect();
    let offsets: Vec<usize> = ids.iter().map(|id| log.offset(*id).unwrap() as usize).collect();
    drop(log);
    let mut bytes = place.bytes();
    bytes[offsets[2] + 20] = 0xff;
    bytes[offsets[3]] = b'[';
    std::fs::write(&place.path, &bytes).unwrap();

    let reader = LogReader::open(&place.path).unwrap();
    let numbers: Vec<Result<u64, u64>> = reader
        .lines()
        .map(|line| match line {
            Ok(line) => Ok(line.number),
            Err(ReadError::Bad(bad)) => Err(bad.number),
            Err(ReadError::File(error)) => panic!("{error}"),
        })
        .collect();
    assert_eq!(numbers, [Ok(1), Ok(2), Err(3), Err(4), Ok(5), Ok(6)]);

    let mut opened = place.open();
    let found: Vec<EntryId> = opened.branch.entries.iter().map(|entry| entry.id).collect();
    assert_eq!(found, [ids[0], ids[1], ids[4], ids[5]]);
    let problems: Vec<String> = opened.branch.problems.iter().map(ToString::to_string).collect();
    assert!(
        problems[0].starts_with("skipped line 4 ") && problems[1].starts_with("skipped line 3 "),
        "{problems:?}"
    );
    opened.log.append(said("on"), now()).unwrap();
    assert!(place.bytes().starts_with(&bytes));
    assert!(opened.torn.is_none());
}

#[test]
fn malformed_drafts_never_reach_the_file() {
    let place = TestLog::new();
    let mut log = place.create();
    let first = log.append(said("one"), now()).unwrap();
    let before = place.bytes();
    for bad in ["\"unclosed", "[1", "", "1}\n{\"v\":1"] {
        let error = log
            .append_all(vec![said("good"), EntryDraft::user(MessageOrigin::Person, bad)], now())
            .unwrap_err();
        assert!(matches!(error, AppendError::Invalid { .. }), "{error}");
    }
    assert_eq!((place.bytes(), log.head()), (before, Some(first.id)));
    assert!(log.append_all(Vec::new(), now()).unwrap().is_empty());
    let next = log.append(EntryDraft::user(MessageOrigin::Person, "[\n]"), now()).unwrap();
    assert_eq!((next.parent, next.parent_offset), (Some(first.id), None));
    assert_eq!(place.bytes().iter().filter(|byte| **byte == b'\n').count(), 2);
}

#[test]
fn rewind_to_unknown_entry_changes_nothing() {
    let place = TestLog::new();
    let mut log = place.create();
    let first = log.append(said("one"), now()).unwrap();
    let error = log.rewind(EntryId::from_bits(7)).unwrap_err();
    assert!(matches!(error, RewindError::NoSuchEntry { .. }), "{error}");
    assert_eq!(log.head(), Some(first.id));
}

#[test]
fn draft_may_carry_its_id() {
    let place = TestLog::new();
    let mut log = place.create();
    let first = log.append(said("one"), now()).unwrap();
    let id = pal_model::IdSource::seeded(77).next_id(now());
    let copied = log.append_all(vec![said("two").with_id(id), said("three")], now()).unwrap();
    assert_eq!((copied[0].id, copied[0].parent, copied[1].parent), (id, Some(first.id), Some(id)));
    drop(log);
    assert_eq!(place.open().branch.entries[1].id, id);
}

#[test]
fn ids_stay_unique_with_a_repeated_seed() {
    let place = TestLog::new();
    let mut ids = std::collections::BTreeSet::new();
    drop(place.create());
    for _ in 0..3 {
        let mut log = place.open().log;
        for _ in 0..5 {
            assert!(ids.insert(log.append(said("x"), now()).unwrap().id));
        }
    }
}

#[test]
fn directories_are_private() {
    let place = TestLog::new();
    let deep = place.directory.path().join("projects/-a/sessions/1");
    create_private_directory(&deep).unwrap();
    create_private_directory(&deep).unwrap();
    for part in deep.ancestors().take(4) {
        assert_eq!(std::fs::metadata(part).unwrap().permissions().mode() & 0o777, 0o700);
    }
    std::fs::write(deep.join("file"), "").unwrap();
    assert!(create_private_directory(&deep.join("file/x")).is_err());
}
