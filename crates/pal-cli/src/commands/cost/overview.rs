//! The table over many sessions.

use std::collections::{BTreeSet, HashMap};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::RwLock;
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;
use pal_model::text::count_noun;
use pal_model::{ModelCatalog, TokenEstimator};
use pal_report::{
    AgentDirectories, CostOverview, DateRange, OverviewKey, OverviewOptions, UsageFiles, expand_pattern,
    is_pattern, list_session_files, parse_day, read_usage,
};
use pal_view::Estimator;

use crate::arguments::{CostArgs, OverviewArgs, OverviewKeyArg};
use crate::failure::Failure;
use crate::notices::Notices;
use crate::session_lookup::find;
use crate::settings::{Settings, variable};
use crate::terminal_style::{columns, style_for};

/// Maximum number of keys to group by.
const KEYS_MAX: usize = 4;
/// Time after which the progress of reading is shown.
const PROGRESS_DELAY: Duration = Duration::from_millis(500);

/// Returns true if the arguments name more than one session, or ask for a table.
pub(super) fn is_wanted(arguments: &CostArgs) -> bool {
    let OverviewArgs { all, by, since, until, timezone, csv } = &arguments.overview;
    let is_asked = *all || *csv || !by.is_empty() || since.is_some() || until.is_some() || timezone.is_some();
    let is_several = match arguments.sessions.as_slice() {
        [one] => is_many(one),
        several => several.len() > 1,
    };
    is_asked || is_several
}

/// Returns true if a name stands for several files: a pattern, or a directory that is not a session of pal.
fn is_many(name: &str) -> bool {
    let path = Path::new(name);
    (path.is_dir() && !pal_store::log_path(path).is_file()) || (is_pattern(name) && !path.exists())
}

/// Shortest start of an id that is looked up among the sessions of other agents.
const FOREIGN_ID_CHARS_MIN: usize = 6;

pub(super) fn write(
    arguments: &CostArgs,
    settings: &Settings,
    notices: &Notices,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let given = &arguments.overview;
    if arguments.requests {
        return Err(Failure::usage_error("--requests lists the requests of one session", "name one session"));
    }
    if arguments.savings {
        return Err(Failure::usage_error("--savings replays one session", "name one session"));
    }
    let time_zone = time_zone(given.timezone.as_deref())?;
    let range = date_range(given, &time_zone)?;
    let keys = keys(&given.by)?;
    let is_all = given.all || arguments.sessions.is_empty();
    if given.all && !arguments.sessions.is_empty() {
        return Err(Failure::usage_error(
            "--all already covers every session",
            "drop --all, or the names of sessions",
        ));
    }
    let (files, roots) = if is_all { all_files(settings)? } else { named_files(arguments, settings)? };
    let found = read(&files, &roots, settings, notices);
    let options = OverviewOptions { keys: &keys, range, time_zone, cards: &settings.cards };
    let overview = CostOverview::new(&found, &options);
    if given.csv {
        overview.write_csv(out)?;
    } else if arguments.json {
        writeln!(out, "{}", overview.to_json())?;
    } else {
        overview.write_text(style_for(arguments.color), columns(), std::io::stdout().is_terminal(), out)?;
        super::write_day(settings, false, out)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn keys(given: &[OverviewKeyArg]) -> Result<Vec<OverviewKey>, Failure> {
    let mut keys = Vec::new();
    for key in given {
        let key = match key {
            OverviewKeyArg::Day => OverviewKey::Day,
            OverviewKeyArg::Week => OverviewKey::Week,
            OverviewKeyArg::Month => OverviewKey::Month,
            OverviewKeyArg::Project => OverviewKey::Project,
            OverviewKeyArg::Model => OverviewKey::Model,
            OverviewKeyArg::Agent => OverviewKey::Agent,
            OverviewKeyArg::Session => OverviewKey::Session,
        };
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    if keys.len() > KEYS_MAX {
        return Err(Failure::usage_error(
            format!("--by accepts at most {KEYS_MAX} keys"),
            "leave some out, such as --by day,project",
        ));
    }
    if keys.is_empty() {
        keys.push(OverviewKey::Day);
    }
    Ok(keys)
}

fn time_zone(name: Option<&str>) -> Result<TimeZone, Failure> {
    match name {
        None => Ok(TimeZone::system()),
        Some(name) if name.eq_ignore_ascii_case("utc") => Ok(TimeZone::UTC),
        Some(name) => TimeZone::get(name).map_err(|_| {
            Failure::usage_error(
                format!("--timezone {name}: no such time zone"),
                "name one of the IANA list, such as Europe/Berlin, or UTC",
            )
        }),
    }
}

fn date_range(given: &OverviewArgs, time_zone: &TimeZone) -> Result<DateRange, Failure> {
    let today = jiff::Timestamp::now().to_zoned(time_zone.clone()).date();
    let day = |option: &str, text: &Option<String>| match text {
        None => Ok(None),
        Some(text) => parse_day(text, today).map(Some).ok_or_else(|| {
            Failure::usage_error(
                format!("{option} {text}: not a day"),
                "write it as 2026-11-01, 20261101, today, yesterday, or an age such as 7d or 4w",
            )
        }),
    };
    let range = DateRange { since: day("--since", &given.since)?, until: day("--until", &given.until)? };
    if let (Some(since), Some(until)) = (range.since, range.until)
        && since > until
    {
        return Err(Failure::usage_error(
            format!("--since {since} is after --until {until}"),
            "swap the two days",
        ));
    }
    Ok(range)
}

/// Session files of all agents, and the directories they are in.
fn all_files(settings: &Settings) -> Result<(Vec<PathBuf>, Vec<PathBuf>), Failure> {
    let places = AgentDirectories {
        pal_home: settings.home.clone(),
        user_home: settings.user_home.clone(),
        claude_config: variable("CLAUDE_CONFIG_DIR"),
        codex_home: variable("CODEX_HOME").filter(|home| !home.is_empty()).map(PathBuf::from),
    };
    let roots: Vec<PathBuf> =
        places.session_roots().iter().map(|root| absolute(root)).collect::<Result<_, _>>()?;
    if roots.is_empty() {
        return Err(Failure::with_hint(
            "no sessions of any agent were found in your home directory",
            "name their directory: `pal cost DIRECTORY`",
        ));
    }
    let files: BTreeSet<PathBuf> = roots.iter().flat_map(|root| list_session_files(root)).collect();
    Ok((files.into_iter().collect(), roots))
}

/// Files that the arguments name, and the directories among them.
fn named_files(arguments: &CostArgs, settings: &Settings) -> Result<(Vec<PathBuf>, Vec<PathBuf>), Failure> {
    let (mut files, mut roots) = (BTreeSet::new(), Vec::new());
    for name in &arguments.sessions {
        let path = Path::new(name);
        if is_many(name) && path.is_dir() {
            let root = absolute(path)?;
            files.extend(list_session_files(&root));
            roots.push(root);
        } else if is_many(name) {
            let found = expand_pattern(name).map_err(|error| {
                Failure::usage_error(format!("{name}: {error}"), "quote the pattern, and close its brackets")
            })?;
            if found.is_empty() {
                return Err(Failure::with_hint(format!("no file matches {name}"), "check the pattern"));
            }
            for file in found {
                files.insert(absolute(&file)?);
            }
        } else {
            let log = find_any(name, settings)?;
            let agents = log.with_file_name("agents");
            if log.file_name().is_some_and(|name| name == "log.jsonl") && agents.is_dir() {
                files.extend(list_session_files(&absolute(&agents)?));
            }
            files.insert(absolute(&log)?);
        }
    }
    Ok((files.into_iter().collect(), roots))
}

/// Finds a session by its id, the start of it, or its file: a session of pal, else one of another agent.
pub(super) fn find_any(name: &str, settings: &Settings) -> Result<PathBuf, Failure> {
    let not_found = match find(name, settings) {
        Ok(log) => return Ok(log),
        Err(failure) => failure,
    };
    if name.len() < FOREIGN_ID_CHARS_MIN {
        return Err(not_found);
    }
    let Ok((files, _)) = all_files(settings) else { return Err(not_found) };
    let is_named = |file: &&PathBuf| {
        // The id is the name of the file, or follows its date.
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        stem.starts_with(name) || stem.contains(&format!("-{name}"))
    };
    let named: Vec<&PathBuf> = files.iter().filter(is_named).collect();
    match named.as_slice() {
        [] => Err(not_found),
        [file] => Ok((*file).clone()),
        [first, ..] => Err(Failure::with_hint(
            format!("{} session files of other agents have an id that starts with `{name}`", named.len()),
            format!("name the file, for example `pal cost {}`", first.display()),
        )),
    }
}

/// Absolute path with links resolved, so that a file has one name in the index.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    path.canonicalize().map_err(|error| Failure::of_file(path, &error))
}

fn read(files: &[PathBuf], roots: &[PathBuf], settings: &Settings, notices: &Notices) -> UsageFiles {
    let begun = Instant::now();
    let is_shown = notices.allows_progress() && std::io::stderr().is_terminal();
    let mut was_shown = false;
    let measure = CachedEstimators { cards: &settings.cards, known: RwLock::default() };
    let found = read_usage(files, roots, settings.home.as_deref(), &measure, |count| {
        if is_shown && begun.elapsed() > PROGRESS_DELAY && count % 16 == 0 {
            was_shown = true;
            eprint!("\r\x1b[2Kreading sessions: {count} of {} …", files.len());
        }
    });
    if was_shown {
        eprint!("\r\x1b[2K");
    }
    if let Some((path, error)) = found.unreadable.first() {
        let count = count_noun(found.unreadable.len(), "file");
        notices.add(format_args!("{count} could not be read; first: {}: {error}", path.display()));
    }
    if let Some(error) = &found.index_error {
        notices.add(format_args!(
            "the usage index was not saved, so the next run reads all files again: {error}"
        ));
    }
    found
}

/// Estimators of models, each looked up once: transcripts have thousands of small blocks.
struct CachedEstimators<'a> {
    cards: &'a ModelCatalog,
    known: RwLock<HashMap<String, Estimator>>,
}

impl CachedEstimators<'_> {
    fn estimator(&self, model: &str) -> Estimator {
        if let Some(known) = self.known.read().ok().and_then(|known| known.get(model).copied()) {
            return known;
        }
        let estimator = Estimator::shipped(self.cards.find(model).card.generation);
        if let Ok(mut known) = self.known.write() {
            known.insert(model.to_owned(), estimator);
        }
        estimator
    }
}

impl TokenEstimator for CachedEstimators<'_> {
    fn text(&self, model: &str, text: &str) -> f64 {
        self.estimator(model).text(text)
    }

    fn json(&self, model: &str, json: &str) -> f64 {
        self.estimator(model).json(json)
    }
}
