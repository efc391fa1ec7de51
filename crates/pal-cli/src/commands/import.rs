//! `pal import`: converts sessions of other agents into logs of pal.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pal_import::{ImportReport, ImportedSession};
use pal_model::text::group_digits;
use pal_model::{EntryBody, EntryId, LogEntry, SharedText};
use pal_report::{TextTable, format_tokens, sanitize};
use pal_view::{ContextBreakdown, View, ViewScope};
use serde_json::json;

use crate::arguments::ImportArgs;
use crate::failure::Failure;
use crate::loaded_session::{import_source, lens, read_file};
use crate::notices::print_notice;
use crate::open_session::foreign_id;
use crate::settings::Settings;
use crate::terminal_style::{auto_style, bold, yellow};

/// Result of importing one file.
struct FileImport {
    report: ImportReport,
    ledger: ContextBreakdown,
    /// Path of the log; none if nothing was written.
    log: Option<PathBuf>,
    was_there: bool,
    /// The log of an earlier import of the same session, when the file has changed since.
    grown_from: Option<PathBuf>,
}

/// Sessions imported earlier, by project directory and foreign id.
#[derive(Default)]
struct EarlierImports {
    projects: BTreeMap<PathBuf, BTreeMap<String, PathBuf>>,
}

impl EarlierImports {
    /// Records `path` as the log of a session, and returns the log of an earlier import in `sessions`.
    fn replace(&mut self, sessions: &Path, foreign_id: &str, path: &Path) -> Option<PathBuf> {
        let known = self.projects.entry(sessions.to_owned()).or_insert_with(|| foreign_ids(sessions));
        known.insert(foreign_id.to_owned(), path.to_owned())
    }
}

/// Lists the imported sessions in a directory.
fn foreign_ids(sessions: &Path) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for folder in std::fs::read_dir(sessions).into_iter().flatten().flatten() {
        let path = pal_store::log_path(&folder.path());
        if let Some(id) = foreign_id(&path) {
            found.insert(id, path);
        }
    }
    found
}

pub(crate) fn import(
    arguments: &ImportArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let mut imported: Vec<(&Path, FileImport)> = Vec::new();
    let mut earlier = EarlierImports::default();
    let mut failures = 0;
    let mut is_read = true;
    for (at, file) in arguments.files.iter().enumerate() {
        show_progress(at, arguments);
        match import_one(file, arguments, settings, &mut earlier) {
            Ok(done) if arguments.json => {
                // The import goes on even if the output was closed.
                is_read =
                    is_read && writeln!(out, "{}", as_json(file, &done)).and_then(|()| out.flush()).is_ok();
            }
            Ok(done) if arguments.files.len() == 1 => print(file, &done, out)?,
            Ok(done) => imported.push((file, done)),
            Err(failure) => {
                eprintln!("{failure}");
                failures += 1;
            }
        }
    }
    if !imported.is_empty() {
        print_many(&imported, out)?;
    }
    if failures > 0 && arguments.files.len() > 1 {
        print_notice(format_args!("{failures} of {} files were not imported", arguments.files.len()));
    }
    Ok(if failures > 0 { ExitCode::from(crate::exit_codes::ERROR) } else { ExitCode::SUCCESS })
}

/// Shows the current file on a terminal, if there are several.
fn show_progress(at: usize, arguments: &ImportArgs) {
    let count = arguments.files.len();
    if count > 1 && !arguments.json && std::io::stderr().is_terminal() {
        eprint!("\r{}/{count} files", at + 1);
        if at + 1 == count {
            eprint!("\r\x1b[K");
        }
    }
}

/// Prints one row per file, and the totals.
fn print_many(imported: &[(&Path, FileImport)], out: &mut dyn Write) -> Result<(), Failure> {
    const HEADING: [&str; 11] = [
        "file",
        "agent",
        "entries",
        "messages",
        "by people",
        "responses",
        "tool calls",
        "tokens",
        "boundaries",
        "kept aside",
        "bad lines",
    ];
    let counts = |done: &FileImport| {
        let report = &done.report;
        let tokens: f64 = done.ledger.by_category.iter().map(|(_, tokens)| tokens).sum();
        [
            report.entries.values().sum(),
            report.messages,
            report.user_messages,
            report.responses,
            report.tool_calls,
            tokens.round() as u64,
            report.boundaries,
            report.internal_records.len() as u64,
            report.bad_lines().count() as u64,
        ]
    };
    let mut table = TextTable::new(&HEADING, &[0, 1]);
    let mut sums = [0u64; 9];
    for (file, done) in imported {
        let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
        let mut row = vec![sanitize(&name), done.report.format.to_string()];
        for (sum, count) in sums.iter_mut().zip(counts(done)) {
            *sum += count;
            row.push(group_digits(count));
        }
        table.push_row(row);
    }
    let mut row = vec![format!("{} files", imported.len()), String::new()];
    row.extend(sums.map(group_digits));
    table.push_row(row);
    table.write(auto_style(), out)?;
    for (file, done) in imported {
        print_bad_lines(&format!("{}: ", file.display()), &done.report, out)?;
    }
    let there = imported.iter().filter(|(_, done)| done.was_there).count();
    for (file, done) in imported {
        if let Some(path) = &done.grown_from {
            let (file, path) = (file.display(), path.display());
            writeln!(out, "{file} has changed since an earlier import, which is still at {path}")?;
        }
    }
    let written = imported.iter().filter(|(_, done)| done.log.is_some() && !done.was_there).count();
    writeln!(out, "{written} logs written, {there} already imported; import a single file for details")?;
    Ok(())
}

fn print_bad_lines(place: &str, report: &ImportReport, out: &mut dyn Write) -> Result<(), Failure> {
    for bad in report.bad_lines() {
        let detail = bad.detail.as_deref().unwrap_or("unreadable");
        writeln!(out, "{}", yellow(&format!("{place}line {}: {}; kept aside", bad.line, sanitize(detail))))?;
    }
    Ok(())
}

fn import_one(
    file: &Path,
    arguments: &ImportArgs,
    settings: &Settings,
    earlier: &mut EarlierImports,
) -> Result<FileImport, Failure> {
    let source = read_file(file)?;
    let ImportedSession { log, report } = import_source(file, &source, arguments.strict, settings)?;
    drop(source);
    let log = SharedText::from(log);
    let entries: Vec<LogEntry> =
        log.lines().map(|line| LogEntry::parse(log.slice_of(line))).collect::<Result<_, _>>().map_err(
            |error| Failure::new(format!("{}: import wrote a bad entry: {error}", file.display())),
        )?;
    let first = entries.first().map_or(EntryId::from_bits(0), |entry| entry.id);
    let project = project_of(&entries, file);
    let model = report.models.iter().max_by_key(|(_, count)| **count).map_or("", |(model, _)| model.as_str());
    let card = settings.cards.find(model).card;
    let ledger = View::from_branch(lens(&card, settings.estimator, ViewScope::Whole), entries).breakdown();
    let (path, was_there) =
        if arguments.dry_run { (None, false) } else { write_log(&log, &project, first, settings)? };
    let grown_from = path.as_deref().filter(|_| !was_there).and_then(|path| {
        let sessions = path.parent()?.parent()?;
        earlier.replace(sessions, report.foreign_id.as_deref()?, path).filter(|other| other != path)
    });
    Ok(FileImport { report, ledger, log: path, was_there, grown_from })
}

/// Returns the directory that the session worked in, else the directory of the file.
fn project_of(entries: &[LogEntry], file: &Path) -> PathBuf {
    let cwd = entries.iter().find_map(|entry| match &entry.body {
        EntryBody::Session(session) => session.cwd.clone(),
        _ => None,
    });
    cwd.map(PathBuf::from).or_else(|| file.parent().map(Path::to_owned)).unwrap_or_default()
}

fn write_log(
    log: &str,
    project: &Path,
    session: EntryId,
    settings: &Settings,
) -> Result<(Option<PathBuf>, bool), Failure> {
    let home = settings.home.as_ref().ok_or_else(|| {
        Failure::with_hint(
            "no home directory is known to store sessions in",
            "set PAL_HOME, or use --dry-run",
        )
    })?;
    let directory = pal_store::session_directory(home, project, session);
    let path = pal_store::log_path(&directory);
    if path.exists() {
        return Ok((Some(path), true));
    }
    pal_store::create_private_directory(&directory).map_err(|error| Failure::new(error.to_string()))?;
    pal_store::write_new_log(&path, log).map_err(|error| Failure::new(error.to_string()))?;
    Ok((Some(path), false))
}

fn print(file: &Path, done: &FileImport, out: &mut dyn Write) -> Result<(), Failure> {
    let FileImport { report, ledger, log, was_there, grown_from } = done;
    let title = report.title.as_deref().map_or(String::new(), |title| format!(" — {}", sanitize(title)));
    writeln!(out, "{}", bold(&format!("{} ({}){title}", file.display(), report.format)))?;
    let mut table = TextTable::new(&["", "count"], &[0]);
    let mut row = |name: &str, count: u64| table.push_row(vec![name.into(), group_digits(count)]);
    row("records read", report.records);
    row("entries written", report.entries.values().sum());
    row("messages", report.messages);
    row("  by people", report.user_messages);
    row("responses", report.responses);
    row("tool calls", report.tool_calls);
    row("tool results", report.tool_results);
    row("boundaries", report.boundaries);
    row("kept aside", report.internal_records.len() as u64);
    table.write(auto_style(), out)?;
    let mut table = TextTable::new(&["whole conversation", "tokens"], &[0]);
    for (category, tokens) in ledger.by_category.iter().filter(|(_, tokens)| *tokens > 0.0) {
        table.push_row(vec![category.name().into(), format_tokens(*tokens)]);
    }
    table.write(auto_style(), out)?;
    let kept = report.internal_by_reason();
    if !kept.is_empty() {
        let mut table = TextTable::new(&["kept aside because", "records"], &[0]);
        for (reason, count) in kept {
            table.push_row(vec![reason.to_string(), group_digits(count)]);
        }
        table.write(auto_style(), out)?;
    }
    print_bad_lines("", report, out)?;
    match (log, was_there) {
        (Some(path), false) => writeln!(out, "log: {}", path.display())?,
        (Some(path), true) => writeln!(out, "already imported: {}", path.display())?,
        (None, _) => writeln!(out, "nothing written (--dry-run)")?,
    }
    if let Some(path) = grown_from {
        writeln!(out, "the file has changed since an earlier import, which is still at {}", path.display())?;
    }
    Ok(())
}

fn as_json(file: &Path, done: &FileImport) -> serde_json::Value {
    let FileImport { report, ledger, log, was_there, grown_from } = done;
    let tokens: serde_json::Map<String, serde_json::Value> = ledger
        .by_category
        .iter()
        .map(|(category, tokens)| (category.name().replace(' ', "_"), json!(tokens.round())))
        .collect();
    let kept: serde_json::Map<String, serde_json::Value> = report
        .internal_by_reason()
        .into_iter()
        .map(|(reason, count)| (reason.to_string(), json!(count)))
        .collect();
    json!({
        "file": file.to_string_lossy(), "format": report.format.to_string(), "title": report.title,
        "session": report.foreign_id, "records": report.records, "entries": report.entries,
        "messages": report.messages, "user_messages": report.user_messages, "responses": report.responses,
        "tool_calls": report.tool_calls, "tool_results": report.tool_results, "boundaries": report.boundaries,
        "models": report.models, "tokens": tokens, "kept_aside": kept,
        "bad_lines": report.bad_lines().map(|bad| bad.line).collect::<Vec<_>>(),
        "log": log.as_ref().map(|path| path.to_string_lossy()), "already_imported": was_there,
        "grown_from": grown_from.as_ref().map(|path| path.to_string_lossy()),
    })
}
