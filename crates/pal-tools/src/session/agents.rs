//! The agents that are there: definitions of helpers that the model may send for a part of the work.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::skills::{Definition, definition};
use crate::Workspace;

/// Most bytes of a definition.
const AGENT_BYTES_MAX: u64 = 128 * 1024;

/// Most definitions of one folder.
const AGENTS_MAX: usize = 200;

/// An agent that the model may send.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AgentInfo {
    /// What it is called.
    pub name: String,
    /// What it is for, in one line.
    pub description: String,
    /// What it is told about itself.
    pub prompt: String,
    /// The model that it asks; none for that of whoever sends it.
    pub model: Option<String>,
    /// The tools that it has; none for all.
    pub tools: Option<Vec<String>>,
    /// Tools that it does not have.
    pub without_tools: Vec<String>,
    /// Whether it is to work in a worktree of its own.
    pub is_isolated: bool,
    /// Whether it is to work in the background.
    pub is_background: bool,
    /// How far the memory of its own reaches: `user`, `project` or `local`; none if it has none.
    #[serde(default)]
    pub memory: Option<String>,
    /// Its file.
    pub path: PathBuf,
}

/// The agents by name. Those of the project come before those of the user, and ours before those of others.
pub fn agents(workspace: &Workspace) -> Vec<AgentInfo> {
    let mut known = BTreeMap::new();
    for (folder, within) in workspace.folders("agents") {
        for agent in in_folder(&folder, within.as_deref()) {
            known.entry(agent.name.clone()).or_insert(agent);
        }
    }
    known.into_values().collect()
}

fn in_folder(folder: &Path, within: Option<&Path>) -> Vec<AgentInfo> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "md"));
    files.sort_unstable();
    files.iter().take(AGENTS_MAX).filter_map(|file| agent_in(file, within)).collect()
}

fn agent_in(file: &Path, within: Option<&Path>) -> Option<AgentInfo> {
    let Definition { path, name, description, matter, text } =
        definition(file, file.file_stem(), within, AGENT_BYTES_MAX)?;
    Some(AgentInfo {
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
        let found = agents(&workspace);
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
