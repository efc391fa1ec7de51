//! What could be meant by what is being typed: a command behind a slash, a file behind an `@`.

use std::ops::Range;

use crate::told::CommandInfo;

/// So many are offered at once.
pub(crate) const OFFERED_MAX: usize = 8;

/// What is being typed, and what could be meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Suggestions {
    /// The part of the text that a choice takes the place of.
    pub(crate) range: Range<usize>,
    /// What could be meant, best first: what is put in, and what is said of it.
    pub(crate) offered: Vec<(String, String)>,
}

/// The word that a suggestion could complete.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    /// A command, by how it begins.
    Command(Range<usize>),
    /// A file, by a part of its path.
    File(Range<usize>),
}

/// What is being typed at the cursor.
pub(crate) fn wanted(text: &str, cursor: usize) -> Option<Wanted> {
    let before = &text[..cursor];
    if before.starts_with('/') && !before.contains(char::is_whitespace) {
        return Some(Wanted::Command(0..cursor));
    }
    let start = before
        .rfind(char::is_whitespace)
        .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    before[start..].starts_with('@').then_some(Wanted::File(start..cursor))
}

/// Commands that begin so, then those that hold the letters.
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
            if command.arguments.is_empty() { String::new() } else { format!(" {}", command.arguments) };
        (format!("/{}", command.name), format!("{arguments}  {}", command.about))
    };
    found.map(offer).collect()
}

/// Files whose paths hold the letters in this order: those with the letters together, near the end, come first.
pub(crate) fn files(typed: &str, paths: &[String]) -> Vec<(String, String)> {
    let letters = typed.trim_start_matches('@').to_lowercase();
    let mut found: Vec<(usize, &String)> = Vec::new();
    for path in paths {
        if let Some(rank) = rank(path, &letters) {
            found.push((rank, path));
        }
    }
    // The order of the list decides among equals: short paths first.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_told_apart() {
        assert_eq!(wanted("/co", 3), Some(Wanted::Command(0..3)));
        assert_eq!(wanted("/co x", 5), None);
        assert_eq!(wanted("see @src/ma", 11), Some(Wanted::File(4..11)));
        assert_eq!(wanted("see @src and", 12), None);
        assert_eq!(wanted("a@b", 3), None, "an address is no file");
    }

    #[test]
    fn the_name_of_a_file_counts_most() {
        let paths: Vec<String> =
            ["main/other.rs", "src/domain.rs", "src/main.rs", "crates/m/a/i/n.rs"].map(String::from).into();
        let found: Vec<String> = files("@main", &paths).into_iter().map(|(path, _)| path).collect();
        assert_eq!(found, ["@src/main.rs", "@src/domain.rs", "@main/other.rs", "@crates/m/a/i/n.rs"]);
    }
}
