//! Sandbox levels of commands.

use std::path::Path;

use pal_permissions::{
    PermissionMode, PermissionRequest, RuleSet, SandboxLevel, SandboxLimits, SandboxState, ToolAccess,
    Verdict, authorize, confine_command,
};

use crate::{context, rules, run};

/// Level of a line, and the start and level of commands with one of their own.
fn levels(command: &str, mode: PermissionMode, rules: &RuleSet) -> String {
    let confinement = confine_command(command, mode, rules, &context());
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
fn commands_without_rules_run_read_only() {
    let none = RuleSet::default();
    // Includes commands that are never allowed: the sandbox does not depend on the verdict.
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
        for mode in [PermissionMode::Default, PermissionMode::AcceptEdits, PermissionMode::Plan] {
            let confinement = confine_command(command, mode, &none, &context());
            let is_shell_only = !confinement.parts.is_empty();
            assert!(
                confinement.level == SandboxLevel::ReadOnly || is_shell_only,
                "{command} in {mode}: {confinement:?}"
            );
        }
    }
}

#[test]
fn rules_and_modes_raise_the_sandbox_level() {
    let rules = rules(
        "allow Bash(cargo test:*)\nallow Bash(cp:*)\nallow Bash(make all)\nallow Edit(src/**)\nallow Bash(python3 -m pytest:*)",
    );
    let table = [
        ("ls", PermissionMode::Default, "read-only"),
        ("cargo test", PermissionMode::Default, "full"),
        ("cargo test | tail -5", PermissionMode::Default, "full, tail read-only"),
        (
            "cargo test 2>&1 | grep -v warning | head",
            PermissionMode::Default,
            "full, grep read-only, head read-only",
        ),
        ("time ls; cargo test", PermissionMode::Default, "full, ls read-only"),
        ("cp a b", PermissionMode::Default, "guarded"),
        ("cp a b && cargo test", PermissionMode::Default, "full, cp guarded"),
        ("cp a b && ls", PermissionMode::Default, "full, cp guarded, ls read-only"),
        ("python3 -m pytest -q", PermissionMode::Default, "guarded"),
        ("make all", PermissionMode::Default, "full"),
        ("cat README.md > src/new.rs", PermissionMode::Default, "full, cat read-only"),
        ("echo x > src/new.rs", PermissionMode::Default, "full"),
        ("touch src/new.rs", PermissionMode::Default, "workspace-write"),
        ("mkdir assets", PermissionMode::AcceptEdits, "workspace-write"),
        ("echo \"$(cargo test)\"", PermissionMode::Default, "full"),
        ("cat \"$(cp a b)\"", PermissionMode::Default, "full, cat read-only, cp guarded"),
        ("make", PermissionMode::Bypass, "workspace-write"),
        ("echo x > README.md", PermissionMode::Bypass, "workspace-write"),
        ("cargo test", PermissionMode::Bypass, "full"),
        ("cargo test | tee log", PermissionMode::Bypass, "full, tee workspace-write"),
    ];
    for (command, mode, wanted) in table {
        assert_eq!(levels(command, mode, &rules), wanted, "{command} in {mode}");
    }
    let bare = crate::rules("allow Bash");
    assert_eq!(levels("cp a b && git push", PermissionMode::Default, &bare), "full, cp guarded");
    assert_eq!(levels("eval \"$x\"", PermissionMode::Default, &bare), "guarded", "the shell itself runs it");
    assert_eq!(levels("python3 -c 'x'", PermissionMode::Default, &bare), "guarded");
    assert_eq!(
        levels("x() { evil; }; x", PermissionMode::Default, &bare),
        "guarded",
        "what cannot be read as a whole"
    );
}

#[test]
fn files_allowed_by_rules_are_readable_in_the_sandbox() {
    let rules = rules("allow Read(~/notes/**)\nallow Read(.env)");
    let confinement =
        confine_command("cat ~/notes/a.md .env README.md", PermissionMode::Default, &rules, &context());
    assert_eq!(confinement.level, SandboxLevel::ReadOnly);
    assert_eq!(confinement.readable, [Path::new("/home/me/notes/a.md"), Path::new("/project/.env")]);
}

#[test]
fn without_a_sandbox_read_only_commands_ask() {
    let ask = |state: SandboxState, command: &str, mode: PermissionMode| {
        let mut context = context();
        context.sandbox = SandboxLimits { state, ..SandboxLimits::default() };
        let needs = [ToolAccess::Run(String::from(command))];
        authorize(&PermissionRequest { tool: "Bash", needs: &needs, mode }, &RuleSet::default(), &context)
    };
    assert_eq!(ask(SandboxState::Available, "ls", PermissionMode::Default), Verdict::Allow);
    for (state, words) in
        [(SandboxState::Unavailable, "install bubblewrap"), (SandboxState::Off, "switched off")]
    {
        for mode in [PermissionMode::Default, PermissionMode::AcceptEdits, PermissionMode::Plan] {
            let verdict = ask(state, "cat README.md", mode);
            assert!(
                matches!(&verdict, Verdict::Ask { why, rule } if why.contains(words) && rule == "Bash(cat:*)"),
                "{verdict:?}"
            );
            assert_eq!(ask(state, "echo hi; cd src; pwd", mode), Verdict::Allow, "the shell alone");
        }
    }
    assert_eq!(ask(SandboxState::Off, "make", PermissionMode::Bypass), Verdict::Allow);
    assert_ne!(run("make", PermissionMode::Default, &RuleSet::default()), Verdict::Allow);
}
