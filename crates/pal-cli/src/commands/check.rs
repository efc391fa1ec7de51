//! `pal check`: verifies and repairs the log of a session, or validates a request body.

mod log_check;

use std::io::{IsTerminal, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use pal_model::text::group_digits;
use pal_model::{object_fields, unescape};
use pal_report::sanitize;
use pal_wire::{Beta, RequestRules, beta_headers, check_request};
use serde_json::json;

use crate::arguments::CheckArgs;
use crate::failure::Failure;
use crate::loaded_session::{card, read_file};
use crate::notices::Notices;
use crate::settings::Settings;

/// Larger than any provider accepts; the validator reports anything between.
const BYTES_MAX: u64 = 256 << 20;

pub(crate) fn check(
    arguments: &CheckArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let subject = subject(arguments)?;
    if let Some(path) = log_check::find_log(subject, arguments, settings)? {
        return log_check::check_log(&path, subject, arguments, out);
    }
    if arguments.repair {
        return Err(Failure::usage_error(
            format!("`{subject}` is not a log of pal; only those can be repaired"),
            "give the id of a session or the path of its log",
        ));
    }
    let file = Path::new(subject);
    let body = if file == Path::new("-") { read_standard_input()? } else { read_file(file)? };
    let model = arguments.model.clone().or_else(|| model_of(&body));
    let card = model.map(|model| card(settings, &model, &Notices::to_stderr()));
    let mut rules = card.as_ref().map_or_else(RequestRules::newest, RequestRules::from);
    // A body does not show its headers: without any named, those that pal sends to this model count.
    let sent = card.iter().filter(|_| arguments.betas.is_empty()).flat_map(beta_headers);
    rules.betas = sent.filter_map(Beta::from_header).fold(rules.betas, |betas, beta| betas.with(beta));
    for name in &arguments.betas {
        let beta = Beta::from_header(name).ok_or_else(|| {
            Failure::with_hint(format!("unknown beta `{name}`"), "give a value of the anthropic-beta header")
        })?;
        rules.betas = rules.betas.with(beta);
    }
    match check_request(&body, &rules) {
        Ok(checked) if arguments.json => {
            let report = json!({
                "valid": true, "bytes": checked.bytes, "messages": checked.messages, "blocks": checked.blocks,
                "tools": checked.tools, "marks": checked.breakpoints, "tool_uses": checked.tool_uses,
                "tool_results": checked.tool_results, "thinking": checked.thinking, "media": checked.media,
            });
            writeln!(out, "{report}")?;
            Ok(ExitCode::SUCCESS)
        }
        Ok(checked) => {
            writeln!(
                out,
                "valid: {} messages, {} blocks, {} tool calls, {} tools, {} cache breakpoints, {} bytes",
                group_digits(checked.messages as u64),
                group_digits(checked.blocks as u64),
                group_digits(checked.tool_uses as u64),
                checked.tools,
                checked.breakpoints,
                group_digits(checked.bytes as u64)
            )?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            if arguments.json {
                writeln!(out, "{}", error.to_json("req_local"))?;
            } else {
                writeln!(out, "{} {}: {}", error.status, error.kind, sanitize(&error.message))?;
            }
            Ok(ExitCode::from(crate::exit_codes::ERROR))
        }
    }
}

/// What to check: the named session or file, else what is piped in.
fn subject(arguments: &CheckArgs) -> Result<&str, Failure> {
    match arguments.subject.as_deref() {
        Some(subject) => Ok(subject),
        None if std::io::stdin().is_terminal() => Err(Failure::usage_error(
            "nothing to check",
            "name a session or the file of a request body, or pipe a body in: `pal render | pal check`",
        )),
        None => Ok("-"),
    }
}

/// Reads the model name of a body; none if it cannot be read.
fn model_of(body: &[u8]) -> Option<String> {
    let fields = object_fields(std::str::from_utf8(body).ok()?).ok()?;
    let model = fields.iter().find(|(key, _)| key == "model")?.1;
    unescape(model).map(|model| model.into_owned())
}

fn read_standard_input() -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    std::io::stdin()
        .lock()
        .take(BYTES_MAX)
        .read_to_end(&mut body)
        .map_err(|error| Failure::new(format!("standard input: {error}")))?;
    Ok(body)
}
