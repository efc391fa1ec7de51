//! Files outside.

use crate::{SandboxFixture, finished, sandbox_fixtures};
use pal_process::sandbox::{GuardedPaths, Sandbox};

/// Attempts to change something outside; each must fail.
const WAYS_OUT: &[&str] = &[
    "echo x > $OUT/new",
    "echo x > $OUT/file",
    "echo x >> $OUT/file",
    ": > $OUT/file",
    "truncate -s 0 $OUT/file",
    "rm $OUT/file",
    "rm -rf $OUT",
    "mkdir $OUT/folder",
    "mkfifo $OUT/pipe",
    "ln -s /etc/passwd $OUT/link",
    "mv $OUT/file $OUT/other",
    "echo x > ../outside/new",
    "cd .. && echo x > outside/file",
    "cd $OUT && echo x > new",
    "ln -s $OUT link && echo x > link/new",
    "ln -s $OUT/file file-link && echo x > file-link",
    // A hard link to an outside file would be writable by that name.
    "ln $OUT/file hard && echo x > hard",
    // Out of the workspace, and into it.
    "echo x > inner && mv inner $OUT/new",
    "mv $OUT/file stolen && test ! -e $OUT/file",
    "ln inner $OUT/new",
    "cp /etc/passwd $OUT/new",
    "dd if=/dev/zero of=$OUT/file bs=1 count=1 conv=notrunc",
    // Roots and descriptors by way of /proc.
    "echo x > /proc/self/root$OUT/new",
    "echo x > /proc/self/cwd/../outside/new",
    "echo x > /proc/$PPID/root$OUT/new",
    "echo x > /proc/1/root$OUT/new",
    "exec 7< $OUT/file && echo x > /proc/self/fd/7",
    "exec 7< $OUT && echo x > /proc/self/fd/7/new",
    // Other programs, other processes.
    "sh -c 'sh -c \"echo x > $OUT/new\"'",
    "(echo x > $OUT/new) & wait $!",
    "find $OUT -name file -delete && test ! -e $OUT/file",
    "tar cf - -C /etc hostname | tar xf - -C $OUT",
    "sed -i s/as/AS/ $OUT/file",
    "git init -q $OUT",
    // Attempts as root.
    "mount --bind . $OUT && echo x > $OUT/new",
    "chroot / sh -c \"echo x > $OUT/new\"",
    "nsenter -t 1 -m sh -c \"echo x > $OUT/new\"",
    "unshare -m sh -c \"mount --bind . $OUT && echo x > $OUT/new\"",
    "unshare -Ur sh -c \"echo x > $OUT/new\"",
    "mknod disk b 1 0",
    "mknod memory c 1 1",
];

#[test]
fn nothing_outside_changes() {
    for fixture in sandbox_fixtures() {
        for way in WAYS_OUT {
            let done = fixture.shell(way);
            assert!(
                !done.status.is_success(),
                "{}: {way} went well: {}",
                fixture.sandbox,
                done.output.text()
            );
            fixture.check_outside(way);
        }
    }
}

#[test]
fn escapes_succeed_without_a_sandbox() {
    // Without a sandbox most of them work: the tests above do not pass by a typo.
    for way in &WAYS_OUT[..31] {
        let fixture = SandboxFixture::new(Sandbox::None { why: String::new() });
        std::fs::write(fixture.root.join("inner"), "").expect("written");
        let mut program = pal_process::Program {
            path: "sh".into(),
            arguments: vec!["-c".into(), way.into()],
            directory: fixture.root.clone(),
            environment: vec![("OUT".into(), Some(fixture.outside.clone().into()))],
            thread_setup: None,
        };
        program.environment.push(("GIT_CONFIG_GLOBAL".into(), Some("/dev/null".into())));
        let done = finished(program);
        // A read-only descriptor stays so, and processes of other users stay closed.
        if !way.contains("/proc/1/") {
            assert!(done.status.is_success(), "{way}: {}", done.output.text());
        }
    }
}

#[test]
fn a_descriptor_for_reading_cannot_be_opened_again_for_writing() {
    for fixture in sandbox_fixtures() {
        let done = fixture.shell("exec 7< $OUT/file; exec 8<> /proc/self/fd/7; echo x >&8");
        assert!(!done.status.is_success());
        fixture.check_outside("by /proc");
    }
}

#[test]
fn the_workspace_and_temporary_files_can_be_written() {
    for fixture in sandbox_fixtures() {
        let line = "set -e; echo a > a; mkdir -p d/e; mv a d/e/b; ln d/e/b c; ln -s d l; echo more >> l/e/b; \
                    cat c; rm -r d; mkfifo p; chmod +x c; f=$(mktemp); echo t > $f; cat $f; cp $f here; mv $f there; \
                    truncate -s 1 here; echo x > /dev/null; head -c 4 /dev/urandom > r; mkdir $TMPDIR/m; mv $TMPDIR/m .";
        let done = fixture.shell(line);
        assert!(done.status.is_success(), "{}: {}", fixture.sandbox, done.output.text());
        assert_eq!(done.output.text(), "a\nmore\nt\n", "{}", fixture.sandbox);
        assert!(fixture.root.join("there").exists() && fixture.root.join("m").is_dir());
    }
}

#[test]
fn hidden_files_cannot_be_read() {
    for mut fixture in sandbox_fixtures() {
        let home = fixture.outside.clone();
        for name in ["keys", "vault"] {
            std::fs::create_dir(fixture.root.join(name)).expect("made");
            std::fs::write(fixture.root.join(name).join("inner"), "secret").expect("written");
        }
        let secret = fixture.temporary.join("credentials");
        std::fs::write(&secret, "secret").expect("written");
        std::fs::write(fixture.temporary.join("beside"), "open").expect("written");
        fixture.policy.writable.retain(|path| *path == fixture.root);
        fixture.policy.hidden = vec![secret.clone(), home.join("no-such-file")];
        let shown = |line: &str| fixture.shell(line).output.text();
        let secret = secret.display();
        for line in [
            format!("cat {secret}"),
            format!("ln -s {secret} s1; cat s1"),
            format!("cat /proc/self/root{secret}"),
            format!("ln {secret} s2; cat s2"),
            format!("cp {secret} s3; cat s3"),
            format!("mv {secret} s4; cat s4"),
            format!("cd {}/..; cat temporary/./credentials", fixture.temporary.display()),
            format!("grep -r secret {}", fixture.temporary.display()),
        ] {
            let text = shown(&line);
            assert!(
                !text.lines().any(|line| line.contains("secret") && !line.contains("denied")),
                "{}: {line}: {text}",
                fixture.sandbox
            );
        }
        assert_eq!(shown("cat $TMPDIR/beside"), "open", "{}", fixture.sandbox);
        assert_eq!(shown("cat $OUT/file; ls / > /dev/null"), "as it was", "{}", fixture.sandbox);
        assert!(
            fixture.shell("test -n \"$(cat /etc/passwd)\" && ls /proc/self > /dev/null").status.is_success()
        );
    }
}

#[test]
fn bubblewrap_enforces_read_only_paths() {
    for mut fixture in sandbox_fixtures() {
        let Sandbox::Bubblewrap { .. } = fixture.sandbox else { continue };
        std::fs::create_dir_all(fixture.root.join(".git/hooks")).expect("made");
        fixture.policy.read_only = vec![fixture.root.join(".git/hooks"), fixture.root.join("no-such-file")];
        assert!(!fixture.shell("echo x > .git/hooks/pre-commit").status.is_success());
        assert!(!fixture.shell("mv .git/hooks .git/other").status.is_success());
        assert!(fixture.shell("echo x > .git/index").status.is_success());
        assert!(!fixture.shell("chmod 777 $OUT/file").status.is_success(), "modes outside, too");
    }
}

/// Attempts to plant something that git or an agent runs later.
const WAYS_TO_PLANT: &[&str] = &[
    "mv .git .git2 && cp -r .git2 .git && echo evil >> .git/config",
    "mv .git .git2 && mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit",
    "rm -rf .git && mkdir .git && echo evil > .git/config",
    "echo evil > .git/new && mv -f .git/new .git/config",
    "ln -f /etc/hostname .git/config",
    "mv .git/hooks .git/other && mkdir .git/hooks",
    "mkdir .pal && echo evil > .pal/settings.toml",
    "mkdir -p .pal && echo evil > .pal/settings.toml",
    "rmdir .pal && mkdir .pal && echo evil > .pal/settings.toml",
    "mv .pal aside && mkdir .pal && echo evil > .pal/settings.toml",
    "mkdir aside && echo evil > aside/settings.toml && mv -T aside .pal",
    "ln -sfn /tmp .claude && test -L .claude",
    "echo evil > .claude/settings.json",
    "echo evil >> .git/modules/deep/er/config",
    "mkdir -p .git/modules/deep/er/hooks && echo evil > .git/modules/deep/er/hooks/post-checkout",
    "mv .git/modules .git/m && cp -r .git/m .git/modules && echo evil >> .git/modules/deep/er/config",
    "mv .git/modules/deep .git/modules/d && mkdir -p .git/modules/deep/er && echo evil > .git/modules/deep/er/config",
    "echo evil > .git/worktrees/other/commondir",
    "mv sub sub2 && mkdir sub && git init -q sub",
    "rm sub/.git && git init -q sub",
    "mv $PWD ../moved && mkdir -p $OLDPWD",
];

/// Workspace with a repository, a submodule and a worktree.
fn with_repository(fixture: &mut SandboxFixture) {
    let git = fixture.root.join(".git");
    for folder in ["hooks", "modules/deep/er", "worktrees/other", "objects"] {
        std::fs::create_dir_all(git.join(folder)).expect("made");
    }
    std::fs::create_dir(fixture.root.join("sub")).expect("made");
    let files = [
        (".git/config", "good"),
        (".git/HEAD", "ref: refs/heads/main"),
        (".git/modules/deep/er/config", "good\n\tworktree = ../../../../sub\n"),
        (".git/worktrees/other/commondir", "../.."),
        ("sub/.git", "gitdir: ../.git/modules/deep/er"),
    ];
    for (name, text) in files {
        std::fs::write(fixture.root.join(name), text).expect("written");
    }
    // The parent folder is writable, too, as the temporary folder may be.
    let above = fixture.root.parent().expect("a folder").to_owned();
    fixture.policy.writable.push(above);
}

/// Everything below a folder with file contents.
fn all_of(folder: &std::path::Path) -> Vec<(std::path::PathBuf, Option<String>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).expect("it is there").flatten() {
        all.push((entry.path(), std::fs::read_to_string(entry.path()).ok()));
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            all.extend(all_of(&entry.path()));
        }
    }
    all.sort();
    all
}

#[test]
fn bubblewrap_blocks_writes_to_files_that_run_later() {
    let Sandbox::Bubblewrap { .. } = Sandbox::detect() else { return };
    for way in WAYS_TO_PLANT {
        let mut fixture = SandboxFixture::new(Sandbox::detect());
        with_repository(&mut fixture);
        let before = all_of(&fixture.root);
        fixture.policy.read_only = GuardedPaths::of_workspace(&fixture.root).read_only;
        let places = fixture.sandbox.create_placeholders(&fixture.policy);
        let done = fixture.shell(way);
        assert!(!done.status.is_success(), "{way} went well: {}", done.output.text());
        assert!(!done.output.text().contains("bwrap:"), "{}", done.output.text());
        let evil = all_of(&fixture.root).into_iter().filter(|(path, text)| {
            let is_guarded = fixture.policy.read_only.iter().any(|guarded| path.starts_with(guarded));
            is_guarded && text.as_ref().is_some_and(|text| text.contains("evil"))
        });
        assert_eq!(evil.collect::<Vec<_>>(), [], "{way}");
        for place in places {
            std::fs::remove_dir(place).expect("it is empty");
        }
        let after = all_of(&fixture.root);
        let guarded = before.iter().filter(|(path, _)| fixture.policy.read_only.contains(path));
        for kept in guarded {
            assert!(after.contains(kept), "{way}: {kept:?}");
        }
    }
}

#[test]
fn planting_succeeds_without_a_sandbox() {
    for way in WAYS_TO_PLANT
        .iter()
        .filter(|way| !way.contains("rmdir") && !way.contains("mv .pal") && !way.contains("> .claude"))
    {
        let mut fixture = SandboxFixture::new(Sandbox::None { why: String::new() });
        with_repository(&mut fixture);
        let done = finished(pal_process::Program {
            path: "sh".into(),
            arguments: vec!["-c".into(), way.into()],
            directory: fixture.root.clone(),
            environment: vec![("OLDPWD".into(), Some(fixture.root.clone().into()))],
            thread_setup: None,
        });
        assert!(done.status.is_success(), "{way}: {}", done.output.text());
    }
}

#[test]
fn git_works_with_placeholders() {
    let Sandbox::Bubblewrap { .. } = Sandbox::detect() else { return };
    let mut fixture = SandboxFixture::new(Sandbox::detect());
    let commit = "git -c user.name=a -c user.email=a@b commit -qm one";
    let line = format!("git init -q . && echo a > a && git add a && {commit}");
    assert!(fixture.shell(&line).status.is_success(), "a repository can be made where there is none");
    fixture.policy.read_only = GuardedPaths::of_workspace(&fixture.root).read_only;
    fixture.sandbox.create_placeholders(&fixture.policy);
    let line = format!(
        "set -e; echo b >> a; git add .; {commit}; git checkout -q -b other; git stash list; git gc -q; \
         git tag t; git reset -q --hard HEAD~1; mkdir d; git mv a d/a; git log --oneline --all | wc -l"
    );
    let done = fixture.shell(&line);
    assert!(done.status.is_success() && done.output.text().trim() == "2", "{}", done.output.text());
}
