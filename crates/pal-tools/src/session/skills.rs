//! The skills that are there.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::front_matter::{FrontMatter, parted};
use crate::Workspace;
use crate::files::open;
use crate::paths;

/// Most bytes of a skill's text.
const SKILL_BYTES_MAX: u64 = 256 * 1024;

/// Most characters of a description.
const DESCRIPTION_CHARACTERS_MAX: usize = 1_000;

/// Most skills of one folder.
const SKILLS_MAX: usize = 500;

/// A skill that the model may call for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SkillInfo {
    /// What it is called.
    pub name: String,
    /// What it does and when to use it, in one line.
    pub description: String,
    /// Its file.
    pub path: PathBuf,
    /// The tools that its author wants allowed while it is in use, as rules.
    pub allowed_tools: Vec<String>,
}

/// A skill with its text.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) info: SkillInfo,
    pub(super) text: String,
    /// Whether only a person may call for it.
    pub(super) is_for_people: bool,
}

/// The skills that the model may call for, by name.
pub fn skills(workspace: &Workspace) -> Vec<SkillInfo> {
    known(workspace).into_values().filter(|skill| !skill.is_for_people).map(|skill| skill.info).collect()
}

/// The text of a skill that is in use, for putting it back into sight.
pub fn skill_text(workspace: &Workspace, name: &str) -> Option<String> {
    known(workspace).remove(name).map(|skill| skill.text)
}

/// All skills by name. Those of the project come before those of the user, and ours before those of others.
pub(super) fn known(workspace: &Workspace) -> BTreeMap<String, Known> {
    let mut known = BTreeMap::new();
    for (folder, within) in workspace.folders("skills") {
        for skill in in_folder(&folder, within.as_deref()) {
            known.entry(skill.info.name.clone()).or_insert(skill);
        }
    }
    known
}

fn in_folder(folder: &Path, within: Option<&Path>) -> Vec<Known> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    names.sort_unstable();
    names.iter().take(SKILLS_MAX).filter_map(|skill| skill_in(skill, within)).collect()
}

fn skill_in(folder: &Path, within: Option<&Path>) -> Option<Known> {
    let Definition { path, name, description, matter, text } =
        definition(&folder.join("SKILL.md"), folder.file_name(), within, SKILL_BYTES_MAX)?;
    let FrontMatter { is_for_people, allowed_tools, .. } = matter;
    Some(Known { info: SkillInfo { name, description, path, allowed_tools }, text, is_for_people })
}

/// What a file defines: a skill or an agent.
pub(super) struct Definition {
    pub(super) path: PathBuf,
    pub(super) name: String,
    pub(super) description: String,
    pub(super) matter: FrontMatter,
    pub(super) text: String,
}

/// Reads a definition, whose file has to be below `within`; it is called `usual` if it does not name itself.
pub(super) fn definition(
    file: &Path,
    usual: Option<&OsStr>,
    within: Option<&Path>,
    bytes_max: u64,
) -> Option<Definition> {
    let path = paths::real(file);
    if within.is_some_and(|root| !path.starts_with(root)) {
        return None;
    }
    let mut bytes = Vec::new();
    open(&path).ok()?.take(bytes_max).read_to_end(&mut bytes).ok()?;
    let file = String::from_utf8_lossy(&bytes);
    let (matter, text) = parted(&file);
    let name = matter.name.clone().filter(|name| !name.trim().is_empty());
    let name = name.or_else(|| usual?.to_str().map(str::to_owned))?.trim().to_owned();
    let (description, text) = (described(&matter, text), text.to_owned());
    Some(Definition { path, name, description, matter, text })
}

/// What a skill or an agent does, in one line: by its front matter, else by its first words.
fn described(matter: &FrontMatter, text: &str) -> String {
    let first_words =
        || text.lines().map(|line| line.trim_start_matches('#').trim()).find(|line| !line.is_empty());
    let description = matter.description.as_deref().or_else(first_words).unwrap_or_default();
    let whole = match &matter.when_to_use {
        Some(when) => format!("{description} {when}"),
        None => description.to_owned(),
    };
    let line: Vec<&str> = whole.split_whitespace().collect();
    line.join(" ").chars().take(DESCRIPTION_CHARACTERS_MAX).collect()
}
