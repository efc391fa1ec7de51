//! Reads instruction files one by one, each at most once, and what they include before them.
//!
//! A file is known by its path with all links followed, a text by its fingerprint. What is outside of the project is
//! not opened before the user said so: neither by an include nor by a link that the repository brought along.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use pal_prompt::{Instruction, InstructionScope, LeftOut, source_print};
use serde::Serialize;

use crate::front_matter::{rule_text, rules_folder};
use crate::includes::{looks_like_path, readings, references};
use crate::project::{Project, is_injected, real, tidied};
use crate::reading::read_text;
use crate::rule::{Rule, rule_of};
use crate::search::Search;
use crate::stamp::{Stamp, stamp_of};
use crate::words::{cut, named, shown};

/// How deep includes go.
const INCLUDE_DEPTH_MAX: usize = 5;

/// The most bytes of all files together. What is more is not meant to be read, by whoever wrote it.
const TOTAL_BYTES_MAX: usize = 10_000_000;

/// What a file counts at least, so that many small ones end, too.
const FILE_BYTES_MIN: usize = 4_096;

/// The most words behind `@` that are looked up. Each asks the disk a few times.
const LOOKUPS_MAX: usize = 10_000;

/// The most characters of a word that leads nowhere.
const WORD_SHOWN_MAX: usize = 200;

/// A file outside of the project, or a folder of rules, that the user has to allow before it is read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Question {
    /// The file or folder, with all links followed: what an answer goes into `Search::allowed`.
    pub path: String,
    /// The file that includes it, or the link that leads to it.
    pub asked_by: String,
}

/// What a walk has found so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    pub(crate) files: Vec<Instruction>,
    pub(crate) left_out: Vec<LeftOut>,
    pub(crate) waiting: Vec<Rule>,
    pub(crate) questions: Vec<Question>,
    pub(crate) warnings: Vec<String>,
    pub(crate) refusals: Vec<String>,
}

/// A file that may be there.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) path: PathBuf,
    pub(crate) scope: InstructionScope,
    pub(crate) reason: &'static str,
    /// For a rule, the directory that its patterns are relative to.
    pub(crate) rule_base: Option<PathBuf>,
    pub(crate) included_by: Option<String>,
    depth: usize,
    /// Whether it was named by the user or the machine's owner, who may name any file.
    pub(crate) is_trusted: bool,
}

impl Candidate {
    pub(crate) fn new(path: PathBuf, scope: InstructionScope, reason: &'static str) -> Candidate {
        let is_trusted = matches!(scope, InstructionScope::Managed | InstructionScope::User);
        Candidate { path, scope, reason, rule_base: None, included_by: None, depth: 0, is_trusted }
    }

    pub(crate) fn rule(self, base: &Path) -> Candidate {
        Candidate { rule_base: Some(base.to_owned()), ..self }
    }
}

/// A walk over instruction files, with what it has seen.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    pub(crate) search: Search,
    pub(crate) project: Project,
    /// What the looked at paths looked like; nothing where there was nothing.
    pub(crate) stamps: BTreeMap<PathBuf, Option<Stamp>>,
    /// Whether paths at which there is nothing are noted, too.
    pub(crate) notes_missing: bool,
    /// The file whose touch is the reason for the walk.
    pub(crate) touched: Option<PathBuf>,
    seen: HashMap<PathBuf, String>,
    texts: HashMap<String, String>,
    open: Vec<PathBuf>,
    asked: HashSet<PathBuf>,
    bytes: usize,
    lookups: usize,
}

impl Walk {
    pub(crate) fn new(search: &Search) -> Walk {
        Walk {
            search: search.clone(),
            project: Project::of(search),
            stamps: BTreeMap::new(),
            notes_missing: true,
            touched: None,
            seen: HashMap::new(),
            texts: HashMap::new(),
            open: Vec::new(),
            asked: HashSet::new(),
            bytes: 0,
            lookups: 0,
        }
    }

    /// Reads a file, if it is there and may be read.
    pub(crate) fn visit(&mut self, candidate: &Candidate, findings: &mut Findings) {
        match self.admit(candidate, findings) {
            Ok(Some(real)) => self.read(candidate, &real, findings),
            Ok(None) => {}
            Err(why) => findings.left_out.push(LeftOut { what: shown(&candidate.path), why }),
        }
    }

    /// Notes what a path looks like now. Says whether there is anything.
    pub(crate) fn stamp(&mut self, path: &Path) -> bool {
        let stamp = stamp_of(path);
        if stamp.is_some() || self.notes_missing {
            self.stamps.insert(path.to_owned(), stamp);
        }
        stamp.is_some()
    }

    /// Takes a file for seen and its text for known: it came into the session earlier. Says whether the text is new.
    pub(crate) fn take_as_seen(&mut self, path: &Path, text: &str) -> bool {
        self.stamp(path);
        self.seen.insert(real(path), shown(path));
        self.texts.insert(source_print(text), shown(path)).is_none()
    }

    /// Lets a new walk look up as many words as the first.
    pub(crate) fn begin_again(&mut self) {
        self.lookups = 0;
    }

    /// Whether everything that was looked at still looks as it did.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.stamps.iter().all(|(path, stamp)| stamp_of(path) == *stamp)
    }

    /// The real path of a file that shall be read now; nothing if there is none or it is quietly passed over; an
    /// error is the reason why it is left out.
    fn admit(&mut self, candidate: &Candidate, findings: &mut Findings) -> Result<Option<PathBuf>, String> {
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
            let is_same_path = *earlier == shown(&candidate.path);
            return Err(if is_same_path {
                "already read".into()
            } else {
                format!("the same file as {}", named(earlier))
            });
        }
        if let Some(refusal) = self.include_refusal(candidate, &real) {
            let path = shown(&candidate.path);
            let subject = match &candidate.included_by {
                Some(includer) => format!("{} includes {}, which is not read", named(includer), named(&path)),
                None => format!("{} is not read", named(&path)),
            };
            findings.refusals.push(format!("{subject}: {refusal}"));
            return Err(refusal);
        }
        if !self.is_open_to(candidate, &real, findings)? {
            return Ok(None);
        }
        self.seen.insert(real.clone(), shown(&candidate.path));
        Ok(Some(real))
    }

    /// Whether a folder (`real`, with all links followed) may be looked into. If not, it is asked for or left out.
    pub(crate) fn may_enter(&mut self, folder: &Candidate, real: &Path, findings: &mut Findings) -> bool {
        self.is_open_to(folder, real, findings).unwrap_or_else(|why| {
            findings.left_out.push(LeftOut { what: shown(&folder.path), why });
            false
        })
    }

    /// Whether a place may be read; the user is asked if nobody said so yet, and an error is that they refused.
    fn is_open_to(
        &mut self,
        candidate: &Candidate,
        real: &Path,
        findings: &mut Findings,
    ) -> Result<bool, String> {
        if candidate.is_trusted || self.project.holds(real) || self.project.allows(real) {
            return Ok(true);
        }
        if self.project.refuses(real) {
            return Err("outside of the project, and the user did not allow it".to_owned());
        }
        self.ask(candidate, real.to_owned(), findings);
        Ok(false)
    }

    fn ask(&mut self, candidate: &Candidate, real: PathBuf, findings: &mut Findings) {
        let path = shown(&real);
        if self.asked.insert(real) {
            let asked_by = candidate.included_by.clone().unwrap_or_else(|| shown(&candidate.path));
            findings.refusals.push(format!(
                "{} includes {}, which is not read: it lies outside of the project; to allow it, add it to `allow_includes` in \
                 your settings",
                named(&asked_by),
                named(&path)
            ));
            findings.questions.push(Question { path, asked_by });
        }
    }

    fn read(&mut self, candidate: &Candidate, real: &Path, findings: &mut Findings) {
        let text = match self.text_of(real) {
            Ok(text) => text,
            Err(why) => return findings.left_out.push(LeftOut { what: shown(&candidate.path), why }),
        };
        match candidate.rule_base.clone() {
            // Whoever includes a rule wants what it says, whatever it is for.
            None if rules_folder(&candidate.path).is_some() => {
                self.take(candidate, real, rule_text(&text).text, findings);
            }
            None => self.take(candidate, real, text, findings),
            Some(base) => {
                let (mut rule, warnings) = rule_of(&candidate.path, candidate.scope, &text, base);
                findings.warnings.extend(warnings);
                let is_due = rule.globs.is_empty()
                    || self.touched.as_ref().is_some_and(|touched| rule.is_for(touched));
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
    pub(crate) fn take_rule(&mut self, rule: Rule, reason: &'static str, findings: &mut Findings) {
        let candidate = Candidate::new(rule.file, rule.scope, reason);
        let real = real(&candidate.path);
        if !self.seen.contains_key(&real) {
            self.seen.insert(real.clone(), shown(&candidate.path));
            self.take(&candidate, &real, rule.text, findings);
        }
    }

    /// Takes a text: first what it includes, then itself, unless it is already there.
    fn take(&mut self, candidate: &Candidate, real: &Path, text: String, findings: &mut Findings) {
        self.open.push(real.to_owned());
        for word in references(&text) {
            self.include(candidate, real, &word, findings);
        }
        self.open.pop();
        let path = shown(&candidate.path);
        if text.trim().is_empty() {
            return findings.left_out.push(LeftOut { what: path, why: "empty".to_owned() });
        }
        let print = source_print(&text);
        if let Some(earlier) = self.texts.get(&print) {
            let why = format!("the same text as {}", named(earlier));
            return findings.left_out.push(LeftOut { what: path, why });
        }
        self.texts.insert(print, path.clone());
        findings.files.push(Instruction {
            path,
            scope: candidate.scope,
            included_by: candidate.included_by.clone(),
            reason: candidate.reason.to_owned(),
            text,
        });
    }

    fn include(&mut self, includer: &Candidate, real: &Path, word: &str, findings: &mut Findings) {
        self.lookups += 1;
        if self.lookups > LOOKUPS_MAX {
            if self.lookups == LOOKUPS_MAX + 1 {
                let what = format!("what {} includes, and all behind it", shown(&includer.path));
                findings.left_out.push(LeftOut { what, why: format!("more than {LOOKUPS_MAX} includes") });
            }
            return;
        }
        let Some(path) = self.included_path(&includer.path, word) else {
            if looks_like_path(word) {
                let why = format!("no such file; {} includes it", named(&shown(&includer.path)));
                findings.left_out.push(LeftOut { what: cut(word, WORD_SHOWN_MAX), why });
            }
            return;
        };
        let depth = includer.depth + 1;
        if depth > INCLUDE_DEPTH_MAX {
            let why = format!("more than {INCLUDE_DEPTH_MAX} includes deep");
            return findings.left_out.push(LeftOut { what: shown(&path), why });
        }
        let candidate = Candidate {
            path,
            scope: includer.scope,
            reason: "included",
            rule_base: None,
            included_by: Some(shown(&includer.path)),
            depth,
            is_trusted: includer.is_trusted && !self.project.holds(real),
        };
        self.visit(&candidate, findings);
    }

    /// The file that a word behind `@` means, if there is one.
    fn included_path(&mut self, includer: &Path, word: &str) -> Option<PathBuf> {
        // Two slashes begin the name of another machine, and asking for it would already speak to that machine.
        if word.starts_with("//") || word.starts_with("\\\\") {
            return None;
        }
        let mut last = None;
        for reading in readings(word) {
            let path = match reading.strip_prefix("~/") {
                Some(rest) => self.search.home.as_ref()?.join(rest),
                None => includer.parent()?.join(reading.trim_start_matches("./")),
            };
            if path.is_file() {
                return Some(tidied(path));
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
