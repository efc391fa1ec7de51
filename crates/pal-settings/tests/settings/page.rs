//! `docs/settings.md` repeats the table of settings and the list of switches.

use std::fmt::Write;

use pal_settings::{KillSwitch, SETTING_KEYS, SettingKey, TrustRequirement};

use crate::context_policy::context_keys;

/// The tables of the page as they follow from the code.
fn tables() -> String {
    let mut page = String::from("| setting | value | default | variable | in a project | description |\n");
    page.push_str("| --- | --- | --- | --- | --- | --- |\n");
    for key in SETTING_KEYS {
        let default = if key.default == "null" { "–".to_owned() } else { format!("`{}`", key.default) };
        let variables: Vec<String> = key.variables.iter().map(|name| format!("`{name}`")).collect();
        let trust = match key.trust {
            TrustRequirement::Free => "yes".to_owned(),
            TrustRequirement::Needed => "if trusted".to_owned(),
            TrustRequirement::UnlessOff => "`false`, else if trusted".to_owned(),
            TrustRequirement::UnlessOneOf(words) => format!("{}, else if trusted", words.join(", ")),
            TrustRequirement::UnlessStricter(words) => {
                format!("if lower in {}, else if trusted", words.join(" < "))
            }
            TrustRequirement::UnlessLower => "if lower, else if trusted".to_owned(),
        };
        let wants =
            if key.name == "disabled" { "a list of subsystems".to_owned() } else { key.kind.expectation() };
        let adds = if key.accumulates { "; all sources combined" } else { "" };
        let wants = wants.replace('|', "\\|");
        writeln!(
            page,
            "| `{}` | {wants}{adds} | {default} | {} | {trust} | {} |",
            key.name,
            variables.join(", "),
            key.description
        )
        .unwrap();
    }
    page.push_str("\n| old name | new name |\n| --- | --- |\n");
    for key in SETTING_KEYS {
        let variables = key.former.variables.iter().zip(key.variables);
        let names = key.former.name.iter().map(|former| (*former, key.name.to_owned()));
        let names = names.chain(variables.map(|(former, current)| (*former, (*current).to_owned())));
        for (former, current) in names {
            writeln!(page, "| `{former}` | `{current}` |").unwrap();
        }
        for (former, current) in key.former.values {
            writeln!(page, "| `{0} = \"{former}\"` | `{0} = \"{current}\"` |", key.name).unwrap();
        }
    }
    page.push_str("\n| subsystem | variable | fixed for a session |\n| --- | --- | --- |\n");
    for switch in KillSwitch::ALL {
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
    assert!(rows(&page) == rows(&wanted), "docs/settings.md is stale; its tables are:\n\n{wanted}");
}

#[test]
fn the_table_is_sound() {
    for (at, key) in SETTING_KEYS.iter().enumerate() {
        assert!(SETTING_KEYS[..at].iter().all(|other| other.name != key.name), "{} is there twice", key.name);
        assert!(serde_json::from_str::<serde_json::Value>(key.default).is_ok(), "{}", key.name);
        assert!(!key.description.is_empty() && !key.description.ends_with('.'), "{}", key.name);
    }
}

/// Items of a table cell, without backticks.
fn items(cell: &str) -> Vec<&str> {
    cell.split(", ").map(|item| item.trim().trim_matches('`')).collect()
}

#[test]
fn the_mechanisms_name_their_settings_with_their_defaults() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/behaviour.md");
    let page = std::fs::read_to_string(path).unwrap_or_default();
    let rows = page.lines().skip_while(|line| !line.starts_with("| mechanism |")).skip(2);
    let mut named = Vec::new();
    for row in rows.take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        let [mechanism, _, settings, defaults, shown] = cells[..] else { panic!("{row}") };
        let (settings, defaults) = (items(settings), items(defaults));
        assert_eq!(settings.len(), defaults.len(), "{row}");
        assert!(shown.contains("`pal "), "{row}");
        for (name, default) in settings.iter().zip(defaults) {
            let key = SettingKey::find(name).unwrap_or_else(|| panic!("{mechanism}: no setting {name}"));
            let expected = if key.default == "null" { "–" } else { key.default };
            assert_eq!(default, expected, "{name}");
            named.push(key.name);
        }
    }
    for key in context_keys() {
        assert!(named.contains(&key.name), "docs/behaviour.md §3.6 has no {}", key.name);
    }
}
