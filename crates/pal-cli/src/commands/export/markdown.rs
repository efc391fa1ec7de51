//! A session as Markdown: what the model said as it is, everything else where it cannot be taken for anything but text.

use std::io::Write;

use pal_context::LedgerRow;

use super::transcript::{Call, Item, Part, Transcript, Who, clean, time};
use crate::colour::clipped;
use crate::failure::Failure;
use crate::table::{counted, money, percent, thousands};

/// Columns of a heading that somebody else wrote.
const HEADING: usize = 100;

pub(super) fn write(transcript: &Transcript<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "# {}\n", plain(&clipped(&transcript.name, HEADING)))?;
    for fact in facts(transcript) {
        writeln!(out, "- {}", plain(&fact))?;
    }
    for item in &transcript.items {
        match item {
            Item::Said { who, at, parts } => said(who, &time(*at), parts, out)?,
            Item::Call(call) => self::call(call, out)?,
            Item::Note { text, .. } => writeln!(out, "\n> *{}*", plain(&clipped(text, 1_000)))?,
            Item::Folded { title, parts } => folded(title, parts, out)?,
            Item::Paid(at) => {
                if let Some(row) = transcript.row(*at) {
                    writeln!(out, "\n<sub>{}</sub>", plain(&paid(row)))?;
                }
            }
        }
    }
    sums(transcript, out)
}

/// What is known of the whole session, line by line.
pub(super) fn facts(transcript: &Transcript<'_>) -> Vec<String> {
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
        facts.push(format!("cost: {}", money(cost)));
    }
    if let Some(masked) = transcript.masked.filter(|masked| *masked > 0) {
        facts.push(format!("{} masked, shown as [secret: kind]", counted(masked, "secret")));
    }
    facts.extend(transcript.problems.iter().map(|problem| format!("damaged: {problem}")));
    facts
}

/// What a request took, in one line.
pub(super) fn paid(row: &LedgerRow) -> String {
    let prompt = row.prompt.map_or(String::from("prompt not reported"), |prompt| {
        let written = prompt.written + prompt.written_1h;
        let [read, written, uncached] = [prompt.read, written, prompt.uncached].map(thousands);
        format!("{read} read, {written} written, {uncached} uncached")
    });
    let cost = row.cost.map_or(String::new(), |cost| format!(", {}", money(cost)));
    let source = if row.is_conversation() { String::new() } else { format!("{}: ", row.source.as_str()) };
    format!("{source}{prompt}, {} out{cost}", thousands(row.output))
}

fn said(who: &Who, at: &str, parts: &[Part], out: &mut dyn Write) -> Result<(), Failure> {
    let name = match who {
        Who::Person => "User",
        Who::Model => "Assistant",
        Who::Other(name) => name,
    };
    writeln!(out, "\n## {name} · {at}")?;
    for part in parts {
        match (who, part) {
            (Who::Model, Part::Text(text)) => writeln!(out, "\n{}", defused(text))?,
            (_, Part::Text(text)) => fenced(text, "text", out)?,
            (_, Part::Thinking(text)) => folded("Thinking", &[Part::Text(text.clone())], out)?,
            (_, other) => writeln!(out, "\n{}", plain(&words(other)))?,
        }
    }
    Ok(())
}

fn call(call: &Call, out: &mut dyn Write) -> Result<(), Failure> {
    let state = match (&call.result, call.is_error) {
        (None, _) => " (no result)",
        (Some(_), true) => " (failed)",
        (Some(_), false) => "",
    };
    let heading = clipped(&format!("{} {}", call.name, call.gist), HEADING);
    writeln!(out, "\n<details><summary>{}{state}</summary>", escaped(&heading))?;
    fenced(&call.input, "json", out)?;
    parts_fenced(call.result.as_deref().unwrap_or_default(), out)?;
    writeln!(out, "\n</details>")?;
    Ok(())
}

fn folded(title: &str, parts: &[Part], out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "\n<details><summary>{}</summary>", escaped(&clipped(title, HEADING)))?;
    parts_fenced(parts, out)?;
    writeln!(out, "\n</details>")?;
    Ok(())
}

fn parts_fenced(parts: &[Part], out: &mut dyn Write) -> Result<(), Failure> {
    for part in parts {
        fenced(&words(part), "text", out)?;
    }
    Ok(())
}

/// The words of a part.
fn words(part: &Part) -> String {
    match part {
        Part::Text(text) | Part::Thinking(text) | Part::Other(text) => text.clone(),
        Part::Picture { media_type, data } => {
            format!("[picture: {media_type}, {} KB]", thousands(data.len() as u64 * 3 / 4 / 1_000))
        }
    }
}

/// A text between fences that are longer than any in it.
fn fenced(text: &str, language: &str, out: &mut dyn Write) -> Result<(), Failure> {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    writeln!(out, "\n{fence}{language}\n{}\n{fence}", clean(text.trim_end_matches('\n')))?;
    Ok(())
}

/// A line in which nothing counts as Markdown.
fn plain(text: &str) -> String {
    let special =
        |c: char| matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '!' | '&');
    clean(text).chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

/// A line inside of tags.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// What the model wrote as Markdown, without tags outside of code, and with its last fence closed.
fn defused(text: &str) -> String {
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
            None => tags_defused(line, &mut safe),
        }
        safe.push('\n');
    }
    if let Some(open) = fence {
        safe.push_str(open);
        safe.push('\n');
    }
    clean(safe.trim_end_matches('\n'))
}

/// A line with every `<` that could begin a tag turned into text, but for those in code.
fn tags_defused(line: &str, safe: &mut String) {
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

fn sums(transcript: &Transcript<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let ledger = &transcript.ledger;
    let all = &ledger.all;
    writeln!(out, "\n## Cost\n")?;
    if all.requests == 0 {
        writeln!(out, "Nothing was asked.")?;
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
        .map(thousands);
        let cost = totals.known_cost().map_or(String::from("–"), money);
        let model = plain(model);
        writeln!(out, "| {model} | {requests} | {read} | {written} | {uncached} | {output} | {cost} |")?;
    }
    writeln!(out)?;
    for line in closing(transcript) {
        writeln!(out, "{}  ", plain(&line))?;
    }
    Ok(())
}

/// What all requests came to.
pub(super) fn closing(transcript: &Transcript<'_>) -> Vec<String> {
    let ledger = &transcript.ledger;
    let all = &ledger.all;
    let mut lines = Vec::new();
    let requests = counted(all.requests as usize, "request");
    lines.push(all.known_cost().map_or(format!("{requests}; the price is not known"), |cost| {
        format!("{} for {requests}", money(cost))
    }));
    if let Some(share) = all.share_read() {
        lines.push(format!("{} of the prompts were read from the cache", percent(share)));
    }
    if !ledger.compactions.is_empty() {
        lines.push(counted(ledger.compactions.len(), "compaction"));
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
            assert_eq!(defused(text), safe, "{text}");
        }
    }

    #[test]
    fn a_fence_is_longer_than_what_it_holds() {
        let mut out = Vec::new();
        fenced("a ```` b\n", "text", &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "\n`````text\na ```` b\n`````\n");
        assert_eq!(plain("# a_b <c>"), "\\# a\\_b \\<c\\>");
    }
}
