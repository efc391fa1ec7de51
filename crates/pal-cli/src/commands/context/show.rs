//! The text of one part, exactly as it would be sent.

use std::io::{IsTerminal, Write};

use crate::arguments::PartName;
use crate::failure::Failure;
use crate::table::harmless_lines;

use super::contents::text_of;
use super::{Look, Subject};

pub(super) fn print(look: &Look, part: PartName, out: &mut dyn Write) -> Result<(), Failure> {
    let text = match part {
        PartName::System => {
            let blocks: Vec<String> = look.request.system().iter().map(|raw| text_of(raw)).collect();
            blocks.join("\n\n")
        }
        PartName::Tools => {
            let tools: Vec<&str> = look.request.tools().iter().map(|raw| raw.as_str()).collect();
            if tools.is_empty() { String::new() } else { format!("[{}]", tools.join(",\n")) }
        }
        PartName::Context => look.contents.context.text.clone(),
        PartName::Git => look.contents.section("git").map(|git| git.text.clone()).unwrap_or_default(),
    };
    if text.is_empty() {
        return Err(nothing(look, part));
    }
    // What others wrote must not drive the terminal; into a file or a pipe goes what would be sent.
    let text = if std::io::stdout().is_terminal() { harmless_lines(&text) } else { text };
    writeln!(out, "{text}")?;
    Ok(())
}

fn nothing(look: &Look, part: PartName) -> Failure {
    let name = match part {
        PartName::System => "system prompt",
        PartName::Tools => "tools",
        PartName::Context => "reminder before the first message",
        PartName::Git => "snapshot of git",
    };
    let left_out = match &look.subject {
        Subject::Start(here) => here.assembled.left_out.iter().find(|left| left.what == "git"),
        Subject::Stored { .. } => None,
    };
    match left_out.filter(|_| part == PartName::Git) {
        Some(left) => Failure::new(format!("there is no {name}: {}", left.why)),
        None => Failure::with_hint(
            format!("there is no {name}"),
            "without --show everything that is there is listed",
        ),
    }
}
