//! `pal sessions`: the stored sessions of a project, or all of them.

use std::fmt;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use pal_model::text::count_noun;
use pal_model::{ModelCatalog, Timestamp};
use pal_report::stored_sessions::{self, StoredSession};
use pal_report::{
    SessionList, SessionSummary, distinct_id_chars, format_age, format_bytes, format_count, format_usd,
    read_summaries,
};
use serde_json::Value;

use crate::arguments::SessionsArgs;
use crate::failure::Failure;
use crate::open_session::now;
use crate::settings::Settings;
use crate::terminal_style::{auto_style, columns};

/// Time after which the progress of reading is shown.
const PROGRESS_DELAY: Duration = Duration::from_secs(1);

pub(crate) fn sessions(
    arguments: &SessionsArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let Some(home) = settings.home.as_deref() else {
        return Err(Failure::with_hint(
            "no home directory is known",
            "set HOME, or set PAL_HOME to the directory for pal's files",
        ));
    };
    let (project, sessions) = if arguments.all {
        (None, stored_sessions::list_sessions(home))
    } else {
        let directory = directory(arguments.directory.as_deref())?;
        let (project, sessions) = stored_sessions::project_sessions(home, &directory);
        (Some(project), sessions)
    };
    let all = stored_sessions::list_sessions(home);
    let mut rows = read(&sessions, &all, &settings.cards);
    let totals = SessionTotals::of(&rows);
    let hidden = rows.len().saturating_sub(arguments.limit.unwrap_or(usize::MAX));
    rows.truncate(arguments.limit.unwrap_or(usize::MAX));
    if arguments.json {
        let list: Vec<Value> = rows.iter().map(SessionSummary::to_json).collect();
        writeln!(out, "{}", Value::from(list))?;
        return Ok(ExitCode::SUCCESS);
    }
    let ids: Vec<String> = all.into_iter().map(|kept| kept.id).collect();
    let elsewhere = ids.len().saturating_sub(totals.sessions);
    if rows.is_empty() {
        let of = project.map_or(String::new(), |project| format!(" for {}", project.display()));
        writeln!(out, "No sessions found{of}.")?;
        if elsewhere > 0 {
            let others = count_noun(elsewhere, "session");
            writeln!(
                out,
                "{others} in other directories: `pal sessions --all`; `pal -r ID` resumes any of them."
            )?;
        }
        writeln!(out, "Start one with `pal`, or convert sessions of other agents with `pal import`.")?;
        return Ok(ExitCode::SUCCESS);
    }
    let list =
        SessionList { sessions: &rows, id_chars: distinct_id_chars(ids), with_directories: arguments.all };
    list.write_text(auto_style(), columns(), now(), out)?;
    if hidden > 0 {
        writeln!(out, "… and {hidden} older")?;
    }
    let outputs = pal_store::total_bytes(&pal_store::list_outputs(home));
    let limit = settings.output_limits.total_bytes_max;
    writeln!(out, "{totals}")?;
    writeln!(
        out,
        "outputs of all projects: {} of {} (`pal gc`)",
        format_bytes(outputs),
        format_bytes(limit)
    )?;
    if elsewhere > 0 {
        writeln!(
            out,
            "{} in other directories: `pal sessions --all`",
            count_noun(elsewhere, "more session")
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Sums over the sessions of a list.
#[derive(Default)]
struct SessionTotals {
    sessions: usize,
    disk_bytes: u64,
    tokens: u64,
    /// Cost in US dollars; none if no session has a known price.
    cost: Option<f64>,
    /// Cost that a simulator computed.
    simulated_cost: f64,
    /// Responses without a known price.
    unpriced: u64,
}

impl SessionTotals {
    fn of(rows: &[SessionSummary]) -> SessionTotals {
        let mut totals = SessionTotals { sessions: rows.len(), ..SessionTotals::default() };
        for row in rows {
            totals.disk_bytes += row.disk_bytes;
            totals.tokens += row.digest.tokens();
            totals.cost = row.digest.cost().map(|cost| cost + totals.cost.unwrap_or(0.0)).or(totals.cost);
            totals.simulated_cost += row.digest.simulated_cost;
            totals.unpriced += row.digest.gaps.unpriced;
        }
        totals
    }
}

impl fmt::Display for SessionTotals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", count_noun(self.sessions, "session"))?;
        if let Some(cost) = self.cost {
            let more = if self.unpriced > 0 { " and more" } else { "" };
            write!(formatter, "{}{more}, ", format_usd(cost))?;
        }
        if self.simulated_cost > 0.0 {
            write!(formatter, "{} simulated, ", format_usd(self.simulated_cost))?;
        }
        if self.tokens > 0 {
            write!(formatter, "{} tokens, ", format_count(self.tokens))?;
        }
        write!(formatter, "{} on disk", format_bytes(self.disk_bytes))
    }
}

/// A session that can be resumed.
pub(crate) struct SessionRow {
    pub(crate) id: String,
    pub(crate) log: PathBuf,
    /// Directory that it started in.
    pub(crate) directory: Option<PathBuf>,
    pub(crate) active: Timestamp,
    pub(crate) title: String,
    /// Age of its last activity.
    pub(crate) ago: String,
    /// Cost and sizes.
    pub(crate) facts: String,
}

/// Lists the sessions of the current project, the most recent first.
pub(crate) fn session_rows(settings: &Settings) -> Result<Vec<SessionRow>, Failure> {
    session_rows_of(Some(&directory(None)?), settings)
}

/// Lists the sessions of the project of a directory, or all sessions, the most recent first.
pub(crate) fn session_rows_of(
    directory: Option<&Path>,
    settings: &Settings,
) -> Result<Vec<SessionRow>, Failure> {
    let Some(home) = settings.home.as_deref() else { return Ok(Vec::new()) };
    let sessions = match directory {
        Some(directory) => stored_sessions::project_sessions(home, directory).1,
        None => stored_sessions::list_sessions(home),
    };
    let now = now();
    let row = |row: SessionSummary| SessionRow {
        title: row.title().to_owned(),
        ago: format_age(row.active, now),
        facts: row.details(),
        directory: row.digest.session.as_ref().and_then(|session| session.cwd.clone()).map(PathBuf::from),
        active: row.active,
        id: row.stored.id,
        log: row.stored.log,
    };
    let all = stored_sessions::list_sessions(home);
    Ok(read(&sessions, &all, &settings.cards).into_iter().map(row).collect())
}

fn directory(given: Option<&Path>) -> Result<PathBuf, Failure> {
    match given {
        Some(given) => given.canonicalize().map_err(|error| Failure::of_file(given, &error)),
        None => std::env::current_dir().map_err(|error| {
            Failure::with_hint(format!("the current directory: {error}"), "name a directory, or use --all")
        }),
    }
}

/// Reads the logs; shows on a terminal how far it has come.
fn read(sessions: &[StoredSession], all: &[StoredSession], cards: &ModelCatalog) -> Vec<SessionSummary> {
    let started = Instant::now();
    let is_shown = std::io::stderr().is_terminal();
    let rows = read_summaries(sessions, all, cards, |count| {
        if is_shown && started.elapsed() > PROGRESS_DELAY {
            eprint!("\r\x1b[2Kreading sessions: {count} of {} …", sessions.len());
        }
    });
    if is_shown && started.elapsed() > PROGRESS_DELAY {
        eprint!("\r\x1b[2K");
    }
    rows
}
