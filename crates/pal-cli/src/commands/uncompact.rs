//! `pal uncompact`: the last compaction of a session is taken back.

use std::io::Write;
use std::process::ExitCode;

use pal_engine::EngineError;
use pal_model::Body;
use pal_view::{Scope, View};
use serde_json::json;

use crate::arguments::Uncompact;
use crate::failure::Failure;
use crate::session::{Session, lens};
use crate::settings::Settings;
use crate::stored::{Stored, now};
use crate::table::thousands;

pub(crate) fn uncompact(
    arguments: &Uncompact,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let mut stored = Stored::open(&arguments.session, arguments.model.as_deref(), settings)?;
    let lens = lens(&stored.card, settings.estimator, Scope::Current);
    let whole = || -> Result<View, Failure> {
        let session = Session::read_log(&stored.path).map_err(|error| Failure::new(error.to_string()))?;
        Ok(View::of(lens.clone(), session.branch))
    };
    let before = whole()?;
    let boundary = before.boundary().and_then(|entry| match &entry.body {
        Body::Boundary(boundary) => Some((entry.at, boundary.how.clone())),
        _ => None,
    });
    let target = stored.session.uncompact(&stored.engine, &before, now()).map_err(|error| match error {
        EngineError::NotPossible(why) => Failure::with_hint(why, "`pal view` shows what is in sight now"),
        error => Failure::new(error.to_string()),
    })?;
    let after = whole()?;
    let (shown_before, shown_after) = (before.shown().count(), after.shown().count());
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
        writeln!(out, "taken back: the compaction of {at} ({how})")?;
    }
    writeln!(
        out,
        "in sight: {} → {} messages, {} → {} tokens",
        thousands(shown_before as u64),
        thousands(shown_after as u64),
        thousands(tokens_before),
        thousands(tokens_after)
    )?;
    if is_earlier {
        writeln!(out, "an earlier compaction is in force again; once more takes that one back, too")?;
    }
    Ok(ExitCode::SUCCESS)
}
