//! `docs/settings.md` repeats the table of settings and the list of switches.

use std::fmt::Write;

use pal_settings::{KEYS, Switch, Trust};

/// The tables of the page as they follow from the code.
fn tables() -> String {
    let mut page = String::from("| setting | wants | default | variable | from a project | what it does |\n");
    page.push_str("| --- | --- | --- | --- | --- | --- |\n");
    for key in KEYS {
        let default = if key.default == "null" { "–".to_owned() } else { format!("`{}`", key.default) };
        let variables: Vec<String> = key.variables.iter().map(|name| format!("`{name}`")).collect();
        let trust = match key.trust {
            Trust::Free => "yes".to_owned(),
            Trust::Needed => "trusted".to_owned(),
            Trust::UnlessOff => "`false`, else trusted".to_owned(),
            Trust::UnlessOneOf(words) => format!("{}, else trusted", words.join(", ")),
            Trust::UnlessStricter(words) => format!("if lower in {}, else trusted", words.join(" < ")),
            Trust::UnlessLower => "if lower, else trusted".to_owned(),
        };
        let wants =
            if key.name == "disabled" { "a list of subsystems".to_owned() } else { key.kind.wanted() };
        let adds = if key.adds_up { "; all places together" } else { "" };
        let wants = wants.replace('|', "\\|");
        writeln!(
            page,
            "| `{}` | {wants}{adds} | {default} | {} | {trust} | {} |",
            key.name,
            variables.join(", "),
            key.about
        )
        .unwrap();
    }
    page.push_str("\n| subsystem | variable | decided once per session |\n| --- | --- | --- |\n");
    for switch in Switch::ALL {
        let once = if switch.touches_prefix() { "yes" } else { "" };
        writeln!(page, "| `{}` | `{}` | {once} |", switch.name(), switch.variable()).unwrap();
    }
    page
}

#[test]
fn the_page_holds_the_tables() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");
    let page = std::fs::read_to_string(path).unwrap_or_default();
    let rows =
        |text: &str| text.lines().filter(|line| line.starts_with('|')).map(str::to_owned).collect::<Vec<_>>();
    let wanted = tables();
    assert!(rows(&page) == rows(&wanted), "docs/settings.md has other tables; these are wanted:\n\n{wanted}");
}

#[test]
fn the_table_is_sound() {
    for (at, key) in KEYS.iter().enumerate() {
        assert!(KEYS[..at].iter().all(|other| other.name != key.name), "{} is there twice", key.name);
        assert!(serde_json::from_str::<serde_json::Value>(key.default).is_ok(), "{}", key.name);
        assert!(!key.about.is_empty() && !key.about.ends_with('.'), "{}", key.name);
    }
}
