//! What the environment of a command has otherwise than ours.

use std::ffi::{OsStr, OsString};

use super::Variable;

/// Set for every command: nothing pages, nothing asks, nothing opens an editor.
const SET: [(&str, &str); 6] = [
    ("PAL", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "true"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("TERM", "dumb"),
];

/// Where keys of providers and collectors are: commands have no use for them, and what they print goes to the provider.
const HIDDEN: [&str; 3] = ["ANTHROPIC_*", "OPENAI_*", "OTEL_EXPORTER_OTLP_HEADERS"];

/// The changes to an environment with these names. `hidden` are names, or beginnings of names with a `*`.
pub(super) fn changes(names: impl Iterator<Item = OsString>, hidden: &[String]) -> Vec<Variable> {
    let is_hidden = |name: &OsStr| {
        HIDDEN.into_iter().chain(hidden.iter().map(String::as_str)).any(|pattern| matches(name, pattern))
    };
    let gone = names.filter(|name| is_hidden(name)).map(|name| (name, None));
    // What is set comes last, and wins.
    gone.chain(SET.map(|(name, value)| (name.into(), Some(value.into())))).collect()
}

fn matches(name: &OsStr, pattern: &str) -> bool {
    let name = name.as_encoded_bytes();
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning.as_bytes()),
        None => name == pattern.as_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_away() {
        let names = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "HOME", "MY_KEY", "MY_KEYRING", "TEAM_A", "PAL"];
        let hidden = ["MY_KEY".to_owned(), "TEAM_*".to_owned()];
        let changes = changes(names.into_iter().map(OsString::from), &hidden);
        let gone: Vec<_> =
            changes.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
        assert_eq!(gone, ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "MY_KEY", "TEAM_A"]);
        assert!(changes.contains(&("PAL".into(), Some("1".into()))));
    }
}
