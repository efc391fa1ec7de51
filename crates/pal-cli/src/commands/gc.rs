//! `pal gc`: removes the oldest command outputs and spilled results.

mod old_sessions;

use std::collections::BTreeMap;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pal_model::text::count_noun;
use pal_report::TextTable;
use pal_store::{
    OutputCleanup, OutputFile, choose_outputs_to_remove, list_outputs, remove_outputs, total_bytes,
};
use serde_json::json;

use crate::arguments::GcArgs;
use crate::failure::Failure;
use crate::open_session::now;
use crate::settings::Settings;
use crate::terminal_style::auto_style;
use old_sessions::OldSessions;
use pal_report::format_bytes;

/// Sessions that are listed; the others are counted.
const SESSIONS_SHOWN: usize = 20;

pub(crate) fn gc(arguments: &GcArgs, settings: &Settings, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let Some(home) = settings.home.as_deref() else {
        return Err(Failure::with_hint(
            "no home directory is known",
            "set HOME, or set PAL_HOME to the directory for pal's files",
        ));
    };
    let bytes_max = match arguments.keep_mb {
        Some(megabytes) => megabytes.saturating_mul(1 << 20),
        None => settings.output_limits.total_bytes_max,
    };
    let files = list_outputs(home);
    let total = total_bytes(&files);
    let chosen = choose_outputs_to_remove(&files, bytes_max);
    let old = OldSessions::find(home, settings.retention, now());
    if arguments.json {
        return write_json(arguments, (files.len(), total, bytes_max), (&chosen, old), home, out);
    }
    writeln!(
        out,
        "{} in {} (limit {})",
        format_bytes(total),
        count_noun(files.len(), "output"),
        format_bytes(bytes_max)
    )?;
    if chosen.is_empty() && old.is_empty() {
        writeln!(out, "Nothing to remove. Use `--keep-mb N` to keep less than the limit.")?;
        return Ok(ExitCode::SUCCESS);
    }
    if !chosen.is_empty() {
        write_plan(&chosen, home, out)?;
    }
    old.write_plan(settings.retention, out)?;
    if !arguments.yes && !is_confirmed(out)? {
        return Ok(ExitCode::SUCCESS);
    }
    old.remove(home, now()).write_result(out)?;
    let cleanup = remove_outputs(chosen, None, now());
    write_result(&cleanup, out)
}

/// Shows what would be removed, session by session.
fn write_plan(chosen: &[OutputFile], home: &Path, out: &mut dyn Write) -> Result<(), Failure> {
    let mut by_session: BTreeMap<&PathBuf, (usize, u64)> = BTreeMap::new();
    for file in chosen {
        let (count, bytes) = by_session.entry(&file.session).or_default();
        *count += 1;
        *bytes += file.bytes;
    }
    let mut sessions: Vec<_> = by_session.into_iter().collect();
    sessions.sort_by_key(|(_, (_, bytes))| std::cmp::Reverse(*bytes));
    let mut table = TextTable::new(&["session", "files", "size"], &[0]);
    for (session, (count, bytes)) in sessions.iter().take(SESSIONS_SHOWN) {
        let path = session.strip_prefix(home.join("projects")).unwrap_or(session);
        table.push_row(vec![path.display().to_string(), count.to_string(), format_bytes(*bytes)]);
    }
    table.write(auto_style(), out)?;
    if sessions.len() > SESSIONS_SHOWN {
        writeln!(out, "… and {}", count_noun(sessions.len() - SESSIONS_SHOWN, "other session"))?;
    }
    let (count, bytes) = (count_noun(chosen.len(), "output"), format_bytes(total_bytes(chosen)));
    writeln!(out, "This removes the oldest {count}, {bytes}. Logs are kept.")?;
    Ok(())
}

/// Asks for confirmation on a terminal; elsewhere explains `--yes`.
fn is_confirmed(out: &mut dyn Write) -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() {
        writeln!(out, "Nothing removed; add --yes to remove them.")?;
        return Ok(false);
    }
    write!(out, "Remove them? [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    let is_confirmed = matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes");
    if !is_confirmed {
        writeln!(out, "Nothing removed.")?;
    }
    Ok(is_confirmed)
}

fn write_result(cleanup: &OutputCleanup, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    writeln!(
        out,
        "Removed {}, {}.",
        count_noun(cleanup.removed.len(), "output"),
        format_bytes(cleanup.freed())
    )?;
    if !cleanup.open.is_empty() {
        let (count, bytes) =
            (count_noun(cleanup.open.len(), "output"), format_bytes(total_bytes(&cleanup.open)));
        writeln!(out, "Kept {count}, {bytes}, of sessions that are open in another process.")?;
    }
    let Some((file, error)) = cleanup.failed.first() else { return Ok(ExitCode::SUCCESS) };
    Err(Failure::with_hint(
        format!(
            "{} could not be removed; first: {}: {error}",
            count_noun(cleanup.failed.len(), "output"),
            file.path.display()
        ),
        "check the owner of the file, then run `pal gc` again",
    ))
}

fn write_json(
    arguments: &GcArgs,
    (count, total, bytes_max): (usize, u64, u64),
    (chosen, old): (&[OutputFile], OldSessions),
    home: &Path,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let (inactive, expired) = old.ids();
    let would_free = total_bytes(chosen);
    let cleanup = match arguments.yes {
        true => remove_outputs(chosen.to_owned(), None, now()),
        false => OutputCleanup::default(),
    };
    let sessions = if arguments.yes { old.remove(home, now()) } else { Default::default() };
    let paths = |files: &[OutputFile]| files.iter().map(|file| file.path.clone()).collect::<Vec<_>>();
    let failed =
        cleanup.failed.iter().map(|(file, error)| json!({"path": file.path, "error": error.to_string()}));
    let object = json!({
        "outputs": count, "total_bytes": total, "limit_bytes": bytes_max,
        "would_free_bytes": would_free, "would_remove": paths(chosen),
        "is_dry_run": !arguments.yes, "freed_bytes": cleanup.freed(), "removed": paths(&cleanup.removed),
        "open": paths(&cleanup.open), "failed": failed.collect::<Vec<_>>(),
        "inactive_sessions": inactive, "expired_in_trash": expired,
        "sessions_to_trash": sessions.trashed, "sessions_deleted": sessions.deleted, "sessions_failed": sessions.failed,
    });
    writeln!(out, "{object}")?;
    Ok(if cleanup.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(crate::exit_codes::ERROR) })
}
