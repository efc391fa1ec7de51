//! Slash commands of the user: Markdown files and skills that become prompts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pal_agent::Agent;
use pal_model::escape_tags;
use pal_settings::ClaudePlugin;
use pal_tools::{MediaSupport, SkillInfo, Workspace};
use pal_tui::CommandInfo;
use serde_json::json;

use crate::arguments::split_rules;
use crate::session_start::plugin_definitions;
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
    /// Permission rules for the prompt.
    allowed_tools: Vec<String>,
    /// Model for the session from this command on.
    pub(super) model: Option<String>,
    /// True if the file is part of the project.
    is_of_project: bool,
}

/// Finds the commands for a directory; those of the project override those of the user.
pub(super) fn find_commands(settings: &Settings, directory: &Path) -> Vec<UserCommand> {
    let project = pal_project::find_project_root(directory);
    let folders = [
        (settings.user_home.as_ref().map(|home| home.join(".claude/commands")), false),
        (settings.home.as_ref().map(|home| home.join("commands")), false),
        (Some(project.join(".claude/commands")), true),
        (Some(project.join(".pal/commands")), true),
    ];
    let mut own: Vec<UserCommand> = Vec::new();
    for (folder, is_of_project) in folders.into_iter().filter_map(|(folder, whose)| Some((folder?, whose))) {
        for file in files(&folder, DEPTH_MAX) {
            if let Some(command) = read(&folder, &file) {
                own.retain(|known| known.name != command.name);
                own.push(UserCommand { is_of_project, ..command });
            }
        }
    }
    for plugin in &settings.imported.plugins {
        own.extend(plugin_commands(plugin));
    }
    own.sort_by(|one, other| one.name.cmp(&other.name));
    own.dedup_by(|second, first| second.name == first.name);
    own
}

/// Commands of a plugin: `PLUGIN:NAME`.
fn plugin_commands(plugin: &ClaudePlugin) -> Vec<UserCommand> {
    let mut found = Vec::new();
    for place in &plugin.commands {
        let (folder, files) = match place.is_file() {
            true => (place.parent().unwrap_or(place), vec![place.clone()]),
            false => (place.as_path(), files(place, DEPTH_MAX)),
        };
        for command in files.iter().filter_map(|file| read(folder, file)) {
            let (name, text) = (format!("{}:{}", plugin.name, command.name), plugin.fill_in(&command.text));
            found.push(UserCommand { name, text, ..command });
        }
    }
    found
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
    UserCommand {
        name,
        about,
        arguments: member("argument-hint"),
        text: text.trim().to_owned(),
        allowed_tools: rule_list(matter, &member("allowed-tools")),
        model: Some(member("model")).filter(|model| !model.is_empty() && model != "inherit"),
        is_of_project: false,
    }
}

/// Rules of the front matter: on the line of the key, or as a list below it.
fn rule_list(matter: &str, line: &str) -> Vec<String> {
    if !line.is_empty() {
        return split_rules(line.trim_start_matches('[').trim_end_matches(']'));
    }
    let below = matter.lines().skip_while(|line| !line.starts_with("allowed-tools:")).skip(1);
    let items = below.map_while(|line| line.trim().strip_prefix("- "));
    items.map(|item| item.trim().trim_matches(['"', '\'']).to_owned()).collect()
}

/// Skills of the user and of the project, which are commands, too.
pub(super) fn find_skills(settings: &Settings, directory: &Path) -> Vec<SkillInfo> {
    pal_tools::user_skills(&skill_workspace(settings, directory))
}

/// Prompt that a skill becomes; none if there is no skill of this name.
pub(super) fn skill_prompt(
    settings: &Settings,
    directory: &Path,
    name: &str,
    arguments: &str,
) -> Option<String> {
    pal_tools::skill_prompt(&skill_workspace(settings, directory), name, arguments)
}

/// The directories in which skills are looked for.
fn skill_workspace(settings: &Settings, directory: &Path) -> Workspace {
    let abilities = MediaSupport { images: false, documents: false };
    let roots = vec![directory.to_owned()];
    let mut workspace =
        Workspace::new(roots, PathBuf::new(), settings.user_home.clone(), abilities, BTreeMap::new());
    workspace.plugins = plugin_definitions(settings);
    workspace
}

impl UserCommand {
    pub(super) fn info(&self) -> CommandInfo {
        CommandInfo { name: self.name.clone(), arguments: self.arguments.clone(), about: self.about.clone() }
    }

    /// Returns whether its prompt is made with the tools of the session.
    pub(super) fn needs_session(&self) -> bool {
        split_shell_lines(&self.text).len() > 1 || !self.allowed_tools.is_empty() || self.model.is_some()
    }

    /// The prompt with the output of its shell lines, which cannot speak as the system. Files that it mentions are attached
    /// like those of any prompt. Its rules hold until the prompt ends; those of a project that is not trusted are ignored.
    /// Returns the prompt and notices.
    pub(super) fn expand(
        &self,
        agent: &mut Agent<'_>,
        arguments: &str,
        is_trusted: bool,
    ) -> Result<(String, Vec<String>), String> {
        let mut notices = Vec::new();
        match self.is_of_project && !is_trusted && !self.allowed_tools.is_empty() {
            true => notices.push(format!(
                "/{}: its allowed-tools are ignored, because the project is not trusted (`pal trust`)",
                self.name
            )),
            false => {
                let unknown = agent.allow_for_prompt(&self.allowed_tools);
                notices.extend(unknown.iter().map(|rule| format!("/{}: unknown rule `{rule}`", self.name)));
            }
        }
        let mut prompt = String::new();
        for part in split_shell_lines(&self.fill_in(arguments)) {
            match part {
                CommandPart::Text(text) => prompt.push_str(&text),
                CommandPart::ShellLine(line) => {
                    let input = json!({"command": line}).to_string();
                    let output = agent.run_tool_for_user("Bash", &input);
                    let output = output.map_err(|why| format!("/{}: `{line}`: {why}", self.name))?;
                    prompt.push_str(&escape_tags(output.trim_end()));
                }
            }
        }
        Ok((prompt, notices))
    }

    /// The prompt with the arguments filled in; they are appended if the text has no placeholder.
    pub(super) fn fill_in(&self, arguments: &str) -> String {
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

/// A part of a command's text.
#[derive(Clone, PartialEq, Eq, Debug)]
enum CommandPart {
    Text(String),
    /// A shell line, whose output replaces it.
    ShellLine(String),
}

/// Splits a text at shell lines: `` !`git status` ``. Their text comes from the file and from the arguments.
fn split_shell_lines(text: &str) -> Vec<CommandPart> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some((before, after)) = rest.split_once("!`")
        && let Some((line, after)) = after.split_once('`')
    {
        parts.push(CommandPart::Text(before.to_owned()));
        parts.push(CommandPart::ShellLine(line.trim().to_owned()));
        rest = after;
    }
    parts.push(CommandPart::Text(rest.to_owned()));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(text: &str, arguments: &str) -> String {
        parse(String::from("x"), text).fill_in(arguments)
    }

    #[test]
    fn shell_lines_are_found() {
        let parts = split_shell_lines("State: !`git status -s`\nDiff: !`git diff`.");
        let lines = parts.iter().filter(|part| matches!(part, CommandPart::ShellLine(_)));
        assert_eq!(lines.count(), 2);
        assert_eq!(parts[1], CommandPart::ShellLine(String::from("git status -s")));
        assert_eq!(parts[4], CommandPart::Text(String::from(".")));
        assert_eq!(split_shell_lines("no `code` here!").len(), 1);
    }

    #[test]
    fn front_matter_names_rules_and_a_model() {
        let rules =
            |matter: &str| parse(String::from("x"), &format!("---\n{matter}\n---\ntext")).allowed_tools;
        assert_eq!(rules("allowed-tools: Bash(git add:*), Read"), ["Bash(git add:*)", "Read"]);
        assert_eq!(
            rules("allowed-tools:\n  - Bash(git log:*)\n  - Edit(src/**)\nmodel: x"),
            ["Bash(git log:*)", "Edit(src/**)"]
        );
        assert!(rules("description: none").is_empty());
        let command = parse(String::from("x"), "---\nmodel: haiku\n---\ntext");
        assert!(command.needs_session() && command.model.as_deref() == Some("haiku"));
        assert!(!parse(String::from("x"), "plain $1").needs_session());
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
