//! A session as Markdown: text of the model as it is, everything else escaped or fenced.

use std::io::{self, Write};

use pal_context::LedgerRow;
use pal_model::text::{count_noun, group_digits};

use super::{MessageAuthor, MessagePart, SessionTranscript, TranscriptCall, TranscriptItem, clean, time};
use crate::text_layout::clip_line;
use crate::units::{format_percent, format_usd};

/// Maximum columns of a heading.
const HEADING_COLUMNS_MAX: usize = 100;

pub(super) fn write(transcript: &SessionTranscript<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# {}\n", plain(&clip_line(&transcript.name, HEADING_COLUMNS_MAX)))?;
    for fact in facts(transcript) {
        writeln!(out, "- {}", plain(&fact))?;
    }
    for item in &transcript.items {
        match item {
            TranscriptItem::Message { who, at, parts } => write_message(who, &time(*at), parts, out)?,
            TranscriptItem::Call(call) => self::call(call, out)?,
            TranscriptItem::Note { text, .. } => writeln!(out, "\n> *{}*", plain(&clip_line(text, 1_000)))?,
            TranscriptItem::Collapsed { title, parts } => write_collapsed(title, parts, out)?,
            TranscriptItem::Usage(at) => {
                if let Some(row) = transcript.row(*at) {
                    writeln!(out, "\n<sub>{}</sub>", plain(&usage_line(row)))?;
                }
            }
        }
    }
    write_totals(transcript, out)
}

/// Lists facts about the whole session.
pub(super) fn facts(transcript: &SessionTranscript<'_>) -> Vec<String> {
    let mut facts = Vec::new();
    facts.extend(transcript.cwd.as_ref().map(|cwd| format!("directory: {cwd}")));
    facts.extend(transcript.program.as_ref().map(|program| format!("written by: {program}")));
    let models = transcript.models().join(", ");
    if !models.is_empty() {
        facts.push(format!("model: {models}"));
    }
    if let Some((began, last)) = transcript.times() {
        facts.push(format!("time: {} to {} UTC", time(began), time(last)));
    }
    if let Some(cost) = transcript.ledger.all.known_cost() {
        facts.push(format!("cost: {}{}", format_usd(cost), cost_remark(transcript)));
    }
    if let Some(masked) = transcript.masked.filter(|masked| *masked > 0) {
        facts.push(format!("{} masked, shown as [secret: kind]", count_noun(masked, "secret")));
    }
    facts.extend(transcript.problems.iter().map(|problem| format!("damaged: {problem}")));
    facts
}

/// Says that a cost is simulated or estimated, and why.
fn cost_remark(transcript: &SessionTranscript<'_>) -> String {
    let all = &transcript.ledger.all;
    let mut remark = String::new();
    if all.simulated > 0 && all.simulated == all.requests {
        remark.push_str(", simulated: nothing was spent");
    } else if all.simulated > 0 {
        remark.push_str(&format!(", of which {} simulated", count_noun(all.simulated as usize, "request")));
    }
    if all.estimated > 0 {
        let requests = count_noun(all.estimated as usize, "request");
        remark.push_str(&format!(" (output of {requests} estimated: the transcript has only a placeholder)"));
    }
    remark
}

/// Formats the usage of a request in one line.
pub(super) fn usage_line(row: &LedgerRow) -> String {
    let prompt = row.prompt.map_or(String::from("usage not reported"), |prompt| {
        let written = prompt.written + prompt.written_1h;
        let [read, written, uncached] = [prompt.read, written, prompt.uncached].map(group_digits);
        format!("{read} read, {written} written, {uncached} uncached")
    });
    let cost = row.cost.map_or(String::new(), |cost| format!(", {}", format_usd(cost)));
    let source = if row.is_conversation() { String::new() } else { format!("{}: ", row.source.as_str()) };
    format!("{source}{prompt}, {} out{cost}", group_digits(row.output))
}

fn write_message(
    who: &MessageAuthor,
    at: &str,
    parts: &[MessagePart],
    out: &mut dyn Write,
) -> io::Result<()> {
    let name = match who {
        MessageAuthor::Person => "User",
        MessageAuthor::Model => "Assistant",
        MessageAuthor::Other(name) => name,
    };
    writeln!(out, "\n## {name} · {at}")?;
    for part in parts {
        match (who, part) {
            (MessageAuthor::Model, MessagePart::Text(text)) => {
                writeln!(out, "\n{}", escape_model_markdown(text))?
            }
            (_, MessagePart::Text(text)) => write_fenced(text, "text", out)?,
            (_, MessagePart::Thinking(text)) => {
                write_collapsed("Thinking", &[MessagePart::Text(text.clone())], out)?
            }
            (_, other) => writeln!(out, "\n{}", plain(&part_text(other)))?,
        }
    }
    Ok(())
}

fn call(call: &TranscriptCall, out: &mut dyn Write) -> io::Result<()> {
    let state = match (&call.result, call.is_error) {
        (None, _) => " (no result)",
        (Some(_), true) => " (failed)",
        (Some(_), false) => "",
    };
    let heading = clip_line(&format!("{} {}", call.name, call.description), HEADING_COLUMNS_MAX);
    writeln!(out, "\n<details><summary>{}{state}</summary>", escaped(&heading))?;
    write_fenced(&call.input, "json", out)?;
    parts_fenced(call.result.as_deref().unwrap_or_default(), out)?;
    writeln!(out, "\n</details>")?;
    Ok(())
}

fn write_collapsed(title: &str, parts: &[MessagePart], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n<details><summary>{}</summary>", escaped(&clip_line(title, HEADING_COLUMNS_MAX)))?;
    parts_fenced(parts, out)?;
    writeln!(out, "\n</details>")?;
    Ok(())
}

fn parts_fenced(parts: &[MessagePart], out: &mut dyn Write) -> io::Result<()> {
    for part in parts {
        write_fenced(&part_text(part), "text", out)?;
    }
    Ok(())
}

/// Returns the text of a part.
fn part_text(part: &MessagePart) -> String {
    match part {
        MessagePart::Text(text) | MessagePart::Thinking(text) | MessagePart::Other(text) => text.clone(),
        MessagePart::Picture { media_type, data } => {
            format!("[picture: {media_type}, {} KB]", group_digits(data.len() as u64 * 3 / 4 / 1_000))
        }
    }
}

/// Writes a text between fences that are longer than any in it.
fn write_fenced(text: &str, language: &str, out: &mut dyn Write) -> io::Result<()> {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    writeln!(out, "\n{fence}{language}\n{}\n{fence}", clean(text.trim_end_matches('\n')))?;
    Ok(())
}

/// Escapes a line so that nothing in it counts as Markdown.
fn plain(text: &str) -> String {
    let special =
        |c: char| matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '!' | '&');
    clean(text).chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

/// Escapes a line for use between tags.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Makes Markdown of the model safe: escapes tags outside of code, and closes an open fence.
fn escape_model_markdown(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut fence: Option<&str> = None;
    for line in text.trim_end().lines() {
        let start = line.trim_start();
        let marks = start.len() - start.trim_start_matches(['`', '~']).len();
        let mark = &start[..marks];
        let is_fence =
            marks >= 3 && mark.chars().all(|c| mark.starts_with(c)) && line.len() - start.len() < 4;
        match fence {
            None if is_fence && !(mark.starts_with('`') && start[marks..].contains('`')) => {
                fence = Some(mark)
            }
            Some(open) if is_fence && mark.starts_with(open) && start[marks..].trim().is_empty() => {
                fence = None
            }
            _ => {}
        }
        match fence {
            Some(_) => safe.push_str(line),
            None => escape_tags(line, &mut safe),
        }
        safe.push('\n');
    }
    if let Some(open) = fence {
        safe.push_str(open);
        safe.push('\n');
    }
    clean(safe.trim_end_matches('\n'))
}

/// Escapes each `<` that could begin a tag, except in code.
fn escape_tags(line: &str, safe: &mut String) {
    let mut rest = line;
    while let Some(at) = rest.find(['`', '<']) {
        safe.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with('<') {
            safe.push_str("&lt;");
            rest = &rest[1..];
            continue;
        }
        let ticks = rest.len() - rest.trim_start_matches('`').len();
        let (mark, behind) = rest.split_at(ticks);
        let end = behind
            .match_indices(mark)
            .map(|(at, _)| at)
            .find(|&at| !behind[at + ticks..].starts_with('`') && !behind[..at].ends_with('`'));
        let length = end.map_or(ticks, |end| 2 * ticks + end);
        safe.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    safe.push_str(rest);
}

fn write_totals(transcript: &SessionTranscript<'_>, out: &mut dyn Write) -> io::Result<()> {
    let ledger = &transcript.ledger;
    let all = &ledger.all;
    writeln!(out, "\n## Cost\n")?;
    if all.requests == 0 {
        writeln!(out, "No requests.")?;
        return Ok(());
    }
    writeln!(out, "| model | requests | read | written | uncached | output | cost |")?;
    writeln!(out, "| --- | ---: | ---: | ---: | ---: | ---: | ---: |")?;
    for (model, totals) in &ledger.by_model {
        let prompt = &totals.prompt;
        let [requests, read, written, uncached, output] = [
            totals.requests,
            prompt.read,
            prompt.written + prompt.written_1h,
            prompt.uncached,
            totals.output,
        ]
        .map(group_digits);
        let cost = totals.known_cost().map_or(String::from("–"), format_usd);
        let model = plain(model);
        writeln!(out, "| {model} | {requests} | {read} | {written} | {uncached} | {output} | {cost} |")?;
    }
    writeln!(out)?;
    for line in closing_lines(transcript) {
        writeln!(out, "{}  ", plain(&line))?;
    }
    Ok(())
}

/// Sums up all requests.
pub(super) fn closing_lines(transcript: &SessionTranscript<'_>) -> Vec<String> {
    let ledger = &transcript.ledger;
    let all = &ledger.all;
    let mut lines = Vec::new();
    let requests = count_noun(all.requests as usize, "request");
    lines.push(all.known_cost().map_or(format!("{requests}; price not known"), |cost| {
        format!("{} for {requests}{}", format_usd(cost), cost_remark(transcript))
    }));
    if let Some(share) = all.share_read() {
        lines.push(format!("{} of prompt tokens were read from the cache", format_percent(share)));
    }
    if !ledger.compactions.is_empty() {
        lines.push(count_noun(ledger.compactions.len(), "compaction"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_the_model_are_text_and_code_stays() {
        for (text, safe) in [
            ("a <b>x</b>", "a &lt;b>x&lt;/b>"),
            ("`<b>` and <i>", "`<b>` and &lt;i>"),
            ("``a ` <b>`` <i>", "``a ` <b>`` &lt;i>"),
            ("` <b>", "` &lt;b>"),
            ("```rs\n<T>\n```\n<script>", "```rs\n<T>\n```\n&lt;script>"),
            ("~~~\n<T>", "~~~\n<T>\n~~~"),
            ("````\n```\n<T>", "````\n```\n<T>\n````"),
            ("``` a`b <x>", "``` a`b &lt;x>"),
            ("```\n``` no end\n<T>", "```\n``` no end\n<T>\n```"),
        ] {
            assert_eq!(escape_model_markdown(text), safe, "{text}");
        }
    }

    #[test]
    fn a_fence_is_longer_than_what_it_holds() {
        let mut out = Vec::new();
        write_fenced("a ```` b\n", "text", &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "\n`````text\na ```` b\n`````\n");
        assert_eq!(plain("# a_b <c>"), "\\# a\\_b \\<c\\>");
    }
}
