//! Rules as they are written.

use pal_permissions::{Mode, Rule};

#[test]
fn rules_are_read_and_printed() {
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
    ] {
        assert_eq!(text.parse::<Rule>().unwrap().to_string(), text);
    }
    assert_eq!(" Bash(x) ".parse::<Rule>().unwrap().to_string(), "Bash(x)");
}

#[test]
fn what_is_wrong_with_a_rule_comes_with_an_example() {
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
        ("Read(../x)", "leads up"),
        ("Read(a[)", "cannot be read"),
    ] {
        let error = text.parse::<Rule>().unwrap_err().to_string();
        assert!(error.contains(part) && error.contains("for example"), "{text}: {error}");
    }
}

#[test]
fn modes_have_names() {
    for mode in Mode::ALL {
        assert_eq!(mode.name().parse::<Mode>(), Ok(mode));
        assert_eq!(mode.foreign_name().parse::<Mode>(), Ok(mode));
    }
    assert!("yolo".parse::<Mode>().unwrap_err().to_string().contains("`accept-edits`"));
}
