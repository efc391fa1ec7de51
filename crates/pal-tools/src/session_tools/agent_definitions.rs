//! Definitions of subagents that the model may start.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::skill_files::{DefinitionFile, definition};
use crate::Workspace;

/// Maximum bytes of a definition.
const AGENT_BYTES_MAX: u64 = 128 * 1024;

/// Maximum definitions per folder.
const AGENTS_MAX: usize = 200;

/// Definition of a subagent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AgentDefinition {
    /// Unique name.
    pub name: String,
    /// Purpose in one line.
    pub description: String,
    /// System prompt text.
    pub prompt: String,
    /// Model; `None` for that of the parent.
    pub model: Option<String>,
    /// Allowed tools; `None` for all.
    pub tools: Option<Vec<String>>,
    /// Disallowed tools.
    pub without_tools: Vec<String>,
    /// True to work in a git worktree of its own.
    pub is_isolated: bool,
    /// True to work in the background.
    pub is_background: bool,
    /// Scope of its own memory: `user`, `project` or `local`; `None` without memory.
    #[serde(default)]
    pub memory: Option<String>,
    /// Path of its file.
    pub path: PathBuf,
}

/// Definitions by name. Project definitions beat user definitions, and `.pal` beats `.claude`.
pub fn agent_definitions(workspace: &Workspace) -> Vec<AgentDefinition> {
    let mut known = BTreeMap::new();
    for (folder, within) in workspace.definition_folders("agents") {
        for agent in in_folder(&folder, within.as_deref()) {
            known.entry(agent.name.clone()).or_insert(agent);
        }
    }
    for plugin in &workspace.plugins {
        for mut agent in plugin.agents.iter().flat_map(|folder| in_folder(folder, None)) {
            agent.name = plugin.full_name(&agent.name);
            known.entry(agent.name.clone()).or_insert(agent);
        }
    }
    known.into_values().collect()
}

/// Definitions in a folder, or in one file.
fn in_folder(folder: &Path, within: Option<&Path>) -> Vec<AgentDefinition> {
    if folder.is_file() {
        return agent_in(folder, within).into_iter().collect();
    }
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "md"));
    files.sort_unstable();
    files.iter().take(AGENTS_MAX).filter_map(|file| agent_in(file, within)).collect()
}

fn agent_in(file: &Path, within: Option<&Path>) -> Option<AgentDefinition> {
    let DefinitionFile { path, name, description, matter, text } =
        definition(file, file.file_stem(), within, AGENT_BYTES_MAX)?;
    Some(AgentDefinition {
        name,
        description,
        prompt: text.trim().to_owned(),
        model: matter.model.filter(|model| model != "inherit"),
        tools: matter.tools,
        without_tools: matter.disallowed_tools,
        is_isolated: matter.isolation.as_deref() == Some("worktree"),
        is_background: matter.background,
        memory: matter.memory,
        path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_found_and_the_nearest_counts() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for (name, text) in [
            (
                ".pal/agents/scout.md",
                "---\nname: scout\ndescription: Looks around.\ntools: Read, Grep\nmodel: inherit\n---\nLook.\n",
            ),
            (".claude/agents/scout.md", "---\nname: scout\ndescription: Another.\n---\nNo.\n"),
            (
                ".claude/agents/smith.md",
                "---\ndescription: Mends: all things\nisolation: worktree\nbackground: true\ndisallowedTools: [Bash]\n---\nMend.\n",
            ),
            (".claude/agents/notes.txt", "no definition"),
        ] {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let workspace =
            Workspace::new(vec![root.clone()], root, None, Default::default(), Default::default());
        let found = agent_definitions(&workspace);
        let names: Vec<&str> = found.iter().map(|agent| agent.name.as_str()).collect();
        assert_eq!(names, ["scout", "smith"]);
        let (scout, smith) = (&found[0], &found[1]);
        assert_eq!((scout.description.as_str(), scout.prompt.as_str()), ("Looks around.", "Look."));
        assert_eq!(scout.tools.as_deref(), Some(&["Read".to_owned(), "Grep".to_owned()][..]));
        assert_eq!((smith.is_isolated, smith.is_background, smith.tools.clone()), (true, true, None));
        assert_eq!(
            (smith.description.as_str(), &smith.without_tools[..]),
            ("Mends: all things", &["Bash".to_owned()][..])
        );
    }
}
