//! `pal cost`: what a session cost, or all sessions of all agents.

mod overview;

use std::io::Write;
use std::process::ExitCode;

use pal_report::CostReport;

use crate::arguments::CostArgs;
use crate::failure::Failure;
use crate::notices::Notices;
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
    if arguments.requests && !ledger.rows.is_empty() {
        writeln!(out)?;
        report.write_requests(style, out)?;
    }
    Ok(ExitCode::SUCCESS)
}
