//! `pal view`: what the model would see now, message by message, and why.

use std::io::Write;
use std::process::ExitCode;

use pal_report::{HiddenMessages, ViewReport};
use pal_view::{View, ViewScope};

use crate::arguments::ViewArgs;
use crate::failure::Failure;
use crate::loaded_session::{LoadedSession, card, is_log, lens};
use crate::notices::Notices;
use crate::open_session::{engine, now};
use crate::session_lookup::find_or_newest;
use crate::settings::Settings;
use crate::terminal_style::style_for;

pub(crate) fn view(
    arguments: &ViewArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let path = find_or_newest(arguments.session.as_deref(), settings)?;
    let is_log = is_log(&path);
    // The view as it is now needs the end of a log only.
    let session = match arguments.at {
        None if is_log => {
            LoadedSession::read_resumed(&path).map_err(|error| Failure::new(error.to_string()))?
        }
        _ => LoadedSession::read(&path, settings)?,
    };
    let (end, model) = session.request_point(arguments.at, arguments.model.as_ref())?;
    let card = card(settings, &model, &Notices::to_stderr());
    let engine = engine(&card, &path, settings);
    let totals = session.left_out.as_ref().map(|left_out| left_out.totals);
    let view = View::from_resumed_branch(
        lens(&card, settings.estimator, ViewScope::Current),
        session.branch[..end].to_vec(),
        totals,
    );
    // An earlier request is looked at as of its own time.
    let moment = match arguments.at {
        Some(_) => session.branch.get(end).map_or_else(now, |entry| entry.at),
        None => now(),
    };
    let hidden = match &session.left_out {
        Some(left_out) => Some(HiddenMessages::from(left_out)),
        None => HiddenMessages::before_boundary(&view, is_log.then_some(path.as_path()))
            .map_err(|error| Failure::new(error.to_string()))?,
    };
    let report = ViewReport::new(&view, &engine, hidden, moment, arguments.full, &session.problems);
    if arguments.json {
        writeln!(out, "{}", report.to_json())?;
    } else {
        report.write_text(style_for(arguments.color), out)?;
    }
    Ok(ExitCode::SUCCESS)
}
