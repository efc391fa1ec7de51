//! Everyday commands: allowed or asked as users expect, with the rule that would allow them.

use pal_permissions::{PermissionMode, Verdict, is_read_only};

use crate::{rules, run};

const RULES: &str = "
    allow Bash(git status:*)
    allow Bash(git commit:*)
    allow Bash(cargo test:*)
    allow Bash(npm run *)
    allow Bash(just check)
    allow Bash(sudo systemctl status:*)
    allow Edit(src/**)
    deny Bash(git push:*)
";

const ALLOWED: &[&str] = &[
    "ls",
    "ls -la src",
    "ls *.md",
    "pwd",
    "cat Cargo.toml",
    "cat src/main.rs | head -20",
    "head -n 5 README.md",
    "tail -n +10 README.md",
    "wc -l src/*.rs",
    "echo hello",
    "echo src/*.rs",
    "git show stash@{0}",
    "echo \"$HOME is $(pwd)\"",
    "printf '%s\\n' a b",
    "date +%F",
    "whoami",
    "uname -a",
    "which cargo",
    "command -v cargo",
    "file src/main.rs",
    "stat README.md",
    "du -sh target",
    "df -h",
    "diff a b",
    "sort names | uniq -c | sort -rn",
    "cut -d '/' -f 2 names",
    "tr a-z A-Z < names",
    "basename /a/b/c",
    "realpath src",
    "git status",
    "git status --short && git diff --stat",
    "git --no-pager log --oneline -5",
    "git diff HEAD~1 -- src",
    "git show HEAD:src/main.rs",
    "git branch -a",
    "git branch --show-current",
    "git branch --list 'feature/*'",
    "git remote -v",
    "git rev-parse HEAD",
    "git ls-files | wc -l",
    "git blame src/main.rs",
    "git log --grep=\"fix$\"",
    "rg 'fn main' src",
    "rg -n --type rust '/api/v1' .",
    "grep -rn 'fn main' --include='*.rs' src",
    "grep -rn 'fn main' --include=*.rs .",
    "grep -rn /api/v1 --exclude='.*' src",
    "grep -A 3 -e '/api/v1' -e x src/main.rs",
    "grep -inA3 '/api/v1' src/main.rs",
    "rg -A 3 -g '*.{ts,tsx}' -t js '/api/v1'",
    "rg --files -g '!target'",
    "tree -L 2 -I 'node_modules|target'",
    "sort -t / -k 2 names",
    "cd src && cd .. && git status",
    "cd src/../docs && ls",
    "git log --oneline -20",
    "git grep -n needle -- src",
    "git blame -L1,5 src/main.rs",
    "echo \"$USER $?\"",
    "x=$(pwd); echo $x",
    "grep -n \"end$\" src/main.rs",
    "find . -name '*.rs' -not -path './target/*'",
    "find src -type f | head",
    "tree -L 2",
    "sed -n '10,20p' src/main.rs",
    "cargo test",
    "cargo test --workspace -- --nocapture 2>&1 | tail -50",
    "RUST_BACKTRACE=1 cargo test some_test",
    "timeout 60 cargo test",
    "time cargo test",
    "cd src && cargo test",
    "cd src && cat ../README.md",
    "(cd src; cargo test)",
    "cargo test > /dev/null 2>&1 && echo ok || echo failed",
    "if cargo test; then echo ok; else echo failed; fi",
    "for f in a b; do echo \"$f\"; done",
    "n=3; echo $n",
    "npm run build",
    "npm run test -- --watch",
    "just check",
    "git commit -m 'Fix it'",
    "git commit -m \"$(cat <<'EOF'\nFix it; rm nothing\n\nWith (signs) & more.\nEOF\n)\"",
    "cat <<'EOF' > src/new.rs\nfn main() { println!(\"$(x)\"); }\nEOF",
    "echo 'fn x() {}' >> src/main.rs",
    "[ -f Cargo.toml ] && echo yes",
    "test -d src && ls src",
    "sudo systemctl status ssh",
    "cat ~/.palimpsest/projects/p/sessions/s/results/one.txt",
    "cat /second/file",
    "ls -la # what is here",
    "true",
    "",
];

/// Commands that ask, and the rule that would allow each.
const ASKED: &[(&str, &str)] = &[
    ("cargo build", "Bash(cargo build:*)"),
    ("cargo test && cargo build --release", "Bash(cargo build:*)"),
    ("make", "Bash(make:*)"),
    ("make install", "Bash(make install:*)"),
    ("npm install", "Bash(npm install:*)"),
    ("pnpm run build --watch", "Bash(pnpm run build:*)"),
    ("python3 script.py", "Bash(python3 script.py:*)"),
    // `--version` runs a program that the project may provide.
    ("cargo --version", "Bash(cargo --version)"),
    ("python3 --version", "Bash(python3 --version)"),
    ("sed -i s/a/b/ src/x.rs", "Bash(sed -i s/a/b/ src/x.rs)"),
    ("cp a b", "Bash(cp a b)"),
    ("bash <<< ls", "Bash(bash <<< ls)"),
    ("python3 -m pytest -q", "Bash(python3 -m pytest:*)"),
    ("rm -rf target", "Bash(rm -rf target)"),
    ("mv a b", "Bash(mv a b)"),
    ("curl -s https://example.com", "Bash(curl -s https://example.com)"),
    ("git add -A", "Bash(git add:*)"),
    ("git checkout main", "Bash(git checkout:*)"),
    ("git -C src log", "Bash(git -C src log)"),
    ("just checks", "Bash(just checks:*)"),
    ("just check --fix", "Bash(just check:*)"),
    ("timeout 60 cargo build", "Bash(cargo build:*)"),
    ("cat /etc/hosts", "Read(/etc/hosts)"),
    ("cat ~/notes.md", "Read(/home/me/notes.md)"),
    ("ls ..", "Read(/)"),
    ("cd /etc && ls", "Read(/etc)"),
    ("echo x > README.md", "Edit(README.md)"),
    ("mkdir -p assets", "Edit(assets)"),
    ("touch assets/x", "Edit(assets/x)"),
    ("cat .env", "Read(.env)"),
    ("grep -rn x src", "Bash(grep -rn x src)"),
    ("rg --hidden x", "Bash(rg --hidden x)"),
    ("echo $GITHUB_TOKEN", "Bash(echo $GITHUB_TOKEN)"),
    ("X=1 cargo test", "Bash(X=1 cargo test)"),
    ("eval ls", "Bash(eval ls)"),
    ("sudo systemctl stop ssh", "Bash(sudo systemctl stop ssh)"),
    ("ls; $x", "Bash(ls; $x)"),
    ("cd src && git log", "Bash(git log:*)"),
];

#[test]
fn ordinary_commands_are_allowed() {
    let rules = rules(RULES);
    let asked: Vec<_> =
        ALLOWED.iter().map(|command| (command, run(command, PermissionMode::Default, &rules))).collect();
    let asked: Vec<_> = asked.into_iter().filter(|(_, verdict)| *verdict != Verdict::Allow).collect();
    assert!(asked.is_empty(), "{asked:#?}");
}

#[test]
fn ask_names_the_rule_that_would_allow_it() {
    let mut wrong = Vec::new();
    for (command, wanted) in ASKED {
        match run(command, PermissionMode::Default, &rules(RULES)) {
            Verdict::Ask { rule, .. } if rule == *wanted => {
                let mut rules = rules(RULES);
                rules.allow_for_session(rule.parse().unwrap());
                if run(command, PermissionMode::Default, &rules) != Verdict::Allow {
                    wrong.push((
                        command,
                        format!(
                            "{rule} does not allow it: {:?}",
                            run(command, PermissionMode::Default, &rules)
                        ),
                    ));
                }
            }
            other => wrong.push((command, format!("{other:?}"))),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(ALLOWED.len() + ASKED.len() >= 60);
}

#[test]
fn verdicts_name_their_reason() {
    let why = |command: &str, mode: PermissionMode| match run(command, mode, &rules(RULES)) {
        Verdict::Deny { why } | Verdict::Ask { why, .. } => why,
        Verdict::Allow => panic!("{command}"),
    };
    assert_eq!(
        why("git push", PermissionMode::Bypass),
        "the rule `Bash(git push:*)` (project settings) denies it"
    );
    assert_eq!(
        why("git -C src push", PermissionMode::Bypass),
        "the rule `Bash(git push:*)` (project settings) denies it"
    );
    assert_eq!(why("cargo test; cargo build", PermissionMode::Default), "no rule allows `cargo build`");
    assert!(why("cargo build", PermissionMode::Plan).contains("plan mode"));
    assert!(why("ls; eval x", PermissionMode::Default).contains("`eval` runs other commands"));
}

#[test]
fn modes_differ_in_what_they_ask() {
    let rules = rules(RULES);
    let table = [
        ("echo x > README.md", "ask allow deny allow"),
        ("echo x > .git/config", "ask ask deny deny"),
        ("mkdir new", "ask allow deny allow"),
        ("cargo test", "allow allow deny allow"),
        ("make", "ask ask deny allow"),
        ("cat README.md", "allow allow allow allow"),
        ("cd src && cat main.rs", "allow allow allow allow"),
        ("cat /etc/hosts", "ask ask ask allow"),
        ("cat .env", "ask ask ask allow"),
        ("git push", "deny deny deny deny"),
    ];
    for (command, wanted) in table {
        let found = PermissionMode::ALL.map(|mode| match run(command, mode, &rules) {
            Verdict::Allow => "allow",
            Verdict::Ask { .. } => "ask",
            Verdict::Deny { .. } => "deny",
        });
        assert_eq!(found.join(" "), wanted, "{command}");
    }
}

#[test]
fn read_only_commands_are_recognized() {
    for command in
        ["ls", "cat a | grep b", "git log -3 && git diff", "rg x; find . -name y", "cat < a", "timeout 5 ls"]
    {
        assert!(is_read_only(command), "{command}");
    }
    for command in [
        "cd src",
        "ls > x",
        "mkdir x",
        "cargo test",
        "ls; rm x",
        "$x",
        "",
        "ls $(rm x)",
        "echo `rm x`",
        "ls \u{202e}",
    ] {
        assert!(!is_read_only(command), "{command}");
    }
}
