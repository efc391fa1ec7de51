//! `pal breaks`: where the provider's cache was read less than before, why, and what that cost.

use std::io::Write;
use std::process::ExitCode;

use pal_report::BreakReport;

use crate::arguments::BreaksArgs;
use crate::failure::Failure;
use crate::notices::Notices;
use crate::session_ledger::SessionLedger;
use crate::settings::Settings;
use crate::terminal_style::{columns, style_for};

pub(crate) fn breaks(
    arguments: &BreaksArgs,
    settings: &Settings,
    notices: &Notices,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let SessionLedger { path, name, ledger } =
        SessionLedger::open(arguments.session.as_deref(), settings, notices)?;
    let report = BreakReport {
        name: &name,
        path: &path,
        ledger: &ledger,
        with_diffs: arguments.diff,
        with_expected: arguments.all,
    };
    if arguments.json {
        writeln!(out, "{}", report.to_json())?;
    } else {
        report.write_text(style_for(arguments.color), columns(), out)?;
    }
    Ok(ExitCode::SUCCESS)
}
