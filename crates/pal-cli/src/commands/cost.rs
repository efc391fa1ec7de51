//! `pal cost`: what a session cost, what the cache and the layers saved, and how the context grew.

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
    let SessionLedger { path, name, ledger } =
        SessionLedger::open(arguments.session.as_deref(), settings, notices)?;
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
