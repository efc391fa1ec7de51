//! Which instruction files a session begins with, and which join it as files are touched.
//!
//! Far to near: the machine's owner, the user, the project from its top down to the working directory, directories
//! that were added. In each directory of the project `CLAUDE.md`, `AGENTS.md`, `.claude/CLAUDE.md`, the rules in
//! `.claude/rules` and `.pal/rules` with all folders below them, by name, and `CLAUDE.local.md`. In the folders of the
//! owner and the user: `CLAUDE.md`, `AGENTS.md`, `rules` and `.claude/rules`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use pal_model::SourceNote;
use pal_prompt::{Instruction, InstructionScope, LeftOut};
use serde::Serialize;

use crate::limit::{apply_limit, bound_left_out};
use crate::project::{down_to, is_injected, real};
use crate::rule::Rule;
use crate::rule_files::visit_rules;
use crate::search::Search;
use crate::walk::{Candidate, Findings, Question, Walk};
use crate::words::{shown, source_note};

/// Folders of other people's code: a dependency does not instruct the agent that looks at it.
const FOREIGN: &[&str] = &[".git", "node_modules", "site-packages"];

/// What the instruction files of a session are, and what was left out.
#[derive(Clone, Debug, Serialize)]
pub struct Discovered {
    /// The files that the session begins with, far to near.
    pub files: Vec<Instruction>,
    /// Files that joined it since, in the order in which they did.
    pub joined: Vec<Instruction>,
    /// What is not read, and why.
    pub left_out: Vec<LeftOut>,
    /// Rules that wait for a file that they are for.
    pub waiting: Vec<Rule>,
    /// Files that the user has to allow first.
    pub questions: Vec<Question>,
    /// What the user should know: sentences.
    pub warnings: Vec<String>,
    /// Includes and links that were not followed, as sentences for the user that say how to allow them.
    pub refusals: Vec<String>,
    /// The top of the project.
    pub root: String,
    /// How many rows of what is not read are beyond those that are told.
    #[serde(skip)]
    untold: usize,
    #[serde(skip)]
    pub(crate) walk: Walk,
    /// Directories whose files were read.
    #[serde(skip)]
    pub(crate) directories: HashSet<PathBuf>,
    /// Those of them that the session came to because of a touch, in that order.
    #[serde(skip)]
    pub(crate) entered: Vec<PathBuf>,
}

/// Finds and reads the instruction files of a session.
pub fn discover(search: &Search) -> Discovered {
    let mut walk = Walk::new(search);
    let mut findings = Findings::default();
    let mut directories = HashSet::new();
    if search.is_on {
        visit_all(&mut walk, &mut findings, &mut directories);
        apply_limit(&search.limit, &mut findings);
    } else {
        findings.left_out.push(LeftOut { what: "instruction files".into(), why: "switched off".into() });
    }
    walk.notes_missing = false;
    let Findings { files, mut left_out, waiting, questions, warnings, refusals } = findings;
    let mut untold = 0;
    bound_left_out(&mut left_out, &mut untold);
    let root = shown(&walk.project.root);
    Discovered {
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

impl Discovered {
    /// A file was read or written: what joins the session for it. Rules that are for the file, and the instruction
    /// files of directories between the project's top (or that of an added directory) and the file. Each joins once.
    pub fn touched(&mut self, path: &Path) -> Vec<Instruction> {
        if !self.walk.search.is_on {
            return Vec::new();
        }
        let file = real(&self.walk.project.directory.join(path));
        let mut findings = Findings::default();
        self.walk.begin_again();
        self.take_rules(&file, &mut findings);
        self.visit_below(&file, &mut findings);
        let joining = findings.files.clone();
        self.absorb(findings);
        joining
    }

    /// Takes what a walk found into the session.
    pub(crate) fn absorb(&mut self, mut findings: Findings) {
        self.left_out.append(&mut findings.left_out);
        bound_left_out(&mut self.left_out, &mut self.untold);
        self.waiting.append(&mut findings.waiting);
        self.questions.append(&mut findings.questions);
        self.warnings.append(&mut findings.warnings);
        self.refusals.append(&mut findings.refusals);
        self.joined.append(&mut findings.files);
    }

    /// Takes the refusals that the user was not told of yet.
    pub fn take_refusals(&mut self) -> Vec<String> {
        std::mem::take(&mut self.refusals)
    }

    /// All files that are in the session, in the order in which they came.
    pub fn loaded(&self) -> impl Iterator<Item = &Instruction> {
        self.files.iter().chain(&self.joined)
    }

    /// What the session should keep of them, to know later whether they changed.
    pub fn notes(&self) -> Vec<SourceNote> {
        self.loaded().map(source_note).collect()
    }

    /// Whether the working directory is in a repository.
    pub fn is_repository(&self) -> bool {
        self.walk.project.is_repository
    }

    fn take_rules(&mut self, file: &Path, findings: &mut Findings) {
        for mut rule in std::mem::take(&mut self.waiting) {
            if rule.is_for(file) {
                self.walk.take_rule(rule, "a rule for a file that was touched", findings);
            } else {
                self.waiting.push(rule);
            }
        }
    }

    fn visit_below(&mut self, file: &Path, findings: &mut Findings) {
        let Some((top, scope)) = self.top_of(file) else { return };
        self.walk.touched = Some(file.to_owned());
        for directory in down_to(&top, file.parent().unwrap_or(file)) {
            if directory != top && is_foreign(&directory) {
                break;
            }
            self.enter(&directory, scope, findings);
        }
        self.walk.touched = None;
    }

    /// Reads the files of a directory that the session came to, unless it did so before.
    pub(crate) fn enter(&mut self, directory: &Path, scope: InstructionScope, findings: &mut Findings) {
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

/// Whether a directory is one of other people's code, or of another program.
pub(crate) fn is_foreign(directory: &Path) -> bool {
    let name = directory.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    FOREIGN.contains(&name.as_ref()) || is_injected(directory)
}

fn visit_all(walk: &mut Walk, findings: &mut Findings, directories: &mut HashSet<PathBuf>) {
    let search = walk.search.clone();
    if search.is_bare {
        let why = "only added directories are looked at".into();
        findings.left_out.push(LeftOut { what: "instruction files".into(), why });
    } else {
        for folder in &search.managed {
            visit_folder(walk, folder, InstructionScope::Managed, findings);
        }
        for folder in &search.user {
            visit_folder(walk, folder, InstructionScope::User, findings);
        }
        tell_of_files_above(walk, findings);
        for directory in walk.project.chain() {
            visit_directory(walk, &directory, InstructionScope::Project, findings);
            directories.insert(directory);
        }
    }
    for directory in walk.project.added.clone() {
        visit_directory(walk, &directory, InstructionScope::Added, findings);
        directories.insert(directory);
    }
}

/// A folder of the owner or the user.
fn visit_folder(walk: &mut Walk, folder: &Path, scope: InstructionScope, findings: &mut Findings) {
    let reason = match scope {
        InstructionScope::Managed => "the machine's policy",
        _ => "the user's own, for all projects",
    };
    for name in ["CLAUDE.md", "AGENTS.md"] {
        walk.visit(&Candidate::new(folder.join(name), scope, reason), findings);
    }
    let base = walk.project.root.clone();
    for rules in ["rules", ".claude/rules"] {
        visit_rules(walk, &folder.join(rules), scope, &base, findings);
    }
}

/// A directory of the project, or one that was added.
fn visit_directory(walk: &mut Walk, directory: &Path, scope: InstructionScope, findings: &mut Findings) {
    let reason = match (scope, &walk.touched) {
        (InstructionScope::Added, _) => "of an added directory",
        (_, Some(_)) => "a file below its directory was touched",
        _ => "of the project",
    };
    for name in ["CLAUDE.md", "AGENTS.md", ".claude/CLAUDE.md"] {
        walk.visit(&Candidate::new(directory.join(name), scope, reason), findings);
    }
    for rules in [".claude/rules", ".pal/rules"] {
        visit_rules(walk, &directory.join(rules), scope, directory, findings);
    }
    let local = if scope == InstructionScope::Project { InstructionScope::Local } else { scope };
    walk.visit(&Candidate::new(directory.join("CLAUDE.local.md"), local, reason), findings);
}

/// Other tools read on upwards to the root of the file system, so whoever comes from them wants to know.
fn tell_of_files_above(walk: &Walk, findings: &mut Findings) {
    let Some(above) =
        walk.project.root.parent().filter(|_| walk.project.directory.starts_with(&walk.project.root))
    else {
        return;
    };
    for directory in above.ancestors() {
        for name in ["CLAUDE.md", "AGENTS.md"] {
            let path = directory.join(name);
            if path.is_file() && !walk.project.holds(&path) {
                let why = walk.project.why_not_above().to_owned();
                findings.left_out.push(LeftOut { what: shown(&path), why });
            }
        }
    }
}
