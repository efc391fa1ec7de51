//! Reads instruction files one by one, each at most once, and their includes before them.
//!
//! A file is identified by its resolved path, a text by its fingerprint. Files outside of the project are not opened before the user
//! allows it, neither by an include nor by a link in the repository.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use pal_model::text::cut_with_ellipsis;
use pal_prompt::{InstructionFile, InstructionScope, PrefixOmission, fingerprint_source};
use serde::Serialize;

use crate::display_text::{display_name, display_path};
use crate::front_matter::{parse_rule_text, rules_folder};
use crate::includes::{find_references, list_path_readings, looks_like_path};
use crate::instruction_locations::InstructionSearch;
use crate::instruction_rule::{InstructionRule, parse_rule};
use crate::project_bounds::{ProjectBounds, is_injected, normalize_path, resolve_links};
use crate::source_stamp::{SourceStamp, stamp_of};
use crate::text_reader::read_text;

/// Maximum depth of includes.
const INCLUDE_DEPTH_MAX: usize = 5;

/// Maximum bytes of all files together; more is not meant to be read.
const TOTAL_BYTES_MAX: usize = 10_000_000;

/// Minimum size that a file counts, so that many small ones end too.
const FILE_BYTES_MIN: usize = 4_096;

/// Maximum words after `@` that are looked up. Each costs a few disk accesses.
const LOOKUPS_MAX: usize = 10_000;

/// The most characters of a word that leads nowhere.
const WORD_SHOWN_MAX: usize = 200;

/// A file outside of the project, or a folder of rules, that the user has to allow before it is read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct IncludeQuestion {
    /// File or folder with links resolved. If allowed, it is added to `InstructionSearch::allowed`.
    pub path: String,
    /// The file that includes it, or the link that leads to it.
    pub asked_by: String,
}

impl IncludeQuestion {
    /// Returns the sentence for a user who is not asked, with the way to allow it.
    pub fn refusal(&self) -> String {
        format!(
            "{} includes {}, which is not read: it lies outside of the project; to allow it, add it to `allow_includes` in your \
             settings",
            display_name(&self.asked_by),
            display_name(&self.path)
        )
    }
}

/// Findings of a walk so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct WalkFindings {
    pub(crate) files: Vec<InstructionFile>,
    pub(crate) left_out: Vec<PrefixOmission>,
    pub(crate) waiting: Vec<InstructionRule>,
    pub(crate) questions: Vec<IncludeQuestion>,
    pub(crate) warnings: Vec<String>,
    pub(crate) refusals: Vec<String>,
}

/// A file that may be there.
#[derive(Clone, Debug)]
pub(crate) struct InstructionCandidate {
    pub(crate) path: PathBuf,
    pub(crate) scope: InstructionScope,
    pub(crate) reason: &'static str,
    /// For a rule, the directory that its patterns are relative to.
    pub(crate) rule_base: Option<PathBuf>,
    pub(crate) included_by: Option<String>,
    depth: usize,
    /// True if the user or the administrator named it; they may name any file.
    pub(crate) is_trusted: bool,
}

impl InstructionCandidate {
    pub(crate) fn new(path: PathBuf, scope: InstructionScope, reason: &'static str) -> InstructionCandidate {
        let is_trusted = matches!(scope, InstructionScope::Managed | InstructionScope::User);
        InstructionCandidate { path, scope, reason, rule_base: None, included_by: None, depth: 0, is_trusted }
    }

    pub(crate) fn rule(self, base: &Path) -> InstructionCandidate {
        InstructionCandidate { rule_base: Some(base.to_owned()), ..self }
    }
}

/// State of a walk over instruction files.
#[derive(Clone, Debug)]
pub(crate) struct InstructionWalk {
    pub(crate) search: InstructionSearch,
    pub(crate) project: ProjectBounds,
    /// Stamps of the paths that were read; none where nothing existed.
    pub(crate) stamps: BTreeMap<PathBuf, Option<SourceStamp>>,
    /// Records paths that do not exist too.
    pub(crate) notes_missing: bool,
    /// The file whose touch is the reason for the walk.
    pub(crate) touched: Option<PathBuf>,
    seen: HashMap<PathBuf, String>,
    texts: HashMap<String, String>,
    open: Vec<PathBuf>,
    reported_paths: HashSet<PathBuf>,
    bytes: usize,
    lookups: usize,
}

impl InstructionWalk {
    pub(crate) fn new(search: &InstructionSearch) -> InstructionWalk {
        InstructionWalk {
            search: search.clone(),
            project: ProjectBounds::new(search),
            stamps: BTreeMap::new(),
            notes_missing: true,
            touched: None,
            seen: HashMap::new(),
            texts: HashMap::new(),
            open: Vec::new(),
            reported_paths: HashSet::new(),
            bytes: 0,
            lookups: 0,
        }
    }

    /// Reads a file, if it is there and may be read.
    pub(crate) fn visit(&mut self, candidate: &InstructionCandidate, findings: &mut WalkFindings) {
        match self.admit(candidate, findings) {
            Ok(Some(real)) => self.read(candidate, &real, findings),
            Ok(None) => {}
            Err(why) => findings.left_out.push(PrefixOmission { what: display_path(&candidate.path), why }),
        }
    }

    /// Records the stamp of a path. Returns true if it exists.
    pub(crate) fn stamp(&mut self, path: &Path) -> bool {
        let stamp = stamp_of(path);
        if stamp.is_some() || self.notes_missing {
            self.stamps.insert(path.to_owned(), stamp);
        }
        stamp.is_some()
    }

    /// Takes a file for seen and its text for known: it came into the session earlier. Says whether the text is new.
    pub(crate) fn mark_seen(&mut self, path: &Path, text: &str) -> bool {
        self.stamp(path);
        self.seen.insert(resolve_links(path), display_path(path));
        self.texts.insert(fingerprint_source(text), display_path(path)).is_none()
    }

    /// Lets a new walk look up as many words as the first.
    pub(crate) fn restart(&mut self) {
        self.lookups = 0;
    }

    /// True if everything that was read is unchanged.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.stamps.iter().all(|(path, stamp)| stamp_of(path) == *stamp)
    }

    /// Real path of a file to read now; none if it does not exist or is skipped; an
    /// error is the reason why it is left out.
    fn admit(
        &mut self,
        candidate: &InstructionCandidate,
        findings: &mut WalkFindings,
    ) -> Result<Option<PathBuf>, String> {
        // Most candidates are not there, and one look must be enough for them.
        if candidate.path.symlink_metadata().is_err() {
            if self.notes_missing {
                self.stamps.insert(candidate.path.clone(), None);
            }
            return Ok(None);
        }
        if !self.stamp(&candidate.path) {
            return Err("a link that leads nowhere".to_owned());
        }
        if is_injected(&candidate.path) {
            return Err("its name says that another program put it there".to_owned());
        }
        let Ok(real) = candidate.path.canonicalize() else { return Ok(None) };
        if self.open.contains(&real) {
            return Ok(None);
        }
        if let Some(earlier) = self.seen.get(&real) {
            let is_same_path = *earlier == display_path(&candidate.path);
            return Err(if is_same_path {
                "already read".into()
            } else {
                format!("the same file as {}", display_name(earlier))
            });
        }
        if let Some(refusal) = self.include_refusal(candidate, &real) {
            let path = display_path(&candidate.path);
            let subject = match &candidate.included_by {
                Some(includer) => {
                    format!("{} includes {}, which is not read", display_name(includer), display_name(&path))
                }
                None => format!("{} is not read", display_name(&path)),
            };
            findings.refusals.push(format!("{subject}: {refusal}"));
            return Err(refusal);
        }
        if !self.can_read(candidate, &real, findings)? {
            return Ok(None);
        }
        self.seen.insert(real.clone(), display_path(&candidate.path));
        Ok(Some(real))
    }

    /// True if a directory (`resolve_links`, links resolved) may be entered. If not, it is asked for or left out.
    pub(crate) fn may_enter(
        &mut self,
        folder: &InstructionCandidate,
        real: &Path,
        findings: &mut WalkFindings,
    ) -> bool {
        self.can_read(folder, real, findings).unwrap_or_else(|why| {
            findings.left_out.push(PrefixOmission { what: display_path(&folder.path), why });
            false
        })
    }

    /// True if a path may be read; asks the user if undecided, and an error means that they refused.
    fn can_read(
        &mut self,
        candidate: &InstructionCandidate,
        real: &Path,
        findings: &mut WalkFindings,
    ) -> Result<bool, String> {
        if candidate.is_trusted || self.project.contains(real) || self.project.allows(real) {
            return Ok(true);
        }
        if self.project.refuses(real) {
            return Err("outside of the project, and the user did not allow it".to_owned());
        }
        self.ask(candidate, real.to_owned(), findings);
        Ok(false)
    }

    fn ask(&mut self, candidate: &InstructionCandidate, real: PathBuf, findings: &mut WalkFindings) {
        let path = display_path(&real);
        if self.reported_paths.insert(real) {
            let asked_by = candidate.included_by.clone().unwrap_or_else(|| display_path(&candidate.path));
            findings.questions.push(IncludeQuestion { path, asked_by });
        }
    }

    fn read(&mut self, candidate: &InstructionCandidate, real: &Path, findings: &mut WalkFindings) {
        let text = match self.text_of(real) {
            Ok(text) => text,
            Err(why) => {
                return findings.left_out.push(PrefixOmission { what: display_path(&candidate.path), why });
            }
        };
        match candidate.rule_base.clone() {
            // An included rule applies to all files.
            None if rules_folder(&candidate.path).is_some() => {
                self.take(candidate, real, parse_rule_text(&text).text, findings);
            }
            None => self.take(candidate, real, text, findings),
            Some(base) => {
                let (mut rule, warnings) = parse_rule(&candidate.path, candidate.scope, &text, base);
                findings.warnings.extend(warnings);
                let is_due = rule.globs.is_empty()
                    || self.touched.as_ref().is_some_and(|touched| rule.applies_to(touched));
                if is_due {
                    self.take(candidate, real, rule.text, findings);
                } else {
                    self.seen.remove(real);
                    findings.waiting.push(rule);
                }
            }
        }
    }

    fn text_of(&mut self, real: &Path) -> Result<String, String> {
        if self.bytes >= TOTAL_BYTES_MAX {
            return Err(format!("more than {TOTAL_BYTES_MAX} bytes of instruction files"));
        }
        let text = read_text(real)?;
        self.bytes += text.len().max(FILE_BYTES_MIN);
        Ok(text)
    }

    /// Takes a rule whose time has come.
    pub(crate) fn take_rule(
        &mut self,
        rule: InstructionRule,
        reason: &'static str,
        findings: &mut WalkFindings,
    ) {
        let candidate = InstructionCandidate::new(rule.file, rule.scope, reason);
        let real = resolve_links(&candidate.path);
        if !self.seen.contains_key(&real) {
            self.seen.insert(real.clone(), display_path(&candidate.path));
            self.take(&candidate, &real, rule.text, findings);
        }
    }

    /// Adds the includes of a text, then the text, unless it was added before.
    fn take(
        &mut self,
        candidate: &InstructionCandidate,
        real: &Path,
        text: String,
        findings: &mut WalkFindings,
    ) {
        self.open.push(real.to_owned());
        for word in find_references(&text) {
            self.include(candidate, real, &word, findings);
        }
        self.open.pop();
        let path = display_path(&candidate.path);
        if text.trim().is_empty() {
            return findings.left_out.push(PrefixOmission { what: path, why: "empty".to_owned() });
        }
        let print = fingerprint_source(&text);
        if let Some(earlier) = self.texts.get(&print) {
            let why = format!("the same text as {}", display_name(earlier));
            return findings.left_out.push(PrefixOmission { what: path, why });
        }
        self.texts.insert(print, path.clone());
        findings.files.push(InstructionFile {
            path,
            scope: candidate.scope,
            included_by: candidate.included_by.clone(),
            reason: candidate.reason.to_owned(),
            text,
        });
    }

    fn include(
        &mut self,
        includer: &InstructionCandidate,
        real: &Path,
        word: &str,
        findings: &mut WalkFindings,
    ) {
        self.lookups += 1;
        if self.lookups > LOOKUPS_MAX {
            if self.lookups == LOOKUPS_MAX + 1 {
                let what = format!("what {} includes, and all behind it", display_path(&includer.path));
                findings
                    .left_out
                    .push(PrefixOmission { what, why: format!("more than {LOOKUPS_MAX} includes") });
            }
            return;
        }
        let Some(path) = self.included_path(&includer.path, word) else {
            if looks_like_path(word) {
                let why =
                    format!("no such file; {} includes it", display_name(&display_path(&includer.path)));
                findings
                    .left_out
                    .push(PrefixOmission { what: cut_with_ellipsis(word, WORD_SHOWN_MAX).into_owned(), why });
            }
            return;
        };
        let depth = includer.depth + 1;
        if depth > INCLUDE_DEPTH_MAX {
            let why = format!("more than {INCLUDE_DEPTH_MAX} includes deep");
            return findings.left_out.push(PrefixOmission { what: display_path(&path), why });
        }
        let candidate = InstructionCandidate {
            path,
            scope: includer.scope,
            reason: "included",
            rule_base: None,
            included_by: Some(display_path(&includer.path)),
            depth,
            is_trusted: includer.is_trusted && !self.project.contains(real),
        };
        self.visit(&candidate, findings);
    }

    /// File that a word after `@` refers to, if it exists.
    fn included_path(&mut self, includer: &Path, word: &str) -> Option<PathBuf> {
        // Two slashes begin the name of another machine, and asking for it would already speak to that machine.
        if word.starts_with("//") || word.starts_with("\\\\") {
            return None;
        }
        let mut last = None;
        for reading in list_path_readings(word) {
            let path = match reading.strip_prefix("~/") {
                Some(rest) => self.search.home.as_ref()?.join(rest),
                None => includer.parent()?.join(reading.trim_start_matches("./")),
            };
            if path.is_file() {
                return Some(normalize_path(path));
            }
            last = Some(path);
        }
        // So that it is noticed when the file comes to be.
        if looks_like_path(word) {
            self.stamp(&last?);
        }
        None
    }
}
