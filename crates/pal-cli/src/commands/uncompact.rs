//! `pal uncompact`: undoes the last compaction of a session.

use std::io::Write;
use std::process::ExitCode;

use pal_engine::EngineError;
use pal_model::EntryBody;
use pal_model::text::group_digits;
use pal_view::{View, ViewScope};
use serde_json::json;

use crate::arguments::UncompactArgs;
use crate::failure::Failure;
use crate::loaded_session::{LoadedSession, lens};
use crate::open_session::{OpenSession, now};
use crate::settings::Settings;

pub(crate) fn uncompact(
    arguments: &UncompactArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let mut stored = OpenSession::open(&arguments.session, arguments.model.as_deref(), settings)?;
    let lens = lens(&stored.card, settings.estimator, ViewScope::Current);
    let whole = || -> Result<View, Failure> {
        let session =
            LoadedSession::read_log(&stored.path).map_err(|error| Failure::new(error.to_string()))?;
        Ok(View::from_branch(lens.clone(), session.branch))
    };
    let before = whole()?;
    let boundary = before.boundary().and_then(|entry| match &entry.body {
        EntryBody::Boundary(boundary) => Some((entry.at, boundary.method.clone())),
        _ => None,
    });
    let target = stored.session.uncompact(&stored.engine, &before, now()).map_err(|error| match error {
        EngineError::NotPossible(why) => Failure::with_hint(why, "`pal view` shows the current context"),
        error => Failure::new(error.to_string()),
    })?;
    let after = whole()?;
    let (shown_before, shown_after) = (before.visible_entries().count(), after.visible_entries().count());
    let (tokens_before, tokens_after) = (before.size().tokens, after.size().tokens);
    let is_earlier = after.boundary().is_some();
    if arguments.json {
        let report = json!({
            "taken_back": target, "messages_before": shown_before, "messages_after": shown_after,
            "tokens_before": tokens_before, "tokens_after": tokens_after, "earlier_compaction": is_earlier,
        });
        writeln!(out, "{report}")?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some((at, how)) = boundary {
        writeln!(out, "undone: the compaction of {at} ({how})")?;
    }
    writeln!(
        out,
        "visible: {} → {} messages, {} → {} tokens",
        group_digits(shown_before as u64),
        group_digits(shown_after as u64),
        group_digits(tokens_before),
        group_digits(tokens_after)
    )?;
    if is_earlier {
        writeln!(out, "an earlier compaction is in force again; run `pal uncompact` again to undo it, too")?;
    }
    Ok(ExitCode::SUCCESS)
}
