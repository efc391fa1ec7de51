//! Diagnosis of a memory directory, with advice for each finding.

mod doctor_rules;
#[cfg(test)]
mod tests;

use std::path::Path;

use pal_model::Timestamp;
use serde::Serialize;

use crate::error::MemoryError;
use crate::memory_file::MemoryFile;
use crate::memory_index::target;
use crate::memory_store::{INDEX_FILE, MemoryStore};
use crate::memory_summary::MemorySummary;
use doctor_rules::{CheckedMemory, contradictions, duplicates, links, paths};

/// Days without use after which a memory is reported.
const UNUSED_DAYS: i64 = 60;

/// Kind of finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// A file contains a secret.
    Secret,
    /// Two memories contradict each other.
    Contradiction,
    /// Two memories say the same.
    Duplicate,
    /// A line of the index or a link in a memory points to a missing file.
    Dangling,
    /// A memory names a project path that no longer exists.
    StalePath,
    /// The index exceeds what a session loads.
    Crowded,
    /// A memory was not used for a long time.
    Unused,
    /// A file or directory that is not a memory.
    NoMemory,
}

/// A problem with advice.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MemoryFinding {
    /// Kind of the problem.
    #[serde(rename = "trouble")]
    pub kind: FindingKind,
    /// Files concerned.
    pub files: Vec<String>,
    /// Description of the problem.
    pub what: String,
    /// Suggested action.
    pub advice: String,
}

impl MemoryFinding {
    fn new(
        trouble: FindingKind,
        files: &[&str],
        what: impl Into<String>,
        advice: impl Into<String>,
    ) -> MemoryFinding {
        MemoryFinding {
            kind: trouble,
            files: files.iter().map(|file| (*file).to_owned()).collect(),
            what: what.into(),
            advice: advice.into(),
        }
    }
}

impl MemoryStore {
    /// Looks for all kinds of problems. Paths are checked in `project`, if given. Changes nothing.
    pub fn doctor(
        &mut self,
        project: Option<&Path>,
        now: Timestamp,
    ) -> Result<Vec<MemoryFinding>, MemoryError> {
        let listed = self.list()?;
        let mut findings = Vec::new();
        let mut subjects = Vec::new();
        for memory in &listed {
            let file = self.read_file(&memory.slug)?;
            findings.extend(memory_findings(memory, &file, now));
            subjects.push(CheckedMemory::new(&memory.slug, MemoryFile::parse(&memory.slug, &file)));
        }
        findings.extend(self.index_findings()?);
        findings.extend(subjects.iter().flat_map(|subject| links(subject, &|file| self.folder.exists(file))));
        if let Some(project) = project {
            let is_there = |path: &str| project.join(path).symlink_metadata().is_ok();
            findings.extend(subjects.iter().filter_map(|subject| paths(subject, &is_there)));
        }
        findings.extend(duplicates(&subjects));
        findings.extend(contradictions(&subjects));
        findings.extend(self.non_memory_findings());
        findings.sort_by(|one, other| (one.kind, &one.files).cmp(&(other.kind, &other.files)));
        Ok(findings)
    }

    fn index_findings(&mut self) -> Result<Vec<MemoryFinding>, MemoryError> {
        let left_out = self.index_for_context()?.left_out.len();
        let page = self.folder.read(INDEX_FILE)?.unwrap_or_default();
        let page = String::from_utf8_lossy(&page);
        let gone = page.lines().filter_map(target).filter(|file| !self.folder.exists(file));
        let mut findings: Vec<MemoryFinding> = gone
            .map(|file| {
                MemoryFinding::new(
                    FindingKind::Dangling,
                    &[INDEX_FILE, &file],
                    format!("the index links to {file}, which does not exist"),
                    "the next change rebuilds the index; `pal memory log` shows what happened to the file",
                )
            })
            .collect();
        findings.extend(secret_finding(INDEX_FILE, &page));
        if left_out > 0 {
            let what =
                format!("the {left_out} oldest and least used memories are not loaded at session start");
            let advice = "remove or merge some; `pal memory list` shows the least used last, and search covers all of them";
            findings.push(MemoryFinding::new(FindingKind::Crowded, &[INDEX_FILE], what, advice));
        }
        Ok(findings)
    }

    /// Findings for files that are not memories.
    fn non_memory_findings(&self) -> Vec<MemoryFinding> {
        let odd = self.odd.iter().map(|(name, what)| (name.as_str(), *what));
        let files = self.seen.iter().filter(|(file, seen)| seen.head.is_none() && *file != INDEX_FILE);
        let files = files.map(|(file, _)| (file.as_str(), "a file that does not end with .md"));
        odd.chain(files)
            .map(|(name, what)| {
                let what = format!("{name} is {what}: it is neither listed nor searched");
                MemoryFinding::new(
                    FindingKind::NoMemory,
                    &[name],
                    what,
                    "move it away, or turn it into a memory: `pal memory add`",
                )
            })
            .collect()
    }
}

/// Findings for a single memory.
fn memory_findings(memory: &MemorySummary, file: &str, now: Timestamp) -> Vec<MemoryFinding> {
    let name = format!("{}.md", memory.slug);
    let mut findings: Vec<MemoryFinding> = secret_finding(&name, file).into_iter().collect();
    let lacks = MemoryFile::missing_keys(file);
    if !lacks.is_empty() {
        let what = format!("{name} lacks its {}", lacks.join(", "));
        let advice =
            format!("add it with `pal memory edit {}`, between two lines of --- at the top", memory.slug);
        findings.push(MemoryFinding::new(FindingKind::NoMemory, &[&name], what, advice));
    }
    let touched = memory.uses.last.map_or(memory.changed, |last| last.max(memory.changed));
    let days = now.milliseconds().saturating_sub(touched.milliseconds()) / 86_400_000;
    if days >= UNUSED_DAYS {
        let what = match memory.uses.count {
            0 => format!("{name} was never used, and is {days} days old"),
            _ => format!("{name} was last used {days} days ago"),
        };
        let advice =
            format!("`pal memory rm {}` if it no longer matters; `pal memory undo` restores it", memory.slug);
        findings.push(MemoryFinding::new(FindingKind::Unused, &[&name], what, advice));
    }
    findings
}

fn secret_finding(file: &str, text: &str) -> Option<MemoryFinding> {
    let found = pal_secrets::find_secrets(text);
    let first = found.first()?;
    let line = text[..first.range.start].matches('\n').count() + 1;
    let more = if found.len() > 1 { format!(", and {} more", found.len() - 1) } else { String::new() };
    Some(MemoryFinding::new(
        FindingKind::Secret,
        &[file],
        format!("{file} contains a secret in line {line} ({}){more}", first.kind),
        "remove it with `pal memory edit` and change the secret: earlier versions in .versions still contain it",
    ))
}
