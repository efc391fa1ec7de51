//! `pal render`: prints the request behind a response, or the next request.

use std::io::Write;
use std::process::ExitCode;

use pal_agent::run_settings;
use pal_model::LogEntry;
use pal_view::{RenderOptions, View, ViewScope, WindowLimits};
use serde_json::json;

use crate::arguments::RenderArgs;
use crate::failure::Failure;
use crate::loaded_session::{LoadedSession, card, lens};
use crate::next_request::{NextRequestParams, request_at};
use crate::notices::Notices;
use crate::session_lookup::find_or_newest;
use crate::settings::Settings;

pub(crate) fn render(
    arguments: &RenderArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let file = find_or_newest(arguments.session.as_deref(), settings)?;
    let session = LoadedSession::read(&file, settings)?;
    let (end, model) = session.request_point(arguments.at, arguments.model.as_ref())?;
    let card = card(settings, &model, &Notices::to_stderr());
    let scope = if arguments.whole { ViewScope::Whole } else { ViewScope::Current };
    let entries: Vec<LogEntry> = session.branch[..end].to_vec();
    let view = View::from_branch(lens(&card, settings.estimator, scope), entries);
    let max_tokens = run_settings(settings, &card).output_tokens;
    let options = RenderOptions { max_tokens, stream: true, spell_out_unseen: arguments.stand_in };
    let carried = NextRequestParams::after_request(request_at(&session.branch, end), &view, &card, settings);
    carried.print_notices();
    let request = carried.params.request(&view, options);
    if arguments.json {
        let size = view.size();
        let limits = WindowLimits::new(&card, &settings.window_for(&model));
        let report = json!({
            "model": card.model, "messages": request.message_count(), "blocks": request.block_count(),
            "tokens": size.tokens, "window": limits.window, "fingerprint": request.fingerprint(),
        });
        // The body is written raw: a JSON tree would change its bytes.
        let report = report.to_string();
        write!(out, "{},\"body\":", report.strip_suffix('}').unwrap_or(&report))?;
        write_body(&request, out)?;
        writeln!(out, "}}")?;
    } else {
        write_body(&request, out)?;
        writeln!(out)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write_body(request: &pal_view::Request, out: &mut dyn Write) -> std::io::Result<()> {
    request.parts().iter().try_for_each(|part| out.write_all(part.as_str().as_bytes()))
}
