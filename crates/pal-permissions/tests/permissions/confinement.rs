//! Which sandbox a command runs in.

use std::path::Path;

use pal_permissions::{
    Mode, Need, Request, Rules, SandboxLevel, SandboxPolicy, SandboxState, Verdict, confine, judge,
};

use crate::{ground, rules, run};

/// The level of a line, and of the commands in it that have one of their own: where they start, and their level.
fn levels(command: &str, mode: Mode, rules: &Rules) -> String {
    let confinement = confine(command, mode, rules, &ground());
    let name = |level: SandboxLevel| match level {
        SandboxLevel::ReadOnly => "read-only",
        SandboxLevel::WorkspaceWrite => "workspace-write",
        SandboxLevel::Guarded => "guarded",
        SandboxLevel::Full => "full",
    };
    let mut all = String::from(name(confinement.level));
    for part in confinement.parts {
        let word = command[part.start..].split([' ', ';', ')']).next().unwrap_or_default();
        all.push_str(&format!(", {word} {}", name(part.level)));
    }
    all
}

#[test]
fn what_nobody_allowed_is_read_only() {
    let none = Rules::default();
    // Also what the judge would never let through: the wall does not depend on it.
    for command in [
        "ls",
        "cat README.md | head",
        "rm -rf /",
        "bash -c evil",
        "echo $(evil)",
        "x=1; $x",
        "if",
        "echo hi",
        "",
    ] {
        for mode in [Mode::Default, Mode::AcceptEdits, Mode::Plan] {
            let confinement = confine(command, mode, &none, &ground());
            let is_shell_only = !confinement.parts.is_empty();
            assert!(
                confinement.level == SandboxLevel::ReadOnly || is_shell_only,
                "{command} in {mode}: {confinement:?}"
            );
        }
    }
}

#[test]
fn rules_and_modes_lift_a_command() {
    let rules = rules(
        "allow Bash(cargo test:*)\nallow Bash(cp:*)\nallow Bash(make all)\nallow Edit(src/**)\nallow Bash(python3 -m pytest:*)",
    );
    let table = [
        ("ls", Mode::Default, "read-only"),
        ("cargo test", Mode::Default, "full"),
        ("cargo test | tail -5", Mode::Default, "full, tail read-only"),
        ("cargo test 2>&1 | grep -v warning | head", Mode::Default, "full, grep read-only, head read-only"),
        ("time ls; cargo test", Mode::Default, "full, ls read-only"),
        ("cp a b", Mode::Default, "guarded"),
        ("cp a b && cargo test", Mode::Default, "full, cp guarded"),
        ("cp a b && ls", Mode::Default, "full, cp guarded, ls read-only"),
        ("python3 -m pytest -q", Mode::Default, "guarded"),
        ("make all", Mode::Default, "full"),
        ("cat README.md > src/new.rs", Mode::Default, "full, cat read-only"),
        ("echo x > src/new.rs", Mode::Default, "full"),
        ("touch src/new.rs", Mode::Default, "workspace-write"),
        ("mkdir assets", Mode::AcceptEdits, "workspace-write"),
        ("echo \"$(cargo test)\"", Mode::Default, "full"),
        ("cat \"$(cp a b)\"", Mode::Default, "full, cat read-only, cp guarded"),
        ("make", Mode::Bypass, "workspace-write"),
        ("echo x > README.md", Mode::Bypass, "workspace-write"),
        ("cargo test", Mode::Bypass, "full"),
        ("cargo test | tee log", Mode::Bypass, "full, tee workspace-write"),
    ];
    for (command, mode, wanted) in table {
        assert_eq!(levels(command, mode, &rules), wanted, "{command} in {mode}");
    }
    let bare = crate::rules("allow Bash");
    assert_eq!(levels("cp a b && git push", Mode::Default, &bare), "full, cp guarded");
    assert_eq!(levels("eval \"$x\"", Mode::Default, &bare), "guarded", "the shell itself runs it");
    assert_eq!(levels("python3 -c 'x'", Mode::Default, &bare), "guarded");
    assert_eq!(levels("x() { evil; }; x", Mode::Default, &bare), "guarded", "what cannot be read as a whole");
}

#[test]
fn files_that_rules_allow_are_in_sight() {
    let rules = rules("allow Read(~/notes/**)\nallow Read(.env)");
    let confinement = confine("cat ~/notes/a.md .env README.md", Mode::Default, &rules, &ground());
    assert_eq!(confinement.level, SandboxLevel::ReadOnly);
    assert_eq!(confinement.readable, [Path::new("/home/me/notes/a.md"), Path::new("/project/.env")]);
}

#[test]
fn without_a_sandbox_read_only_commands_ask() {
    let ask = |state: SandboxState, command: &str, mode: Mode| {
        let mut ground = ground();
        ground.sandbox = SandboxPolicy { state, ..SandboxPolicy::default() };
        let needs = [Need::Run(String::from(command))];
        judge(&Request { tool: "Bash", needs: &needs, mode }, &Rules::default(), &ground)
    };
    assert_eq!(ask(SandboxState::Available, "ls", Mode::Default), Verdict::Allow);
    for (state, words) in
        [(SandboxState::Unavailable, "install bubblewrap"), (SandboxState::Off, "switched off")]
    {
        for mode in [Mode::Default, Mode::AcceptEdits, Mode::Plan] {
            let verdict = ask(state, "cat README.md", mode);
            assert!(
                matches!(&verdict, Verdict::Ask { why, rule } if why.contains(words) && rule == "Bash(cat:*)"),
                "{verdict:?}"
            );
            assert_eq!(ask(state, "echo hi; cd src; pwd", mode), Verdict::Allow, "the shell alone");
        }
    }
    assert_eq!(ask(SandboxState::Off, "make", Mode::Bypass), Verdict::Allow);
    assert_ne!(run("make", Mode::Default, &Rules::default()), Verdict::Allow);
}
