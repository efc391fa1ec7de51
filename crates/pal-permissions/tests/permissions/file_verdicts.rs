//! Verdicts on files, web pages and MCP tools.

use pal_permissions::{PermissionMode, PermissionRequest, RuleSet, ToolAccess, Verdict, authorize};

use crate::{context, read, rules, target, write};

fn is(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allow",
        Verdict::Ask { .. } => "ask",
        Verdict::Deny { .. } => "deny",
    }
}

#[test]
fn file_verdicts_depend_on_the_mode() {
    let none = RuleSet::default();
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
        let found = PermissionMode::ALL.map(|mode| is(&say(mode)));
        assert_eq!(found.join(" "), wanted, "{what}");
    }
}

#[test]
fn only_edit_and_write_may_change_memories() {
    let folder = "/home/me/.palimpsest/projects/p/memory";
    let none = RuleSet::default();
    for command in ["echo x > {}/a.md", "tee {}/a.md", "rm {}/a.md", "cp README.md {}/a.md"] {
        let command = command.replace("{}", folder);
        // Bypass mode is limited only by certain matches.
        let is_plain = command.contains('>');
        for mode in PermissionMode::ALL.into_iter().filter(|mode| is_plain || *mode != PermissionMode::Bypass)
        {
            assert_ne!(is(&crate::run(&command, mode, &none)), "allow", "{command} in {}", mode.name());
        }
    }
    assert_eq!(is(&crate::run(&format!("cat {folder}/a.md"), PermissionMode::Default, &none)), "allow");
    // Ask and deny rules are honoured.
    let rules = rules("deny Edit(~/.palimpsest/projects/p/memory/**)");
    assert_eq!(is(&write(&format!("{folder}/a.md"), PermissionMode::Default, &rules)), "deny");
}

#[test]
fn a_rule_for_one_tool_covers_its_equivalents() {
    let rules = rules(
        "allow Write(src/**)\nask Edit(src/api/**)\ndeny Read(secrets/**)\nallow Read(~/notes/**)\ndeny Glob(hidden/**)",
    );
    let say = |tool: &str, need: ToolAccess| {
        is(&authorize(
            &PermissionRequest { tool, needs: &[need], mode: PermissionMode::Default },
            &rules,
            &context(),
        ))
    };
    assert_eq!(say("Edit", ToolAccess::Write(target("src/x"))), "allow");
    assert_eq!(say("NotebookEdit", ToolAccess::Write(target("src/x"))), "allow");
    assert_eq!(say("Write", ToolAccess::Write(target("src/api/x"))), "ask");
    assert_eq!(say("Grep", ToolAccess::Read(target("secrets"))), "deny");
    assert_eq!(say("Read", ToolAccess::Read(target("secrets/deep/x"))), "deny");
    assert_eq!(say("Read", ToolAccess::Read(target("~/notes/x"))), "allow");
    assert_eq!(say("Glob", ToolAccess::Read(target("hidden/x"))), "deny");
    assert_eq!(say("Read", ToolAccess::Read(target("hidden/x"))), "allow");
    assert_eq!(say("Read", ToolAccess::Read(target("secretss/x"))), "allow");
    assert!(rules.denies_reading(&target("secrets/x"), &context()).is_some());
    assert!(rules.denies_reading(&target("src/x"), &context()).is_none());
}

#[test]
fn guarded_files_are_allowed_by_rules_that_name_them() {
    let by = |rule: &str, path: &str| {
        is(&write(path, PermissionMode::AcceptEdits, &rules(&format!("allow {rule}"))))
    };
    assert_eq!(by("Edit(**)", ".git/config"), "ask");
    assert_eq!(by("Edit", ".vscode/settings.json"), "ask");
    assert_eq!(by("Edit(.vscode/**)", ".vscode/settings.json"), "allow");
    assert_eq!(by("Edit(.git/config)", ".git/config"), "allow");
    assert_eq!(by("Edit(.git/config)", ".git/hooks/x"), "ask");
    assert_eq!(is(&read(".env", PermissionMode::Default, &rules("allow Read"))), "ask");
    assert_eq!(is(&read(".env", PermissionMode::Default, &rules("allow Read(.env)"))), "allow");
    assert_eq!(is(&read("a/.env", PermissionMode::Default, &rules("allow Read(.env)"))), "ask");
    assert_eq!(is(&read("a/x.pem", PermissionMode::Default, &rules("allow Read(a/*.pem)"))), "allow");
}

#[test]
fn ask_about_a_file_names_its_rule() {
    let mut rules = RuleSet::default();
    for path in ["/etc/hosts", ".env", "~/x [1].md", "/etc/a{b,c}*"] {
        let Verdict::Ask { rule, .. } = read(path, PermissionMode::Default, &rules) else { panic!("{path}") };
        rules.allow_for_session(rule.parse().unwrap());
        assert_eq!(read(path, PermissionMode::Default, &rules), Verdict::Allow, "{path}: {rule}");
    }
    assert_ne!(read("~/x 1.md", PermissionMode::Default, &rules), Verdict::Allow);
}

#[test]
fn a_session_rule_beats_ask_rules_but_not_deny_rules() {
    let mut rules =
        rules("ask Bash(git push:*)\ndeny Bash(git push --force:*)\nallow Bash(git:*)\nask Edit(src/**)");
    let Verdict::Ask { rule, .. } = crate::run("git push", PermissionMode::Bypass, &rules) else { panic!() };
    assert_eq!(rule, "Bash(git push:*)");
    rules.allow_for_session(rule.parse().unwrap());
    assert_eq!(is(&crate::run("git push", PermissionMode::Default, &rules)), "allow");
    assert_eq!(is(&crate::run("git push --force", PermissionMode::Default, &rules)), "deny");
    assert_eq!(is(&write("src/x", PermissionMode::AcceptEdits, &rules)), "ask");
    rules.allow_for_session("Edit(src/x)".parse().unwrap());
    assert_eq!(is(&write("src/x", PermissionMode::AcceptEdits, &rules)), "allow");
}

#[test]
fn web_fetch_verdicts_depend_on_the_host() {
    let rules = rules(
        "allow WebFetch(domain:example.com)\nallow WebFetch(domain:*.docs.rs)\ndeny WebFetch(domain:evil.com)\nask WebFetch(domain:ask.com)",
    );
    let say = |address: &str, mode| {
        let needs = [ToolAccess::Fetch(String::from(address))];
        is(&authorize(&PermissionRequest { tool: "WebFetch", needs: &needs, mode }, &rules, &context()))
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
        assert_eq!(say(address, PermissionMode::Default), wanted, "{address}");
    }
    assert_eq!(say("https://evil.com/", PermissionMode::Bypass), "deny");
    assert_eq!(say("https://other.org/", PermissionMode::Bypass), "deny", "the sandbox reaches no network");
    assert_eq!(say("https://example.com/", PermissionMode::Bypass), "allow", "a rule allows it");
}

#[test]
fn mcp_tools_match_by_name() {
    let rules =
        rules("allow mcp__docs\nallow mcp__repo__read\ndeny mcp__repo__delete\nallow mcp__all__*\ndeny Todo");
    let say = |tool: &str| {
        is(&authorize(
            &PermissionRequest { tool, needs: &[ToolAccess::Use], mode: PermissionMode::Default },
            &rules,
            &context(),
        ))
    };
    assert_eq!(say("mcp__docs__search"), "allow");
    assert_eq!(say("mcp__docsx__search"), "ask");
    assert_eq!(say("mcp__repo__read"), "allow");
    assert_eq!(say("mcp__repo__read__all"), "ask");
    assert_eq!(say("mcp__repo__delete"), "deny");
    assert_eq!(say("mcp__all__x"), "allow");
    let nothing = |tool: &str| {
        is(&authorize(
            &PermissionRequest { tool, needs: &[], mode: PermissionMode::Default },
            &rules,
            &context(),
        ))
    };
    assert_eq!(nothing("Todo"), "deny");
    assert_eq!(nothing("Skill"), "allow");
}

#[test]
fn a_rule_without_pattern_covers_the_whole_tool() {
    let rules = rules("deny Read\ndeny Edit\nallow Bash(make:*)");
    let say = |tool: &str, need: ToolAccess, mode| {
        is(&authorize(&PermissionRequest { tool, needs: &[need], mode }, &rules, &context()))
    };
    assert_eq!(say("Read", ToolAccess::Read(target("x")), PermissionMode::Bypass), "deny");
    assert_eq!(say("Grep", ToolAccess::Read(target("x")), PermissionMode::Default), "allow");
    assert_eq!(say("Write", ToolAccess::Write(target("x")), PermissionMode::Bypass), "deny");
    let run = |command: &str| is(&crate::run(command, PermissionMode::Default, &rules));
    assert_eq!([run("make x"), run("make x > y"), run("cat x")], ["allow", "deny", "allow"]);
}

#[test]
fn skills_and_agents_are_allowed_unless_a_rule_is_about_them() {
    let table = [
        ("", "Skill", "review", "allow"),
        ("deny Skill(review)", "Skill", "review", "deny"),
        ("deny Skill(review)", "Skill", "Review", "deny"),
        ("deny Skill(review)", "Skill", "reviewer", "allow"),
        ("deny Skill(review:*)", "Skill", "review-deep", "deny"),
        ("deny Skill(review)", "Agent", "review", "allow"),
        ("deny Skill(*)", "Skill", "review", "deny"),
        ("deny Skill", "Skill", "review", "deny"),
        ("ask Agent(scout)", "Agent", "scout", "ask"),
        ("deny Task(scout)", "Agent", "scout", "deny"),
        ("allow Skill(review)", "Skill", "other", "allow"),
        ("ask Agent(scout)\ndeny Agent(s*)", "Agent", "scout", "deny"),
    ];
    for (text, tool, name, verdict) in table {
        let needs = [ToolAccess::Named(name.to_owned())];
        for mode in PermissionMode::ALL {
            let request = PermissionRequest { tool, needs: &needs, mode };
            let judged = authorize(&request, &rules(text), &context());
            assert_eq!(is(&judged), verdict, "{text}: {tool} {name} in {mode}");
        }
    }
    let mut answered = rules("ask Agent(scout)");
    answered.allow_for_session("Agent(scout)".parse().unwrap());
    let needs = [ToolAccess::Named(String::from("scout"))];
    let request = PermissionRequest { tool: "Agent", needs: &needs, mode: PermissionMode::Default };
    assert_eq!(authorize(&request, &answered, &context()), Verdict::Allow, "an answer holds for the session");
}

#[test]
fn rules_of_a_prompt_end_with_it() {
    let needs = [ToolAccess::Use];
    let request = PermissionRequest { tool: "mcp__s__t", needs: &needs, mode: PermissionMode::Default };
    let mut lent = rules("ask mcp__other__t");
    lent.allow_for_prompt("mcp__s__t".parse().unwrap());
    assert_eq!(is(&authorize(&request, &lent, &context())), "allow");
    lent.end_prompt();
    assert_eq!(is(&authorize(&request, &lent, &context())), "ask");
    lent.ask.extend(rules("ask mcp__s__t").ask);
    lent.allow_for_prompt("mcp__s__t".parse().unwrap());
    assert_eq!(is(&authorize(&request, &lent, &context())), "ask", "a rule that asks beats it");
}
