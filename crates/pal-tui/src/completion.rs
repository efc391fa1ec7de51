//! Completion of slash commands and `@` file mentions.

use std::ops::Range;

use crate::ui_events::CommandInfo;

/// Maximum number of visible suggestions.
pub(crate) const OFFERED_MAX: usize = 8;

/// Suggestions for the word at the cursor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Suggestions {
    /// Byte range that a suggestion replaces.
    pub(crate) range: Range<usize>,
    /// Replacement text and description of each suggestion, best first.
    pub(crate) offered: Vec<(String, String)>,
}

/// Word that can be completed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum CompletionTarget {
    /// Start of a command.
    Command(Range<usize>),
    /// Part of a file's path.
    File(Range<usize>),
}

/// Finds the word to complete at the cursor.
pub(crate) fn find_target(text: &str, cursor: usize) -> Option<CompletionTarget> {
    let before = &text[..cursor];
    if before.starts_with('/') && !before.contains(char::is_whitespace) {
        return Some(CompletionTarget::Command(0..cursor));
    }
    let start = before
        .rfind(char::is_whitespace)
        .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    before[start..].starts_with('@').then_some(CompletionTarget::File(start..cursor))
}

/// Commands that start with the typed text, then those that contain it.
pub(crate) fn commands(typed: &str, commands: &[CommandInfo]) -> Vec<(String, String)> {
    let name = typed.trim_start_matches('/');
    let begins = |command: &&CommandInfo| command.name.starts_with(name);
    // `server:prompt` is short for a prompt of a server.
    let longer = name.replacen(':', "__", 1);
    let holds = |command: &&CommandInfo| {
        !command.name.starts_with(name) && (command.name.contains(name) || command.name.contains(&longer))
    };
    let found = commands.iter().filter(begins).chain(commands.iter().filter(holds));
    let offer = |command: &CommandInfo| {
        let arguments =
            if command.arguments.is_empty() { String::new() } else { format!("  {}", command.arguments) };
        (format!("/{}", command.name), format!("  {}{arguments}", command.about))
    };
    found.map(offer).collect()
}

/// Files whose paths contain the letters in this order; matches in the file name come first.
pub(crate) fn files(typed: &str, paths: &[String]) -> Vec<(String, String)> {
    let letters = typed.trim_start_matches('@').to_lowercase();
    let mut found: Vec<(usize, &String)> = Vec::new();
    for path in paths {
        if let Some(rank) = rank(path, &letters) {
            found.push((rank, path));
        }
    }
    // The sort is stable: among equals, shorter paths stay first.
    found.sort_by_key(|(rank, _)| *rank);
    found.truncate(OFFERED_MAX);
    found.into_iter().map(|(_, path)| (format!("@{path}"), String::new())).collect()
}

fn rank(path: &str, letters: &str) -> Option<usize> {
    let lower = path.to_lowercase();
    let name = lower.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    if name.starts_with(letters) {
        return Some(0);
    }
    if name.contains(letters) {
        return Some(1);
    }
    if lower.contains(letters) {
        return Some(2);
    }
    let mut rest = lower.as_str();
    for letter in letters.chars() {
        let at = rest.find(letter)?;
        rest = &rest[at + letter.len_utf8()..];
    }
    Some(3)
}

/// Error for a slash command that does not exist, with the nearest name.
pub(crate) fn unknown_command(name: &str, known: &[&str]) -> String {
    match pal_model::closest_word(name, known) {
        Some(near) => format!("unknown command /{name}; did you mean /{near}?"),
        None => format!("unknown command /{name}; /help lists all commands"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completion_target_is_a_command_or_a_file() {
        assert_eq!(find_target("/co", 3), Some(CompletionTarget::Command(0..3)));
        assert_eq!(find_target("/co x", 5), None);
        assert_eq!(find_target("see @src/ma", 11), Some(CompletionTarget::File(4..11)));
        assert_eq!(find_target("see @src and", 12), None);
        assert_eq!(find_target("a@b", 3), None, "an address is no file");
    }

    #[test]
    fn matches_in_the_file_name_rank_first() {
        let paths: Vec<String> =
            ["main/other.rs", "src/domain.rs", "src/main.rs", "crates/m/a/i/n.rs"].map(String::from).into();
        let found: Vec<String> = files("@main", &paths).into_iter().map(|(path, _)| path).collect();
        assert_eq!(found, ["@src/main.rs", "@src/domain.rs", "@main/other.rs", "@crates/m/a/i/n.rs"]);
    }
}
