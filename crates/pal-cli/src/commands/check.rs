//! `pal check`: the log of a session verified and repaired, or a request body judged by the strict validator.

mod log;

use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;

use pal_model::{fields, unescape};
use pal_wire::{Beta, Rules, check_request};
use serde_json::json;

use crate::arguments::Check;
use crate::failure::Failure;
use crate::session::{card, read_file};
use crate::settings::Settings;
use crate::table::{harmless, thousands};

/// More than any provider takes; the validator says so for what lies between.
const BYTES_MAX: u64 = 256 << 20;

pub(crate) fn check(
    arguments: &Check,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    if let Some(path) = log::find_log(arguments, settings)? {
        return log::check_log(&path, arguments, out);
    }
    if arguments.repair {
        return Err(Failure::wrong_use(
            format!("`{}` is not a log of pal, and only those are repaired", arguments.subject),
            "give the id of a session, or the path of its log",
        ));
    }
    let file = Path::new(&arguments.subject);
    let body = if file == Path::new("-") { read_standard_input()? } else { read_file(file)? };
    let mut rules = match arguments.model.clone().or_else(|| model_of(&body)) {
        Some(model) => Rules::from(&card(settings, &model)),
        None => Rules::newest(),
    };
    for name in &arguments.betas {
        let beta = Beta::from_header(name).ok_or_else(|| {
            Failure::with_hint(
                format!("`{name}` is no beta that pal knows"),
                "give the value of the anthropic-beta header",
            )
        })?;
        rules.betas = rules.betas.with(beta);
    }
    match check_request(&body, &rules) {
        Ok(checked) if arguments.json => {
            let report = json!({
                "valid": true, "bytes": checked.bytes, "messages": checked.messages, "blocks": checked.blocks,
                "tools": checked.tools, "marks": checked.marks, "tool_uses": checked.tool_uses,
                "tool_results": checked.tool_results, "thinking": checked.thinking, "media": checked.media,
            });
            writeln!(out, "{report}")?;
            Ok(ExitCode::SUCCESS)
        }
        Ok(checked) => {
            writeln!(
                out,
                "valid: {} messages, {} blocks, {} tool calls, {} tools, {} marks, {} bytes",
                thousands(checked.messages as u64),
                thousands(checked.blocks as u64),
                thousands(checked.tool_uses as u64),
                checked.tools,
                checked.marks,
                thousands(checked.bytes as u64)
            )?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            if arguments.json {
                writeln!(out, "{}", error.to_json("req_local"))?;
            } else {
                writeln!(out, "{} {}: {}", error.status, error.kind, harmless(&error.message))?;
            }
            Ok(ExitCode::from(1))
        }
    }
}

/// The model that a body names, as far as it can be read.
fn model_of(body: &[u8]) -> Option<String> {
    let fields = fields(std::str::from_utf8(body).ok()?).ok()?;
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
