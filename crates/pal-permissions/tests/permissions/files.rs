//! Files, pages and servers' tools.

use pal_permissions::{Mode, Need, Request, Rules, Verdict, judge};

use crate::{ground, read, rules, target, write};

fn is(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allow",
        Verdict::Ask { .. } => "ask",
        Verdict::Deny { .. } => "deny",
    }
}

#[test]
fn files_by_mode() {
    let none = Rules::default();
    let table = [
        ("read src/main.rs", "allow allow allow allow"),
        ("read /second/x", "allow allow allow allow"),
        ("read ~/.palimpsest/projects/p/sessions/s/results/x", "allow allow allow allow"),
        ("read /etc/hosts", "ask ask ask allow"),
        ("read .env", "ask ask ask deny"),
        ("read .env.example", "allow allow allow allow"),
        ("read ~/.palimpsest/credentials.toml", "deny deny deny deny"),
        ("read ~/.palimpsest/settings.toml", "ask ask ask allow"),
        ("write src/main.rs", "ask allow deny allow"),
        ("write /second/x", "ask allow deny allow"),
        ("write /etc/hosts", "ask ask deny deny"),
        ("write .git/config", "ask ask deny deny"),
        ("read ~/.ssh/id_rsa", "ask ask ask deny"),
        ("write ~/.ssh/authorized_keys", "ask ask deny deny"),
        ("write .mcp.json", "ask ask deny deny"),
        ("write .pal/settings.toml", "ask ask deny deny"),
        ("write ~/.palimpsest/settings.toml", "deny deny deny deny"),
        ("write ~/.palimpsest/projects/p/sessions/s/log.jsonl", "deny deny deny deny"),
        ("read ~/.palimpsest/projects/p/memory/release-day.md", "allow allow allow allow"),
        ("read ~/.palimpsest/projects/p/memory/credentials-rotate.md", "allow allow allow allow"),
        ("write ~/.palimpsest/projects/p/memory/release-day.md", "allow allow deny allow"),
        ("write own/projects/p/memory/release-day.md", "allow allow deny allow"),
        ("write ~/.palimpsest/projects/p/memory/../x.md", "deny deny deny deny"),
        ("write ~/.palimpsest/projects/p/memory/deep/x.md", "deny deny deny deny"),
        ("write ~/.palimpsest/projects/p/memory/.versions/journal.jsonl", "deny deny deny deny"),
        ("write ~/.palimpsest/projects/p/memory/.index.db", "deny deny deny deny"),
        ("write ~/.palimpsest/projects/q/memory/release-day.md", "deny deny deny deny"),
    ];
    for (what, wanted) in table {
        let (touch, path) = what.split_once(' ').unwrap();
        let say = |mode| if touch == "read" { read(path, mode, &none) } else { write(path, mode, &none) };
        let found = Mode::ALL.map(|mode| is(&say(mode)));
        assert_eq!(found.join(" "), wanted, "{what}");
    }
}

#[test]
fn memories_are_written_by_tools_that_put_it_on_record_and_by_no_command() {
    let folder = "/home/me/.palimpsest/projects/p/memory";
    let none = Rules::default();
    for command in ["echo x > {}/a.md", "tee {}/a.md", "rm {}/a.md", "cp README.md {}/a.md"] {
        let command = command.replace("{}", folder);
        // Who asks for nothing to be asked is only kept from what is plain to see.
        let is_plain = command.contains('>');
        for mode in Mode::ALL.into_iter().filter(|mode| is_plain || *mode != Mode::Bypass) {
            assert_ne!(is(&crate::run(&command, mode, &none)), "allow", "{command} in {}", mode.name());
        }
    }
    assert_eq!(is(&crate::run(&format!("cat {folder}/a.md"), Mode::Default, &none)), "allow");
    // Who wants to be asked, or wants none, is heard.
    let rules = rules("deny Edit(~/.palimpsest/projects/p/memory/**)");
    assert_eq!(is(&write(&format!("{folder}/a.md"), Mode::Default, &rules)), "deny");
}

#[test]
fn rules_of_one_tool_are_about_all_that_do_the_same() {
    let rules = rules(
        "allow Write(src/**)\nask Edit(src/api/**)\ndeny Read(secrets/**)\nallow Read(~/notes/**)\ndeny Glob(hidden/**)",
    );
    let say = |tool: &str, need: Need| {
        is(&judge(&Request { tool, needs: &[need], mode: Mode::Default }, &rules, &ground()))
    };
    assert_eq!(say("Edit", Need::Write(target("src/x"))), "allow");
    assert_eq!(say("NotebookEdit", Need::Write(target("src/x"))), "allow");
    assert_eq!(say("Write", Need::Write(target("src/api/x"))), "ask");
    assert_eq!(say("Grep", Need::Read(target("secrets"))), "deny");
    assert_eq!(say("Read", Need::Read(target("secrets/deep/x"))), "deny");
    assert_eq!(say("Read", Need::Read(target("~/notes/x"))), "allow");
    assert_eq!(say("Glob", Need::Read(target("hidden/x"))), "deny");
    assert_eq!(say("Read", Need::Read(target("hidden/x"))), "allow");
    assert_eq!(say("Read", Need::Read(target("secretss/x"))), "allow");
    assert!(rules.denies_reading(&target("secrets/x"), &ground()).is_some());
    assert!(rules.denies_reading(&target("src/x"), &ground()).is_none());
}

#[test]
fn guarded_files_are_allowed_by_rules_that_name_them() {
    let by = |rule: &str, path: &str| is(&write(path, Mode::AcceptEdits, &rules(&format!("allow {rule}"))));
    assert_eq!(by("Edit(**)", ".git/config"), "ask");
    assert_eq!(by("Edit", ".vscode/settings.json"), "ask");
    assert_eq!(by("Edit(.vscode/**)", ".vscode/settings.json"), "allow");
    assert_eq!(by("Edit(.git/config)", ".git/config"), "allow");
    assert_eq!(by("Edit(.git/config)", ".git/hooks/x"), "ask");
    assert_eq!(is(&read(".env", Mode::Default, &rules("allow Read"))), "ask");
    assert_eq!(is(&read(".env", Mode::Default, &rules("allow Read(.env)"))), "allow");
    assert_eq!(is(&read("a/.env", Mode::Default, &rules("allow Read(.env)"))), "ask");
    assert_eq!(is(&read("a/x.pem", Mode::Default, &rules("allow Read(a/*.pem)"))), "allow");
}

#[test]
fn a_question_about_a_file_names_its_rule() {
    let mut rules = Rules::default();
    for path in ["/etc/hosts", ".env", "~/x [1].md", "/etc/a{b,c}*"] {
        let Verdict::Ask { rule, .. } = read(path, Mode::Default, &rules) else { panic!("{path}") };
        rules.allow_for_session(rule.parse().unwrap());
        assert_eq!(read(path, Mode::Default, &rules), Verdict::Allow, "{path}: {rule}");
    }
    assert_ne!(read("~/x 1.md", Mode::Default, &rules), Verdict::Allow);
}

#[test]
fn an_answer_beats_rules_that_ask_and_not_those_that_deny() {
    let mut rules =
        rules("ask Bash(git push:*)\ndeny Bash(git push --force:*)\nallow Bash(git:*)\nask Edit(src/**)");
    let Verdict::Ask { rule, .. } = crate::run("git push", Mode::Bypass, &rules) else { panic!() };
    assert_eq!(rule, "Bash(git push:*)");
    rules.allow_for_session(rule.parse().unwrap());
    assert_eq!(is(&crate::run("git push", Mode::Default, &rules)), "allow");
    assert_eq!(is(&crate::run("git push --force", Mode::Default, &rules)), "deny");
    assert_eq!(is(&write("src/x", Mode::AcceptEdits, &rules)), "ask");
    rules.allow_for_session("Edit(src/x)".parse().unwrap());
    assert_eq!(is(&write("src/x", Mode::AcceptEdits, &rules)), "allow");
}

#[test]
fn pages_by_host() {
    let rules = rules(
        "allow WebFetch(domain:example.com)\nallow WebFetch(domain:*.docs.rs)\ndeny WebFetch(domain:evil.com)\nask WebFetch(domain:ask.com)",
    );
    let say = |address: &str, mode| {
        let needs = [Need::Fetch(String::from(address))];
        is(&judge(&Request { tool: "WebFetch", needs: &needs, mode }, &rules, &ground()))
    };
    let table = [
        ("https://example.com/x", "allow"),
        ("HTTPS://EXAMPLE.COM./x", "allow"),
        ("https://example.com:8443/x", "allow"),
        ("https://sub.example.com/", "ask"),
        ("https://a.docs.rs/", "allow"),
        ("https://docs.rs/", "ask"),
        ("https://evil.com/", "deny"),
        ("https://sub.EVIL.com/", "deny"),
        ("https://notevil.com/", "ask"),
        ("https://ask.com/", "ask"),
        ("https://example.com@evil.com/", "ask"),
        ("https://evil.com\\@example.com/", "ask"),
        ("https://example.com.evil.org/", "ask"),
        ("file:///etc/passwd", "ask"),
        ("example.com", "ask"),
        ("https://exam\u{200b}ple.com/", "ask"),
    ];
    for (address, wanted) in table {
        assert_eq!(say(address, Mode::Default), wanted, "{address}");
    }
    assert_eq!(say("https://evil.com/", Mode::Bypass), "deny");
    assert_eq!(say("https://other.org/", Mode::Bypass), "deny", "the sandbox reaches no network");
    assert_eq!(say("https://example.com/", Mode::Bypass), "allow", "a rule allows it");
}

#[test]
fn tools_of_servers_by_name() {
    let rules =
        rules("allow mcp__docs\nallow mcp__repo__read\ndeny mcp__repo__delete\nallow mcp__all__*\ndeny Todo");
    let say = |tool: &str| {
        is(&judge(&Request { tool, needs: &[Need::Use], mode: Mode::Default }, &rules, &ground()))
    };
    assert_eq!(say("mcp__docs__search"), "allow");
    assert_eq!(say("mcp__docsx__search"), "ask");
    assert_eq!(say("mcp__repo__read"), "allow");
    assert_eq!(say("mcp__repo__read__all"), "ask");
    assert_eq!(say("mcp__repo__delete"), "deny");
    assert_eq!(say("mcp__all__x"), "allow");
    let nothing =
        |tool: &str| is(&judge(&Request { tool, needs: &[], mode: Mode::Default }, &rules, &ground()));
    assert_eq!(nothing("Todo"), "deny");
    assert_eq!(nothing("Skill"), "allow");
}

#[test]
fn a_tool_without_a_pattern_is_about_all_that_it_does() {
    let rules = rules("deny Read\ndeny Edit\nallow Bash(make:*)");
    let say =
        |tool: &str, need: Need, mode| is(&judge(&Request { tool, needs: &[need], mode }, &rules, &ground()));
    assert_eq!(say("Read", Need::Read(target("x")), Mode::Bypass), "deny");
    assert_eq!(say("Grep", Need::Read(target("x")), Mode::Default), "allow");
    assert_eq!(say("Write", Need::Write(target("x")), Mode::Bypass), "deny");
    let run = |command: &str| is(&crate::run(command, Mode::Default, &rules));
    assert_eq!([run("make x"), run("make x > y"), run("cat x")], ["allow", "deny", "allow"]);
}
