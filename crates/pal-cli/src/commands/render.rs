//! `pal render`: the request behind a response, or the next one.

use std::io::Write;
use std::process::ExitCode;

use pal_model::Entry;
use pal_view::{Limits, RenderOptions, Scope, View};
use serde_json::json;

use crate::arguments::Render;
use crate::carried::{Carried, request_at};
use crate::failure::Failure;
use crate::session::{Session, card, lens};
use crate::settings::Settings;
use crate::stored::MAX_TOKENS;

pub(crate) fn render(
    arguments: &Render,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let session = Session::read(&arguments.file, settings)?;
    let (end, model) = session.looked_at(arguments.at, arguments.model.as_ref())?;
    let card = card(settings, &model);
    let scope = if arguments.whole { Scope::Whole } else { Scope::Current };
    let entries: Vec<Entry> = session.branch[..end].to_vec();
    let view = View::of(lens(&card, settings.estimator, scope), entries);
    let max_tokens = MAX_TOKENS.min(card.max_output);
    let options = RenderOptions { max_tokens, stream: true, spell_out_unseen: arguments.stand_in };
    let carried = Carried::like(request_at(&session.branch, end), &view, &card, settings);
    carried.tell();
    let request = carried.standing.request(&view, options);
    if arguments.json {
        let size = view.size();
        let limits = Limits::new(&card, &settings.window_for(&model));
        let report = json!({
            "model": card.model, "messages": request.messages(), "blocks": request.blocks(),
            "tokens": size.tokens, "window": limits.window, "fingerprint": request.fingerprint(),
        });
        // The body goes in as it is: putting it through a JSON tree would change its bytes.
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
