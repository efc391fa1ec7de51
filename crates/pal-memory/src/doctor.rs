//! What is wrong with a memory directory, and what to do about each.

mod rules;
#[cfg(test)]
mod tests;

use std::path::Path;

use pal_model::Timestamp;
use serde::Serialize;

use crate::error::MemoryError;
use crate::index::target;
use crate::memory::{INDEX_FILE, Listed, Memory};
use crate::topic::Topic;
use rules::{Subject, contradictions, duplicates, links, paths};

/// Days after which a memory that nobody used is reported.
const UNUSED_DAYS: i64 = 60;

/// A kind of trouble.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trouble {
    /// A secret stands in a file.
    Secret,
    /// Two memories say the opposite.
    Contradiction,
    /// Two memories say the same.
    Duplicate,
    /// A line of the index, or a link in a memory, leads to a file that is not there.
    Dangling,
    /// A memory names a path of the project that is not there any more.
    StalePath,
    /// The index is longer than what a session begins with.
    Crowded,
    /// Nobody used a memory for a long time.
    Unused,
    /// Something in the directory is no memory.
    NoMemory,
}

/// Something that is wrong.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// What kind of trouble it is.
    pub trouble: Trouble,
    /// The files that it is about.
    pub files: Vec<String>,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub advice: String,
}

impl Finding {
    fn new(trouble: Trouble, files: &[&str], what: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding {
            trouble,
            files: files.iter().map(|file| (*file).to_owned()).collect(),
            what: what.into(),
            advice: advice.into(),
        }
    }
}

impl Memory {
    /// Looks for all kinds of trouble. Paths are looked up in the project, if one is given. Nothing is changed.
    pub fn doctor(&mut self, project: Option<&Path>, now: Timestamp) -> Result<Vec<Finding>, MemoryError> {
        let listed = self.list()?;
        let mut findings = Vec::new();
        let mut subjects = Vec::new();
        for memory in &listed {
            let file = self.read_file(&memory.slug)?;
            findings.extend(of_file(memory, &file, now));
            subjects.push(Subject::new(&memory.slug, Topic::read(&memory.slug, &file)));
        }
        findings.extend(self.index_findings()?);
        findings.extend(subjects.iter().flat_map(|subject| links(subject, &|file| self.folder.has(file))));
        if let Some(project) = project {
            let is_there = |path: &str| project.join(path).symlink_metadata().is_ok();
            findings.extend(subjects.iter().filter_map(|subject| paths(subject, &is_there)));
        }
        findings.extend(duplicates(&subjects));
        findings.extend(contradictions(&subjects));
        findings.extend(self.strangers());
        findings.sort_by(|one, other| (one.trouble, &one.files).cmp(&(other.trouble, &other.files)));
        Ok(findings)
    }

    fn index_findings(&mut self) -> Result<Vec<Finding>, MemoryError> {
        let left_out = self.index_for_context()?.left_out.len();
        let page = self.folder.read(INDEX_FILE)?.unwrap_or_default();
        let page = String::from_utf8_lossy(&page);
        let gone = page.lines().filter_map(target).filter(|file| !self.folder.has(file));
        let mut findings: Vec<Finding> = gone
            .map(|file| {
                Finding::new(
                    Trouble::Dangling,
                    &[INDEX_FILE, &file],
                    format!("the index names {file}, which is not there"),
                    "the next change makes the index anew; `pal memory log` tells where the file went",
                )
            })
            .collect();
        findings.extend(secret_finding(INDEX_FILE, &page));
        if left_out > 0 {
            let what = format!(
                "the {left_out} oldest and least used memories are not among what sessions begin with"
            );
            let advice = "`pal memory list` names the least used last: remove or join some; all of them can be searched";
            findings.push(Finding::new(Trouble::Crowded, &[INDEX_FILE], what, advice));
        }
        Ok(findings)
    }

    /// What is there and is no memory.
    fn strangers(&self) -> Vec<Finding> {
        let odd = self.odd.iter().map(|(name, what)| (name.as_str(), *what));
        let files = self.seen.iter().filter(|(file, seen)| seen.head.is_none() && *file != INDEX_FILE);
        let files = files.map(|(file, _)| (file.as_str(), "a file that does not end with .md"));
        odd.chain(files)
            .map(|(name, what)| {
                let what = format!("{name} is {what}: it is neither listed nor searched");
                Finding::new(
                    Trouble::NoMemory,
                    &[name],
                    what,
                    "move it away, or make a memory of it: `pal memory add`",
                )
            })
            .collect()
    }
}

/// What is wrong with one memory by itself.
fn of_file(memory: &Listed, file: &str, now: Timestamp) -> Vec<Finding> {
    let name = format!("{}.md", memory.slug);
    let mut findings: Vec<Finding> = secret_finding(&name, file).into_iter().collect();
    let lacks = Topic::lacks(file);
    if !lacks.is_empty() {
        let what = format!("{name} does not say its {}", lacks.join(", "));
        let advice =
            format!("`pal memory edit {}` and put it between two lines of --- at the top", memory.slug);
        findings.push(Finding::new(Trouble::NoMemory, &[&name], what, advice));
    }
    let touched = memory.uses.last.map_or(memory.changed, |last| last.max(memory.changed));
    let days = now.milliseconds().saturating_sub(touched.milliseconds()) / 86_400_000;
    if days >= UNUSED_DAYS {
        let what = match memory.uses.count {
            0 => format!("{name} was never used, and is {days} days old"),
            _ => format!("{name} was used last {days} days ago"),
        };
        let advice =
            format!("`pal memory rm {}` if it does not matter any more; undo brings it back", memory.slug);
        findings.push(Finding::new(Trouble::Unused, &[&name], what, advice));
    }
    findings
}

fn secret_finding(file: &str, text: &str) -> Option<Finding> {
    let found = pal_secrets::find_secrets(text);
    let first = found.first()?;
    let line = text[..first.range.start].matches('\n').count() + 1;
    let more = if found.len() > 1 { format!(", and {} more", found.len() - 1) } else { String::new() };
    Some(Finding::new(
        Trouble::Secret,
        &[file],
        format!("{file} holds a secret in line {line} ({}){more}", first.kind),
        "take it out with `pal memory edit`, and change the secret: earlier versions in .versions still hold it",
    ))
}
