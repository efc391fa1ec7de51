//! Instruction files that settings list by path or glob.

use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use pal_prompt::{InstructionScope, PrefixOmission};

use crate::instruction_locations::ListedInstructions;
use crate::instruction_walk::{InstructionCandidate, InstructionWalk, WalkFindings};
use crate::project_bounds::is_foreign;

/// Maximum files and folders visited for one glob.
const ENTRIES_MAX: usize = 10_000;

/// Maximum depth below the folder that a glob starts in.
const DEPTH_MAX: usize = 16;

/// Reason that lists of instruction files name.
const REASON: &str = "listed in the settings";

/// Reads the files that a path or glob names, by name.
pub(crate) fn visit_listed(
    walk: &mut InstructionWalk,
    listed: &ListedInstructions,
    findings: &mut WalkFindings,
) {
    let scope = if listed.is_users { InstructionScope::User } else { InstructionScope::Project };
    let pattern = match (listed.pattern.strip_prefix("~/"), &walk.search.home) {
        (Some(below), Some(home)) => home.join(below),
        _ => walk.project.root.join(&listed.pattern),
    };
    let omission = |why: String| PrefixOmission { what: listed.pattern.clone(), why };
    let (base, has_glob) = split_base(&pattern);
    if !has_glob {
        if !pattern.is_file() {
            findings.left_out.push(omission(String::from("the settings list it, but there is no such file")));
        }
        return walk.visit(&InstructionCandidate::new(pattern, scope, REASON), findings);
    }
    let text = pattern.to_string_lossy();
    let matcher = match GlobBuilder::new(&text).literal_separator(true).build() {
        Ok(glob) => glob.compile_matcher(),
        Err(error) => return findings.left_out.push(omission(format!("not a valid glob: {}", error.kind()))),
    };
    let mut found = GlobFindings::default();
    found.collect(&base, &matcher, 0);
    found.files.sort_unstable();
    if found.entries >= ENTRIES_MAX {
        findings
            .left_out
            .push(omission(format!("more than {ENTRIES_MAX} files and folders below {}", base.display())));
    }
    for file in found.files {
        walk.visit(&InstructionCandidate::new(file, scope, REASON), findings);
    }
}

/// Files that a glob matches.
#[derive(Default)]
struct GlobFindings {
    files: Vec<PathBuf>,
    entries: usize,
}

impl GlobFindings {
    /// Collects files below a folder. Links to folders are not followed.
    fn collect(&mut self, folder: &Path, matcher: &GlobMatcher, depth: usize) {
        if depth > DEPTH_MAX || (depth > 0 && is_foreign(folder)) {
            return;
        }
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            self.entries += 1;
            if self.entries >= ENTRIES_MAX {
                return;
            }
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => self.collect(&path, matcher, depth + 1),
                Ok(_) if matcher.is_match(&path) => self.files.push(path),
                _ => {}
            }
        }
    }
}

/// The folder that a glob starts in, and whether the path is a glob at all.
fn split_base(pattern: &Path) -> (PathBuf, bool) {
    let is_glob = |part: &Component<'_>| part.as_os_str().to_string_lossy().contains(['*', '?', '[', '{']);
    let base: PathBuf = pattern.components().take_while(|part| !is_glob(part)).collect();
    let has_glob = base.components().count() < pattern.components().count();
    (base, has_glob)
}
