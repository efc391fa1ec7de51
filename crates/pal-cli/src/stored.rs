//! Sessions that are kept: finding one by path or id, and opening it to go on with it.

use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use pal_agent::directory_around;
use pal_context::cache::Eligibility;
use pal_context::thrifty::Thrift;
use pal_context::{Place, Policy};
use pal_engine::{CacheSettings, Engine, EngineError};
use pal_model::{Body, Card, Entry, IdSource, Timestamp};
use pal_settings::PolicyName;
use pal_store::{OpenError, Reader};
use pal_view::{CacheLifetime, Limits, Scope};
use smol_str::SmolStr;

use crate::aside;
use crate::carried::cache_key;
use crate::failure::Failure;
use crate::kept::{self, Kept};
use crate::session::{self, card, lens};
use crate::settings::Settings;

/// Tokens that a request asks for unless the user says otherwise.
pub(crate) const MAX_TOKENS: u64 = 8_000;

/// A session that is open for going on, and what it runs by.
pub(crate) struct Stored {
    pub(crate) path: PathBuf,
    pub(crate) session: pal_engine::Session,
    pub(crate) engine: Engine,
    pub(crate) card: Card,
    /// Steers its requests to one cache of the provider.
    pub(crate) cache_key: Option<String>,
    /// The directory that it works in, if we stand in it, too; or why files of it are not read.
    pub(crate) files: Result<PathBuf, String>,
}

impl Stored {
    /// Opens a log of ours. Other programs can read it meanwhile, none can write.
    pub(crate) fn open(name: &str, model: Option<&str>, settings: &Settings) -> Result<Stored, Failure> {
        let path = find(name, settings)?;
        let refuse = |error: OpenError| not_ours(&path, &error);
        let resumed = session::Session::read_resumed(&path).map_err(refuse)?;
        let card = model_card(&resumed, model, settings)?;
        drop(resumed);
        let first = Reader::open(&path).and_then(|reader| Ok(reader.entry_at(0)?)).map_err(refuse)?;
        let first: Vec<Entry> = match first {
            Some(first) => vec![first],
            // The first line is damaged.
            None => session::Session::read_log(&path).map_err(refuse)?.branch,
        };
        let cwd = first.iter().find_map(|entry| match &entry.body {
            Body::Session(session) => session.cwd.clone().map(PathBuf::from),
            _ => None,
        });
        let cache_key = cache_key(&first);
        let files = match (cwd, std::env::current_dir()) {
            (Some(cwd), Ok(current)) => directory_around(&current, &cwd),
            (None, _) => Err(String::from("the log does not say which directory the session worked in")),
            (_, Err(error)) => Err(format!("the current directory: {error}")),
        };
        let lens = lens(&card, settings.estimator, Scope::Current);
        let session = pal_engine::Session::open(&path, lens, IdSource::seeded(chance()));
        let session = session.map_err(|error| refused(&path, &error))?;
        for problem in session.problems() {
            aside::tell(problem);
        }
        if let Some(left_out) = session.left_out() {
            aside::tell(left_out);
        }
        let engine = engine(&card, &path, settings);
        Ok(Stored { path, session, engine, card, cache_key, files })
    }
}

/// What a session of a model runs by.
pub(crate) fn engine(card: &Card, log: &Path, settings: &Settings) -> Engine {
    let log = std::path::absolute(log).unwrap_or_else(|_| log.to_owned());
    let directory = log.parent().unwrap_or(Path::new("/"));
    let mut engine = Engine {
        policy: policy(settings),
        limits: Limits::new(card, &settings.window_for(&card.model)),
        place: Place { directory: directory.display().to_string(), transcript: log.display().to_string() },
        is_attended: true,
        ways: (!settings.may_compact()).then(Vec::new),
        max_tokens: MAX_TOKENS.min(card.max_output),
        cache: cache_settings(settings, card),
        inputs: pal_engine::Inputs::default(),
    };
    pal_agent::apply_switches(&settings.switches, &mut engine);
    engine
}

/// What decides what the model sees.
pub(crate) fn policy(settings: &Settings) -> Policy {
    match settings.policy {
        PolicyName::Classic => Policy::classic(),
        PolicyName::Thrifty => Policy::thrifty(Thrift { fidelity: settings.fidelity, pings: settings.pings }),
    }
}

/// What the provider's cache depends on, for a model.
pub(crate) fn cache_settings(settings: &Settings, card: &Card) -> CacheSettings {
    CacheSettings {
        eligibility: eligibility(settings),
        effort: settings.effort.clone(),
        betas: pal_wire::betas(card).into_iter().map(SmolStr::new_static).collect(),
        ..CacheSettings::default()
    }
}

/// Whether marks of the provider's cache may last for an hour.
pub(crate) fn eligibility(settings: &Settings) -> Eligibility {
    Eligibility { is_wanted: settings.cache_lifetime == CacheLifetime::Hour1, is_in_overage: false }
}

/// The card of the model that is named, or that the session asks next.
pub(crate) fn model_card(
    session: &session::Session,
    model: Option<&str>,
    settings: &Settings,
) -> Result<Card, Failure> {
    let model = model.map(str::to_owned).or_else(|| session.model_of_request(session.branch.len()));
    let model = model.ok_or_else(|| {
        Failure::with_hint("the session does not say which model it asked", "name one with --model")
    })?;
    Ok(card(settings, &model))
}

/// The time.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_milliseconds(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Where the ids of this process begin.
pub(crate) fn chance() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// The file of a session: a path, the folder of a session, or the id of one under our home, or how it begins.
pub(crate) fn find(name: &str, settings: &Settings) -> Result<PathBuf, Failure> {
    let path = Path::new(name);
    if path.is_dir() && pal_store::log_path(path).is_file() {
        return Ok(pal_store::log_path(path));
    }
    if path.exists() || path.components().count() > 1 {
        return Ok(path.to_owned());
    }
    let sessions = settings.home.as_deref().map_or(Vec::new(), kept::all);
    let mut found: Vec<&Kept> =
        sessions.iter().filter(|kept| !name.is_empty() && kept.id.starts_with(name)).collect();
    if found.is_empty() {
        let begins = |kept: &&Kept| foreign_id(&kept.log).is_some_and(|id| id.starts_with(name));
        found = sessions.iter().filter(begins).collect();
    }
    found.sort();
    match found.as_slice() {
        [kept] => Ok(kept.log.clone()),
        [] => Err(Failure::with_hint(
            format!(
                "{name}: there is no such file, and none of the {} sessions kept here begins so",
                sessions.len()
            ),
            "give the path of a log, or the id of a session: `pal sessions --all` lists them",
        )),
        several => {
            let ids: Vec<&str> = several.iter().take(5).map(|kept| kept.id.as_str()).collect();
            let more = if several.len() > 5 { " …" } else { "" };
            Err(Failure::with_hint(
                format!("{name}: {} sessions begin so: {}{more}", several.len(), ids.join(", ")),
                "give more of the id",
            ))
        }
    }
}

/// The id that another agent gave to the session of a log. Only the first line is read.
pub(crate) fn foreign_id(log: &Path) -> Option<String> {
    kept::beginning(log)?.foreign_id
}

/// A file that is no log of ours cannot be gone on with.
fn not_ours(path: &Path, error: &OpenError) -> Failure {
    match error {
        OpenError::NotALog { .. } => Failure::with_hint(
            format!("{}: this is no log of pal, and only those are changed", path.display()),
            format!("`pal import {}` makes one of a session of another agent; name that one", path.display()),
        ),
        _ => Failure::new(error.to_string()),
    }
}

/// Why a session does not open, with what to do.
fn refused(path: &Path, error: &EngineError) -> Failure {
    match error {
        EngineError::Open(OpenError::Locked { pid, .. }) => {
            let holder = pid.map_or(String::from("another process"), |pid| format!("process {pid}"));
            Failure::with_hint(
                format!("{}: the session is live: {holder} writes it", path.display()),
                "end that session first; looking is always possible: pal view, pal tokens, pal render",
            )
        }
        EngineError::Open(error) => not_ours(path, error),
        _ => Failure::new(error.to_string()),
    }
}
