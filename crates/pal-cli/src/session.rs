//! Sessions from files: a log of ours as it is, another agent's file imported in memory.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use pal_import::{Format, Measure, Options, detect};
use pal_model::{Body, Card, Cards, DecisionKind, Entry, Text};
use pal_store::{Line, OmittedHistory, OpenError, ReadError, Reader};
use pal_view::{Estimator, Lens, Scope};

use crate::aside;
use crate::failure::Failure;
use crate::progress::ReadingLog;
use crate::settings::{EstimatorName, Settings};

/// Larger files are refused: a session of this size was not written by an agent.
const BYTES_MAX: u64 = 2 << 30;
/// A file whose first line is longer than this has no lines.
const FIRST_LINE_MAX: usize = 256 << 20;

/// A session that was read.
#[derive(Default)]
pub(crate) struct Session {
    /// The branch of the last entry, whole.
    pub(crate) branch: Vec<Entry>,
    /// What could not be read.
    pub(crate) problems: Vec<String>,
    /// What no context window holds and a resume therefore leaves out.
    pub(crate) left_out: Option<OmittedHistory>,
}

impl Session {
    /// Reads a session file of any format.
    pub(crate) fn read(path: &Path, settings: &Settings) -> Result<Session, Failure> {
        if is_log(path) {
            return Session::read_log(path).map_err(|error| Failure::new(error.to_string()));
        }
        let source = read_file(path)?;
        if detect(&source) == Some(Format::Palimpsest) {
            drop(source);
            return Session::read_log(path).map_err(|error| Failure::new(error.to_string()));
        }
        Session::imported(path, &source, settings)
    }

    /// Reads all entries of a session file of any format, those of branches that were left included.
    pub(crate) fn read_all(path: &Path, settings: &Settings) -> Result<Session, Failure> {
        if !is_log(path) {
            let source = read_file(path)?;
            if detect(&source) != Some(Format::Palimpsest) {
                return Session::imported(path, &source, settings);
            }
        }
        let log = Reader::open(path).map_err(|error| Failure::new(error.to_string()))?;
        let mut whole = Session::default();
        let mut ids = HashSet::new();
        let mut is_damaged = false;
        for line in log.lines() {
            match line {
                Ok(Line { entry, offset, is_altered, .. }) => {
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

    /// A session of another agent, imported in memory.
    fn imported(path: &Path, source: &[u8], settings: &Settings) -> Result<Session, Failure> {
        let imported = import_source(path, source, false, settings)?;
        let mut branch = Vec::new();
        let whole = Text::from(imported.log);
        for line in whole.lines() {
            let entry = Entry::parse(whole.slice_of(line)).map_err(|error| {
                Failure::new(format!("{}: import wrote a bad entry: {error}", path.display()))
            })?;
            branch.push(entry);
        }
        Ok(Session { branch, ..Session::default() })
    }

    /// Reads a log of ours, whole.
    pub(crate) fn read_log(path: &Path) -> Result<Session, OpenError> {
        let _reading = ReadingLog::new(path);
        let branch = Reader::open(path)?.whole_branch()?;
        let problems = branch.problems.iter().map(ToString::to_string).collect();
        Ok(Session { branch: branch.entries, problems, left_out: branch.left_out })
    }

    /// Reads of a log of ours what the next request needs, however long the log is.
    pub(crate) fn read_resumed(path: &Path) -> Result<Session, OpenError> {
        let _reading = ReadingLog::new(path);
        let branch = Reader::open(path)?.branch()?;
        let problems = branch.problems.iter().map(ToString::to_string).collect();
        Ok(Session { branch: branch.entries, problems, left_out: branch.left_out })
    }

    /// Where in the branch the requests of the conversation stand that got a response, in order.
    pub(crate) fn answered_requests(&self) -> Vec<usize> {
        let mut answered = Vec::new();
        let mut open = None;
        for (at, entry) in self.branch.iter().enumerate() {
            match &entry.body {
                Body::Request(request) if request.source.is_conversation() => open = Some(at),
                Body::Response(response) if response.source.is_conversation() => answered.extend(open.take()),
                _ => {}
            }
        }
        answered
    }

    /// Where the request stands that the response with this number, counted from 1, is an answer to.
    pub(crate) fn nth_request(&self, number: usize) -> Result<usize, Failure> {
        let requests = self.answered_requests();
        number.checked_sub(1).and_then(|at| requests.get(at).copied()).ok_or_else(|| {
            Failure::with_hint(
                format!("there is no response {number}: the session has {}", requests.len()),
                format!("give a number from 1 to {}", requests.len()),
            )
        })
    }

    /// Where the branch ends for a look at the next request, or at the one behind a response, and the model that it
    /// asks. What could not be read is told.
    pub(crate) fn looked_at(
        &self,
        response: Option<usize>,
        model: Option<&String>,
    ) -> Result<(usize, String), Failure> {
        for problem in &self.problems {
            aside::tell(problem);
        }
        let end = match response {
            None => self.branch.len(),
            Some(number) => self.nth_request(number)?,
        };
        let model = model.cloned().or_else(|| self.model_of_request(end)).ok_or_else(|| {
            Failure::with_hint("the session does not say which model it asked", "name one with --model")
        })?;
        Ok((end, model))
    }

    /// The model that the request at `end` asks; for the next request, the one that was asked or chosen last.
    pub(crate) fn model_of_request(&self, end: usize) -> Option<String> {
        let model = |entry: &Entry| match &entry.body {
            Body::Request(request) if request.source.is_conversation() && !request.model.is_empty() => {
                Some(request.model.to_string())
            }
            _ => None,
        };
        let chosen = |entry: &Entry| match (entry.decision(), &entry.body) {
            (Some(DecisionKind::Model { model }), _) => Some(model.to_string()),
            // Its snapshot knows what was chosen before it.
            (_, Body::Boundary(boundary)) => boundary.snapshot.model.as_ref().map(ToString::to_string),
            _ => model(entry),
        };
        let (before, after) = self.branch.split_at(end);
        after.iter().find_map(model).or_else(|| before.iter().rev().find_map(chosen))
    }
}

/// Finds out whether a file is a log of ours, by its first and last lines.
pub(crate) fn is_log(path: &Path) -> bool {
    Reader::open(path).and_then(|reader| reader.is_log()).unwrap_or(false)
}

/// Imports a source that was read.
pub(crate) fn import_source(
    path: &Path,
    source: &[u8],
    strict: bool,
    settings: &Settings,
) -> Result<pal_import::Imported, Failure> {
    let measure = ByCard { cards: &settings.cards };
    pal_import::import(source, &Options { measure: &measure, strict }).map_err(|error| {
        let what = format!("{}: {error}", path.display());
        match error {
            pal_import::ImportError::NotRecognised { .. } => Failure::with_hint(
                what,
                "pal reads sessions of Claude Code, Codex, pi, Copilot CLI, Gemini CLI and mini-swe-agent, and its own logs",
            ),
            pal_import::ImportError::Strict { .. } => {
                Failure::with_hint(what, "without --strict the line is kept aside and the rest is imported")
            }
            pal_import::ImportError::AlreadyOurs => {
                Failure::with_hint(what, "use it as it is: pal tokens, pal render")
            }
        }
    })
}

/// Reads a whole file that is meant to be a session: no directory, no pipe, nothing without end.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, Failure> {
    let failure = |error: std::io::Error| Failure::of_file(path, &error);
    // Asked before opening: opening a pipe that nobody writes to would wait for ever.
    let kind = std::fs::metadata(path).map_err(failure)?;
    if kind.is_dir() {
        return Err(Failure::with_hint(
            format!("{}: this is a directory", path.display()),
            "name a session file in it",
        ));
    }
    if !kind.is_file() {
        return Err(Failure::with_hint(
            format!("{}: this is no regular file", path.display()),
            "copy what it gives into a file first",
        ));
    }
    if kind.len() > BYTES_MAX {
        return Err(Failure::new(format!(
            "{}: {} bytes are too many for a session",
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
    // One byte more than allowed shows a file that grew while it was read.
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failure)?;
    Ok(bytes)
}

/// The card of a model, with a notice on standard error if there is something to know.
pub(crate) fn card(settings: &Settings, model: &str) -> Card {
    let found = settings.cards.find(model);
    if let Some(notice) = found.notice {
        aside::tell(notice);
    }
    found.card
}

/// A lens for a card.
pub(crate) fn lens(card: &Card, estimator: EstimatorName, scope: Scope) -> Lens {
    let estimator = match estimator {
        EstimatorName::Calibrated => Estimator::shipped(card.generation),
        EstimatorName::Classic => Estimator::classic(),
    };
    Lens { card: card.clone(), estimator, scope }
}

/// Token estimates for imports: by the generation of the model's card.
struct ByCard<'a> {
    cards: &'a Cards,
}

impl Measure for ByCard<'_> {
    fn text(&self, model: &str, text: &str) -> f64 {
        Estimator::shipped(self.cards.find(model).card.generation).text(text)
    }

    fn json(&self, model: &str, json: &str) -> f64 {
        Estimator::shipped(self.cards.find(model).card.generation).json(json)
    }
}
