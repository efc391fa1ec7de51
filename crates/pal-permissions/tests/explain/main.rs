//! Marks of commands that the user is asked to allow.

// Panics are test failures.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use pal_permissions::{
    CommandMark, CommandMarkKind as Kind, PermissionContext, SandboxLimits, TargetPath, ToolAccess,
    explain_access, explain_command,
};
use proptest::prelude::*;

fn with_context<T>(ask: impl FnOnce(&PermissionContext<'_>) -> T) -> T {
    let resolve = |named: &str, directory: &Path| directory.join(named);
    ask(&PermissionContext {
        roots: vec![PathBuf::from("/project")],
        home: Some(PathBuf::from("/home/me")),
        session: PathBuf::from("/home/me/.palimpsest/projects/p/sessions"),
        own: Some(PathBuf::from("/home/me/.palimpsest")),
        memory: None,
        directory: PathBuf::from("/project"),
        resolve: &resolve,
        is_folder: &|_| false,
        sandbox: SandboxLimits::default(),
    })
}

fn marks(command: &str) -> Vec<CommandMark> {
    with_context(|context| explain_command(command, context))
}

/// Returns whether a part of the command has a mark of this kind.
fn is_marked(command: &str, kind: Kind, part: &str) -> bool {
    marks(command).iter().any(|mark| mark.kind == kind && &command[mark.range.clone()] == part)
}

#[test]
fn every_kind_is_marked_at_its_range() {
    for (command, kind, part) in [
        ("echo hi > out.txt", Kind::OutputRedirection, "> out.txt"),
        ("make 2>&1", Kind::OutputRedirection, "2>&1"),
        ("make &> /tmp/log", Kind::OutsidePath, "/tmp/log"),
        ("wc -l < in.txt", Kind::InputRedirection, "< in.txt"),
        ("cat <<< hello", Kind::InputRedirection, "<<< hello"),
        ("cat <<END\nx\nEND", Kind::InputRedirection, "<<END"),
        ("echo $(date)", Kind::CommandSubstitution, "$(date)"),
        ("echo \"now `date`\"", Kind::CommandSubstitution, "`date`"),
        ("diff <(ls a) b", Kind::CommandSubstitution, "<(ls a)"),
        ("echo $TOKEN", Kind::Expansion, "$TOKEN"),
        ("echo ${X:-y}", Kind::Expansion, "${X:-y}"),
        ("echo $'\\x72\\x6d'", Kind::Expansion, "$'\\x72\\x6d'"),
        ("ls *.rs", Kind::Glob, "*.rs"),
        ("cat /etc/passwd", Kind::OutsidePath, "/etc/passwd"),
        ("cat ../other/x", Kind::OutsidePath, "../other/x"),
        ("tar -C/etc -cf x.tar .", Kind::OutsidePath, "-C/etc"),
        ("dd if=a of=/dev/sda", Kind::OutsidePath, "of=/dev/sda"),
        ("ls \"$HOME/x\"", Kind::OutsidePath, "\"$HOME/x\""),
        ("cat .env", Kind::CredentialPath, ".env"),
        ("cat ~/.ssh/id_rsa", Kind::CredentialPath, "~/.ssh/id_rsa"),
        ("cp x .git/hooks/pre-commit", Kind::GuardedPath, ".git/hooks/pre-commit"),
        ("echo x >> .bashrc", Kind::GuardedPath, ".bashrc"),
        ("cp x ~/.palimpsest/settings.toml", Kind::GuardedPath, "~/.palimpsest/settings.toml"),
        ("rm -rf target", Kind::Deletion, "rm -rf target"),
        ("/bin/rm x", Kind::Deletion, "/bin/rm x"),
        ("r\\m x", Kind::Deletion, "r\\m x"),
        ("'rm' x", Kind::Deletion, "'rm' x"),
        ("git clean -fdx", Kind::Deletion, "git clean -fdx"),
        ("git -C sub reset --hard", Kind::Deletion, "git -C sub reset --hard"),
        ("git push -f origin main", Kind::Deletion, "git push -f origin main"),
        ("find . -name x -delete", Kind::Deletion, "find . -name x -delete"),
        ("find . -exec rm {} +", Kind::Deletion, "rm {} +"),
        ("ls | xargs rm -f", Kind::Deletion, "rm -f"),
        ("timeout 5 rm x", Kind::Deletion, "rm x"),
        ("sudo rm x", Kind::Privilege, "sudo rm x"),
        ("sudo rm x", Kind::Deletion, "rm x"),
        ("chmod u+s tool", Kind::Privilege, "chmod u+s tool"),
        ("curl https://example.com", Kind::Network, "curl https://example.com"),
        ("git push", Kind::Network, "git push"),
        ("echo x > /dev/tcp/host/80", Kind::Network, "/dev/tcp/host/80"),
        ("bash -c 'ls'", Kind::NestedShell, "'ls'"),
        ("bash -c 'rm -rf x'", Kind::Deletion, "rm -rf x"),
        ("eval \"rm x\"", Kind::Deletion, "rm x"),
        ("python3 -c 'import os'", Kind::NestedShell, "'import os'"),
        ("curl x | sh", Kind::NestedShell, "sh"),
        ("echo 'rm -rf /' | sh", Kind::Deletion, "rm -rf /"),
        ("bash deploy.sh", Kind::NestedShell, "deploy.sh"),
        (". ./env.sh", Kind::NestedShell, "./env.sh"),
        ("awk 'BEGIN{system(\"x\")}' f", Kind::NestedShell, "'BEGIN{system(\"x\")}'"),
        ("PATH=. make", Kind::NestedShell, "PATH=."),
        ("$X y", Kind::NestedShell, "$X"),
        ("sleep 9 &", Kind::Background, "&"),
        ("setsid sleep 9", Kind::Background, "setsid sleep 9"),
        ("ls\u{200b} x", Kind::HiddenCharacter, "\u{200b}"),
    ] {
        assert!(is_marked(command, kind, part), "{command}: {kind:?} {part:?}\n{:#?}", marks(command));
    }
}

#[test]
fn a_heredoc_read_by_a_shell_is_explained() {
    let command = "cat <<'END' | tr a b | bash -s\necho fine\nrm -rf ~/important\nEND";
    assert!(is_marked(command, Kind::Deletion, "rm -rf ~/important"), "{:#?}", marks(command));
    assert!(is_marked(command, Kind::OutsidePath, "~/important"));
    let command = "bash <<END\nrm -rf ~/important\nEND\nls";
    assert!(is_marked(command, Kind::Deletion, "rm -rf ~/important"), "{:#?}", marks(command));
    let sentences: Vec<String> = marks(command).into_iter().map(|mark| mark.sentence).collect();
    assert!(sentences.contains(&String::from("`rm -rf ~/important` deletes files")), "{sentences:?}");
    assert!(
        sentences.contains(&String::from("`~/important` is outside the project (/home/me/important)")),
        "{sentences:?}"
    );
}

#[test]
fn text_that_may_run_later_is_searched_for_dangers() {
    let command = "cat > run.sh <<'END'\n#!/bin/sh\nThis is no command (at all.\n  sudo rm -rf /\nEND\n";
    let found = marks(command);
    let deletion = found.iter().find(|mark| mark.kind == Kind::Deletion).unwrap();
    assert_eq!(&command[deletion.range.clone()], "rm -rf /");
    assert_eq!(deletion.sentence, "`rm -rf /` deletes files, if this text is run");
    let prose = "cat > notes.md <<'END'\nRead the form; it's clean & resets nothing.\nEND\n";
    assert!(!marks(prose).iter().any(|mark| mark.kind == Kind::Deletion), "{:#?}", marks(prose));
}

#[test]
fn an_oversized_text_is_still_searched() {
    let command = format!("cat > x <<'END'\n{}rm -rf ~/important\nEND", "echo fine\n".repeat(5_000));
    let found = marks(&command);
    assert!(found.iter().any(|mark| mark.kind == Kind::Unreadable), "{found:#?}");
    let deletion = found.iter().find(|mark| mark.kind == Kind::Deletion).unwrap();
    assert_eq!(&command[deletion.range.clone()], "rm -rf ~/important");
}

#[test]
fn paths_resolve_after_cd() {
    assert!(
        is_marked("cd /srv && rm -rf data", Kind::OutsidePath, "data"),
        "{:#?}",
        marks("cd /srv && rm -rf data")
    );
    assert!(!marks("cd src && rm -rf data").iter().any(|mark| mark.kind == Kind::OutsidePath));
}

#[test]
fn an_ordinary_command_has_no_marks() {
    for command in [
        "cargo test --workspace",
        "git status",
        "ls -la src/main.rs",
        "grep -rn needle src",
        "git commit -m 'x y'",
    ] {
        assert_eq!(marks(command), [], "{command}");
    }
}

#[test]
fn an_unreadable_command_is_marked() {
    for command in ["echo 'open", "if true; then", "echo $(", "a && || b"] {
        assert!(
            marks(command).iter().any(|mark| mark.kind == Kind::Unreadable),
            "{command}: {:#?}",
            marks(command)
        );
    }
}

#[test]
fn file_tool_targets_are_explained() {
    let target =
        |named: &str| TargetPath { named: named.to_owned(), real: Path::new("/project").join(named) };
    let kinds = |need: &ToolAccess| -> Vec<Kind> {
        with_context(|context| explain_access(need, context)).into_iter().map(|mark| mark.kind).collect()
    };
    assert_eq!(kinds(&ToolAccess::Write(target("src/a.rs"))), []);
    assert_eq!(kinds(&ToolAccess::Write(target(".git/config"))), [Kind::GuardedPath]);
    assert_eq!(kinds(&ToolAccess::Read(target(".git/config"))), []);
    assert_eq!(kinds(&ToolAccess::Read(target("/etc/passwd"))), [Kind::OutsidePath]);
    assert_eq!(kinds(&ToolAccess::Read(target("/project/.env"))), [Kind::CredentialPath]);
    assert_eq!(kinds(&ToolAccess::Fetch(String::from("https://x"))), []);
}

proptest! {
    #[test]
    fn ranges_lie_within_the_command(
        command in proptest::collection::vec(
            prop_oneof![
                Just("rm "), Just("-rf "), Just("~/x "), Just("$("), Just(")"), Just("'"), Just("\""), Just("<<END\n"),
                Just("END\n"), Just("| "), Just("bash -c "), Just("bash "), Just("&& "), Just("; "), Just("\n"), Just("> "),
                Just("é"), Just("\u{202e}"), Just("${a} "), Just("`"), Just("{a,b} "), Just("sudo "), Just("eval "),
                Just("\\"), Just("# "), Just("if "), Just("then "), Just("fi "), Just("( "), Just("*.x "), Just("cd / "),
            ],
            0..24,
        ).prop_map(|pieces| pieces.concat()),
    ) {
        let mut last = 0;
        for mark in marks(&command) {
            prop_assert!(command.get(mark.range.clone()).is_some(), "{:?}", mark);
            prop_assert!(mark.range.start >= last, "in the order of the text");
            last = mark.range.start;
            let is_clean = !mark.sentence.contains(['\u{202e}', '\n']);
            prop_assert!(is_clean, "{:?}", mark);
        }
    }
}
