//! Layouts with includes: what comes in, what is asked for, what is left out.

use pal_project::discover_instructions;

use crate::project_fixture::{ProjectFixture, check};

#[test]
fn includes_come_before_their_includer() {
    check(
        "
        repo home/project
        file home/shared.md | shared
        file home/project/CLAUDE.md | See @docs/a.md, @./docs/b.md and (@ROOT/home/project/docs/c.md).
        file home/project/docs/a.md | a @../d.md
        file home/project/docs/b.md | b
        file home/project/docs/c.md | c
        file home/project/d.md | d
        file home/.claude/CLAUDE.md | @~/shared.md
        ",
        "
        user home/shared.md for home/.claude/CLAUDE.md
        user home/.claude/CLAUDE.md
        project home/project/d.md for home/project/docs/a.md
        project home/project/docs/a.md for home/project/CLAUDE.md
        project home/project/docs/b.md for home/project/CLAUDE.md
        project home/project/docs/c.md for home/project/CLAUDE.md
        project home/project/CLAUDE.md
        ",
    );
}

#[test]
fn includes_in_code_and_comments_are_none() {
    check(
        "
        repo home/project
        file home/project/CLAUDE.md | `@a.md`\\n\\n```\\n@a.md\\n```\\n\\n    @a.md\\n\\n<!-- @a.md -->\\n
        file home/project/a.md | a
        ",
        "project home/project/CLAUDE.md",
    );
}

#[test]
fn missing_files_are_told_if_they_were_meant() {
    check(
        "
        repo home/project
        file home/project/CLAUDE.md | @docs/gone.md @./gone @decorator @scope/package me@example.com @~/no.md. @docs
        dir home/project/docs
        ",
        "
        project home/project/CLAUDE.md
        without docs/gone.md: no such file; home/project/CLAUDE.md includes it
        without ./gone: no such file; home/project/CLAUDE.md includes it
        without ~/no.md.: no such file; home/project/CLAUDE.md includes it
        ",
    );
}

#[test]
fn cycles_end_quietly() {
    check(
        "
        repo home/project
        file home/project/CLAUDE.md | root @a.md @CLAUDE.md
        file home/project/a.md | a @b.md
        file home/project/b.md | b @a.md @CLAUDE.md
        ",
        "
        project home/project/b.md for home/project/a.md
        project home/project/a.md for home/project/CLAUDE.md
        project home/project/CLAUDE.md
        ",
    );
}

#[test]
fn includes_end_at_a_depth_of_five() {
    check(
        "
        repo home/project
        file home/project/CLAUDE.md | 0 @1.md
        file home/project/1.md | 1 @2.md
        file home/project/2.md | 2 @3.md
        file home/project/3.md | 3 @4.md
        file home/project/4.md | 4 @5.md
        file home/project/5.md | 5 @6.md
        file home/project/6.md | 6
        ",
        "
        project home/project/5.md for home/project/4.md
        project home/project/4.md for home/project/3.md
        project home/project/3.md for home/project/2.md
        project home/project/2.md for home/project/1.md
        project home/project/1.md for home/project/CLAUDE.md
        project home/project/CLAUDE.md
        without home/project/6.md: more than 5 includes deep
        ",
    );
}

#[test]
fn non_text_includes_are_left_out() {
    check(
        "
        repo home/project
        file home/project/CLAUDE.md | @logo.png @data.bin @zero @latin.md @wide.md @huge.md @marked.md @empty.md
        file home/project/logo.png | text, but who would know
        file home/project/data.bin | x
        hex home/project/zero | 61 00 62
        hex home/project/latin.md | 63 61 66 e9
        hex home/project/wide.md | ff fe 61 00
        size home/project/huge.md | 10000000
        hex home/project/marked.md | ef bb bf 61
        file home/project/empty.md |
        ",
        "
        project home/project/marked.md for home/project/CLAUDE.md
        project home/project/CLAUDE.md
        without home/project/logo.png: not a text file, by its ending
        without home/project/data.bin: not a text file, by its ending
        without home/project/zero: not a text file: it holds zero bytes
        without home/project/latin.md: not UTF-8, from byte 3 on
        without home/project/wide.md: UTF-16, not UTF-8
        without home/project/huge.md: too large: 10000000 bytes, over 1000000
        without home/project/empty.md: empty
        ",
    );
}

#[test]
fn equal_includers_still_include_their_own() {
    check(
        "
        repo home/project
        in home/project/sub
        file home/project/CLAUDE.md | @notes.md
        file home/project/notes.md | one
        file home/project/sub/CLAUDE.md | @notes.md
        file home/project/sub/notes.md | two
        ",
        "
        project home/project/notes.md for home/project/CLAUDE.md
        project home/project/CLAUDE.md
        project home/project/sub/notes.md for home/project/sub/CLAUDE.md
        without home/project/sub/CLAUDE.md: the same text as home/project/CLAUDE.md
        ",
    );
}

const OUTSIDE: &str = "
    repo home/project
    file home/outside.md | outside
    file home/secret.md | secret
    file home/notes/local.md | notes
    file home/project/CLAUDE.md | @../outside.md @~/outside.md @inside.md @ROOT/home/outside.md
    link home/project/inside.md -> ../secret.md
    link home/project/CLAUDE.local.md -> ../notes/local.md
";

#[test]
fn files_outside_of_the_project_are_asked_for_once() {
    check(
        OUTSIDE,
        "
        project home/project/CLAUDE.md
        asks home/outside.md for home/project/CLAUDE.md
        asks home/secret.md for home/project/CLAUDE.md
        asks home/notes/local.md for home/project/CLAUDE.local.md
        ",
    );
}

#[test]
fn allowed_files_and_folders_are_read() {
    check(
        &format!("{OUTSIDE}\nallow home/outside.md\nallow home/notes\nrefuse home/secret.md"),
        "
        project home/outside.md for home/project/CLAUDE.md
        project home/project/CLAUDE.md
        local home/project/CLAUDE.local.md
        without home/outside.md: already read
        without home/project/inside.md: outside of the project, and the user did not allow it
        without home/outside.md: already read
        ",
    );
}

#[test]
fn the_users_trust_does_not_reach_through_the_project() {
    check(
        "
        repo home/project
        file home/.claude/CLAUDE.md | @~/mine.md @~/project/theirs.md
        file home/mine.md | mine
        file home/secret.md | secret
        file home/project/theirs.md | @~/secret.md
        ",
        "
        user home/mine.md for home/.claude/CLAUDE.md
        user home/project/theirs.md for home/.claude/CLAUDE.md
        user home/.claude/CLAUDE.md
        asks home/secret.md for home/project/theirs.md
        ",
    );
}

#[test]
fn a_flood_of_files_ends() {
    let place = ProjectFixture::new("repo home/project");
    let words: String = (0..900).map(|count| format!("@{count}.md ")).collect();
    place.write("home/project/CLAUDE.md", words.as_bytes());
    for count in 0..900 {
        place
            .write(&format!("home/project/{count}.md"), format!("{count} {}", "x".repeat(50_000)).as_bytes());
    }
    let discovered = discover_instructions(&place.search);
    let bytes: usize = discovered.files.iter().map(|file| file.text.len()).sum();
    assert!((9_000_000..11_000_000).contains(&bytes), "{bytes}");
    assert_eq!(discovered.left_out.len(), 201);
    assert_eq!(discovered.left_out[200].what, format!("… and {} more", 701 - discovered.files.len()));
    assert_eq!(discovered.left_out[0].why, "more than 10000000 bytes of instruction files");
}

#[test]
fn a_flood_of_words_ends() {
    let place = ProjectFixture::new("repo home/project");
    for file in 0..20 {
        let words: String = (0..990).map(|count| format!("@./{file}-{count}{} ", ".".repeat(500))).collect();
        let next = format!("@{}.md ", file + 1);
        place.write(&format!("home/project/{file}.md"), format!("{next}{words}").as_bytes());
    }
    let all: String = (0..20).map(|file| format!("@{file}.md ")).collect();
    place.write("home/project/CLAUDE.md", format!("{all}{}", "(@".repeat(100_000)).as_bytes());
    let discovered = discover_instructions(&place.search);
    assert_eq!(discovered.left_out.len(), 201);
    assert!(discovered.left_out.iter().all(|row| row.what.chars().count() <= 201));
    // Ten thousand words are looked up; each that leads nowhere is a row.
    let more: usize = discovered.left_out[200].what.split(' ').nth(2).unwrap().parse().unwrap();
    assert!((9_000..10_000).contains(&more), "{more}");
}

/// Files that instruction files of an untrusted repository must not hand to the provider.
#[test]
fn includes_are_judged_like_reads() {
    let script = "
        repo home/project
        file home/project/CLAUDE.md | rules @.env @config/credentials.json @notes.md @docs/plan.md @ok.md @../outside.md
        file home/project/.env | TOP_SECRET=1
        file home/project/config/credentials.json | TOP_SECRET=2
        file home/project/server.pem | TOP_SECRET=3
        link home/project/notes.md -> server.pem
        file home/project/docs/plan.md | TOP_SECRET=4
        file home/project/ok.md | fine
        file home/outside.md | TOP_SECRET=5
        link home/project/AGENTS.md -> .env
        ";
    let mut place = ProjectFixture::new(script);
    let denied = "Read(docs/**)".parse().unwrap();
    let origin = String::from("user settings");
    place.search.rules.deny.push(pal_permissions::SourcedRule { rule: denied, origin: origin.clone() });
    let discovered = discover_instructions(&place.search);
    let texts: Vec<&str> = discovered.files.iter().map(|file| file.text.trim()).collect();
    assert!(texts.contains(&"fine") && !texts.iter().any(|text| text.contains("TOP_SECRET")), "{texts:?}");
    let asked = discovered.questions.iter().map(pal_project::IncludeQuestion::refusal);
    let sentences: Vec<String> = discovered.refusals.iter().cloned().chain(asked).collect();
    let told =
        |words: &[&str]| sentences.iter().any(|refusal| words.iter().all(|word| refusal.contains(word)));
    for words in [
        ["project/.env", "`Read(.env)`", "permissions.allow"],
        ["config/credentials.json", "`Read(config/credentials.json)`", "permissions.allow"],
        ["project/notes.md", "`Read(server.pem)`", "permissions.allow"],
        ["docs/plan.md", "`Read(docs/**)`", "user settings"],
        ["outside.md", "outside of the project", "allow_includes"],
        ["AGENTS.md", "`Read(.env)`", "permissions.allow"],
    ] {
        assert!(told(&words), "{words:?}: {:#?}", discovered.refusals);
    }
    // What the user allows by name is read.
    let allowed = "Read(.env)".parse().unwrap();
    place.search.rules.allow.push(pal_permissions::SourcedRule { rule: allowed, origin });
    let discovered = discover_instructions(&place.search);
    assert!(discovered.files.iter().any(|file| file.text.contains("TOP_SECRET=1")));
}

#[test]
fn the_users_own_files_include_from_anywhere_but_no_credentials() {
    let script = "
        repo home/project
        file home/.claude/CLAUDE.md | own @~/shared.md @~/.aws/credentials
        file home/shared.md | shared
        file home/.aws/credentials | TOP_SECRET=1
        ";
    let discovered = discover_instructions(&ProjectFixture::new(script).search);
    let texts: Vec<&str> = discovered.files.iter().map(|file| file.text.trim()).collect();
    assert!(texts.contains(&"shared") && !texts.iter().any(|text| text.contains("TOP_SECRET")), "{texts:?}");
    assert!(discovered.refusals.iter().any(|refusal| refusal.contains("credentials")), "{discovered:?}");
}
