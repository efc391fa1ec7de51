//! Changes of instruction files since they were read: on disk, by a change of directory, or while the session was not running.
//!
//! Sent text stays as it was sent; a change is announced by a notice after it. Without a change this costs one `stat` per file; only if
//! one differs are all files read again and compared.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use pal_model::SourceNote;
use pal_prompt::{InstructionFile, InstructionScope, fingerprint_source};

use crate::front_matter::{parse_rule_text, rules_folder};
use crate::instruction_discovery::{InstructionSet, discover_instructions};
use crate::instruction_locations::InstructionSearch;
use crate::instruction_notice::{
    InstructionChange, InstructionNotice, render_added_text, render_changed_text, render_removed_text,
};
use crate::instruction_walk::WalkFindings;
use crate::project_bounds::{is_foreign, list_directories_between, resolve_links};
use crate::text_reader::read_text;

/// Why a file is in the session that was so before.
const EARLIER: &str = "read earlier in the session";

impl InstructionSet {
    /// Files that changed on disk since they were read, or since the last call.
    pub fn take_changes(&mut self) -> Vec<InstructionNotice> {
        if self.walk.is_unchanged() {
            return Vec::new();
        }
        self.renew(&self.walk.search.clone(), "on disk")
    }

    /// The working directory is another now: which files apply that did not, and which no longer do. Files that
    /// joined because something was touched stay.
    pub fn change_directory(&mut self, directory: &Path) -> Vec<InstructionNotice> {
        let directory = resolve_links(&self.walk.project.directory.join(directory));
        self.renew(&InstructionSearch { directory, ..self.walk.search.clone() }, "with the working directory")
    }

    /// The user allowed a file outside of the project, or a folder of them: what joins for it.
    pub fn allow_path(&mut self, path: &Path) -> Vec<InstructionNotice> {
        let mut search = self.walk.search.clone();
        search.allowed.push(path.to_owned());
        self.renew(&search, "because the user allowed it")
    }

    /// An earlier run of the session noted these files: what changed since, which `how` says in words. They count as read and
    /// do not join again.
    pub fn resume_from(&mut self, noted: &[SourceNote], how: &str) -> Vec<InstructionNotice> {
        let earlier: Vec<(&str, InstructionScope)> =
            noted.iter().map(|note| (note.path.as_str(), InstructionScope::Project)).collect();
        let directories: Vec<PathBuf> =
            noted.iter().filter_map(|note| directory_of(Path::new(&note.path))).collect();
        self.rejoin(&earlier, &directories);
        let prints: HashMap<&str, &str> =
            noted.iter().map(|note| (note.path.as_str(), note.fingerprint.as_str())).collect();
        let known: HashSet<&str> = prints.values().copied().collect();
        let mut notices = self.list_gone_files(noted, how);
        for file in self.loaded_files() {
            let print = fingerprint_source(&file.text);
            let what = match prints.get(file.path.as_str()) {
                Some(noted) if *noted == print => continue,
                Some(_) => InstructionChange::Changed,
                None if known.contains(print.as_str()) => continue,
                None => InstructionChange::Added,
            };
            let text = render_added_text(&file.path, &file.text, what, how);
            notices.push(InstructionNotice { path: file.path.clone(), what, text });
        }
        notices
    }

    /// Notices of noted files that are gone, and whose text no other file has taken over.
    fn list_gone_files(&self, noted: &[SourceNote], how: &str) -> Vec<InstructionNotice> {
        let paths: HashSet<&str> = self.loaded_files().map(|file| file.path.as_str()).collect();
        let prints: HashSet<String> =
            self.loaded_files().map(|file| fingerprint_source(&file.text)).collect();
        noted
            .iter()
            .filter(|note| !paths.contains(note.path.as_str()) && !prints.contains(&note.fingerprint))
            .map(|note| removal_notice(&note.path, how))
            .collect()
    }

    /// Reads all files again and returns the differences.
    fn renew(&mut self, search: &InstructionSearch, how: &str) -> Vec<InstructionNotice> {
        let mut fresh = discover_instructions(search);
        // An included file comes with its includer, if that still includes it.
        let earlier: Vec<(&str, InstructionScope)> = self
            .joined
            .iter()
            .filter(|file| file.included_by.is_none())
            .map(|file| (file.path.as_str(), file.scope))
            .collect();
        fresh.rejoin(&earlier, &self.entered);
        let before: Vec<InstructionFile> = self.loaded_files().cloned().collect();
        let notices = compare_files(&before, &fresh, how);
        *self = fresh;
        notices
    }

    /// Brings back what joined the session earlier: rules that wait again, the directories that it came to, with the
    /// rules that wait in them, and files that something else had brought, if they may still be read.
    fn rejoin(&mut self, earlier: &[(&str, InstructionScope)], directories: &[PathBuf]) {
        let paths: HashSet<&str> = earlier.iter().map(|(path, _)| *path).collect();
        self.retake_rules(&paths);
        let mut findings = WalkFindings::default();
        for directory in directories {
            if let Some((top, scope)) = self.top_of(directory)
                && !list_directories_between(&top, directory)
                    .iter()
                    .skip(1)
                    .any(|directory| is_foreign(directory))
            {
                self.enter(directory, scope, &mut findings);
            }
        }
        for file in findings.files.iter_mut().filter(|file| paths.contains(file.path.as_str())) {
            file.reason = EARLIER.to_owned();
        }
        self.absorb(findings);
        self.retake_rules(&paths);
        let loaded: HashSet<String> = self.loaded_files().map(|file| file.path.clone()).collect();
        for (path, scope) in earlier.iter().filter(|(path, _)| !loaded.contains(*path)) {
            self.reread(path, *scope);
        }
    }

    /// Takes the waiting rules that were taken before.
    fn retake_rules(&mut self, paths: &HashSet<&str>) {
        let mut findings = WalkFindings::default();
        for rule in std::mem::take(&mut self.waiting) {
            if paths.contains(rule.path.as_str()) {
                self.walk.take_rule(rule, EARLIER, &mut findings);
            } else {
                self.waiting.push(rule);
            }
        }
        self.absorb(findings);
    }

    /// Reads a file that joined the session earlier, if it is still there and may still be read.
    fn reread(&mut self, path: &str, scope: InstructionScope) {
        let file = PathBuf::from(path);
        let Some(text) = self.may_read(&resolve_links(&file)).then(|| text_now(&file)).flatten() else {
            return;
        };
        // Whatever has the same text now says it already.
        if self.walk.mark_seen(&file, &text) {
            let reason = EARLIER.to_owned();
            self.joined.push(InstructionFile {
                path: path.to_owned(),
                scope,
                included_by: None,
                reason,
                text,
            });
        }
    }

    fn may_read(&self, real: &Path) -> bool {
        self.walk.project.contains(real) || self.walk.project.allows(real)
    }
}

fn removal_notice(path: &str, how: &str) -> InstructionNotice {
    InstructionNotice {
        path: path.to_owned(),
        what: InstructionChange::Removed,
        text: render_removed_text(path, how),
    }
}

/// Difference between two states. A text that only moved to another path is no change for its reader.
fn compare_files(before: &[InstructionFile], now: &InstructionSet, how: &str) -> Vec<InstructionNotice> {
    let old: HashMap<&str, &InstructionFile> = before.iter().map(|file| (file.path.as_str(), file)).collect();
    let old_texts: HashSet<String> = before.iter().map(|file| fingerprint_source(&file.text)).collect();
    let new_paths: HashSet<&str> = now.loaded_files().map(|file| file.path.as_str()).collect();
    let new_texts: HashSet<String> = now.loaded_files().map(|file| fingerprint_source(&file.text)).collect();
    let mut notices: Vec<InstructionNotice> = before
        .iter()
        .filter(|file| !new_paths.contains(file.path.as_str()))
        .filter(|file| !new_texts.contains(&fingerprint_source(&file.text)))
        .map(|file| removal_notice(&file.path, how))
        .collect();
    for file in now.loaded_files() {
        let print = fingerprint_source(&file.text);
        let (what, text) = match old.get(file.path.as_str()) {
            Some(earlier) if fingerprint_source(&earlier.text) == print => continue,
            Some(earlier) => {
                (InstructionChange::Changed, render_changed_text(&file.path, &earlier.text, &file.text, how))
            }
            None if old_texts.contains(&print) => continue,
            None => (
                InstructionChange::Added,
                render_added_text(&file.path, &file.text, InstructionChange::Added, how),
            ),
        };
        notices.push(InstructionNotice { path: file.path.clone(), what, text });
    }
    notices
}

/// Current text of a file, without front matter if it is a rule.
fn text_now(file: &Path) -> Option<String> {
    let text = read_text(file).ok()?;
    Some(if rules_folder(file).is_some() { parse_rule_text(&text).text } else { text })
}

/// The directory whose instructions a file belongs to; none for a file that something else must have brought.
fn directory_of(file: &Path) -> Option<PathBuf> {
    let is_named = |name: &&str| file.file_name().is_some_and(|own| own == *name);
    match rules_folder(file) {
        Some(folder) => folder.parent()?.parent().map(Path::to_owned),
        None if file.ends_with(".claude/CLAUDE.md") => file.parent()?.parent().map(Path::to_owned),
        None if ["CLAUDE.md", "AGENTS.md", "GEMINI.md", "CLAUDE.local.md"].iter().any(is_named) => {
            file.parent().map(Path::to_owned)
        }
        None => None,
    }
}
