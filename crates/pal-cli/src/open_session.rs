//! Opening a saved session for changes.

use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use pal_agent::{cache_settings, directory_around, run_settings, session_directory};
use pal_engine::{EngineError, SessionConfig, cache_key};
use pal_model::{IdSource, LogEntry, ModelCard, Timestamp};
use pal_store::{LogReader, OpenError};
use pal_view::{ViewScope, WindowLimits};

use crate::failure::Failure;
use crate::loaded_session::{self, card, lens};
use crate::notices::{Notices, print_notice};
use crate::session_lookup::find;
use crate::settings::Settings;

/// A session that is open for changes, with its configuration.
pub(crate) struct OpenSession {
    pub(crate) path: PathBuf,
    pub(crate) session: pal_engine::Session,
    pub(crate) engine: SessionConfig,
    pub(crate) card: ModelCard,
    /// Routes its requests to one provider cache.
    pub(crate) cache_key: Option<String>,
    /// Directory of the session if the current directory is inside it; otherwise why its files are not read.
    pub(crate) files: Result<PathBuf, String>,
}

impl OpenSession {
    /// Opens a log and locks it: other programs can read it, none can write.
    pub(crate) fn open(name: &str, model: Option<&str>, settings: &Settings) -> Result<OpenSession, Failure> {
        let path = find(name, settings)?;
        let refuse = |error: OpenError| not_ours(&path, &error);
        let resumed = loaded_session::LoadedSession::read_resumed(&path).map_err(refuse)?;
        let card = model_card(&resumed, model, settings, &Notices::to_stderr())?;
        drop(resumed);
        let first = LogReader::open(&path).and_then(|reader| Ok(reader.entry_at(0)?)).map_err(refuse)?;
        let first: Vec<LogEntry> = match first {
            Some(first) => vec![first],
            // The first line is damaged.
            None => loaded_session::LoadedSession::read_log(&path).map_err(refuse)?.branch,
        };
        let cwd = session_directory(&path).map_err(refuse)?;
        let cache_key = cache_key(&first);
        let files = match (cwd, std::env::current_dir()) {
            (Some(cwd), Ok(current)) => directory_around(&current, &cwd),
            (None, _) => Err(String::from("the log does not name the session's directory")),
            (_, Err(error)) => Err(format!("the current directory: {error}")),
        };
        let lens = lens(&card, settings.estimator, ViewScope::Current);
        let session = pal_engine::Session::open(&path, lens, IdSource::seeded(random_seed()));
        let session = session.map_err(|error| refused(&path, &error))?;
        for problem in session.problems() {
            print_notice(problem);
        }
        if let Some(left_out) = session.left_out() {
            print_notice(left_out);
        }
        let engine = engine(&card, &path, settings);
        Ok(OpenSession { path, session, engine, card, cache_key, files })
    }
}

/// Configuration of a session with a model.
pub(crate) fn engine(card: &ModelCard, log: &Path, settings: &Settings) -> SessionConfig {
    let log = std::path::absolute(log).unwrap_or_else(|_| log.to_owned());
    let limits = WindowLimits::new(card, &settings.window_for(&card.model));
    let max_tokens = run_settings(settings, card).output_tokens;
    let mut engine = SessionConfig::for_log(&log, settings.context_policy(), limits, max_tokens)
        .with_cache(cache_settings(settings, card));
    if !settings.may_compact() {
        engine = engine.without_summaries();
    }
    pal_agent::apply_switches(&settings.switches, &mut engine);
    engine
}

/// Card of the named model, else of the session's own.
pub(crate) fn model_card(
    session: &loaded_session::LoadedSession,
    model: Option<&str>,
    settings: &Settings,
    notices: &Notices,
) -> Result<ModelCard, Failure> {
    let model = model.map(str::to_owned).or_else(|| session.model_of_request(session.branch.len()));
    let model = model
        .ok_or_else(|| Failure::with_hint("the session does not name its model", "name one with --model"))?;
    Ok(card(settings, &model, notices))
}

/// Current time.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_milliseconds(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Seed for the ids of this process.
pub(crate) fn random_seed() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// Error for a file that is not a log of pal.
fn not_ours(path: &Path, error: &OpenError) -> Failure {
    match error {
        OpenError::NotALog { .. } => Failure::with_hint(
            format!("{}: not a log of pal; other files are never changed", path.display()),
            format!("import another agent's session first: `pal import {}`", path.display()),
        ),
        _ => Failure::new(error.to_string()),
    }
}

/// Error for a session that does not open.
fn refused(path: &Path, error: &EngineError) -> Failure {
    match error {
        EngineError::Open(OpenError::Locked { pid, .. }) => {
            let holder = pid.map_or(String::from("another process"), |pid| format!("process {pid}"));
            Failure::with_hint(
                format!("{}: the session is open in {holder}", path.display()),
                "end that session first; pal view, pal tokens and pal render work on open sessions",
            )
        }
        EngineError::Open(error) => not_ours(path, error),
        _ => Failure::new(error.to_string()),
    }
}
