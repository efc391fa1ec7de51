//! Syntax of rules.

use pal_permissions::{PermissionMode, PermissionRule};

#[test]
fn rules_round_trip_through_text() {
    for text in [
        "Bash",
        "Bash(git status:*)",
        "Bash(cargo test)",
        "Bash(npm run *)",
        "Read(src/**)",
        "Edit(a (copy).md)",
        "Read(~/x/**)",
        "Read(//etc/hosts)",
        "WebFetch(domain:example.com)",
        "mcp__server__tool",
        "mcp__server",
        "Skill(review:*)",
        "Agent(scout)",
        "Task(scout)",
    ] {
        assert_eq!(text.parse::<PermissionRule>().unwrap().to_string(), text);
    }
    assert_eq!(" Bash(x) ".parse::<PermissionRule>().unwrap().to_string(), "Bash(x)");
}

#[test]
fn rule_errors_give_an_example() {
    for (text, part) in [
        ("", "name of a tool"),
        ("(x)", "name of a tool"),
        ("git status", "name of a tool"),
        ("Bash(git", "does not end with `)`"),
        ("Bash()", "nothing between"),
        ("Bash(:*)", "no command"),
        ("Todo(x)", "takes none"),
        ("Bsh(x)", "takes none"),
        ("WebFetch(example.com)", "host of a page"),
        ("WebFetch(domain:)", "host of a page"),
        ("WebFetch(domain:a/b)", "host of a page"),
        ("Read(../x)", "contains `..`"),
        ("Read(a[)", "invalid pattern"),
    ] {
        let error = text.parse::<PermissionRule>().unwrap_err().to_string();
        assert!(error.contains(part) && error.contains("for example"), "{text}: {error}");
    }
}

#[test]
fn modes_round_trip_through_their_names() {
    for mode in PermissionMode::ALL {
        assert_eq!(mode.name().parse::<PermissionMode>(), Ok(mode));
        assert_eq!(mode.claude_code_name().parse::<PermissionMode>(), Ok(mode));
    }
    assert!("yolo".parse::<PermissionMode>().unwrap_err().to_string().contains("`accept-edits`"));
}
