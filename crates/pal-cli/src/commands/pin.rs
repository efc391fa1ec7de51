//! `pal pin`: texts that every compaction carries word for word.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use pal_engine::{EngineError, pin_tokens};
use pal_model::EntryId;
use serde_json::json;

use crate::arguments::Pin;
use crate::aside;
use crate::colour::{COLUMNS, clipped};
use crate::failure::Failure;
use crate::session::read_file;
use crate::settings::Settings;
use crate::stored::{Stored, now};
use crate::table::{counted, thousands};

pub(crate) fn pin(arguments: &Pin, settings: &Settings, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let text = match &arguments.file {
        Some(path) => Some(text_of(path)?),
        None => arguments.text.clone(),
    };
    let mut stored = Stored::open(&arguments.session, arguments.model.as_deref(), settings)?;
    if let Some(number) = arguments.remove {
        let pin = numbered(&stored, number)?;
        stored.session.unpin(pin, now()).map_err(failed)?;
        if !arguments.json && stored.session.view().boundary().is_some() {
            aside::tell(format_args!("a summary that carries it already does so until the next compaction"));
        }
    } else if let Some(text) = &text {
        stored.session.pin(text, &stored.engine, now()).map_err(failed)?;
    }
    list(&stored, arguments.json, out)?;
    Ok(ExitCode::SUCCESS)
}

fn text_of(path: &Path) -> Result<String, Failure> {
    let text = String::from_utf8(read_file(path)?).map_err(|_| {
        Failure::with_hint(format!("{}: this is no text", path.display()), "pin a text file in UTF-8")
    })?;
    if text.trim().is_empty() {
        let what = format!("{}: there is nothing to pin: the file is empty", path.display());
        return Err(Failure::with_hint(what, "name a file that says something"));
    }
    Ok(text)
}

fn numbered(stored: &Stored, number: usize) -> Result<EntryId, Failure> {
    let pins = &stored.session.view().state().pins;
    let found = number.checked_sub(1).and_then(|at| pins.keys().nth(at).copied());
    found.ok_or_else(|| {
        Failure::with_hint(
            format!("there is no pin {number}: the session has {}", pins.len()),
            "`pal pin SESSION --list` shows them with their numbers",
        )
    })
}

fn failed(error: EngineError) -> Failure {
    match error {
        EngineError::NotPossible(why) => {
            Failure::with_hint(why, "shorten the text, or remove a pin: pal pin SESSION --list, --remove N")
        }
        error => Failure::new(error.to_string()),
    }
}

fn list(stored: &Stored, is_json: bool, out: &mut dyn Write) -> Result<(), Failure> {
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
        writeln!(out, "{:>3}  {:>6}  {}", at + 1, thousands(*tokens), clipped(text, COLUMNS - 13))?;
    }
    let count = counted(tokens.len(), "pin");
    writeln!(out, "{count}, {} of {} tokens", thousands(taken), thousands(budget))?;
    Ok(())
}
