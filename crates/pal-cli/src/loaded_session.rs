//! Sessions read from files: logs of pal, and other agents' files imported in memory.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use pal_import::{ImportOptions, SessionFormat, detect};
use pal_model::{DecisionKind, EntryBody, LogEntry, ModelCard, SharedText, closest_word};
use pal_store::{LogLine, LogReader, OmittedHistory, OpenError, ReadError};
use pal_view::{CardEstimator, Estimator, Lens, ViewScope};

use crate::failure::Failure;
use crate::notices::{Notices, print_notice};
use crate::progress::ReadingLog;
use crate::settings::{EstimatorSetting, MODEL_ALIASES, Settings, full_model_name};

/// Files above this size are rejected.
const BYTES_MAX: u64 = 2 << 30;
/// A file whose first line is longer than this is not a session.
const FIRST_LINE_MAX: usize = 256 << 20;

/// A session read from a file.
#[derive(Default)]
pub(crate) struct LoadedSession {
    /// Branch of the last entry.
    pub(crate) branch: Vec<LogEntry>,
    /// Damage of the log.
    pub(crate) problems: Vec<String>,
    /// History that a resume leaves out because no context window holds it.
    pub(crate) left_out: Option<OmittedHistory>,
}

impl LoadedSession {
    /// Reads a session file of any format.
    pub(crate) fn read(path: &Path, settings: &Settings) -> Result<LoadedSession, Failure> {
        if is_log(path) {
            return LoadedSession::read_log(path).map_err(|error| Failure::new(error.to_string()));
        }
        let source = read_file(path)?;
        if detect(&source) == Some(SessionFormat::Palimpsest) {
            drop(source);
            return LoadedSession::read_log(path).map_err(|error| Failure::new(error.to_string()));
        }
        LoadedSession::imported(path, &source, settings)
    }

    /// Reads all entries of a session file of any format, abandoned branches included.
    pub(crate) fn read_all(path: &Path, settings: &Settings) -> Result<LoadedSession, Failure> {
        if !is_log(path) {
            let source = read_file(path)?;
            if detect(&source) != Some(SessionFormat::Palimpsest) {
                return LoadedSession::imported(path, &source, settings);
            }
        }
        let log = LogReader::open(path).map_err(|error| Failure::new(error.to_string()))?;
        let mut whole = LoadedSession::default();
        let mut ids = HashSet::new();
        let mut is_damaged = false;
        for line in log.lines() {
            match line {
                Ok(LogLine { entry, offset, is_altered, .. }) => {
                    let follows = entry.parent.map_or(offset == 0, |parent| ids.contains(&parent));
                    is_damaged |= is_altered || !follows || !ids.insert(entry.id);
                    whole.branch.push(entry);
                }
                Err(ReadError::Bad(_)) => is_damaged = true,
                Err(error) => return Err(Failure::new(error.to_string())),
            }
        }
        if is_damaged {
            let checked = log.check(&mut |_, _| ()).map_err(|error| Failure::new(error.to_string()))?;
            whole.problems = checked.problems.iter().map(ToString::to_string).collect();
        }
        Ok(whole)
    }

    /// Imports another agent's session in memory.
    fn imported(path: &Path, source: &[u8], settings: &Settings) -> Result<LoadedSession, Failure> {
        let imported = import_source(path, source, false, settings)?;
        let mut branch = Vec::new();
        let whole = SharedText::from(imported.log);
        for line in whole.lines() {
            let entry = LogEntry::parse(whole.slice_of(line)).map_err(|error| {
                Failure::new(format!("{}: import wrote a bad entry: {error}", path.display()))
            })?;
            branch.push(entry);
        }
        Ok(LoadedSession { branch, ..LoadedSession::default() })
    }

    /// Reads the whole branch of a log.
    pub(crate) fn read_log(path: &Path) -> Result<LoadedSession, OpenError> {
        let _reading = ReadingLog::new(path);
        let branch = LogReader::open(path)?.whole_branch()?;
        let problems = branch.problems.iter().map(ToString::to_string).collect();
        Ok(LoadedSession { branch: branch.entries, problems, left_out: branch.omitted })
    }

    /// Reads only the part of a log that the next request needs.
    pub(crate) fn read_resumed(path: &Path) -> Result<LoadedSession, OpenError> {
        let _reading = ReadingLog::new(path);
        let branch = LogReader::open(path)?.branch()?;
        let problems = branch.problems.iter().map(ToString::to_string).collect();
        Ok(LoadedSession { branch: branch.entries, problems, left_out: branch.omitted })
    }

    /// Indexes of conversation requests that have a response, in order.
    pub(crate) fn answered_requests(&self) -> Vec<usize> {
        let mut answered = Vec::new();
        let mut open = None;
        for (at, entry) in self.branch.iter().enumerate() {
            match &entry.body {
                EntryBody::Request(request) if request.source.is_conversation() => open = Some(at),
                EntryBody::Response(response) if response.source.is_conversation() => {
                    answered.extend(open.take())
                }
                _ => {}
            }
        }
        answered
    }

    /// Index of the request that led to response `number`, counted from 1.
    pub(crate) fn nth_request(&self, number: usize) -> Result<usize, Failure> {
        let requests = self.answered_requests();
        number.checked_sub(1).and_then(|at| requests.get(at).copied()).ok_or_else(|| {
            Failure::with_hint(
                format!("no response {number}: the session has {}", requests.len()),
                format!("use a number from 1 to {}", requests.len()),
            )
        })
    }

    /// End of the branch and model for the next request, or for the one that led to a response. Prints damage of the log
    /// as notices.
    pub(crate) fn request_point(
        &self,
        response: Option<usize>,
        model: Option<&String>,
    ) -> Result<(usize, String), Failure> {
        for problem in &self.problems {
            print_notice(problem);
        }
        let end = match response {
            None => self.branch.len(),
            Some(number) => self.nth_request(number)?,
        };
        let model = model.cloned().or_else(|| self.model_of_request(end)).ok_or_else(|| {
            Failure::with_hint("the session does not name its model", "name one with --model")
        })?;
        Ok((end, model))
    }

    /// Model of the request at index `end`; for the next request, the model that was used or chosen last.
    pub(crate) fn model_of_request(&self, end: usize) -> Option<String> {
        let model = |entry: &LogEntry| match &entry.body {
            EntryBody::Request(request) if request.source.is_conversation() && !request.model.is_empty() => {
                Some(request.model.to_string())
            }
            _ => None,
        };
        let chosen = |entry: &LogEntry| match (entry.decision(), &entry.body) {
            (Some(DecisionKind::Model { model }), _) => Some(model.to_string()),
            // The snapshot contains the model chosen before it.
            (_, EntryBody::Boundary(boundary)) => boundary.snapshot.model.as_ref().map(ToString::to_string),
            _ => model(entry),
        };
        let (before, after) = self.branch.split_at(end);
        after.iter().find_map(model).or_else(|| before.iter().rev().find_map(chosen))
    }
}

/// Whether a file is a log of pal, by its first and last lines.
pub(crate) fn is_log(path: &Path) -> bool {
    LogReader::open(path).and_then(|reader| reader.is_log()).unwrap_or(false)
}

/// Imports the contents of a file.
pub(crate) fn import_source(
    path: &Path,
    source: &[u8],
    strict: bool,
    settings: &Settings,
) -> Result<pal_import::ImportedSession, Failure> {
    let measure = CardEstimator { cards: &settings.cards };
    let imported = pal_import::import(source, &ImportOptions { measure: &measure, strict });
    imported.map_err(|error| import_failure(path, &error))
}

/// Imports the contents of a file with ids of its own, beside another copy of the same session.
pub(crate) fn import_copy(
    path: &Path,
    source: &[u8],
    settings: &Settings,
) -> Result<pal_import::ImportedSession, Failure> {
    let measure = CardEstimator { cards: &settings.cards };
    let imported = pal_import::import_copy(source, &ImportOptions { measure: &measure, strict: false });
    imported.map_err(|error| import_failure(path, &error))
}

fn import_failure(path: &Path, error: &pal_import::ImportError) -> Failure {
    let what = format!("{}: {error}", path.display());
    match error {
        pal_import::ImportError::NotRecognised { .. } => Failure::with_hint(
            what,
            "pal reads sessions of Claude Code, Codex, pi, Copilot CLI, Gemini CLI and mini-swe-agent, and its own logs",
        ),
        pal_import::ImportError::Strict { .. } => {
            Failure::with_hint(what, "without --strict, the line is kept aside and the rest is imported")
        }
        pal_import::ImportError::AlreadyOurs => {
            Failure::with_hint(what, "use it as it is: pal tokens, pal render")
        }
    }
}

/// Reads a session file. Rejects directories, pipes and oversized files.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, Failure> {
    let failure = |error: std::io::Error| Failure::of_file(path, &error);
    // Checked before opening: opening a pipe without a writer would block.
    let kind = std::fs::metadata(path).map_err(failure)?;
    if kind.is_dir() {
        return Err(Failure::with_hint(
            format!("{}: is a directory", path.display()),
            "name a session file in it",
        ));
    }
    if !kind.is_file() {
        return Err(Failure::with_hint(
            format!("{}: is not a regular file", path.display()),
            "copy its contents into a file first",
        ));
    }
    if kind.len() > BYTES_MAX {
        return Err(Failure::new(format!(
            "{}: {} bytes is too large for a session",
            path.display(),
            kind.len()
        )));
    }
    let mut file = File::open(path).map_err(failure)?;
    let mut bytes = Vec::new();
    file.by_ref().take(FIRST_LINE_MAX as u64).read_to_end(&mut bytes).map_err(failure)?;
    if bytes.len() == FIRST_LINE_MAX && !bytes.contains(&b'\n') {
        return Err(Failure::new(format!(
            "{}: line 1 is longer than {} MB: not a session",
            path.display(),
            FIRST_LINE_MAX >> 20
        )));
    }
    // One byte above the limit reveals a file that grew while it was read.
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failure)?;
    Ok(bytes)
}

/// The card of a model; adds a notice if the model is unknown or deprecated.
pub(crate) fn card(settings: &Settings, model: &str, notices: &Notices) -> ModelCard {
    let found = settings.cards.find(&full_model_name(model, settings));
    if let Some(notice) = found.notice {
        let known: Vec<&str> = settings.cards.names().chain(MODEL_ALIASES).collect();
        let is_unknown = settings.cards.table_name(model).is_none();
        match closest_word(model, &known).filter(|_| is_unknown) {
            Some(near) => notices.add(format_args!("{notice} Did you mean `{near}`?")),
            None => notices.add(notice),
        }
    }
    found.card
}

/// Lens for a model card.
pub(crate) fn lens(card: &ModelCard, estimator: EstimatorSetting, scope: ViewScope) -> Lens {
    let estimator = match estimator {
        EstimatorSetting::Calibrated => Estimator::shipped(card.generation),
        EstimatorSetting::Classic => Estimator::classic(),
    };
    Lens { card: card.clone(), estimator, scope }
}
