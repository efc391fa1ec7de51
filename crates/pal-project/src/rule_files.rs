//! Lists the rule files below a rules folder.
//!
//! A repository may contain links, so a folder outside of the project is not read before the user allows it, no folder is read twice, and
//! the walk stops after a fixed number of entries.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use pal_prompt::{InstructionScope, PrefixOmission};

use crate::display_text::display_path;
use crate::instruction_walk::{InstructionCandidate, InstructionWalk, WalkFindings};
use crate::project_bounds::{is_injected, resolve_links};

/// The most rule files of one folder.
const RULES_MAX: usize = 1_000;

/// Maximum files and folders visited in a search for rules.
const ENTRIES_MAX: usize = 10_000;

/// Maximum depth of directories with rules.
const DEPTH_MAX: usize = 16;

/// Reads the rules below a folder, by name.
pub(crate) fn visit_rules(
    walk: &mut InstructionWalk,
    folder: &Path,
    scope: InstructionScope,
    base: &Path,
    findings: &mut WalkFindings,
) {
    let mut found = RuleCollector::default();
    found.collect(walk, folder, scope, 0, findings);
    let RuleCollector { mut rules, is_cut, is_partial, .. } = found;
    rules.sort_unstable();
    if is_cut || is_partial {
        let why =
            format!("rules beyond {RULES_MAX}, or beyond {ENTRIES_MAX} files of any kind, are not read");
        findings.left_out.push(PrefixOmission { what: display_path(folder), why });
    }
    let reason = if walk.touched.is_some() { "a rule for a file that was touched" } else { "a rule" };
    for path in rules {
        walk.visit(&InstructionCandidate::new(path, scope, reason).rule(base), findings);
    }
}

/// Findings of a walk below a directory of rules.
#[derive(Default)]
struct RuleCollector {
    rules: Vec<PathBuf>,
    /// Visited folders, with links resolved.
    folders: HashSet<PathBuf>,
    entries: usize,
    /// True if there were more rules.
    is_cut: bool,
    /// True if there were more files and directories.
    is_partial: bool,
}

impl RuleCollector {
    fn collect(
        &mut self,
        walk: &mut InstructionWalk,
        folder: &Path,
        scope: InstructionScope,
        depth: usize,
        findings: &mut WalkFindings,
    ) {
        if !walk.stamp(folder) || depth == DEPTH_MAX || !folder.is_dir() {
            return;
        }
        let real = resolve_links(folder);
        if self.folders.contains(&real)
            || !walk.may_enter(
                &InstructionCandidate::new(folder.to_owned(), scope, "a rule"),
                &real,
                findings,
            )
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

    /// Entries of a directory by name, so that the same rules are always beyond the limit.
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
