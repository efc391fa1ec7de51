//! `pal cost`: what a session cost, or all sessions of all agents.

mod overview;

use std::io::Write;
use std::process::ExitCode;

use pal_background::read_day_spending;
use pal_report::CostReport;

use crate::arguments::CostArgs;
use crate::failure::Failure;
use crate::notices::Notices;
use crate::open_session::now;
use crate::session_ledger::SessionLedger;
use crate::settings::Settings;
use crate::terminal_style::{columns, style_for};

pub(crate) fn cost(
    arguments: &CostArgs,
    settings: &Settings,
    notices: &Notices,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    if overview::is_wanted(arguments) {
        return overview::write(arguments, settings, notices, out);
    }
    let session = arguments.sessions.first().map(String::as_str);
    let SessionLedger { path, name, ledger } = SessionLedger::open(session, settings, notices)?;
    let report = CostReport { name: &name, path: &path, ledger: &ledger };
    if arguments.json {
        writeln!(out, "{}", report.to_json())?;
        return Ok(ExitCode::SUCCESS);
    }
    let style = style_for(arguments.color);
    report.write_text(style, columns(), out)?;
    write_day(settings, ledger.all.simulated > 0, out)?;
    if arguments.requests && !ledger.rows.is_empty() {
        writeln!(out)?;
        report.write_requests(style, out)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints what was spent today, what is left of the daily budget, and the forecast; nothing if there is neither.
fn write_day(settings: &Settings, is_simulated: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let (Some(home), budget) = (&settings.home, settings.spending.daily_usd_max) else { return Ok(()) };
    let Ok(day) = read_day_spending(home, now(), is_simulated) else { return Ok(()) };
    if day.spent > 0.0 || budget.is_some() {
        let simulated = if is_simulated { " (simulated)" } else { "" };
        writeln!(out, "{}{simulated}", day.line(budget))?;
    }
    Ok(())
}
