//! Each kind of problem is found, and healthy directories have no findings.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use super::*;
use crate::author::Author;
use crate::memory_file::{MemoryHeader, MemoryKind};

fn moment(days: u64) -> Timestamp {
    Timestamp::from_milliseconds(1_800_000_000_000).after(Duration::from_secs(days * 86_400))
}

struct DoctorFixture {
    folder: tempfile::TempDir,
    memory: MemoryStore,
}

impl DoctorFixture {
    fn new() -> DoctorFixture {
        let folder = tempfile::tempdir().unwrap();
        let memory = MemoryStore::open(&folder.path().join("memory"), moment(0)).unwrap();
        DoctorFixture { folder, memory }
    }

    fn write(&mut self, slug: &str, description: &str, body: &str) {
        let head = MemoryHeader {
            name: slug.to_owned(),
            description: description.to_owned(),
            kind: MemoryKind::Project,
            modified: None,
            origin: Author::Person,
        };
        self.memory.write(slug, &MemoryFile::new(head, body), &Author::Person, moment(0)).unwrap();
    }

    fn found(&mut self, days: u64) -> Vec<(FindingKind, String)> {
        let project = self.folder.path().join("project");
        fs::create_dir_all(project.join("src")).unwrap();
        fs::write(project.join("src/lexer.rs"), "").unwrap();
        let findings = self.memory.doctor(Some(&project), moment(days)).unwrap();
        assert!(findings.iter().all(|finding| !finding.advice.is_empty()));
        findings.into_iter().map(|finding| (finding.kind, finding.what)).collect()
    }
}

#[test]
fn a_healthy_directory_has_no_findings() {
    let mut patient = DoctorFixture::new();
    patient.write("release", "We release on Fridays", "Always release on Fridays, from `main`.\n");
    patient.write(
        "lexer",
        "Where the lexer is",
        "The lexer is in `src/lexer.rs`; see [release](release.md).\n",
    );
    patient.write(
        "style",
        "Small commits",
        "Never mix two things in one commit. See https://example.com/a/b.html\n",
    );
    assert_eq!(patient.found(1), []);
}

#[test]
fn contradictions_are_found_by_rule() {
    let cases = [
        ("Always squash commits before a merge.", "Never squash commits before a merge.", true),
        ("Use tabs for indentation.", "Do not use tabs for indentation.", true),
        ("The deadline is 2026-11-20.", "The deadline is 2026-12-01.", true),
        ("port: 8080", "Port: 9090", true),
        ("Immer Tabs verwenden im Projekt.", "Niemals Tabs verwenden im Projekt.", true),
        ("Always squash commits before a merge.", "Never push on Fridays after lunch.", false),
        ("Use tabs for indentation.", "Use tabs for indentation and alignment.", false),
        ("The deadline is 2026-11-20.", "The deadline is 2026-11-20.", false),
        ("port: 8080", "timeout: 9090", false),
        ("We release on Fridays.", "Never release on Fridays.", true),
        ("We release on Fridays", "We don't release on Fridays", true),
        ("We release on Fridays.", "Never release on Mondays.", false),
        ("We release on Fridays.", "Always release on Fridays.", false),
        ("We squash commits.", "Never push on Fridays after lunch.", false),
    ];
    for (one, other, is_wanted) in cases {
        let mut patient = DoctorFixture::new();
        patient.write("one", "the first of them", &format!("{one}\n"));
        patient.write("other", "what came later", &format!("Something else first.\n{other}\n"));
        let found = patient.found(1);
        let is_found = found.iter().any(|(trouble, _)| *trouble == FindingKind::Contradiction);
        assert_eq!(is_found, is_wanted, "{one} / {other}: {found:?}");
    }
}

#[test]
fn memories_that_differ_in_a_number_or_a_letter_are_no_duplicates() {
    for (one, other, is_same) in
        [("number 0", "number 9", false), ("plan A", "plan B", false), ("Number 7.", "number 7", true)]
    {
        let mut patient = DoctorFixture::new();
        let body = |what: &str| {
            format!("The server with {what} keeps the builds of the team in its second cellar.\n")
        };
        patient.write("one", &format!("about {one}"), &body(one));
        patient.write("other", &format!("about {other}"), &body(other));
        let found = patient.found(1);
        let is_found = found.iter().any(|(trouble, _)| *trouble == FindingKind::Duplicate);
        assert_eq!(is_found, is_same, "{one} / {other}: {found:?}");
    }
}

#[test]
fn all_other_problems_are_found() {
    let mut patient = DoctorFixture::new();
    let body = "The parser keeps comments since the formatter needs them for every node of the tree.\n";
    patient.write("one", "the parser and comments", body);
    patient.write("copy", "comments in the parser", &body.replace("every", "each"));
    patient.write("twin-a", "where builds run", "In the cellar.\n");
    patient.write("twin-b", "Where builds run.", "On the roof, in a box.\n");
    patient.write(
        "links",
        "about links",
        "See [gone](gone.md) and [[lost]] and `src/parser.rs` and src/lexer.rs.\n",
    );
    let directory = patient.memory.path().to_owned();
    let key = ["AK", "IA", "Q3EGRZX4NJKL2MN7"].concat();
    fs::write(
        directory.join("leak.md"),
        format!("---\nname: Leak\ndescription: a leak\ntype: user\n---\n{key}\n"),
    )
    .unwrap();
    fs::write(directory.join("bare.md"), "no front matter\n").unwrap();
    fs::write(directory.join("picture.png"), "x").unwrap();
    fs::create_dir(directory.join("folder")).unwrap();
    symlink("/etc/passwd", directory.join("link.md")).unwrap();
    fs::write(directory.join("MEMORY.md"), "- [Nowhere](nowhere.md): x\n").unwrap();
    let found = patient.found(59);
    let has = |trouble: FindingKind, part: &str| {
        assert!(
            found.iter().any(|(kind, what)| *kind == trouble && what.contains(part)),
            "{trouble:?} {part}: {found:#?}"
        );
    };
    has(FindingKind::Duplicate, "copy.md and one.md have nearly the same text");
    has(FindingKind::Duplicate, "twin-a.md and twin-b.md have the same description");
    has(FindingKind::Dangling, "links.md links to gone.md");
    has(FindingKind::Dangling, "links.md links to lost.md");
    has(FindingKind::Dangling, "the index links to nowhere.md");
    has(FindingKind::StalePath, "names src/parser.rs, which the project does not have");
    has(FindingKind::Secret, "leak.md contains a secret in line 6 (aws key id)");
    has(FindingKind::NoMemory, "bare.md lacks its name, description, type");
    has(FindingKind::NoMemory, "picture.png");
    has(FindingKind::NoMemory, "folder is a folder");
    has(FindingKind::NoMemory, "link.md is a link");
    // Files without a date use their modification time.
    let is_unused = |name: &str| {
        found.iter().any(|(trouble, what)| *trouble == FindingKind::Unused && what.starts_with(name))
    };
    assert!(!is_unused("one.md") && !is_unused("links.md"), "{found:?}");
    patient.memory.note_used("one", moment(50), None).unwrap();
    let unused: Vec<String> = patient
        .found(61)
        .into_iter()
        .filter(|(kind, _)| *kind == FindingKind::Unused)
        .map(|(_, what)| what)
        .collect();
    assert!(
        unused.iter().any(|what| what.starts_with("copy.md was never used, and is 61 days old")),
        "{unused:?}"
    );
    assert!(!unused.iter().any(|what| what.starts_with("one.md")), "{unused:?}");
}

#[test]
fn crowded_index_is_found() {
    let mut patient = DoctorFixture::new();
    let crowded = |patient: &mut DoctorFixture| {
        let found = patient.found(1).into_iter().filter(|(trouble, _)| *trouble == FindingKind::Crowded);
        found.map(|(_, what)| what).collect::<Vec<_>>()
    };
    let write = |patient: &mut DoctorFixture, numbers: std::ops::Range<usize>| {
        let directory = patient.memory.path().to_owned();
        for number in numbers {
            let file =
                format!("---\nname: part {number}\ndescription: d\ntype: project\n---\n\nIt is {number}.\n");
            fs::write(directory.join(format!("part-{number}.md")), file).unwrap();
        }
    };
    write(&mut patient, 0..150);
    assert!(crowded(&mut patient).is_empty());
    write(&mut patient, 150..260);
    let [what] = crowded(&mut patient).try_into().unwrap();
    assert!(what.starts_with("the 6") && what.contains("oldest and least used memories"), "{what}");
}
