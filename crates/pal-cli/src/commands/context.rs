//! `pal context`: what goes into a request before the first message, and how full the window is.

mod planned_session;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use pal_agent::{run_settings, ttl_preference};
use pal_context::RequestParams;
use pal_context::cache::choose_ttl;
use pal_events::call_subject;
use pal_report::{ContextReport, LayerOutlook, PromptPart, sanitize_lines, session_name};
use pal_view::{RenderOptions, Request, View, ViewScope, WindowLimits};

use crate::arguments::{ContextArgs, RequestPartArg};
use crate::failure::Failure;
use crate::loaded_session::{LoadedSession, card, lens};
use crate::notices::Notices;
use crate::open_session::{engine, model_card, now};
use crate::session_lookup::find;
use crate::settings::Settings;
use crate::terminal_style::{columns, style_for};

pub(crate) fn context(
    arguments: &ContextArgs,
    settings: &Settings,
    notices: &Notices,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let report = match &arguments.session {
        Some(session) => stored_report(session, arguments, settings, notices)?,
        None => planned_report(arguments, settings, notices)?,
    };
    match arguments.show {
        Some(part) => show_part(&report, part, out)?,
        None if arguments.json => writeln!(out, "{}", report.to_json())?,
        None => {
            let home = settings.user_home.as_deref();
            report.write_text(home, style_for(arguments.color), columns(), arguments.brief, out)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Reports on a session that would start.
fn planned_report(
    arguments: &ContextArgs,
    settings: &Settings,
    notices: &Notices,
) -> Result<ContextReport, Failure> {
    let model = arguments.model.as_deref().or(settings.model.as_deref());
    let card = card(settings, model.unwrap_or(pal_settings::DEFAULT_MODEL), notices);
    let lens = lens(&card, settings.estimator, ViewScope::Current);
    let session = planned_session::gather(arguments, &card, lens.estimator, settings)?;
    let view = View::from_branch(lens, planned_session::first_entries(&session)?);
    let limits = WindowLimits::new(&card, &settings.window_for(&card.model));
    let request = next_request(&view, settings);
    Ok(ContextReport::of_planned(session, view, request, limits))
}

/// Reports on a session on disk.
fn stored_report(
    name: &str,
    arguments: &ContextArgs,
    settings: &Settings,
    notices: &Notices,
) -> Result<ContextReport, Failure> {
    let path = find(name, settings)?;
    let session = LoadedSession::read(&path, settings)?;
    for problem in &session.problems {
        notices.add(problem);
    }
    let card = model_card(&session, arguments.model.as_deref(), settings, notices)?;
    let name = session_name(&session.branch, &path);
    let view = View::from_branch(lens(&card, settings.estimator, ViewScope::Current), session.branch);
    let limits = WindowLimits::new(&card, &settings.window_for(&card.model));
    let request = next_request(&view, settings);
    let outlook = LayerOutlook::new(&view, &engine(&card, &path, settings), now(), call_subject);
    Ok(ContextReport::of_stored(name, path, view, request, limits, outlook))
}

/// Renders the next request, with its cache breakpoints.
fn next_request(view: &View, settings: &Settings) -> Request {
    let (lifetime, _) = choose_ttl(view, &settings.context_policy(), ttl_preference(settings), None);
    let options = RenderOptions {
        max_tokens: run_settings(settings, &view.lens().card).output_tokens,
        stream: true,
        spell_out_unseen: false,
    };
    RequestParams { ttl: lifetime, ..RequestParams::default() }.request(view, options)
}

/// Prints the text of one part exactly as it would be sent.
fn show_part(report: &ContextReport, part: RequestPartArg, out: &mut dyn Write) -> Result<(), Failure> {
    let (part, name) = match part {
        RequestPartArg::System => (PromptPart::System, "system prompt"),
        RequestPartArg::Tools => (PromptPart::Tools, "tools"),
        RequestPartArg::Context => (PromptPart::Reminder, "reminder before the first message"),
        RequestPartArg::Git => (PromptPart::Git, "git snapshot"),
    };
    let Some(text) = report.part_text(part) else {
        return Err(match report.git_omission().filter(|_| part == PromptPart::Git) {
            Some(left) => Failure::new(format!("there is no {name}: {}", left.why)),
            None => Failure::with_hint(format!("there is no {name}"), "omit --show to list all parts"),
        });
    };
    // Control characters must not drive the terminal; a file or a pipe gets the text as it would be sent.
    let text = if std::io::stdout().is_terminal() { sanitize_lines(&text) } else { text };
    writeln!(out, "{text}")?;
    Ok(())
}
