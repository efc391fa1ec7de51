//! Verification of a session log: every line, checksum and parent link.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pal_model::text::{count_noun, group_digits};
use pal_model::{EntryDraft, IdSource};
use pal_report::sanitize;
use pal_store::{Log, LogCheck, LogProblem, LogReader, OpenError};
use serde_json::{Value, json};

use crate::arguments::CheckArgs;
use crate::failure::Failure;
use crate::notices::print_notice;
use crate::open_session::{now, random_seed};
use crate::progress::BytesProgress;
use crate::session_lookup::find;
use crate::settings::Settings;

/// Finds the log to check; none for a request body.
pub(super) fn find_log(
    subject: &str,
    arguments: &CheckArgs,
    settings: &Settings,
) -> Result<Option<PathBuf>, Failure> {
    if subject == "-" {
        return Ok(None);
    }
    let path = find(subject, settings)?;
    let is_log = match LogReader::open(&path).and_then(|reader| reader.is_log()) {
        Err(OpenError::NotAFile { .. } | OpenError::File(_)) => return Ok(None),
        Err(error) => return Err(Failure::new(error.to_string())),
        Ok(is_log) => is_log,
    };
    if is_log && (arguments.model.is_some() || !arguments.betas.is_empty()) {
        return Err(Failure::usage_error(
            format!("{} is the log of a session", path.display()),
            "--model and --beta apply to request bodies",
        ));
    }
    Ok(is_log.then_some(path))
}

/// Verifies a log, repairs it if requested, and prints the findings.
pub(super) fn check_log(
    path: &Path,
    subject: &str,
    arguments: &CheckArgs,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let failed = |error: OpenError| Failure::new(error.to_string());
    // Opening sets a torn end aside, which a repair alone would only report.
    let mut opened = match arguments.repair {
        true => Some(Log::open(path, IdSource::seeded(random_seed())).map_err(failed)?),
        false => None,
    };
    let mut progress = BytesProgress::new("checking the log");
    let reader = LogReader::open(path).map_err(failed)?;
    let checked = reader.check(&mut |done, total| _ = progress.show(done, total));
    progress.end();
    let mut found = checked.map_err(failed)?;
    if let Some(torn) = opened.as_mut().and_then(|opened| opened.torn.take()) {
        found.problems.push(torn.into_problem());
    }
    let mut is_repaired = false;
    if let (Some(opened), Some(repair)) = (&mut opened, &found.repair) {
        let entry = opened.log.append(EntryDraft::repair(repair), now());
        entry.map_err(|error| Failure::new(error.to_string()))?;
        opened.log.sync().map_err(|error| Failure::new(error.to_string()))?;
        is_repaired = true;
    }
    match arguments.json {
        true => writeln!(out, "{}", report(path, &found, is_repaired))?,
        false => print(path, &found, is_repaired, out)?,
    }
    let is_well = found.problems.is_empty() || arguments.repair;
    if !is_well && !arguments.json {
        print_notice(format_args!("`pal check {subject} --repair` repairs it by appending"));
    }
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::from(crate::exit_codes::ERROR) })
}

fn print(path: &Path, found: &LogCheck, is_repaired: bool, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(
        out,
        "{}: {} entries in {}, {} with a checksum, {} on the newest branch, {} bytes",
        sanitize(&path.to_string_lossy()),
        group_digits(found.entries),
        count_noun(found.lines as usize, "line"),
        group_digits(found.sealed),
        group_digits(found.branch),
        group_digits(found.bytes)
    )?;
    for problem in &found.problems {
        writeln!(out, "  {}", sanitize(&problem.to_string()))?;
    }
    match (found.problems.len(), is_repaired) {
        (0, false) => writeln!(out, "no damage")?,
        (damaged, false) => writeln!(out, "{}", count_noun(damaged, "damaged place"))?,
        (damaged, true) => {
            writeln!(
                out,
                "{}: repaired by appending one entry; no line was changed",
                count_noun(damaged, "damaged place")
            )?;
        }
    }
    Ok(())
}

fn report(path: &Path, found: &LogCheck, is_repaired: bool) -> Value {
    let damage = |problem: &LogProblem| {
        let line = problem.line();
        json!({
            "kind": problem.name(), "line": line.map(|line| line.number), "offset": line.map(|line| line.offset),
            "bytes": line.map(|line| line.bytes), "message": problem.to_string(),
        })
    };
    json!({
        "path": path.to_string_lossy(), "bytes": found.bytes, "lines": found.lines, "entries": found.entries,
        "checksums": found.sealed, "branch": found.branch, "repaired": is_repaired,
        "damage": found.problems.iter().map(damage).collect::<Vec<_>>(),
    })
}
