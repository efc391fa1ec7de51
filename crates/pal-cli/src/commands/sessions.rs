//! `pal sessions`: the sessions that are kept of a project, or of all.

mod digest;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, UNIX_EPOCH};

use pal_model::{Cards, Timestamp};
use serde_json::{Value, json};

use crate::arguments::{ColourName, Sessions};
use crate::colour::{Colours, clipped, columns};
use crate::failure::Failure;
use crate::kept::{self, Kept};
use crate::settings::Settings;
use crate::stored::now;
use crate::table::{counted, money, thousands};
use digest::Digest;

/// How much of an id is shown at least.
const ID_CHARACTERS: usize = 8;
/// After so long, a person who waits is told what for.
const PATIENCE: Duration = Duration::from_secs(1);

/// A session of the list.
struct Row {
    kept: Kept,
    digest: Digest,
    /// Size of the session's folder: its log, outputs, notes and subagents.
    disk_bytes: u64,
    /// When something last happened in it.
    active: Timestamp,
}

pub(crate) fn sessions(
    arguments: &Sessions,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let Some(home) = settings.home.as_deref() else {
        return Err(Failure::with_hint(
            "no home is known",
            "set HOME, or PAL_HOME to where pal keeps its files",
        ));
    };
    let (project, sessions) = if arguments.all {
        (None, kept::all(home))
    } else {
        let directory = directory(arguments.directory.as_deref())?;
        let (project, sessions) = kept::of_directory(home, &directory);
        (Some(project), sessions)
    };
    let mut rows = newest_first(read(&sessions, &settings.cards));
    let (count, disk_bytes) = (rows.len(), rows.iter().map(|row| row.disk_bytes).sum());
    let hidden = rows.len().saturating_sub(arguments.limit.unwrap_or(usize::MAX));
    rows.truncate(arguments.limit.unwrap_or(usize::MAX));
    if arguments.json {
        let list: Vec<Value> = rows.iter().map(object).collect();
        writeln!(out, "{}", Value::from(list))?;
        return Ok(ExitCode::SUCCESS);
    }
    if rows.is_empty() {
        let of = project.map_or(String::new(), |project| format!(" of {}", project.display()));
        writeln!(out, "No session{of} is kept.")?;
        writeln!(out, "`pal -p` begins one, `pal import` takes those of other agents over.")?;
        return Ok(ExitCode::SUCCESS);
    }
    let ids: Vec<String> = kept::all(home).into_iter().map(|kept| kept.id).collect();
    let page = Page {
        colours: Colours::of(ColourName::Auto),
        columns: columns(),
        now: now(),
        id: distinct(ids),
        is_all: arguments.all,
    };
    rows.iter().try_for_each(|row| page.row(row, out))?;
    if hidden > 0 {
        writeln!(out, "… and {hidden} older")?;
    }
    let outputs = pal_store::total_bytes(&pal_store::list_outputs(home));
    let limit = settings.output_limits.total_bytes_max;
    writeln!(
        out,
        "{}: {} on disk; outputs of all projects: {} of {} (`pal gc`)",
        counted(count, "session"),
        format_bytes(disk_bytes),
        format_bytes(outputs),
        format_bytes(limit)
    )?;
    Ok(ExitCode::SUCCESS)
}

/// A session as it is offered for going on with.
pub(crate) struct SessionRow {
    pub(crate) id: String,
    pub(crate) log: PathBuf,
    /// Where it began.
    pub(crate) directory: Option<PathBuf>,
    pub(crate) active: Timestamp,
    pub(crate) title: String,
    /// When something last happened in it.
    pub(crate) ago: String,
    /// Its cost and sizes.
    pub(crate) facts: String,
}

/// The sessions of the project that we stand in, the newest first.
pub(crate) fn session_rows(settings: &Settings) -> Result<Vec<SessionRow>, Failure> {
    session_rows_of(Some(&directory(None)?), settings)
}

/// The sessions of the project of a directory, or all, the newest first.
pub(crate) fn session_rows_of(
    directory: Option<&Path>,
    settings: &Settings,
) -> Result<Vec<SessionRow>, Failure> {
    let Some(home) = settings.home.as_deref() else { return Ok(Vec::new()) };
    let sessions = match directory {
        Some(directory) => kept::of_directory(home, directory).1,
        None => kept::all(home),
    };
    let now = now();
    let row = |row: Row| SessionRow {
        title: row.digest.title.clone().unwrap_or_else(|| String::from("(no prompt yet)")),
        ago: ago(row.active, now),
        facts: facts(&row.digest, row.disk_bytes),
        directory: row.digest.session.as_ref().and_then(|session| session.cwd.clone()).map(PathBuf::from),
        active: row.active,
        id: row.kept.id,
        log: row.kept.log,
    };
    Ok(newest_first(read(&sessions, &settings.cards)).into_iter().map(row).collect())
}

fn newest_first(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by(|one, other| (other.active, &other.kept.id).cmp(&(one.active, &one.kept.id)));
    rows
}

fn directory(given: Option<&Path>) -> Result<PathBuf, Failure> {
    match given {
        Some(given) => given.canonicalize().map_err(|error| Failure::of_file(given, &error)),
        None => std::env::current_dir().map_err(|error| {
            Failure::with_hint(format!("the current directory: {error}"), "name a directory, or use --all")
        }),
    }
}

/// Reads the logs, several at once.
fn read(sessions: &[Kept], cards: &Cards) -> Vec<Row> {
    let (next, done, started) = (AtomicUsize::new(0), AtomicUsize::new(0), Instant::now());
    let is_told = std::io::stderr().is_terminal();
    let work = |tells: bool| {
        let mut rows = Vec::new();
        while let Some(kept) = sessions.get(next.fetch_add(1, Ordering::Relaxed)) {
            let digest = digest::of(&kept.log, cards);
            let active = digest.last.unwrap_or_else(|| written(&kept.log));
            let disk_bytes = kept.log.parent().map_or(0, pal_store::directory_bytes);
            rows.push(Row { kept: kept.clone(), digest, disk_bytes, active });
            let count = done.fetch_add(1, Ordering::Relaxed) + 1;
            if tells && started.elapsed() > PATIENCE {
                eprint!("\r\x1b[2Kreading sessions: {count} of {} …", sessions.len());
            }
        }
        rows
    };
    let helpers = std::thread::available_parallelism().map_or(1, |count| count.get().min(8)) - 1;
    let rows = std::thread::scope(|scope| {
        let helpers: Vec<_> = (0..helpers).map(|_| scope.spawn(|| work(false))).collect();
        let mut rows = work(is_told);
        rows.extend(helpers.into_iter().filter_map(|helper| helper.join().ok()).flatten());
        rows
    });
    if is_told && started.elapsed() > PATIENCE {
        eprint!("\r\x1b[2K");
    }
    rows
}

/// When a file was last written.
fn written(log: &Path) -> Timestamp {
    let time = log.metadata().and_then(|metadata| metadata.modified()).ok();
    let since = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    Timestamp::from_milliseconds(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// How many characters tell every id from all others.
fn distinct(mut ids: Vec<String>) -> usize {
    ids.sort();
    let shared = |pair: &[String]| {
        pair[0].bytes().zip(pair[1].bytes()).take_while(|(one, other)| one == other).count()
    };
    ids.windows(2).map(|pair| shared(pair) + 1).max().unwrap_or(0).max(ID_CHARACTERS)
}

/// A session for programs.
fn object(row: &Row) -> Value {
    let Row { kept, digest, disk_bytes, active } = row;
    let spent = &digest.spent;
    json!({
        "id": kept.id, "title": digest.title, "last_active": active, "entries": digest.entries, "bytes": digest.bytes,
        "disk_bytes": disk_bytes, "responses": spent.responses, "tokens": digest.tokens(),
        "usage": {
            "input_tokens": spent.input_tokens, "cache_creation_input_tokens": spent.cache_creation_input_tokens,
            "cache_read_input_tokens": spent.cache_read_input_tokens, "output_tokens": spent.output_tokens,
        },
        "cost_usd": digest.cost(), "unpriced_responses": digest.unpriced, "model": digest.model,
        "cwd": digest.session.as_ref().and_then(|session| session.cwd.clone()),
        "program": digest.session.as_ref().map(|session| session.program.clone()),
        "foreign_id": digest.session.as_ref().and_then(|session| session.foreign_id.clone()),
        "path": kept.log.to_string_lossy(), "problem": digest.problem, "bad_lines": digest.bad_lines,
    })
}

/// The list for people: two lines a session.
struct Page {
    colours: Colours,
    columns: usize,
    now: Timestamp,
    /// Characters of an id.
    id: usize,
    is_all: bool,
}

impl Page {
    fn row(&self, row: &Row, out: &mut dyn Write) -> Result<(), Failure> {
        let Row { kept, digest, disk_bytes, active } = row;
        let id: String = kept.id.chars().take(self.id).collect();
        let indent = " ".repeat(id.chars().count() + 2);
        let ago = ago(*active, self.now);
        let room = self.columns.saturating_sub(indent.len() + ago.chars().count() + 2);
        let title = clipped(digest.title.as_deref().unwrap_or("(no prompt yet)"), room);
        // Wide characters take two columns each, so the time is not put to the right of the title by counting them.
        writeln!(
            out,
            "{}  {}  {}",
            self.colours.cyan(&id),
            self.colours.bold(&title),
            self.colours.dim(&ago)
        )?;
        let facts = clipped(&facts(digest, *disk_bytes), self.columns - indent.len());
        writeln!(out, "{indent}{}", self.colours.dim(&facts))?;
        if let Some(cwd) =
            digest.session.as_ref().and_then(|session| session.cwd.as_ref()).filter(|_| self.is_all)
        {
            let cwd = clipped(cwd, self.columns - indent.len());
            writeln!(out, "{indent}{}", self.colours.dim(&cwd))?;
        }
        if let Some(problem) = &digest.problem {
            let count = match digest.bad_lines {
                0 | 1 => String::new(),
                lines => format!(" ({})", counted(lines as usize, "bad line")),
            };
            let line = clipped(&format!("damaged{count}: {problem}"), self.columns - indent.len());
            writeln!(out, "{indent}{}", self.colours.yellow(&line))?;
        }
        Ok(())
    }
}

/// What is known of a session, in one line.
fn facts(digest: &Digest, disk_bytes: u64) -> String {
    // What matters most stands first: the end is cut where a line does not fit.
    let mut facts = Vec::new();
    if digest.spent.responses > 0 {
        let more = if digest.unpriced > 0 { " and more" } else { "" };
        let cost = digest.cost().map(|cost| format!("{}{more}", money(cost)));
        facts.push(cost.unwrap_or_else(|| String::from("price not known")));
        facts.push(format!("{} tokens", short(digest.tokens())));
    }
    facts.push(match digest.entries {
        1 => String::from("1 entry"),
        entries => format!("{} entries", thousands(entries)),
    });
    facts.push(format_bytes(disk_bytes));
    facts.extend(digest.model.as_ref().map(ToString::to_string));
    facts.join(" · ")
}

/// A number in three digits or so.
fn short(count: u64) -> String {
    let count_f64 = count as f64;
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{:.1} K", count_f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} M", count_f64 / 1e6),
        _ => format!("{:.1} G", count_f64 / 1e9),
    }
}

/// A size in three digits or so.
pub(super) fn format_bytes(count: u64) -> String {
    if count < 1_000 { format!("{count} B") } else { format!("{}B", short(count)) }
}

/// How long ago something was, in its largest unit; after a week, the day.
pub(super) fn ago(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.milliseconds().saturating_sub(at.milliseconds()) / 1_000;
    match seconds {
        ..60 => String::from("just now"),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        86_400..604_800 => format!("{} d ago", seconds / 86_400),
        _ => at.to_string().chars().take(10).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_short() {
        assert_eq!([999, 1_234, 12_345_678, 3_000_000_000].map(short), ["999", "1.2 K", "12.3 M", "3.0 G"]);
        assert_eq!([7, 1_234].map(format_bytes), ["7 B", "1.2 KB"]);
        let now: Timestamp = "2026-11-16T12:00:00.000Z".parse().unwrap();
        let before = [
            "2026-11-16T12:00:30.000Z",
            "2026-11-16T11:58:00.000Z",
            "2026-11-15T13:00:00.000Z",
            "2026-11-13T12:00:00.000Z",
            "2026-10-01T12:00:00.000Z",
        ];
        let told = before.map(|at| ago(at.parse().unwrap(), now));
        assert_eq!(told, ["just now", "2 min ago", "23 h ago", "3 d ago", "2026-10-01"]);
    }

    #[test]
    fn ids_are_shown_as_far_as_they_differ() {
        let ids = |ids: &[&str]| distinct(ids.iter().map(|id| (*id).to_owned()).collect());
        assert_eq!(ids(&["0199a8f2-7b10", "0199a8f2-7c10", "0200"]), 11);
        assert_eq!((ids(&["a", "b"]), ids(&[])), (8, 8));
    }
}
