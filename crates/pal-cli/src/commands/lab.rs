//! `pal lab`: policies compared over recorded sessions.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use pal_lab::{Findings, Plan, Progress, ROWS, Row, run};
use pal_replay::Recorded;

use crate::arguments::Lab;
use crate::aside;
use crate::failure::Failure;
use crate::session::Session;
use crate::settings::Settings;
use crate::table::{Table, bar, harmless, thousands};

pub(crate) fn lab(arguments: &Lab, settings: &Settings, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    if arguments.list {
        let mut table = Table::new(&["policy", "what it does"], &[0, 1]);
        ROWS.iter().for_each(|row| table.row(vec![row.name.to_owned(), row.about.to_owned()]));
        table.write(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(folder) = &arguments.out else {
        return Err(Failure::wrong_use("the report needs a folder", "name one with --out DIR"));
    };
    let plan = Plan {
        rows: rows(&arguments.policy)?,
        models: models(&arguments.model, settings)?,
        windows: arguments.window.clone(),
        cards: settings.cards.clone(),
    };
    // The longest first: no core waits for one at the end.
    let mut files: Vec<&PathBuf> = arguments.files.iter().collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.metadata().map_or(0, |metadata| metadata.len())));
    let read = |at: usize| {
        let session = Session::read(files[at], settings).map_err(|failure| failure.to_string())?;
        Ok(Recorded::new(files[at].to_string_lossy(), session.branch))
    };
    let findings = run(&plan, files.len(), &read, &mut show);
    for failure in &findings.failures {
        aside::tell(harmless(failure));
    }
    let written = findings
        .write(folder)
        .map_err(|error| Failure::with_hint(error.to_string(), "name another folder with --out"))?;
    print(&findings, out)?;
    for file in written.iter().filter(|file| file.extension().is_some_and(|ending| ending == "md")) {
        writeln!(out, "the report is {}", file.display())?;
    }
    Ok(if findings.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn rows(names: &[String]) -> Result<Vec<&'static Row>, Failure> {
    if names.is_empty() {
        return Ok(ROWS.iter().collect());
    }
    let row = |name: &String| {
        pal_lab::row(name).ok_or_else(|| {
            let what = format!("there is no policy `{}`", harmless(name));
            Failure::wrong_use(what, "list them with `pal lab --list`")
        })
    };
    names.iter().map(row).collect()
}

fn models(names: &[String], settings: &Settings) -> Result<Vec<Option<String>>, Failure> {
    if names.is_empty() {
        return Ok(vec![None]);
    }
    if let Some(name) = names.iter().find(|name| settings.cards.find(name).notice.is_some()) {
        let what = format!("`{}` is not in the model table", harmless(name));
        return Err(Failure::wrong_use(what, "describe it in models.toml, or name another with --model"));
    }
    Ok(names.iter().cloned().map(Some).collect())
}

/// How far it is, where a person waits.
fn show(progress: Progress) {
    let Progress { done, count } = progress;
    if !std::io::stderr().is_terminal() {
        return;
    }
    if done == count {
        eprint!("\r\x1b[2K");
    } else {
        eprint!("\r{:<20} {done}/{count} sessions", bar(done as f64 / count as f64));
    }
}

/// The figures that matter most, a table for each model and window.
fn print(findings: &Findings, out: &mut dyn Write) -> Result<(), Failure> {
    for found in &findings.tables {
        let model = found.model.as_deref().unwrap_or("the sessions' own models");
        writeln!(out, "window {}, {}", thousands(found.window), harmless(model))?;
        let mut table = Table::new(
            &["policy", "cost", "with re-reads", "÷ classic", "÷ limit", "hits", "comp.", "faults"],
            &[0],
        );
        let ratio = |ratio: Option<f64>| ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}"));
        for row in &found.rows {
            table.row(vec![
                row.name.to_owned(),
                format!("${:.2}", row.cost_usd),
                format!("${:.2}", row.total_usd),
                ratio(row.against_classic),
                ratio(row.against_clairvoyant),
                format!("{:.1} %", 100.0 * row.hit_ratio),
                thousands(row.compactions),
                thousands(row.page_faults),
            ]);
        }
        table.write(out)?;
    }
    writeln!(out, "limit: the least that is possible for somebody who knows the future")?;
    writeln!(out, "faults: content that was used again while it was out of sight")?;
    Ok(())
}
