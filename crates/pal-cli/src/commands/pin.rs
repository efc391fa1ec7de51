//! `pal pin`: texts that every compaction keeps word for word.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use pal_engine::{EngineError, pin_tokens};
use pal_model::EntryId;
use pal_model::text::{count_noun, group_digits};
use pal_report::{DEFAULT_COLUMNS, clip_line};
use serde_json::json;

use crate::arguments::PinArgs;
use crate::failure::Failure;
use crate::loaded_session::read_file;
use crate::notices::print_notice;
use crate::open_session::{OpenSession, now};
use crate::settings::Settings;

pub(crate) fn pin(
    arguments: &PinArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let text = match &arguments.file {
        Some(path) => Some(read_text(path)?),
        None => arguments.text.clone(),
    };
    let mut stored = OpenSession::open(&arguments.session, arguments.model.as_deref(), settings)?;
    if let Some(number) = arguments.remove {
        let pin = find_pin(&stored, number)?;
        stored.session.unpin(pin, now()).map_err(engine_failure)?;
        if !arguments.json && stored.session.view().boundary().is_some() {
            print_notice(format_args!("the current summary still contains it until the next compaction"));
        }
    } else if let Some(text) = &text {
        stored.session.pin(text, &stored.engine, now()).map_err(engine_failure)?;
    }
    list(&stored, arguments.json, out)?;
    Ok(ExitCode::SUCCESS)
}

fn read_text(path: &Path) -> Result<String, Failure> {
    let text = String::from_utf8(read_file(path)?).map_err(|_| {
        Failure::with_hint(format!("{}: not a text file", path.display()), "pin a UTF-8 text file")
    })?;
    if text.trim().is_empty() {
        let what = format!("{}: nothing to pin: the file is empty", path.display());
        return Err(Failure::with_hint(what, "name a file with content"));
    }
    Ok(text)
}

fn find_pin(stored: &OpenSession, number: usize) -> Result<EntryId, Failure> {
    let pins = &stored.session.view().state().pins;
    let found = number.checked_sub(1).and_then(|at| pins.keys().nth(at).copied());
    found.ok_or_else(|| {
        Failure::with_hint(
            format!("no pin {number}: the session has {}", pins.len()),
            "`pal pin SESSION --list` numbers them",
        )
    })
}

fn engine_failure(error: EngineError) -> Failure {
    match error {
        EngineError::NotPossible(why) => {
            Failure::with_hint(why, "shorten the text, or remove a pin with `pal pin SESSION --remove N`")
        }
        error => Failure::new(error.to_string()),
    }
}

fn list(stored: &OpenSession, is_json: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let view = stored.session.view();
    let budget = stored.engine.pin_budget();
    let tokens: Vec<u64> = pin_tokens(view).into_iter().map(|(_, tokens)| tokens).collect();
    let taken: u64 = tokens.iter().sum();
    let pins = view.state().pins.iter().zip(&tokens).enumerate();
    if is_json {
        let pins: Vec<_> = pins
            .map(|(at, ((id, text), tokens))| json!({"number": at + 1, "id": id, "tokens": tokens, "text": text}))
            .collect();
        writeln!(out, "{}", json!({"pins": pins, "tokens": taken, "budget": budget}))?;
        return Ok(());
    }
    for (at, ((_, text), tokens)) in pins {
        writeln!(
            out,
            "{:>3}  {:>6}  {}",
            at + 1,
            group_digits(*tokens),
            clip_line(text, DEFAULT_COLUMNS - 13)
        )?;
    }
    let count = count_noun(tokens.len(), "pin");
    writeln!(out, "{count}, {} of {} tokens", group_digits(taken), group_digits(budget))?;
    Ok(())
}
