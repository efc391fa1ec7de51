//! A session as one page of HTML that fetches nothing and runs nothing; all content is escaped text.

use std::io::{self, Write};

use pal_context::LedgerRow;
use pal_model::text::group_digits;

use super::html_calls::write_call;
use super::html_text::escaped;
use super::markdown_export::{closing_lines, facts, usage_line};
use super::{MessageAuthor, MessagePart, SessionTranscript, TranscriptItem, html_markdown, time};
use crate::text_layout::clip_line;
use crate::units::format_usd;

/// Style sheet, embedded in the page.
const STYLE: &str = include_str!("page.css");
/// Content security policy: fetch nothing, run nothing, even if something got past the escaping.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
/// Picture types that are embedded; others are only named.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// Maximum columns of a heading.
const HEADING_COLUMNS_MAX: usize = 120;
/// Maximum columns of a line in the table of contents.
const CONTENTS_COLUMNS_MAX: usize = 70;

pub(super) fn write(transcript: &SessionTranscript<'_>, out: &mut dyn Write) -> io::Result<()> {
    let name = escaped(&clip_line(&transcript.name, HEADING_COLUMNS_MAX));
    writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" content=\"no-referrer\">\n<title>{name}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>"
    )?;
    let turns = turns(transcript);
    write_contents(&turns, out)?;
    writeln!(out, "<main>\n<h1>{name}</h1>\n<ul class=\"facts\">")?;
    for fact in facts(transcript) {
        writeln!(out, "<li>{}</li>", escaped(&fact))?;
    }
    writeln!(out, "</ul>")?;
    let rows = transcript.ledger.rows.iter();
    let largest = rows.filter_map(|row| row.prompt.map(|prompt| prompt.total())).max().unwrap_or(0);
    let mut prompts = 0;
    for item in &transcript.items {
        match item {
            TranscriptItem::Message { who, at, parts } => {
                prompts += usize::from(*who == MessageAuthor::Person);
                write_message((who, prompts), &time(*at), parts, out)?;
            }
            TranscriptItem::Call(call) => write_call(call, &mut part, out)?,
            TranscriptItem::Note { at, text } => {
                writeln!(out, "<div class=\"note\">{} · {}</div>", time(*at), escaped(text))?;
            }
            TranscriptItem::Collapsed { title, parts } => write_collapsed(title, parts, out)?,
            TranscriptItem::Usage(at) => {
                if let Some(row) = transcript.row(*at) {
                    bar(row, largest, out)?;
                }
            }
        }
    }
    write_totals(transcript, out)?;
    writeln!(out, "</main>\n</body>\n</html>")?;
    Ok(())
}

/// A prompt of a person with the cost of everything until the next one.
struct TranscriptTurn {
    /// Number of the prompt, from 1.
    number: usize,
    title: String,
    /// Cost in US dollars; none if no price is known.
    cost: Option<f64>,
}

fn turns(transcript: &SessionTranscript<'_>) -> Vec<TranscriptTurn> {
    let mut turns: Vec<TranscriptTurn> = Vec::new();
    for item in &transcript.items {
        match item {
            TranscriptItem::Message { who: MessageAuthor::Person, parts, .. } => {
                let text = parts.iter().find_map(|part| match part {
                    MessagePart::Text(text) => text.lines().find(|line| !line.trim().is_empty()),
                    _ => None,
                });
                let title = clip_line(text.unwrap_or("(picture)"), CONTENTS_COLUMNS_MAX);
                turns.push(TranscriptTurn { number: turns.len() + 1, title, cost: None });
            }
            TranscriptItem::Usage(at) => {
                if let (Some(turn), Some(row)) = (turns.last_mut(), transcript.row(*at)) {
                    turn.cost = row.cost.map(|cost| cost + turn.cost.unwrap_or(0.0)).or(turn.cost);
                }
            }
            _ => {}
        }
    }
    turns
}

/// Writes the table of contents: all prompts of people, each with its cost.
fn write_contents(turns: &[TranscriptTurn], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<nav>\n<h2>Contents</h2>\n<ol>")?;
    for turn in turns {
        let cost = turn.cost.map_or(String::new(), |cost| format!(" <small>{}</small>", format_usd(cost)));
        writeln!(out, "<li><a href=\"#prompt-{}\">{}</a>{cost}</li>", turn.number, escaped(&turn.title))?;
    }
    writeln!(out, "</ol>\n<p><a href=\"#cost\">Cost</a></p>\n</nav>")
}

fn write_message(
    (who, prompt): (&MessageAuthor, usize),
    at: &str,
    parts: &[MessagePart],
    out: &mut dyn Write,
) -> io::Result<()> {
    match who {
        MessageAuthor::Person => {
            writeln!(
                out,
                "<section class=\"user\" id=\"prompt-{prompt}\">\n<h2>User · prompt {prompt} · {at}</h2>"
            )?;
        }
        MessageAuthor::Model => writeln!(out, "<section class=\"model\">\n<h2>Assistant · {at}</h2>")?,
        MessageAuthor::Other(name) => {
            writeln!(out, "<section class=\"other\">\n<h2>{name}, not a person · {at}</h2>")?;
        }
    }
    for part in parts {
        match (who, part) {
            (MessageAuthor::Model, MessagePart::Text(text)) => {
                writeln!(out, "<div class=\"said\">{}</div>", html_markdown::render(text))?;
            }
            (_, MessagePart::Text(text)) => writeln!(out, "<div class=\"text\">{}</div>", escaped(text))?,
            (_, MessagePart::Thinking(text)) => {
                let parts = [MessagePart::Text(text.clone())];
                write_collapsed("Thinking", &parts, out)?;
            }
            (_, other) => self::part(other, out)?,
        }
    }
    writeln!(out, "</section>")
}

fn write_collapsed(title: &str, parts: &[MessagePart], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<details><summary>{}</summary>", escaped(&clip_line(title, HEADING_COLUMNS_MAX)))?;
    for part in parts {
        match part {
            // Summaries and reasoning are Markdown, too.
            MessagePart::Text(text) => {
                writeln!(out, "<div class=\"said\">{}</div>", html_markdown::render(text))?
            }
            other => self::part(other, out)?,
        }
    }
    writeln!(out, "</details>")?;
    Ok(())
}

fn part(part: &MessagePart, out: &mut dyn Write) -> io::Result<()> {
    match part {
        MessagePart::Text(text) | MessagePart::Thinking(text) | MessagePart::Other(text) => {
            writeln!(out, "<pre>{}</pre>", escaped(text))?;
        }
        MessagePart::Picture { media_type, data } if is_picture(media_type, data) => {
            writeln!(out, "<img alt=\"picture\" src=\"data:{media_type};base64,{data}\">")?;
        }
        MessagePart::Picture { media_type, .. } => {
            writeln!(out, "<pre>[picture: {}]</pre>", escaped(media_type))?
        }
    }
    Ok(())
}

/// Tells whether a picture has a known type and valid base64 data.
fn is_picture(media_type: &str, data: &str) -> bool {
    let is_data = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    PICTURES.contains(&media_type) && data.bytes().all(is_data)
}

/// Writes the usage of a request; the bar shows the size of the prompt, its colors the cache reads and writes.
fn bar(row: &LedgerRow, largest: u64, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "<div class=\"paid\"><span class=\"bar\">")?;
    if let Some(prompt) = row.prompt.filter(|_| largest > 0) {
        let written = prompt.written.saturating_add(prompt.written_1h);
        for (name, tokens) in [("read", prompt.read), ("written", written), ("uncached", prompt.uncached)] {
            let share = tokens as f64 / largest as f64 * 100.0;
            write!(out, "<i class=\"{name}\" style=\"width:{share:.1}%\"></i>")?;
        }
    }
    writeln!(out, "</span>{}</div>", escaped(&usage_line(row)))?;
    Ok(())
}

fn write_totals(transcript: &SessionTranscript<'_>, out: &mut dyn Write) -> io::Result<()> {
    let ledger = &transcript.ledger;
    writeln!(out, "<h2 id=\"cost\">Cost</h2>")?;
    if ledger.all.requests == 0 {
        writeln!(out, "<p>No requests.</p>")?;
        return Ok(());
    }
    writeln!(
        out,
        "<p class=\"key\">Prompt tokens:<i class=\"read\"></i>cache read<i class=\"written\"></i>cache write<i class=\"uncached\"></i>uncached</p>\n<table>\n<tr><th>model</th><th>requests</th><th>read</th><th>written</th><th>uncached</th><th>output</th><th>cost</th></tr>"
    )?;
    for (model, totals) in &ledger.by_model {
        let prompt = &totals.prompt;
        let written = prompt.written.saturating_add(prompt.written_1h);
        let numbers =
            [totals.requests, prompt.read, written, prompt.uncached, totals.output].map(group_digits);
        let cost = totals.known_cost().map_or(String::from("–"), format_usd);
        let cells: String = numbers.iter().map(|number| format!("<td>{number}</td>")).collect();
        writeln!(out, "<tr><td>{}</td>{cells}<td>{cost}</td></tr>", escaped(model))?;
    }
    writeln!(out, "</table>")?;
    for line in closing_lines(transcript) {
        writeln!(out, "<p>{}</p>", escaped(&line))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_data_or_named() {
        assert!(is_picture("image/png", "iVBORw0KGgo="));
        assert!(!is_picture("image/svg+xml", "AAAA"), "a drawing can hold a script");
        assert!(!is_picture("image/png", "AA\" onerror=\"alert(1)"));
        assert!(!is_picture("image/png\" onerror=\"x", "AA"));
    }
}
