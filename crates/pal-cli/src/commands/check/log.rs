//! The log of a session, verified line by line and link by link.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pal_model::{Draft, IdSource};
use pal_store::{Log, LogCheck, OpenError, Problem, Reader};
use serde_json::{Value, json};

use crate::arguments::Check;
use crate::aside;
use crate::failure::Failure;
use crate::progress::BytesProgress;
use crate::settings::Settings;
use crate::stored::{chance, find, now};
use crate::table::{counted, harmless, thousands};

/// The log that is meant; none if it is a request body.
pub(super) fn find_log(arguments: &Check, settings: &Settings) -> Result<Option<PathBuf>, Failure> {
    if arguments.subject == "-" {
        return Ok(None);
    }
    let path = find(&arguments.subject, settings)?;
    let is_log = match Reader::open(&path).and_then(|reader| reader.is_log()) {
        Err(OpenError::NotAFile { .. } | OpenError::File(_)) => return Ok(None),
        Err(error) => return Err(Failure::new(error.to_string())),
        Ok(is_log) => is_log,
    };
    if is_log && (arguments.model.is_some() || !arguments.betas.is_empty()) {
        return Err(Failure::wrong_use(
            format!("{} is the log of a session", path.display()),
            "--model and --beta are for request bodies",
        ));
    }
    Ok(is_log.then_some(path))
}

/// Verifies a log, repairs it if asked to, and prints what was found.
pub(super) fn check_log(path: &Path, arguments: &Check, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let failed = |error: OpenError| Failure::new(error.to_string());
    // Opening sets a torn end aside, which a repair would otherwise only name.
    let mut opened = match arguments.repair {
        true => Some(Log::open(path, IdSource::seeded(chance())).map_err(failed)?),
        false => None,
    };
    let mut progress = BytesProgress::new("checking the log");
    let reader = Reader::open(path).map_err(failed)?;
    let checked = reader.check(&mut |done, total| _ = progress.tell(done, total));
    progress.end();
    let mut found = checked.map_err(failed)?;
    if let Some(torn) = opened.as_mut().and_then(|opened| opened.torn.take()) {
        found.problems.push(torn.into_problem());
    }
    let mut is_repaired = false;
    if let (Some(opened), Some(repair)) = (&mut opened, &found.repair) {
        let entry = opened.log.append(Draft::repair(repair), now());
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
        aside::tell(format_args!("`pal check {} --repair` repairs it by appending", arguments.subject));
    }
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn print(path: &Path, found: &LogCheck, is_repaired: bool, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(
        out,
        "{}: {} entries in {}, {} with a checksum, {} on the newest branch, {} bytes",
        harmless(&path.to_string_lossy()),
        thousands(found.entries),
        counted(found.lines as usize, "line"),
        thousands(found.sealed),
        thousands(found.branch),
        thousands(found.bytes)
    )?;
    for problem in &found.problems {
        writeln!(out, "  {}", harmless(&problem.to_string()))?;
    }
    match (found.problems.len(), is_repaired) {
        (0, false) => writeln!(out, "no damage")?,
        (damaged, false) => writeln!(out, "{}", counted(damaged, "damaged place"))?,
        (damaged, true) => {
            writeln!(
                out,
                "{}: repaired by appending one entry; no line was changed",
                counted(damaged, "damaged place")
            )?;
        }
    }
    Ok(())
}

fn report(path: &Path, found: &LogCheck, is_repaired: bool) -> Value {
    let damage = |problem: &Problem| {
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
