//! Finds the instruction files that a session starts with, and those that join it when files are touched.
//!
//! From general to specific: the machine's administrator, the user, the project from its root down to the working directory, added
//! directories. In each directory of the project: `CLAUDE.md`, `AGENTS.md`, `.claude/CLAUDE.md`, the rules in `.claude/rules` and
//! `.pal/rules` with all folders below them, by name, and `CLAUDE.local.md`. In the folders of the administrator and the user:
//! `CLAUDE.md`, `AGENTS.md`, `rules` and `.claude/rules`. `GEMINI.md` counts where a directory has neither of the first two.
//! Files that settings list come after those of the project.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use pal_model::SourceNote;
use pal_prompt::{InstructionFile, InstructionScope, PrefixOmission};
use serde::Serialize;

use crate::display_text::{display_path, source_note};
use crate::instruction_locations::InstructionSearch;
use crate::instruction_rule::InstructionRule;
use crate::instruction_walk::{IncludeQuestion, InstructionCandidate, InstructionWalk, WalkFindings};
use crate::listed_instructions::visit_listed;
use crate::project_bounds::{is_foreign, list_directories_between, resolve_links};
use crate::rule_files::visit_rules;
use crate::token_limit::{apply_limit, truncate_omissions};

/// Instruction files of a session, and those that were left out.
#[derive(Clone, Debug, Serialize)]
pub struct InstructionSet {
    /// The files that the session begins with, far to near.
    pub files: Vec<InstructionFile>,
    /// Files that joined it since, in the order in which they did.
    pub joined: Vec<InstructionFile>,
    /// Files that are not read, with reasons.
    pub left_out: Vec<PrefixOmission>,
    /// Rules that wait for a file that they are for.
    pub waiting: Vec<InstructionRule>,
    /// Files that the user has to allow first.
    pub questions: Vec<IncludeQuestion>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// Includes and links that a rule or a credential forbids, as sentences for the user that say how to allow them.
    pub refusals: Vec<String>,
    /// The top of the project.
    pub root: String,
    /// Number of unread files beyond those that are listed.
    #[serde(skip)]
    untold: usize,
    #[serde(skip)]
    pub(crate) walk: InstructionWalk,
    /// Directories whose files were read.
    #[serde(skip)]
    pub(crate) directories: HashSet<PathBuf>,
    /// Directories that joined the session because a file in them was touched, in that order.
    #[serde(skip)]
    pub(crate) entered: Vec<PathBuf>,
}

/// Finds and reads the instruction files of a session.
pub fn discover_instructions(search: &InstructionSearch) -> InstructionSet {
    let mut walk = InstructionWalk::new(search);
    let mut findings = WalkFindings::default();
    let mut directories = HashSet::new();
    if search.is_on {
        visit_all(&mut walk, &mut findings, &mut directories);
        apply_limit(&search.limit, &mut findings);
    } else {
        findings
            .left_out
            .push(PrefixOmission { what: "instruction files".into(), why: "switched off".into() });
    }
    walk.notes_missing = false;
    let WalkFindings { files, mut left_out, waiting, questions, warnings, refusals } = findings;
    let mut untold = 0;
    truncate_omissions(&mut left_out, &mut untold);
    let root = display_path(&walk.project.root);
    InstructionSet {
        files,
        joined: Vec::new(),
        left_out,
        waiting,
        questions,
        warnings,
        refusals,
        root,
        untold,
        walk,
        directories,
        entered: Vec::new(),
    }
}

impl InstructionSet {
    /// A file was read or written: what joins the session for it. Rules that are for the file, and the instruction
    /// files of directories between the project's top (or that of an added directory) and the file. Each joins once.
    pub fn join_for_path(&mut self, path: &Path) -> Vec<InstructionFile> {
        if !self.walk.search.is_on {
            return Vec::new();
        }
        let file = resolve_links(&self.walk.project.directory.join(path));
        let mut findings = WalkFindings::default();
        self.walk.restart();
        self.take_rules(&file, &mut findings);
        self.visit_below(&file, &mut findings);
        let joining = findings.files.clone();
        self.absorb(findings);
        joining
    }

    /// Adds the findings of a walk to the session.
    pub(crate) fn absorb(&mut self, mut findings: WalkFindings) {
        self.left_out.append(&mut findings.left_out);
        truncate_omissions(&mut self.left_out, &mut self.untold);
        self.waiting.append(&mut findings.waiting);
        self.questions.append(&mut findings.questions);
        self.warnings.append(&mut findings.warnings);
        self.refusals.append(&mut findings.refusals);
        self.joined.append(&mut findings.files);
    }

    /// Takes the refusals that were not reported to the user yet.
    pub fn take_refusals(&mut self) -> Vec<String> {
        std::mem::take(&mut self.refusals)
    }

    /// Takes the warnings that were not reported to the user yet.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// Takes the includes that the user was not asked about yet.
    pub fn take_questions(&mut self) -> Vec<IncludeQuestion> {
        std::mem::take(&mut self.questions)
    }

    /// All files that are in the session, in the order in which they came.
    pub fn loaded_files(&self) -> impl Iterator<Item = &InstructionFile> {
        self.files.iter().chain(&self.joined)
    }

    /// State to keep, to notice later changes.
    pub fn source_notes(&self) -> Vec<SourceNote> {
        self.loaded_files().map(source_note).collect()
    }

    /// True if the working directory is in a repository.
    pub fn is_repository(&self) -> bool {
        self.walk.project.is_repository
    }

    fn take_rules(&mut self, file: &Path, findings: &mut WalkFindings) {
        for mut rule in std::mem::take(&mut self.waiting) {
            if rule.applies_to(file) {
                self.walk.take_rule(rule, "a rule for a file that was touched", findings);
            } else {
                self.waiting.push(rule);
            }
        }
    }

    fn visit_below(&mut self, file: &Path, findings: &mut WalkFindings) {
        let Some((top, scope)) = self.top_of(file) else { return };
        self.walk.touched = Some(file.to_owned());
        for directory in list_directories_between(&top, file.parent().unwrap_or(file)) {
            if directory != top && is_foreign(&directory) {
                break;
            }
            self.enter(&directory, scope, findings);
        }
        self.walk.touched = None;
    }

    /// Reads the instruction files of a touched directory once.
    pub(crate) fn enter(&mut self, directory: &Path, scope: InstructionScope, findings: &mut WalkFindings) {
        if self.directories.contains(directory) {
            return;
        }
        let before = (findings.files.len(), findings.left_out.len(), findings.waiting.len());
        visit_directory(&mut self.walk, directory, scope, findings);
        // Where nothing was, something may come to be, so a directory is done with only when it had something.
        if before != (findings.files.len(), findings.left_out.len(), findings.waiting.len()) {
            self.directories.insert(directory.to_owned());
            self.entered.push(directory.to_owned());
        }
    }

    /// The top of the part of the session that a file lies in.
    pub(crate) fn top_of(&self, file: &Path) -> Option<(PathBuf, InstructionScope)> {
        let project = &self.walk.project;
        if file.starts_with(&project.root) && !self.walk.search.is_bare {
            return Some((project.root.clone(), InstructionScope::Project));
        }
        let added = project.added.iter().find(|added| file.starts_with(added))?;
        Some((added.clone(), InstructionScope::Added))
    }
}

fn visit_all(walk: &mut InstructionWalk, findings: &mut WalkFindings, directories: &mut HashSet<PathBuf>) {
    let search = walk.search.clone();
    if search.is_bare {
        let why = "only added directories are looked at".into();
        findings.left_out.push(PrefixOmission { what: "instruction files".into(), why });
    } else {
        for folder in &search.managed {
            visit_folder(walk, folder, InstructionScope::Managed, findings);
        }
        for folder in &search.user {
            visit_folder(walk, folder, InstructionScope::User, findings);
        }
        report_files_above(walk, findings);
        for directory in walk.project.directory_chain() {
            visit_directory(walk, &directory, InstructionScope::Project, findings);
            directories.insert(directory);
        }
        for listed in &search.listed {
            visit_listed(walk, listed, findings);
        }
    }
    for directory in walk.project.added.clone() {
        visit_directory(walk, &directory, InstructionScope::Added, findings);
        directories.insert(directory);
    }
}

/// A folder of the owner or the user.
fn visit_folder(
    walk: &mut InstructionWalk,
    folder: &Path,
    scope: InstructionScope,
    findings: &mut WalkFindings,
) {
    let reason = match scope {
        InstructionScope::Managed => "the machine's policy",
        _ => "the user's own, for all projects",
    };
    for name in ["CLAUDE.md", "AGENTS.md"].into_iter().chain(gemini_file(folder)) {
        walk.visit(&InstructionCandidate::new(folder.join(name), scope, reason), findings);
    }
    let base = walk.project.root.clone();
    for rules in ["rules", ".claude/rules"] {
        visit_rules(walk, &folder.join(rules), scope, &base, findings);
    }
}

/// The file of Gemini CLI, if a directory has no other: most repositories repeat the same text under several names.
fn gemini_file(directory: &Path) -> Option<&'static str> {
    let has = |name: &str| directory.join(name).is_file();
    (has("GEMINI.md") && !has("CLAUDE.md") && !has("AGENTS.md")).then_some("GEMINI.md")
}

/// A directory of the project, or one that was added.
fn visit_directory(
    walk: &mut InstructionWalk,
    directory: &Path,
    scope: InstructionScope,
    findings: &mut WalkFindings,
) {
    let reason = match (scope, &walk.touched) {
        (InstructionScope::Added, _) => "of an added directory",
        (_, Some(_)) => "a file below its directory was touched",
        _ => "of the project",
    };
    for name in ["CLAUDE.md", "AGENTS.md", ".claude/CLAUDE.md"].into_iter().chain(gemini_file(directory)) {
        walk.visit(&InstructionCandidate::new(directory.join(name), scope, reason), findings);
    }
    for rules in [".claude/rules", ".pal/rules"] {
        visit_rules(walk, &directory.join(rules), scope, directory, findings);
    }
    let local = if scope == InstructionScope::Project { InstructionScope::Local } else { scope };
    walk.visit(&InstructionCandidate::new(directory.join("CLAUDE.local.md"), local, reason), findings);
}

/// Other tools read upwards to the root of the file system, so their users need to know.
fn report_files_above(walk: &InstructionWalk, findings: &mut WalkFindings) {
    let Some(above) =
        walk.project.root.parent().filter(|_| walk.project.directory.starts_with(&walk.project.root))
    else {
        return;
    };
    for directory in above.ancestors() {
        for name in ["CLAUDE.md", "AGENTS.md"] {
            let path = directory.join(name);
            if path.is_file() && !walk.project.contains(&path) {
                let why = walk.project.explain_files_above().to_owned();
                findings.left_out.push(PrefixOmission { what: display_path(&path), why });
            }
        }
    }
}
