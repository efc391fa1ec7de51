//! Slash commands of the user: Markdown files that become prompts.

use std::path::{Path, PathBuf};

use pal_tui::CommandInfo;

use crate::settings::Settings;

/// Files above this size are ignored.
const BYTES_MAX: u64 = 256 << 10;
/// Maximum depth of nested directories.
const DEPTH_MAX: usize = 4;

/// A slash command of the user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct UserCommand {
    /// Path of its file in the commands directory, with colons for slashes.
    pub(super) name: String,
    pub(super) about: String,
    /// Argument hint.
    pub(super) arguments: String,
    text: String,
}

/// Finds the commands for a directory; those of the project override those of the user.
pub(super) fn find_commands(settings: &Settings, directory: &Path) -> Vec<UserCommand> {
    let project = pal_project::find_project_root(directory);
    let folders = [
        settings.user_home.as_ref().map(|home| home.join(".claude/commands")),
        settings.home.as_ref().map(|home| home.join("commands")),
        Some(project.join(".claude/commands")),
        Some(project.join(".pal/commands")),
    ];
    let mut own: Vec<UserCommand> = Vec::new();
    for folder in folders.into_iter().flatten() {
        for file in files(&folder, DEPTH_MAX) {
            if let Some(command) = read(&folder, &file) {
                own.retain(|known| known.name != command.name);
                own.push(command);
            }
        }
    }
    own.sort_by(|one, other| one.name.cmp(&other.name));
    own
}

/// Markdown files in a directory and below. Links are not followed, since those of a repository may point anywhere.
fn files(folder: &Path, depth: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type());
        match kind {
            Ok(kind) if kind.is_dir() && depth > 0 => found.extend(files(&path, depth - 1)),
            Ok(kind) if kind.is_file() && path.extension().is_some_and(|ending| ending == "md") => {
                found.push(path);
            }
            _ => {}
        }
    }
    found.sort();
    found
}

fn read(folder: &Path, file: &Path) -> Option<UserCommand> {
    if file.metadata().ok()?.len() > BYTES_MAX {
        return None;
    }
    let text = std::fs::read_to_string(file).ok()?;
    let below = file.strip_prefix(folder).ok()?.with_extension("");
    let parts: Vec<String> = below.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    Some(parse(parts.join(":"), &text))
}

/// Parses a file: optional front matter, then the prompt.
fn parse(name: String, text: &str) -> UserCommand {
    let (matter, text) = pal_model::split_front_matter(text).unwrap_or(("", text));
    let member = |key: &str| {
        let line = matter.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        line.map_or(String::new(), |value| value.trim().trim_matches(['"', '\'']).to_owned())
    };
    let about = Some(member("description")).filter(|about| !about.is_empty());
    let first = || text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let about = about.unwrap_or_else(|| first().trim_start_matches('#').trim().to_owned());
    UserCommand { name, about, arguments: member("argument-hint"), text: text.trim().to_owned() }
}

impl UserCommand {
    pub(super) fn info(&self) -> CommandInfo {
        CommandInfo { name: self.name.clone(), arguments: self.arguments.clone(), about: self.about.clone() }
    }

    /// The prompt with the arguments filled in; they are appended if the text has no placeholder.
    pub(super) fn prompt(&self, arguments: &str) -> String {
        let mut text = self.text.clone();
        let words: Vec<&str> = arguments.split_whitespace().collect();
        let has_place = text.contains("$ARGUMENTS") || (1..=9).any(|at| text.contains(&format!("${at}")));
        for at in (1..=9).rev() {
            text = text.replace(&format!("${at}"), words.get(at - 1).unwrap_or(&""));
        }
        text = text.replace("$ARGUMENTS", arguments);
        if !has_place && !arguments.is_empty() {
            text.push_str(&format!("\n\n{arguments}"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(text: &str, arguments: &str) -> String {
        parse(String::from("x"), text).prompt(arguments)
    }

    #[test]
    fn arguments_replace_placeholders() {
        assert_eq!(prompt("Fix $ARGUMENTS now.", "issue 7"), "Fix issue 7 now.");
        assert_eq!(prompt("From $1 to $2.", "a b"), "From a to b.");
        assert_eq!(prompt("Review.", "the diff"), "Review.\n\nthe diff");
    }

    #[test]
    fn front_matter_is_not_part_of_the_prompt() {
        let text = "---\ndescription: \"Fix an issue\"\nargument-hint: NUMBER\nmodel: x\n---\nFix $1.\n";
        let own = parse(String::from("fix"), text);
        assert_eq!(
            (own.about.as_str(), own.arguments.as_str(), own.text.as_str()),
            ("Fix an issue", "NUMBER", "Fix $1.")
        );
        assert_eq!(parse(String::from("y"), "# Title\ntext").about, "Title");
    }
}
