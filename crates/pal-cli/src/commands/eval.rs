//! `pal eval`: policies compared over recorded sessions.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pal_eval::comparison::{
    EvalPlan, EvalProgress, POLICY_ROWS, PolicyComparison, PolicyRow, run_evaluation,
};
use pal_eval::fidelity::{FidelityPlan, FidelityReport, run_fidelity};
use pal_eval::replay::RecordedSession;
use pal_model::text::group_digits;
use pal_report::{TextTable, draw_bar, sanitize};

use super::replay::warn_former_policy;
use crate::arguments::{EvalArgs, EvalCommand, FidelityArgs};
use crate::failure::Failure;
use crate::loaded_session::LoadedSession;
use crate::notices::print_notice;
use crate::settings::Settings;
use crate::terminal_style::auto_style;

/// Former and current names of policies.
const FORMER_POLICIES: [(&str, &str); 2] = [("classic", "threshold"), ("thrifty", "cost-aware")];

/// Runs `eval` under its former name, with a warning.
pub(crate) fn lab(
    arguments: &EvalArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    print_notice("`pal lab` is now `pal eval`; the old name will be removed in the next release");
    eval(arguments, settings, out)
}

pub(crate) fn eval(
    arguments: &EvalArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    if let Some(EvalCommand::Fidelity(arguments)) = &arguments.command {
        return fidelity(arguments, settings, out);
    }
    if arguments.list {
        let mut table = TextTable::new(&["policy", "what it does"], &[0, 1]);
        POLICY_ROWS
            .iter()
            .for_each(|row| table.push_row(vec![policy_name(row.name).to_owned(), row.about.to_owned()]));
        table.write(auto_style(), out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(folder) = &arguments.out else {
        return Err(Failure::usage_error("no directory for the report", "name one with --out DIR"));
    };
    let plan = EvalPlan {
        rows: rows(&arguments.policy)?,
        models: models(&arguments.model, settings)?,
        windows: arguments.window.clone(),
        cards: settings.cards.clone(),
    };
    let files = longest_first(&arguments.files)?;
    let read = |at: usize| read_session(files[at], settings);
    let findings = run_evaluation(&plan, files.len(), &read, &mut show);
    for failure in &findings.failures {
        print_notice(sanitize(failure));
    }
    if findings.failures.len() == files.len() {
        return Err(Failure::with_hint(
            "no session could be evaluated",
            "give logs or transcripts of sessions",
        ));
    }
    let written = findings
        .write(folder)
        .map_err(|error| Failure::with_hint(error.to_string(), "name another directory with --out"))?;
    print(&findings, out)?;
    name_report(&written, out)?;
    Ok(exit_code(&findings.failures))
}

/// Prints the path of the readable report among the files that were written.
fn name_report(written: &[PathBuf], out: &mut dyn Write) -> Result<(), Failure> {
    for file in written.iter().filter(|file| file.extension().is_some_and(|ending| ending == "md")) {
        writeln!(out, "report: {}", file.display())?;
    }
    Ok(())
}

/// Exit code of a run with these failures.
fn exit_code(failures: &[String]) -> ExitCode {
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(crate::exit_codes::ERROR) }
}

/// Files in order of size: the longest first, so that no core waits at the end.
fn longest_first(files: &[PathBuf]) -> Result<Vec<&PathBuf>, Failure> {
    let mut files: Vec<&PathBuf> = files.iter().collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.metadata().map_or(0, |metadata| metadata.len())));
    for file in &files {
        file.metadata().map_err(|error| Failure::of_file(file, &error))?;
    }
    Ok(files)
}

fn read_session(file: &Path, settings: &Settings) -> Result<RecordedSession, String> {
    let session = LoadedSession::read(file, settings)
        .map_err(|failure| failure.message().replace("\n  hint: ", "; "))?;
    Ok(RecordedSession::new(file.to_string_lossy(), session.branch))
}

/// Measures the fidelity of compactions.
fn fidelity(arguments: &FidelityArgs, settings: &Settings, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let plan = FidelityPlan {
        rows: if arguments.policy.is_empty() { Vec::new() } else { rows(&arguments.policy)? },
        window: arguments.window,
        cards: settings.cards.clone(),
    };
    let files = longest_first(&arguments.files)?;
    let report = run_fidelity(&plan, files.len(), &|at| read_session(files[at], settings), &mut show);
    for failure in &report.failures {
        print_notice(sanitize(failure));
    }
    if report.sessions == 0 {
        return Err(Failure::with_hint(
            "no session could be measured",
            "give logs or transcripts of sessions",
        ));
    }
    let written = report
        .write(&arguments.out)
        .map_err(|error| Failure::with_hint(error.to_string(), "name another directory with --out"))?;
    if arguments.json {
        let json = serde_json::to_string(&report).map_err(|error| Failure::new(error.to_string()))?;
        writeln!(out, "{json}")?;
    } else {
        print_fidelity(&report, out)?;
        name_report(&written, out)?;
    }
    Ok(exit_code(&report.failures))
}

/// Prints the sums by maker.
fn print_fidelity(report: &FidelityReport, out: &mut dyn Write) -> Result<(), Failure> {
    if report.makers.is_empty() {
        writeln!(out, "no compaction in {} sessions", group_digits(report.sessions as u64))?;
        return Ok(());
    }
    let mut table = TextTable::new(
        &[
            "compaction by",
            "number",
            "before",
            "after",
            "facts",
            "95% interval",
            "reread",
            "files",
            "constraints",
        ],
        &[0],
    );
    let percent =
        |share: Option<f64>| share.map_or_else(|| "–".to_owned(), |share| format!("{:.0}%", 100.0 * share));
    for maker in &report.makers {
        table.push_row(vec![
            maker.maker.clone(),
            group_digits(maker.compactions),
            group_digits(maker.tokens.0),
            group_digits(maker.tokens.1),
            percent(maker.facts_kept),
            maker.facts_interval.map_or_else(
                || "–".to_owned(),
                |(low, high)| format!("{:.0}–{:.0}%", 100.0 * low, 100.0 * high),
            ),
            group_digits(maker.reread_characters),
            percent(maker.files_shown),
            percent(maker.constraints_kept),
        ]);
    }
    table.write(auto_style(), out)?;
    writeln!(out, "before, after: mean estimated tokens of the conversation")?;
    writeln!(out, "facts: those that the agent writes within 30 calls and the new context still shows")?;
    writeln!(out, "reread: characters per compaction that the agent reads again and the new context lacks")?;
    writeln!(out, "files: those used within 10 calls that the new context shows")?;
    writeln!(out, "constraints: your sentences such as \"never …\" that the new context repeats")?;
    Ok(())
}

fn rows(names: &[String]) -> Result<Vec<&'static PolicyRow>, Failure> {
    if names.is_empty() {
        return Ok(POLICY_ROWS.iter().collect());
    }
    let row = |name: &String| {
        let name = match FORMER_POLICIES.iter().find(|(former, _)| former == name) {
            Some((former, current)) => {
                warn_former_policy(former, current);
                current
            }
            None => name.as_str(),
        };
        let found = POLICY_ROWS.iter().find(|row| policy_name(row.name) == name);
        found.ok_or_else(|| {
            let what = format!("unknown policy `{}`", sanitize(name));
            Failure::usage_error(what, "list them with `pal eval --list`")
        })
    };
    names.iter().map(row).collect()
}

/// Returns the current name of a policy.
fn policy_name(name: &'static str) -> &'static str {
    FORMER_POLICIES.iter().find(|(former, _)| *former == name).map_or(name, |(_, current)| current)
}

fn models(names: &[String], settings: &Settings) -> Result<Vec<Option<String>>, Failure> {
    if names.is_empty() {
        return Ok(vec![None]);
    }
    if let Some(name) = names.iter().find(|name| settings.cards.find(name).notice.is_some()) {
        let what = format!("`{}` is not in the model catalog", sanitize(name));
        return Err(Failure::usage_error(what, "add it to models.toml, or name another with --model"));
    }
    Ok(names.iter().cloned().map(Some).collect())
}

/// Shows progress on a terminal.
fn show(progress: EvalProgress) {
    let EvalProgress { done, count } = progress;
    if !std::io::stderr().is_terminal() {
        return;
    }
    if done == count {
        eprint!("\r\x1b[2K");
    } else {
        eprint!("\r{:<20} {done}/{count} sessions", draw_bar(done as f64 / count as f64));
    }
}

/// Prints the main figures, one table per model and window.
fn print(findings: &PolicyComparison, out: &mut dyn Write) -> Result<(), Failure> {
    for found in &findings.tables {
        let model = found.model.as_deref().unwrap_or("models of the sessions");
        writeln!(out, "window {}, {}", group_digits(found.window), sanitize(model))?;
        let mut table = TextTable::new(
            &[
                "policy",
                "with re-reads",
                "÷ none",
                "95% interval",
                "worst",
                "÷ limit",
                "hits",
                "comp.",
                "faults",
            ],
            &[0],
        );
        let ratio = |ratio: Option<f64>| ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}"));
        for row in &found.rows {
            table.push_row(vec![
                policy_name(row.name).to_owned(),
                format!("${:.2}", row.total_usd),
                ratio(row.against_none),
                row.against_none_interval
                    .map_or_else(|| "–".to_owned(), |(low, high)| format!("{low:.2}–{high:.2}")),
                ratio(row.worst_against_none),
                ratio(row.against_clairvoyant),
                format!("{:.1}%", 100.0 * row.hit_ratio),
                group_digits(row.compactions),
                group_digits(row.page_faults),
            ]);
        }
        table.write(auto_style(), out)?;
    }
    writeln!(
        out,
        "{} sessions, {} repositories; what `cost-aware` expects was fitted, for each session, to the other repositories",
        group_digits(findings.sessions as u64),
        group_digits(findings.repositories as u64)
    )?;
    writeln!(out, "worst: the session that costs most against `none`, as a ratio")?;
    writeln!(out, "limit: minimum cost with perfect knowledge of the future")?;
    writeln!(out, "faults: content that was needed again after it was removed")?;
    Ok(())
}
