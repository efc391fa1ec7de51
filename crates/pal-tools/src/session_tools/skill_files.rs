//! Discovery and parsing of skills.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::front_matter::{FrontMatter, split_definition};
use crate::Workspace;
use crate::files::open;
use crate::path_resolution;

/// Maximum bytes of a skill.
const SKILL_BYTES_MAX: u64 = 256 * 1024;

/// Maximum characters of a description.
const DESCRIPTION_CHARACTERS_MAX: usize = 1_000;

/// Maximum skills per folder.
const SKILLS_MAX: usize = 500;

/// Skill that the model may invoke.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SkillInfo {
    /// Unique name.
    pub name: String,
    /// Purpose and occasion in one line.
    pub description: String,
    /// Path of its file.
    pub path: PathBuf,
    /// Permission rules that its author wants while it is in use.
    pub allowed_tools: Vec<String>,
}

/// Skill with its text.
#[derive(Debug)]
pub(super) struct LoadedSkill {
    pub(super) info: SkillInfo,
    pub(super) text: String,
    /// True if only the user may invoke it.
    pub(super) is_for_people: bool,
}

/// Skills that the model may invoke, sorted by name.
pub fn available_skills(workspace: &Workspace) -> Vec<SkillInfo> {
    load_skills(workspace)
        .into_values()
        .filter(|skill| !skill.is_for_people)
        .map(|skill| skill.info)
        .collect()
}

/// Text of a skill in use, for restoring it after a compaction.
pub fn skill_text(workspace: &Workspace, name: &str) -> Option<String> {
    load_skills(workspace).remove(name).map(|skill| skill.text)
}

/// All skills by name. Project skills beat user skills, and `.pal` beats `.claude`.
pub(super) fn load_skills(workspace: &Workspace) -> BTreeMap<String, LoadedSkill> {
    let mut known = BTreeMap::new();
    for (folder, within) in workspace.definition_folders("skills") {
        for skill in in_folder(&folder, within.as_deref()) {
            known.entry(skill.info.name.clone()).or_insert(skill);
        }
    }
    for plugin in &workspace.plugins {
        for mut skill in plugin.skills.iter().flat_map(|folder| in_folder(folder, None)) {
            skill.info.name = plugin.full_name(&skill.info.name);
            known.entry(skill.info.name.clone()).or_insert(skill);
        }
    }
    known
}

fn in_folder(folder: &Path, within: Option<&Path>) -> Vec<LoadedSkill> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    names.sort_unstable();
    names.iter().take(SKILLS_MAX).filter_map(|skill| skill_in(skill, within)).collect()
}

fn skill_in(folder: &Path, within: Option<&Path>) -> Option<LoadedSkill> {
    let DefinitionFile { path, name, description, matter, text } =
        definition(&folder.join("SKILL.md"), folder.file_name(), within, SKILL_BYTES_MAX)?;
    let FrontMatter { is_for_people, allowed_tools, .. } = matter;
    Some(LoadedSkill { info: SkillInfo { name, description, path, allowed_tools }, text, is_for_people })
}

/// Parsed definition file of a skill or an agent.
pub(super) struct DefinitionFile {
    pub(super) path: PathBuf,
    pub(super) name: String,
    pub(super) description: String,
    pub(super) matter: FrontMatter,
    pub(super) text: String,
}

/// Reads a definition whose file must be below `within`; `usual` is its name if it has none.
pub(super) fn definition(
    file: &Path,
    usual: Option<&OsStr>,
    within: Option<&Path>,
    bytes_max: u64,
) -> Option<DefinitionFile> {
    let path = path_resolution::resolve_links(file);
    if within.is_some_and(|root| !path.starts_with(root)) {
        return None;
    }
    let mut bytes = Vec::new();
    open(&path).ok()?.take(bytes_max).read_to_end(&mut bytes).ok()?;
    let file = String::from_utf8_lossy(&bytes);
    let (matter, text) = split_definition(&file);
    let name = matter.name.clone().filter(|name| !name.trim().is_empty());
    let name = name.or_else(|| usual?.to_str().map(str::to_owned))?.trim().to_owned();
    let (description, text) = (describe(&matter, text), text.to_owned());
    Some(DefinitionFile { path, name, description, matter, text })
}

/// One-line description from the front matter, else from the first line.
fn describe(matter: &FrontMatter, text: &str) -> String {
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
