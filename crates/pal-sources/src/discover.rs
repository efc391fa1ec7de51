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

use crate::limit::apply_limit;
use crate::project::{down_to, real};
use crate::rule::Rule;
use crate::search::Search;
use crate::walk::{Candidate, Findings, Question, Walk, is_injected};
use crate::words::{shown, source_note};

/// The most rule files of one folder.
const RULES_MAX: usize = 1_000;

/// How many folders deep rules are looked for.
const RULE_FOLDERS_MAX: usize = 16;

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
    /// The top of the project.
    pub root: String,
    #[serde(skip)]
    pub(crate) walk: Walk,
    /// Directories whose files were read.
    #[serde(skip)]
    pub(crate) directories: HashSet<PathBuf>,
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
    let Findings { files, left_out, waiting, questions, warnings } = findings;
    let root = shown(&walk.project.root);
    Discovered { files, joined: Vec::new(), left_out, waiting, questions, warnings, root, walk, directories }
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
        self.take_rules(&file, &mut findings);
        self.visit_below(&file, &mut findings);
        self.left_out.append(&mut findings.left_out);
        self.waiting.append(&mut findings.waiting);
        self.questions.append(&mut findings.questions);
        self.warnings.append(&mut findings.warnings);
        self.joined.extend(findings.files.iter().cloned());
        findings.files
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
            let name = directory.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
            if directory != top && (FOREIGN.contains(&name.as_ref()) || is_injected(&directory)) {
                break;
            }
            if self.directories.contains(&directory) {
                continue;
            }
            let before = (findings.files.len(), findings.left_out.len(), findings.waiting.len());
            visit_directory(&mut self.walk, &directory, scope, findings);
            // Where nothing was, something may come to be, so a directory is done with only when it had something.
            if before != (findings.files.len(), findings.left_out.len(), findings.waiting.len()) {
                self.directories.insert(directory);
            }
        }
        self.walk.touched = None;
    }

    /// The top of the part of the session that a file lies in.
    fn top_of(&self, file: &Path) -> Option<(PathBuf, InstructionScope)> {
        let project = &self.walk.project;
        if file.starts_with(&project.root) && !self.walk.search.is_bare {
            return Some((project.root.clone(), InstructionScope::Project));
        }
        let added = project.added.iter().find(|added| file.starts_with(added))?;
        Some((added.clone(), InstructionScope::Added))
    }
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

fn visit_rules(
    walk: &mut Walk,
    folder: &Path,
    scope: InstructionScope,
    base: &Path,
    findings: &mut Findings,
) {
    let mut rules = Vec::new();
    collect_rules(walk, folder, &mut Vec::new(), &mut rules);
    rules.sort_unstable();
    if rules.len() > RULES_MAX {
        let why = format!("one of more than {RULES_MAX} rules in their folder");
        let over = rules.split_off(RULES_MAX);
        findings.left_out.extend(over.iter().map(|path| LeftOut { what: shown(path), why: why.clone() }));
    }
    let reason = if walk.touched.is_some() { "a rule for a file that was touched" } else { "a rule" };
    for path in rules {
        walk.visit(&Candidate::new(path, scope, reason).rule(base), findings);
    }
}

/// The rule files below a folder. A link back to a folder above ends there.
fn collect_rules(walk: &mut Walk, folder: &Path, above: &mut Vec<PathBuf>, rules: &mut Vec<PathBuf>) {
    if !walk.stamp(folder) || above.len() == RULE_FOLDERS_MAX {
        return;
    }
    let here = real(folder);
    if above.contains(&here) {
        return;
    }
    above.push(here);
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            if !is_injected(&path) {
                collect_rules(walk, &path, above, rules);
            }
        } else if path.extension().is_some_and(|ending| ending == "md") {
            rules.push(path);
        }
    }
    above.pop();
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
