//! Layouts with rules and nested files: what waits, and what joins when a file is touched.

use pal_project::discover_instructions;

use crate::project_fixture::{ProjectFixture, check};

#[test]
fn rules_wait_for_the_files_that_they_are_for() {
    check(
        "
        repo home/project
        in home/project/sub
        file home/.claude/rules/rust.md | ---\\npaths: '**/*.rs'\\n---\\nmine
        file home/project/.claude/rules/api.md | ---\\npaths: [src/api/**, 'lib/*.ts']\\n---\\nabout @detail.md
        file home/project/.claude/rules/detail.md | ---\\npaths: never/**\\n---\\ndetail
        file home/project/.claude/rules/later.md | ---\\npaths: later/**\\n---\\nlater
        file home/project/.claude/rules/broken.md | ---\\npaths: [a\\n---\\nbroken
        file home/project/sub/.pal/rules/here.md | ---\\npaths: x/*\\n---\\nhere
        touch home/project/README.md
        touch home/project/src/api/a/b.rs
        touch home/project/src/api/a/b.rs
        touch home/project/never/x
        touch home/project/sub/x/y
        touch home/elsewhere/x.rs
        ",
        "
        project home/project/.claude/rules/broken.md
        home/project/src/api/a/b.rs brings user home/.claude/rules/rust.md
        home/project/src/api/a/b.rs brings project home/project/.claude/rules/detail.md for home/project/.claude/rules/api.md
        home/project/src/api/a/b.rs brings project home/project/.claude/rules/api.md
        home/project/sub/x/y brings project home/project/sub/.pal/rules/here.md
        waits home/project/.claude/rules/later.md later/**
        warns home/project/.claude/rules/broken.md: front matter: line 1 column 8: unclosed bracket '['
        ",
    );
}

#[test]
fn front_matter_does_not_reach_the_model() {
    let place = ProjectFixture::new(
        "
        repo home/project
        file home/project/.claude/rules/a.md | ---\\ndescription: about\\n---\\nthe rule
        file home/project/CLAUDE.md | ---\\nNote: stays\\n---\\ntext
        ",
    );
    let texts: Vec<String> =
        discover_instructions(&place.search).files.into_iter().map(|file| file.text).collect();
    assert_eq!(texts, ["---\nNote: stays\n---\ntext", "the rule"]);
}

#[test]
fn nested_files_join_when_something_below_is_touched() {
    check(
        "
        repo home/project
        in home/project/a
        file home/project/CLAUDE.md | top
        file home/project/a/CLAUDE.md | a
        file home/project/a/b/CLAUDE.md | b @more.md
        file home/project/a/b/more.md | more
        file home/project/a/b/.claude/rules/c.md | ---\\npaths: c/**\\n---\\nfor c
        file home/project/a/b/.claude/rules/d.md | ---\\npaths: d/**\\n---\\nfor d
        file home/project/z/AGENTS.md | z
        file home/project/z/node_modules/lib/CLAUDE.md | a dependency speaks
        file home/project/z/.claude-injected-x/CLAUDE.md | injected
        touch home/project/a/b/c/new.rs
        touch home/project/a/b/c/new.rs
        touch home/project/z/node_modules/lib/index.js
        touch home/project/z/.claude-injected-x/file
        touch home/project/a/b/d/x
        ",
        "
        project home/project/CLAUDE.md
        project home/project/a/CLAUDE.md
        home/project/a/b/c/new.rs brings project home/project/a/b/more.md for home/project/a/b/CLAUDE.md
        home/project/a/b/c/new.rs brings project home/project/a/b/CLAUDE.md
        home/project/a/b/c/new.rs brings project home/project/a/b/.claude/rules/c.md
        home/project/z/node_modules/lib/index.js brings project home/project/z/AGENTS.md
        home/project/a/b/d/x brings project home/project/a/b/.claude/rules/d.md
        ",
    );
}

#[test]
fn injected_files_are_skipped() {
    check(
        "
        repo home/project
        file home/project/CLAUDE.md | @.claude-injected-note.md
        file home/project/.claude-injected-note.md | x
        file home/project/.claude/rules/.claude-injected-a.md | y
        file home/project/.claude/rules/.claude-injected-b/c.md | z
        ",
        "
        project home/project/CLAUDE.md
        without home/project/.claude-injected-note.md: its name says that another program put it there
        without home/project/.claude/rules/.claude-injected-a.md: its name says that another program put it there
        ",
    );
}

#[test]
fn links_among_rules_do_not_run_in_circles() {
    check(
        "
        repo home/project
        file home/project/.claude/rules/a.md | a
        link home/project/.claude/rules/loop -> ../rules
        file home/shared/s.md | s
        link home/project/.claude/rules/shared -> ../../../shared
        ",
        "
        project home/project/.claude/rules/a.md
        asks home/shared for home/project/.claude/rules/shared
        ",
    );
}

#[test]
fn a_folder_outside_is_asked_for_once_and_not_looked_into() {
    let script = "
        repo home/project
        file home/shared/a.md | a
        file home/shared/below/b.md | b
        link home/project/.claude/rules/all -> ROOT
        link home/project/.claude/rules/shared -> ../../../shared
        link home/project/.claude/rules/twin -> ../../../shared
    ";
    let place = ProjectFixture::new(script);
    let asked: Vec<String> =
        discover_instructions(&place.search).questions.iter().map(|question| question.path.clone()).collect();
    assert_eq!(asked, [place.root.to_str().unwrap(), place.root.join("home/shared").to_str().unwrap()]);
    check(
        &format!("{script}\nallow home/shared\nrefuse ."),
        "
        project home/project/.claude/rules/shared/a.md
        project home/project/.claude/rules/shared/below/b.md
        without home/project/.claude/rules/all: outside of the project, and the user did not allow it
        ",
    );
}

#[test]
fn folders_that_link_to_each_other_are_looked_into_once() {
    let place = ProjectFixture::new("repo home/project");
    for from in 0..8 {
        place.write(&format!("home/project/.claude/rules/{from}/rule.md"), format!("rule {from}").as_bytes());
        for to in 0..8 {
            let link = place.root.join(format!("home/project/.claude/rules/{from}/to-{to}"));
            std::os::unix::fs::symlink(format!("../{to}"), link).unwrap();
        }
    }
    let discovered = discover_instructions(&place.search);
    assert_eq!((discovered.files.len(), discovered.left_out.len()), (8, 0));
}

#[test]
fn too_many_rules_end_the_walk() {
    let place = ProjectFixture::new("repo home/project");
    for count in 0..1_005 {
        place.write(&format!("home/project/.claude/rules/{count:04}.md"), format!("rule {count}").as_bytes());
    }
    let discovered = discover_instructions(&place.search);
    assert_eq!((discovered.files.len(), discovered.left_out.len()), (1_000, 1));
    assert!(discovered.files[999].path.ends_with("0999.md"));
    assert!(discovered.left_out[0].why.starts_with("rules beyond 1000"), "{:?}", discovered.left_out);
}
