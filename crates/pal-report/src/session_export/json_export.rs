//! A session as JSON: a summary, and its entries as they stand in the log.

use std::io::{self, Write};

use pal_model::{BlockType, EntryBody, MessageOrigin};
use serde_json::json;

use super::{SessionTranscript, TranscriptItem};

pub(super) fn write(transcript: &SessionTranscript<'_>, out: &mut dyn Write) -> io::Result<()> {
    let all = &transcript.ledger.all;
    let prompts = transcript.entries.iter().filter(|entry| match &entry.body {
        EntryBody::User(user) => {
            user.origin == MessageOrigin::Person
                && user.content.blocks().iter().any(|block| block.kind() != BlockType::ToolResult)
        }
        _ => false,
    });
    let summary = json!({
        "name": transcript.name,
        "program": transcript.program,
        "cwd": transcript.cwd,
        "models": transcript.models(),
        "began": transcript.times().map(|(began, _)| began),
        "last_active": transcript.times().map(|(_, last)| last),
        "entries": transcript.entries.len(),
        "prompts": prompts.count(),
        "tool_calls": transcript.items.iter().filter(|item| matches!(item, TranscriptItem::Call(_))).count(),
        "compactions": transcript.ledger.compactions.len(),
        "cache_breaks": transcript.ledger.breaks().count(),
        "requests": all.requests,
        "usage": {
            "input_tokens": all.prompt.uncached,
            "cache_creation_input_tokens": all.prompt.written + all.prompt.written_1h,
            "cache_read_input_tokens": all.prompt.read,
            "output_tokens": all.output,
        },
        "cost_usd": all.known_cost(),
        "masked": transcript.masked,
        "problems": transcript.problems,
    });
    write!(out, "{{\"summary\":{summary},\"entries\":[")?;
    for (at, entry) in transcript.entries.iter().enumerate() {
        // Written raw: a JSON tree would change its bytes.
        let line = transcript.masked_lines.get(&entry.id).map_or(entry.line.as_ref(), String::as_str);
        write!(out, "{}\n{line}", if at == 0 { "" } else { "," })?;
    }
    writeln!(out, "\n]}}")?;
    Ok(())
}
