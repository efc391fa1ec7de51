//! `pal cost`: what a session cost, or all sessions of all agents.

mod overview;
mod savings;

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
    let session = arguments.sessions.first().map(|name| overview::find_any(name, settings)).transpose()?;
    let session = session.as_ref().map(|path| path.to_string_lossy());
    let SessionLedger { path, name, ledger } = SessionLedger::open(session.as_deref(), settings, notices)?;
    let report = CostReport { name: &name, path: &path, ledger: &ledger };
    // Without a response there is nothing to replay, which the report says.
    let is_replayed = arguments.savings && !ledger.rows.is_empty();
    let savings =
        is_replayed.then(|| savings::measure(&path, arguments.window, settings, notices)).transpose()?;
    if arguments.json {
        let mut object = report.to_json();
        if arguments.savings {
            object["policy_savings"] = serde_json::to_value(&savings).unwrap_or_default();
        }
        writeln!(out, "{object}")?;
        return Ok(ExitCode::SUCCESS);
    }
    let style = style_for(arguments.color);
    report.write_text(style, columns(), out)?;
    write_day(settings, ledger.all.simulated > 0, out)?;
    if arguments.requests && !ledger.rows.is_empty() {
        writeln!(out)?;
        report.write_requests(style, out)?;
    }
    if let Some(savings) = &savings {
        writeln!(out)?;
        savings::write(savings, style, columns(), out)?;
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
