//! What the model is told when instruction files change under a session.

use std::fs;

use pal_project::{InstructionChange, InstructionNotice, InstructionSet, discover_instructions};

use crate::project_fixture::ProjectFixture;

const SCRIPT: &str = "
    repo home/project
    file home/project/CLAUDE.md | one
    file home/project/AGENTS.md | two @more.md
    file home/project/more.md | three
    file home/project/a/CLAUDE.md | of a
    file home/project/b/CLAUDE.md | of b
    file home/project/.claude/rules/b.md | ---\\npaths: b/**\\n---\\nrule for b
";

#[track_caller]
fn check(
    place: &ProjectFixture,
    notices: &[InstructionNotice],
    expected: &[(&str, InstructionChange, &str)],
) {
    let found: Vec<(String, InstructionChange)> =
        notices.iter().map(|notice| (place.short(&notice.path), notice.what)).collect();
    let wanted: Vec<(String, InstructionChange)> =
        expected.iter().map(|(path, what, _)| ((*path).to_owned(), *what)).collect();
    assert_eq!(found, wanted);
    for (notice, (_, _, part)) in notices.iter().zip(expected) {
        assert!(notice.text.contains(part), "{:?} has no {part:?}", notice.text);
    }
}

fn begin() -> (ProjectFixture, InstructionSet) {
    let place = ProjectFixture::new(SCRIPT);
    let discovered = discover_instructions(&place.search);
    (place, discovered)
}

#[test]
fn nothing_changed_nothing_told() {
    let (place, mut discovered) = begin();
    discovered.join_for_path(&place.root.join("home/project/b/x"));
    assert_eq!(discovered.take_changes(), []);
    // Another time, the same text.
    place.write("home/project/CLAUDE.md", b"one\n");
    assert_eq!(discovered.take_changes(), []);
}

#[test]
fn changes_on_disk_are_told_once() {
    let (place, mut discovered) = begin();
    place.write("home/project/more.md", b"three and a half");
    fs::remove_file(place.root.join("home/project/CLAUDE.md")).unwrap();
    place.write("home/project/CLAUDE.local.md", b"mine <system-reminder>");
    place.write("home/project/.pal/rules/new.md", b"---\ndescription: x\n---\nnew rule");
    check(
        &place,
        &discovered.take_changes(),
        &[
            ("home/project/CLAUDE.md", InstructionChange::Removed, "no longer applies"),
            ("home/project/more.md", InstructionChange::Changed, "three and a half"),
            ("home/project/.pal/rules/new.md", InstructionChange::Added, "<instruction-file>\nnew rule\n"),
            ("home/project/CLAUDE.local.md", InstructionChange::Added, "mine <\\system-reminder>"),
        ],
    );
    assert_eq!(discovered.take_changes(), []);
}

#[test]
fn a_file_that_was_included_in_vain_is_noticed_when_it_comes() {
    let place = ProjectFixture::new("repo home/project\nfile home/project/CLAUDE.md | see @docs/later.md.");
    let mut discovered = discover_instructions(&place.search);
    assert_eq!(discovered.take_changes(), []);
    place.write("home/project/docs/later.md", b"here I am");
    check(
        &place,
        &discovered.take_changes(),
        &[("home/project/docs/later.md", InstructionChange::Added, "here I am")],
    );
}

#[test]
fn a_moved_text_is_no_change() {
    let (place, mut discovered) = begin();
    let project = place.root.join("home/project");
    fs::rename(project.join("CLAUDE.md"), project.join("CLAUDE.local.md")).unwrap();
    assert_eq!(discovered.take_changes(), []);
}

#[test]
fn files_that_joined_are_watched_and_join_once() {
    let (place, mut discovered) = begin();
    let touched = place.root.join("home/project/b/x");
    assert_eq!(discovered.join_for_path(&touched).len(), 2);
    place.write("home/project/b/CLAUDE.md", b"of b, now");
    place.write("home/project/.claude/rules/b.md", b"---\npaths: b/**\n---\nrule for b, now");
    check(
        &place,
        &discovered.take_changes(),
        &[
            (
                "home/project/.claude/rules/b.md",
                InstructionChange::Changed,
                "<instruction-file>\nrule for b, now\n",
            ),
            ("home/project/b/CLAUDE.md", InstructionChange::Changed, "of b, now"),
        ],
    );
    assert_eq!(discovered.join_for_path(&touched), []);
    assert!(
        discovered.left_out.is_empty(),
        "nor is there anything to say about it: {:?}",
        discovered.left_out
    );
    assert_eq!(discovered.take_changes(), []);
    fs::remove_file(place.root.join("home/project/b/CLAUDE.md")).unwrap();
    check(
        &place,
        &discovered.take_changes(),
        &[("home/project/b/CLAUDE.md", InstructionChange::Removed, "")],
    );
}

#[test]
fn a_change_of_directory_tells_what_applies() {
    let mut place = ProjectFixture::new(SCRIPT);
    place.search.directory = place.root.join("home/project/a");
    let mut discovered = discover_instructions(&place.search);
    check(
        &place,
        &discovered.change_directory(&place.root.join("home/project/b")),
        &[
            ("home/project/a/CLAUDE.md", InstructionChange::Removed, "with the working directory"),
            ("home/project/b/CLAUDE.md", InstructionChange::Added, "of b"),
        ],
    );
    assert_eq!(discovered.take_changes(), []);
    check(
        &place,
        &discovered.change_directory("..".as_ref()),
        &[("home/project/b/CLAUDE.md", InstructionChange::Removed, "")],
    );
}

#[test]
fn an_answer_lets_a_file_in() {
    let place = ProjectFixture::new(
        "repo home/project\nfile home/out.md | outside\nfile home/project/CLAUDE.md | @../out.md",
    );
    let mut discovered = discover_instructions(&place.search);
    let asked = discovered.questions[0].path.clone();
    let notices = discovered.allow_path(asked.as_ref());
    check(&place, &notices, &[("home/out.md", InstructionChange::Added, "because the user allowed it")]);
    assert!(discovered.questions.is_empty());
}

#[test]
fn a_resumed_session_is_told_what_changed_meanwhile() {
    let (place, mut discovered) = begin();
    let touched = place.root.join("home/project/b/x");
    discovered.join_for_path(&touched);
    let notes = discovered.source_notes();
    let mut again = discover_instructions(&place.search);
    assert_eq!(again.resume_from(&notes, "since the session was left"), []);
    assert_eq!(again.join_for_path(&touched), [], "what joined before does not join again");
    place.write("home/project/CLAUDE.md", b"one, but other");
    place.write("home/project/a/AGENTS.md", b"not touched yet");
    fs::remove_file(place.root.join("home/project/.claude/rules/b.md")).unwrap();
    let mut later = discover_instructions(&place.search);
    check(
        &place,
        &later.resume_from(&notes, "since the session was left"),
        &[
            ("home/project/.claude/rules/b.md", InstructionChange::Removed, "since the session was left"),
            ("home/project/CLAUDE.md", InstructionChange::Changed, "one, but other"),
        ],
    );
    assert_eq!(later.take_changes(), []);
}

#[test]
fn a_link_that_is_turned_to_the_outside_is_not_followed() {
    let (place, mut discovered) = begin();
    discovered.join_for_path(&place.root.join("home/project/b/x"));
    place.write("home/secret.md", b"secret");
    let nested = place.root.join("home/project/b/CLAUDE.md");
    fs::remove_file(&nested).unwrap();
    std::os::unix::fs::symlink("../../secret.md", &nested).unwrap();
    let notices = discovered.take_changes();
    check(&place, &notices, &[("home/project/b/CLAUDE.md", InstructionChange::Removed, "")]);
    assert!(!notices[0].text.contains("secret"));
}

const NESTED: &str = "
    repo home/project
    file home/project/b/CLAUDE.md | of b @../docs/more.md
    file home/project/b/.claude/rules/c.md | ---\\npaths: c/**\\n---\\nfor c
    file home/project/b/.claude/rules/d.md | ---\\npaths: d/**\\n---\\nfor d
    file home/project/docs/more.md | more
    file home/project/docs/AGENTS.md | of docs
";

/// Rules that waited in a nested folder still do, and the folder of an include is not done with.
#[track_caller]
fn check_nested(place: &ProjectFixture, discovered: &mut InstructionSet) {
    let mut joins = |path: &str| -> Vec<String> {
        let joined = discovered.join_for_path(&place.root.join(path));
        joined.iter().map(|file| place.short(&file.path)).collect()
    };
    assert_eq!(joins("home/project/b/c/x"), [""; 0]);
    assert_eq!(joins("home/project/b/d/x"), ["home/project/b/.claude/rules/d.md"]);
    assert_eq!(joins("home/project/docs/x"), ["home/project/docs/AGENTS.md"]);
}

#[test]
fn nested_rules_wait_on_after_a_change_and_in_a_resumed_session() {
    let place = ProjectFixture::new(NESTED);
    let mut discovered = discover_instructions(&place.search);
    assert_eq!(discovered.join_for_path(&place.root.join("home/project/b/c/x")).len(), 3);
    let notes = discovered.source_notes();
    let mut again = discover_instructions(&place.search);
    assert_eq!(again.resume_from(&notes, "since the session was left"), []);
    check_nested(&place, &mut again);
    place.write("home/project/CLAUDE.md", b"new");
    check(&place, &discovered.take_changes(), &[("home/project/CLAUDE.md", InstructionChange::Added, "new")]);
    assert_eq!(discovered.take_changes(), []);
    check_nested(&place, &mut discovered);
}

#[test]
fn a_nested_file_that_includes_less_is_told() {
    let place = ProjectFixture::new(NESTED);
    let mut discovered = discover_instructions(&place.search);
    discovered.join_for_path(&place.root.join("home/project/b/x"));
    place.write("home/project/b/CLAUDE.md", b"of b");
    check(
        &place,
        &discovered.take_changes(),
        &[
            ("home/project/docs/more.md", InstructionChange::Removed, "no longer applies"),
            ("home/project/b/CLAUDE.md", InstructionChange::Changed, "of b"),
        ],
    );
}
