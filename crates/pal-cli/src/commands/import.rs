//! `pal import`: converts sessions of other agents into logs of pal.

mod imported_log;
mod source_watch;

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pal_import::{ImportReport, ImportedSession};
use pal_model::text::{count_noun, group_digits};
use pal_model::{EntryBody, LogEntry, ModelCatalog, SharedText, UsageBasis};
use pal_report::{TextTable, format_tokens, format_usd, list_session_files, sanitize};
use pal_view::{ContextBreakdown, View, ViewScope};
use serde_json::json;

use crate::arguments::ImportArgs;
use crate::failure::Failure;
use crate::loaded_session::{import_source, lens, read_file};
use crate::notices::print_notice;
use crate::session_lookup::foreign_id;
use crate::settings::Settings;
use crate::terminal_style::{auto_style, bold, yellow};
use imported_log::{ImportToStore, StoredImport};

/// Result of importing one file.
struct FileImport {
    report: ImportReport,
    ledger: ContextBreakdown,
    /// Cost in US dollars; none if no response has a known price.
    cost: Option<f64>,
    stored: StoredImport,
    /// Another log of the same session, written by an import of an older version of pal.
    other_log: Option<PathBuf>,
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

/// Files to import: those that were named, and those found in named directories.
struct ImportSources {
    files: Vec<PathBuf>,
    /// Number of files at the start of the list that were named themselves; they must be sessions.
    named: usize,
}

impl ImportSources {
    fn list(arguments: &ImportArgs) -> ImportSources {
        let (folders, mut files): (Vec<&PathBuf>, Vec<&PathBuf>) =
            arguments.files.iter().partition(|path| path.is_dir());
        files.dedup();
        let named = files.len();
        // A transcript of a subagent alone is no conversation; its session refers to it.
        let found = folders.into_iter().flat_map(|folder| list_session_files(folder));
        let found = found.filter(|file| !is_subagent_file(file));
        ImportSources { files: files.into_iter().cloned().chain(found).collect(), named }
    }
}

pub(crate) fn import(
    arguments: &ImportArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let sources = ImportSources::list(arguments);
    let mut earlier = EarlierImports::default();
    if arguments.watch {
        return source_watch::watch(arguments, settings, &mut earlier, out);
    }
    let mut imported: Vec<(&Path, FileImport)> = Vec::new();
    let (mut failures, mut skipped) = (0, 0);
    let mut is_read = true;
    for (at, file) in sources.files.iter().enumerate() {
        show_progress(at, sources.files.len(), arguments);
        match import_one(file, arguments, settings, &mut earlier) {
            Ok(done) if arguments.json => {
                // The import goes on even if the output was closed.
                is_read =
                    is_read && writeln!(out, "{}", as_json(file, &done)).and_then(|()| out.flush()).is_ok();
            }
            Ok(done) if sources.files.len() == 1 => print(file, &done, out)?,
            Ok(done) => imported.push((file, done)),
            Err(ImportFailure::NoSession(_)) if at >= sources.named => skipped += 1,
            Err(ImportFailure::NoSession(failure) | ImportFailure::Other(failure)) => {
                eprintln!("{failure}");
                failures += 1;
            }
        }
    }
    if !imported.is_empty() {
        print_many(&imported, out)?;
    }
    if skipped > 0 && !arguments.json {
        writeln!(
            out,
            "{} in these directories skipped: no session of another agent",
            count_noun(skipped, "other file")
        )?;
    }
    if sources.files.is_empty() {
        let directories: Vec<String> =
            arguments.files.iter().map(|path| path.display().to_string()).collect();
        return Err(Failure::with_hint(
            format!("{}: no session files there", directories.join(", ")),
            "name a directory with .jsonl or .json files, such as ~/.claude/projects",
        ));
    }
    if failures > 0 && sources.files.len() > 1 {
        print_notice(format_args!("{failures} of {} files were not imported", sources.files.len()));
    }
    Ok(if failures > 0 { ExitCode::from(crate::exit_codes::ERROR) } else { ExitCode::SUCCESS })
}

/// Reason why a file was not imported.
enum ImportFailure {
    /// It is no session of another agent.
    NoSession(Failure),
    Other(Failure),
}

impl From<Failure> for ImportFailure {
    fn from(failure: Failure) -> ImportFailure {
        ImportFailure::Other(failure)
    }
}

/// Shows the current file on a terminal, if there are several.
fn show_progress(at: usize, count: usize, arguments: &ImportArgs) {
    if count > 1 && !arguments.json && std::io::stderr().is_terminal() {
        eprint!("\r{}/{count} files", at + 1);
        if at + 1 == count {
            eprint!("\r\x1b[K");
        }
    }
}

/// Prints one row per file, and the totals.
fn print_many(imported: &[(&Path, FileImport)], out: &mut dyn Write) -> Result<(), Failure> {
    const HEADING: [&str; 12] = [
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
        "cost",
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
    let mut cost: Option<f64> = None;
    for (file, done) in imported {
        let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
        let mut row = vec![sanitize(&name), done.report.format.to_string()];
        for (sum, count) in sums.iter_mut().zip(counts(done)) {
            *sum += count;
            row.push(group_digits(count));
        }
        row.push(cost_cell(done.cost));
        cost = done.cost.map(|own| own + cost.unwrap_or(0.0)).or(cost);
        table.push_row(row);
    }
    let mut row = vec![format!("{} files", imported.len()), String::new()];
    row.extend(sums.map(group_digits));
    row.push(cost_cell(cost));
    table.push_row(row);
    table.write(auto_style(), out)?;
    for (file, done) in imported {
        print_bad_lines(&format!("{}: ", file.display()), &done.report, out)?;
    }
    for (file, done) in imported {
        print_other_logs(&format!("{}: ", file.display()), done, out)?;
    }
    let count = |is_kind: fn(&StoredImport) -> bool| {
        imported.iter().filter(|(_, done)| is_kind(&done.stored)).count()
    };
    let new = count(|stored| matches!(stored, StoredImport::New(_) | StoredImport::Beside { .. }));
    let extended = count(|stored| matches!(stored, StoredImport::Extended { .. }));
    let there = count(|stored| matches!(stored, StoredImport::Unchanged(_)));
    writeln!(
        out,
        "{new} logs written, {extended} extended, {there} already imported; import a single file for details"
    )?;
    Ok(())
}

fn cost_cell(cost: Option<f64>) -> String {
    cost.map_or(String::from("not known"), format_usd)
}

/// Names other logs of the same session.
fn print_other_logs(place: &str, done: &FileImport, out: &mut dyn Write) -> Result<(), Failure> {
    if let StoredImport::Beside { earlier, .. } = &done.stored {
        let why = "was continued in pal or differs, so this version stands beside it";
        writeln!(out, "{place}an earlier import, {}, {why}", earlier.display())?;
    }
    if let Some(path) = &done.other_log {
        writeln!(
            out,
            "{place}an older import of this session is still at {}; `pal rm` removes it",
            path.display()
        )?;
    }
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
) -> Result<FileImport, ImportFailure> {
    let source = read_file(file)?;
    let imported = import_source(file, &source, arguments.strict, settings);
    let ImportedSession { log, report } = imported.map_err(|failure| {
        let is_session =
            pal_import::detect(&source).is_some_and(|format| format != pal_import::SessionFormat::Palimpsest);
        if is_session { ImportFailure::Other(failure) } else { ImportFailure::NoSession(failure) }
    })?;
    let log = SharedText::from(log);
    let entries: Vec<LogEntry> =
        log.lines().map(|line| LogEntry::parse(log.slice_of(line))).collect::<Result<_, _>>().map_err(
            |error| Failure::new(format!("{}: import wrote a bad entry: {error}", file.display())),
        )?;
    let project = project_of(&entries, file);
    let cost = cost_of(&entries, &settings.cards);
    let stored = match arguments.dry_run {
        true => StoredImport::Nothing,
        false => {
            let to_store =
                ImportToStore { file, source: &source, log: &log, entries: &entries, project: &project };
            to_store.store(settings)?
        }
    };
    let model = report.models.iter().max_by_key(|(_, count)| **count).map_or("", |(model, _)| model.as_str());
    let card = settings.cards.find(model).card;
    let ledger = View::from_branch(lens(&card, settings.estimator, ViewScope::Whole), entries).breakdown();
    let other_log = match &stored {
        StoredImport::New(path) => path.parent().and_then(Path::parent).and_then(|sessions| {
            earlier.replace(sessions, report.foreign_id.as_deref()?, path).filter(|other| other != path)
        }),
        _ => None,
    };
    // Subagents of a session have files of their own, with the id of the session.
    let other_log = other_log.filter(|_| !is_subagent_file(file));
    Ok(FileImport { report, ledger, cost, stored, other_log })
}

fn is_subagent_file(file: &Path) -> bool {
    file.parent().and_then(Path::file_name).is_some_and(|name| name == "subagents")
}

/// Cost of all responses with a known price, at the prices of their time.
fn cost_of(entries: &[LogEntry], cards: &ModelCatalog) -> Option<f64> {
    let costs = entries.iter().filter_map(|entry| match &entry.body {
        EntryBody::Response(response)
            if response.usage.has_prompt() && response.usage.basis != UsageBasis::Simulated =>
        {
            cards.find_at(&response.model, entry.at).card.cost(&response.usage)
        }
        _ => None,
    });
    costs.fold(None, |sum, cost| Some(sum.unwrap_or(0.0) + cost))
}

/// Returns the directory that the session worked in, else the directory of the file.
fn project_of(entries: &[LogEntry], file: &Path) -> PathBuf {
    let cwd = entries.iter().find_map(|entry| match &entry.body {
        EntryBody::Session(session) => session.cwd.clone(),
        _ => None,
    });
    cwd.map(PathBuf::from).or_else(|| file.parent().map(Path::to_owned)).unwrap_or_default()
}

fn print(file: &Path, done: &FileImport, out: &mut dyn Write) -> Result<(), Failure> {
    let FileImport { report, ledger, cost, stored, .. } = done;
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
    table.push_row(vec!["cost".into(), cost_cell(*cost)]);
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
    if report.estimated_outputs > 0 {
        let responses = count_noun(report.estimated_outputs as usize, "response");
        writeln!(
            out,
            "output tokens of {responses} are estimated: the transcript has only a placeholder for them"
        )?;
    }
    match stored {
        StoredImport::New(path) | StoredImport::Beside { log: path, .. } => {
            writeln!(out, "log: {}", path.display())?
        }
        StoredImport::Unchanged(path) => writeln!(out, "already imported: {}", path.display())?,
        StoredImport::Extended { log, entries } => {
            let entries = if *entries == 1 {
                "1 entry".into()
            } else {
                format!("{} entries", group_digits(*entries as u64))
            };
            writeln!(out, "extended by {entries}: {}", log.display())?;
        }
        StoredImport::Nothing => writeln!(out, "nothing written (--dry-run)")?,
    }
    print_other_logs("", done, out)
}

fn as_json(file: &Path, done: &FileImport) -> serde_json::Value {
    let FileImport { report, ledger, cost, stored, other_log } = done;
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
        "cost_usd": cost, "log": stored.log().map(|path| path.to_string_lossy()),
        "already_imported": matches!(stored, StoredImport::Unchanged(_)),
        "added_entries": match stored { StoredImport::Extended { entries, .. } => Some(entries), _ => None },
        "beside": match stored { StoredImport::Beside { earlier, .. } => Some(earlier.to_string_lossy()), _ => None },
        "grown_from": other_log.as_ref().map(|path| path.to_string_lossy()),
    })
}
