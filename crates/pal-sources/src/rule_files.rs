//! The files below a folder of rules.
//!
//! A repository may bring links along, so a folder outside of the project is not looked into before the user said so,
//! no folder is looked into twice, and the walk ends when it has seen more than anybody keeps as rules.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use pal_prompt::{InstructionScope, LeftOut};

use crate::project::{is_injected, real};
use crate::walk::{Candidate, Findings, Walk};
use crate::words::shown;

/// The most rule files of one folder.
const RULES_MAX: usize = 1_000;

/// The most files and folders of any kind that are looked at in search of rules.
const ENTRIES_MAX: usize = 10_000;

/// How many folders deep rules are looked for.
const DEPTH_MAX: usize = 16;

/// Reads the rules below a folder, by name.
pub(crate) fn visit_rules(
    walk: &mut Walk,
    folder: &Path,
    scope: InstructionScope,
    base: &Path,
    findings: &mut Findings,
) {
    let mut found = Found::default();
    found.collect(walk, folder, scope, 0, findings);
    let Found { mut rules, is_cut, is_partial, .. } = found;
    rules.sort_unstable();
    if is_cut || is_partial {
        let why =
            format!("rules beyond {RULES_MAX}, or beyond {ENTRIES_MAX} files of any kind, are not read");
        findings.left_out.push(LeftOut { what: shown(folder), why });
    }
    let reason = if walk.touched.is_some() { "a rule for a file that was touched" } else { "a rule" };
    for path in rules {
        walk.visit(&Candidate::new(path, scope, reason).rule(base), findings);
    }
}

/// What a walk below a folder of rules has found.
#[derive(Default)]
struct Found {
    rules: Vec<PathBuf>,
    /// Folders that were looked into, with all links followed.
    folders: HashSet<PathBuf>,
    entries: usize,
    /// Whether there were more rules.
    is_cut: bool,
    /// Whether there were more files and folders.
    is_partial: bool,
}

impl Found {
    fn collect(
        &mut self,
        walk: &mut Walk,
        folder: &Path,
        scope: InstructionScope,
        depth: usize,
        findings: &mut Findings,
    ) {
        if !walk.stamp(folder) || depth == DEPTH_MAX || !folder.is_dir() {
            return;
        }
        let real = real(folder);
        if self.folders.contains(&real)
            || !walk.may_enter(&Candidate::new(folder.to_owned(), scope, "a rule"), &real, findings)
        {
            return;
        }
        self.folders.insert(real);
        for path in self.entries_of(folder) {
            if self.is_cut {
                return;
            }
            if path.is_dir() {
                if !is_injected(&path) {
                    self.collect(walk, &path, scope, depth + 1, findings);
                }
            } else if path.extension().is_some_and(|ending| ending == "md") {
                self.is_cut = self.rules.len() == RULES_MAX;
                if !self.is_cut {
                    self.rules.push(path);
                }
            }
        }
    }

    /// What is in a folder, by name, so that it is always the same rules that are beyond the limit.
    fn entries_of(&mut self, folder: &Path) -> Vec<PathBuf> {
        let left = ENTRIES_MAX - self.entries;
        let listed = folder.read_dir().into_iter().flatten().flatten();
        let mut entries: Vec<PathBuf> = listed.map(|entry| entry.path()).take(left + 1).collect();
        if entries.len() > left {
            entries.pop();
            self.is_partial = true;
        }
        self.entries += entries.len();
        entries.sort_unstable();
        entries
    }
}
