//! A mailbox on a real disk.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use pal_mailbox::{Delivery, Inbox, InboxError, Mailbox, PostError, PostOutcome, sweep_mailboxes};
use tempfile::TempDir;

use super::{message, name, texts};

fn directory() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn inbox(dir: &Path) -> Inbox {
    Inbox::open(dir, &name("scout")).unwrap()
}

fn mailbox(dir: &Path) -> Mailbox {
    Mailbox::open(dir, &name("scout")).unwrap()
}

fn taken(deliveries: &[Delivery]) -> Vec<String> {
    texts(deliveries.iter().map(|delivery| &delivery.message))
}

#[test]
fn messages_are_taken_once_and_repeat_only_unconfirmed() {
    let dir = directory();
    let mut reader = inbox(dir.path());
    assert!(reader.take().unwrap().is_empty());
    let mut posts = mailbox(dir.path());
    let first = message("lead", "scout", "one");
    assert_eq!(posts.post(&first).unwrap(), PostOutcome::Added);
    assert_eq!(
        mailbox(dir.path()).post(&first).unwrap(),
        PostOutcome::Duplicate,
        "another process tries again"
    );
    let deliveries = reader.take().unwrap();
    assert_eq!(deliveries, [Delivery { message: first.clone(), perhaps_seen: false }]);
    assert_eq!(deliveries[0].message.line(), first.line());
    posts.post(&message("lead", "scout", "two")).unwrap();
    assert_eq!(taken(&reader.take().unwrap()), ["two"], "once in a life of a reader");
    drop(reader);
    let mut reader = inbox(dir.path());
    let deliveries = reader.take().unwrap();
    assert_eq!(taken(&deliveries), ["one", "two"], "nobody confirmed them");
    assert!(deliveries.iter().all(|delivery| delivery.perhaps_seen));
    reader.confirm().unwrap();
    posts.post(&message("lead", "scout", "three")).unwrap();
    assert_eq!(reader.take().unwrap().iter().map(|each| each.perhaps_seen).collect::<Vec<_>>(), [false]);
    reader.confirm().unwrap();
    assert_eq!(mailbox(dir.path()).post(&first).unwrap(), PostOutcome::Duplicate);
    drop(reader);
    assert!(inbox(dir.path()).take().unwrap().is_empty());
}

#[test]
fn only_one_reader_is_allowed() {
    let dir = directory();
    let reader = inbox(dir.path());
    let second = Inbox::open(dir.path(), &name("scout")).err().unwrap();
    assert!(matches!(second, InboxError::InUse { .. }), "{second}");
    drop(reader);
    inbox(dir.path());
}

#[test]
fn files_are_private_and_links_are_refused() {
    let dir = directory();
    let place = dir.path().join("deep/mail");
    let mut reader = inbox(&place);
    mailbox(&place).post(&message("lead", "scout", "secret")).unwrap();
    reader.take().unwrap();
    reader.confirm().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for folder in [dir.path().join("deep"), place.clone(), place.join("scout")] {
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
    }
    let files: Vec<_> =
        fs::read_dir(place.join("scout")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 4, "{files:?}");
    files.iter().for_each(|file| assert_eq!(mode(file), 0o600, "{}", file.display()));
    drop(reader);

    let elsewhere = dir.path().join("elsewhere.jsonl");
    fs::write(&elsewhere, "").unwrap();
    for file in ["spool.jsonl", "lock", ".spool.jsonl.new"] {
        let other = dir.path().join(format!("with-{file}"));
        mailbox(&other);
        symlink(&elsewhere, other.join("scout").join(file)).unwrap();
        assert!(mailbox(&other).post(&message("lead", "scout", "x")).is_err(), "{file} is a link");
    }
    assert_eq!(fs::metadata(&elsewhere).unwrap().len(), 0);

    symlink(dir.path(), place.join("linked")).unwrap();
    let refused = Mailbox::open(&place, &name("linked")).err().unwrap().to_string();
    assert!(refused.contains("is a link"), "{refused}");
    fs::create_dir(place.join("open")).unwrap();
    fs::set_permissions(place.join("open"), fs::Permissions::from_mode(0o755)).unwrap();
    let refused = Mailbox::open(&place, &name("open")).err().unwrap().to_string();
    assert!(refused.contains("others may enter"), "{refused}");
}

#[test]
fn torn_or_corrupt_lines_are_skipped() {
    let dir = directory();
    let torn = message("lead", "scout", "torn");
    mailbox(dir.path()).post(&message("lead", "scout", "one")).unwrap();
    let spool = dir.path().join("scout/spool.jsonl");
    let whole = fs::read(&spool).unwrap();
    for cut in [1, 40, torn.line().len()] {
        let mut posts = mailbox(dir.path());
        fs::write(&spool, [&whole, &torn.line().as_bytes()[..cut]].concat()).unwrap();
        let mut reader = inbox(dir.path());
        assert_eq!(taken(&reader.take().unwrap()), ["one"], "cut at {cut}");
        // Another writer ends the torn line, then the first tries again.
        posts.post(&message("other", "scout", "two")).unwrap();
        assert_eq!(posts.post(&torn).unwrap(), PostOutcome::Added);
        assert_eq!(taken(&reader.take().unwrap()), ["two", "torn"], "cut at {cut}");
        assert_eq!(reader.skipped(), 1);
    }
    let mut spoiled = whole;
    spoiled.extend_from_slice(b"not json\n\xff\xfe\n{}\n");
    fs::write(&spool, spoiled).unwrap();
    let mut reader = inbox(dir.path());
    assert_eq!((taken(&reader.take().unwrap()), reader.skipped()), (vec!["one".into()], 3));
}

#[test]
fn full_mailbox_is_bounded_and_names_the_remedy() {
    let dir = directory();
    let mut posts = mailbox(dir.path());
    let large = "x".repeat(250_000);
    let full = loop {
        match posts.post(&message("lead", "scout", &large)) {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(full, PostError::Full { .. }), "{full}");
    assert!(full.to_string().contains("start `scout`"), "{full}");
    let spool = dir.path().join("scout/spool.jsonl");
    let length = fs::metadata(&spool).unwrap().len();
    assert!((15_000_000..=16 * 1024 * 1024).contains(&length), "{length}");
    let mut reader = inbox(dir.path());
    let deliveries = reader.take().unwrap();
    assert!(deliveries.len() > 60);
    reader.confirm().unwrap();
    assert!(fs::metadata(&spool).unwrap().len() < 10_000, "what was read is gone");
    assert_eq!(posts.post(&deliveries[0].message).unwrap(), PostOutcome::Duplicate, "but is remembered");
    assert_eq!(posts.post(&message("lead", "scout", "small")).unwrap(), PostOutcome::Added);
    assert_eq!(taken(&reader.take().unwrap()), ["small"]);
}

#[test]
fn sweep_removes_only_unused_mailboxes() {
    let dir = directory();
    let later = SystemTime::now() + Duration::from_secs(10 * 86_400);
    let week = Duration::from_secs(7 * 86_400);
    let mut posts = mailbox(dir.path());
    posts.post(&message("lead", "scout", "one")).unwrap();
    let _reader = Inbox::open(dir.path(), &name("busy")).unwrap();
    Mailbox::open(dir.path(), &name("busy")).unwrap().post(&message("lead", "busy", "one")).unwrap();
    assert!(sweep_mailboxes(dir.path(), week, SystemTime::now()).unwrap().is_empty(), "it is young");
    assert_eq!(sweep_mailboxes(dir.path(), week, later).unwrap(), [name("scout")]);
    assert!(!dir.path().join("scout").exists());
    posts.post(&message("lead", "scout", "two")).unwrap();
    assert_eq!(taken(&inbox(dir.path()).take().unwrap()), ["two"], "one who had it open goes on");
    assert_eq!(fs::metadata(dir.path().join("scout")).unwrap().mode() & 0o777, 0o700);
    assert!(sweep_mailboxes(&dir.path().join("absent"), week, later).unwrap().is_empty());
}
