//! Behavior that users rely on.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::memory_file::{MemoryHeader, MemoryKind};
use crate::memory_location::MemoryLocation;

fn moment(hours: u64) -> Timestamp {
    Timestamp::from_milliseconds(1_800_000_000_000).after(std::time::Duration::from_secs(hours * 3_600))
}

fn topic(name: &str, description: &str, body: &str) -> MemoryFile {
    let head = MemoryHeader {
        name: name.into(),
        description: description.into(),
        kind: MemoryKind::Project,
        modified: None,
        origin: Author::Person,
    };
    MemoryFile::new(head, body)
}

fn slugs(memory: &mut MemoryStore) -> Vec<String> {
    memory.list().unwrap().into_iter().map(|listed| listed.slug).collect()
}

struct TestMemoryDir(tempfile::TempDir);

impl TestMemoryDir {
    fn new() -> TestMemoryDir {
        TestMemoryDir(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> std::path::PathBuf {
        self.0.path().join("memory")
    }

    fn open(&self) -> MemoryStore {
        MemoryStore::open(&self.path(), moment(0)).unwrap()
    }
}

#[test]
fn memory_is_a_private_file_and_an_index_line() {
    let directory = TestMemoryDir::new();
    let mut memory = directory.open();
    let by = Author::Session { session: "0199".into(), entry: Some("01aa".into()) };
    let mut written = topic("Release day", "We release on Fridays", "Never on Mondays.\n");
    written.head.origin = by.clone();
    memory.write("release-day", &written, &by, moment(1)).unwrap();
    let file = fs::read_to_string(directory.path().join("release-day.md")).unwrap();
    assert_eq!(
        file,
        "---\nname: Release day\ndescription: We release on Fridays\ntype: project\nmodified: 2027-01-15T09:00:00.000Z\norigin: session 0199 entry 01aa\n---\n\nNever on Mondays.\n"
    );
    let index = fs::read_to_string(directory.path().join("MEMORY.md")).unwrap();
    assert_eq!(index, "- [Release day](release-day.md): We release on Fridays\n");
    let mode = |path: &str| fs::metadata(directory.path().join(path)).unwrap().permissions().mode() & 0o777;
    memory.search("release", 1, moment(1)).unwrap();
    memory.note_used("release-day", moment(2), Some("0199")).unwrap();
    for file in ["release-day.md", "MEMORY.md", ".uses.jsonl", ".index.db", ".versions/journal.jsonl"] {
        assert_eq!(mode(file), 0o600, "{file}");
    }
    assert_eq!((mode(""), mode(".versions"), mode(".versions/blobs")), (0o700, 0o700, 0o700));
}

#[test]
fn outside_changes_are_recorded_as_the_users() {
    let directory = TestMemoryDir::new();
    let mut memory = directory.open();
    memory.write("a", &topic("A", "first", "text\n"), &Author::program(), moment(1)).unwrap();
    memory.write("b", &topic("B", "second", "text\n"), &Author::program(), moment(2)).unwrap();
    fs::write(directory.path().join("a.md"), "by hand\n").unwrap();
    fs::write(directory.path().join("new.md"), "---\nname: New\ndescription: fresh\ntype: user\n---\n")
        .unwrap();
    fs::remove_file(directory.path().join("b.md")).unwrap();
    let memory = directory.open();
    let noticed = &memory.outside_changes()[0];
    assert!(noticed.by.is_person() && noticed.what == MemoryChangeKind::Outside);
    let files: Vec<&str> = noticed.files.iter().map(|changed| changed.file.as_str()).collect();
    assert_eq!(files, ["b.md", "a.md", "new.md"]);
    let index = fs::read_to_string(directory.path().join("MEMORY.md")).unwrap();
    assert!(index.contains("[New](new.md): fresh") && !index.contains("b.md"), "{index}");
    assert!(directory.open().outside_changes().is_empty(), "once");
}

#[test]
fn outside_changes_of_an_agent_are_attributed_and_masked() {
    let directory = TestMemoryDir::new();
    drop(directory.open());
    let key = ["sk-", "ant-", "api03-", "Zq8Xv3LmN0pRt5WyB7cD2fGh"].concat();
    fs::write(directory.path().join("a.md"), format!("---\nname: A\n---\nkey {key}\n")).unwrap();
    let agent = Author::Session { session: "0199".into(), entry: None };
    let memory = MemoryStore::open_as(&directory.path(), &agent, moment(1)).unwrap();
    assert_eq!(memory.outside_changes()[0].by, agent);
    assert!(memory.read("a").unwrap().body.contains("[secret: anthropic key]"));
}

#[test]
fn edit_replaces_one_occurrence_and_masks_secrets() {
    let directory = TestMemoryDir::new();
    let mut memory = directory.open();
    memory.write("a", &topic("A", "d", "one two two\n"), &Author::Person, moment(1)).unwrap();
    let edit = |memory: &mut MemoryStore, old: &str, new: &str| {
        memory.edit("a", (old, new), &Author::Person, moment(2))
    };
    assert!(matches!(edit(&mut memory, "two", "x"), Err(MemoryError::NotOnce { times: 2, .. })));
    assert!(matches!(edit(&mut memory, "none", "x"), Err(MemoryError::NotOnce { times: 0, .. })));
    let token = ["ghp_", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"].concat();
    let written = edit(&mut memory, "one", &format!("use {token}")).unwrap();
    assert_eq!(written.masked[0].kind, "github token");
    let now = memory.read("a").unwrap();
    assert_eq!(
        (now.body.as_str(), now.head.modified),
        ("use [secret: github token] two two\n", Some(moment(2)))
    );
    let versions: Vec<_> =
        fs::read_dir(directory.path().join(".versions/blobs")).unwrap().flatten().collect();
    for version in versions {
        assert!(!fs::read_to_string(version.path()).unwrap().contains(&token), "not in the history either");
    }
}

#[test]
fn undo_walks_back_and_forth() {
    let directory = TestMemoryDir::new();
    let mut memory = directory.open();
    for body in ["one\n", "two\n", "three\n"] {
        memory.write("a", &topic("A", "d", body), &Author::Person, moment(1)).unwrap();
    }
    let mut bodies = Vec::new();
    while let Some(to) = memory.undo_point().unwrap() {
        memory.undo(to, &Author::Person, moment(2)).unwrap();
        bodies.push(memory.read("a").map_or(String::from("gone"), |topic| topic.body));
    }
    assert_eq!(bodies, ["two\n", "one\n", "gone"]);
    memory.undo(3, &Author::Person, moment(3)).unwrap();
    assert_eq!(memory.read("a").unwrap().body, "three\n");
    assert!(matches!(
        memory.undo(99, &Author::Person, moment(3)),
        Err(MemoryError::NoSuchPoint { last: 7, .. })
    ));
    let diff = memory.diff(1, 3).unwrap();
    assert!(diff[0].unified().contains("-one\n+three\n"), "{}", diff[0].unified());
}

#[test]
fn memories_are_found_by_name_file_or_prefix() {
    let directory = TestMemoryDir::new();
    let mut memory = directory.open();
    memory.write("release-day", &topic("Release day", "d", "b\n"), &Author::Person, moment(1)).unwrap();
    memory.write("release-notes", &topic("Notes", "d", "b\n"), &Author::Person, moment(1)).unwrap();
    for name in ["release-day", "release-day.md", "release day", "Release Day", "release-d"] {
        assert_eq!(memory.find(name).unwrap(), "release-day", "{name}");
    }
    let error = memory.find("relaese-day").unwrap_err().to_string();
    assert!(error.contains("did you mean `release-day`?"), "{error}");
    assert!(memory.find("release").is_err(), "two begin so");
    assert_eq!(memory.unused_slug("Release day"), "release-day-2");
}

#[test]
fn nothing_outside_the_directory_is_read_or_written() {
    let directory = TestMemoryDir::new();
    let mut memory = directory.open();
    let outside = directory.0.path().join("outside.md");
    fs::write(&outside, "theirs\n").unwrap();
    let mine = topic("A", "d", "mine\n");
    for slug in ["../outside", "/etc/x", "..", ".versions/x", "a/b", "", "MEMORY", ".hidden", "a\0b", "-rf"] {
        assert!(memory.write(slug, &mine, &Author::Person, moment(1)).is_err(), "{slug:?}");
        assert!(memory.read(slug).is_err() || slug == "MEMORY", "{slug:?}");
        assert!(memory.remove(slug, &Author::Person, moment(1)).is_err(), "{slug:?}");
    }
    symlink(&outside, directory.path().join("link.md")).unwrap();
    assert!(memory.read("link").is_err());
    assert!(memory.write("link", &mine, &Author::Person, moment(1)).is_err());
    assert_eq!(slugs(&mut memory), [""; 0]);
    // A change replaces a hard link with another file.
    fs::hard_link(&outside, directory.path().join("hard.md")).unwrap();
    memory.write("hard", &mine, &Author::Person, moment(2)).unwrap();
    // Nor through generated files.
    let _ = fs::remove_file(directory.path().join(".index.db"));
    symlink(&outside, directory.path().join(".index.db")).unwrap();
    assert_eq!(memory.search("mine", 5, moment(2)).unwrap().len(), 1);
    let _ = fs::remove_file(directory.path().join(".uses.jsonl"));
    symlink(&outside, directory.path().join(".uses.jsonl")).unwrap();
    assert!(memory.note_used("hard", moment(2), None).is_err());
    assert_eq!(fs::read_to_string(&outside).unwrap(), "theirs\n");
    let link = directory.0.path().join("whole");
    symlink(directory.path(), &link).unwrap();
    assert!(MemoryStore::open(&link, moment(3)).is_err());
}

#[test]
fn repository_links_cannot_redirect_agent_memory() {
    let directory = TestMemoryDir::new();
    let (root, elsewhere) = (directory.0.path().join("repository"), directory.0.path().join("elsewhere"));
    fs::create_dir_all(&root).unwrap();
    fs::create_dir_all(&elsewhere).unwrap();
    let place = MemoryLocation::of_agent_in_project("reviewer", &root, false).unwrap();
    assert!(place.directory.ends_with("repository/.pal/agent-memory/reviewer"));
    symlink(&elsewhere, root.join(".pal")).unwrap();
    assert!(place.open(moment(0)).is_err());
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    fs::remove_file(root.join(".pal")).unwrap();
    place.open(moment(0)).unwrap();
    fs::create_dir_all(&place.read_only_directories[0]).unwrap();
    fs::write(place.read_only_directories[0].join("theirs.md"), "---\nname: Theirs\n---\ntext\n").unwrap();
    let mut others = place.open_read_only().unwrap();
    assert_eq!(slugs(&mut others[0]), ["theirs"]);
    assert!(others[0].remove("theirs", &Author::Person, moment(1)).is_err());
    assert_eq!(others[0].search("text", 5, moment(1)).unwrap().len(), 1);
    assert_eq!(fs::read_dir(&place.read_only_directories[0]).unwrap().count(), 1, "nothing is written there");
    assert!(MemoryLocation::of_agent_in_project("../x", &root, true).is_err());
}

#[test]
fn several_writers_lose_nothing() {
    let directory = TestMemoryDir::new();
    drop(directory.open());
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let directory = &directory;
            scope.spawn(move || {
                let mut memory = directory.open();
                for at in 0..10 {
                    let topic = topic(&format!("{writer} {at}"), "d", "text\n");
                    memory.write(&format!("m{writer}-{at}"), &topic, &Author::Person, moment(at)).unwrap();
                    memory.write("shared", &topic, &Author::Person, moment(at)).unwrap();
                }
            });
        }
    });
    let mut memory = directory.open();
    assert!(memory.outside_changes().is_empty());
    assert_eq!(slugs(&mut memory).len(), 41);
    let ids: Vec<u64> = memory.log().unwrap().iter().map(|change| change.id).collect();
    assert_eq!(ids, (1..=80).collect::<Vec<u64>>());
    let index = fs::read_to_string(directory.path().join("MEMORY.md")).unwrap();
    assert_eq!(index.lines().count(), 41);
}

#[test]
fn readers_do_not_wait_for_a_writer() {
    let directory = TestMemoryDir::new();
    let mut memory = directory.open();
    memory.write("a", &topic("A", "d", "text\n"), &Author::Person, moment(1)).unwrap();
    let lock = memory.journal().unwrap().folder().lock("lock").unwrap();
    let begin = std::time::Instant::now();
    // Even if there are outside changes to record.
    fs::write(directory.path().join("b.md"), "by hand\n").unwrap();
    let mut reader = directory.open();
    assert_eq!(slugs(&mut reader), ["a", "b"]);
    assert_eq!(reader.search("text", 5, moment(1)).unwrap().len(), 1);
    assert_eq!(reader.read("a").unwrap().body, "text\n");
    assert!(reader.index_for_context().unwrap().text.contains("a.md"));
    assert!(begin.elapsed() < std::time::Duration::from_secs(5));
    drop(lock);
}

#[test]
fn recent_and_used_memories_rank_first_and_a_corrupt_index_is_rebuilt() {
    let directory = TestMemoryDir::new();
    let mut memory = directory.open();
    for (slug, hours) in [("old", 0), ("used", 0), ("new", 24 * 60)] {
        memory
            .write(slug, &topic("Parser", "about the parser", "text\n"), &Author::Person, moment(hours))
            .unwrap();
    }
    let found = |memory: &mut MemoryStore| -> Vec<String> {
        memory
            .search("parsers", 9, moment(24 * 60))
            .unwrap()
            .into_iter()
            .map(|found| found.memory.slug)
            .collect()
    };
    assert_eq!(found(&mut memory), ["new", "old", "used"]);
    for _ in 0..20 {
        memory.note_used("used", moment(24 * 50), None).unwrap();
    }
    assert_eq!(found(&mut memory), ["used", "new", "old"]);
    assert_eq!(slugs(&mut memory)[0], "used");
    drop(memory);
    for junk in ["", "no database", &"x".repeat(20_000)] {
        fs::write(directory.path().join(".index.db"), junk).unwrap();
        assert_eq!(found(&mut directory.open()), ["used", "new", "old"]);
    }
    fs::remove_file(directory.path().join(".index.db")).unwrap();
    fs::create_dir(directory.path().join(".index.db")).unwrap();
    assert_eq!(found(&mut directory.open()), ["used", "new", "old"], "even where none can be kept");
}

#[test]
fn outside_change_is_searchable_at_once() {
    let directory = TestMemoryDir::new();
    let mut memory = directory.open();
    memory.write("a", &topic("A", "d", "parser\n"), &Author::Person, moment(1)).unwrap();
    assert_eq!(memory.search("lexer", 5, moment(1)).unwrap().len(), 0);
    // Same size in place: within one tick the time stamps may not change.
    let file = fs::read_to_string(directory.path().join("a.md")).unwrap();
    fs::write(directory.path().join("a.md"), file.replace("parser", "lexer ")).unwrap();
    assert_eq!(memory.search("lexer", 5, moment(1)).unwrap().len(), 1);
    assert_eq!(memory.search("parser", 5, moment(1)).unwrap().len(), 0);
}
