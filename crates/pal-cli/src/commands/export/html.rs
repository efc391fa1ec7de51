//! A session as one page of HTML: nothing is fetched, nothing runs, and whatever was said is text.

use std::io::Write;

use pal_context::LedgerRow;

use super::markdown::{closing, facts, paid};
use super::transcript::{Call, Item, Part, Transcript, Who, clean, time};
use crate::colour::clipped;
use crate::failure::Failure;
use crate::table::{money, thousands};

/// The style, which is part of the page.
const STYLE: &str = include_str!("page.css");
/// A browser that keeps to it fetches nothing and runs nothing, even if something got past the escaping.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
/// Pictures that are shown; others are named.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// Columns of a heading that somebody else wrote.
const HEADING: usize = 120;

pub(super) fn write(transcript: &Transcript<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let name = escaped(&clipped(&transcript.name, HEADING));
    writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" content=\"no-referrer\">\n<title>{name}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{name}</h1>\n<ul class=\"facts\">"
    )?;
    for fact in facts(transcript) {
        writeln!(out, "<li>{}</li>", escaped(&fact))?;
    }
    writeln!(out, "</ul>")?;
    let rows = transcript.ledger.rows.iter();
    let largest = rows.filter_map(|row| row.prompt.map(|prompt| prompt.total())).max().unwrap_or(0);
    for item in &transcript.items {
        match item {
            Item::Said { who, at, parts } => said(who, &time(*at), parts, out)?,
            Item::Call(call) => self::call(call, out)?,
            Item::Note { at, text } => {
                writeln!(out, "<div class=\"note\">{} · {}</div>", time(*at), escaped(text))?;
            }
            Item::Folded { title, parts } => folded(title, parts, out)?,
            Item::Paid(at) => {
                if let Some(row) = transcript.row(*at) {
                    bar(row, largest, out)?;
                }
            }
        }
    }
    sums(transcript, out)?;
    writeln!(out, "</body>\n</html>")?;
    Ok(())
}

fn said(who: &Who, at: &str, parts: &[Part], out: &mut dyn Write) -> Result<(), Failure> {
    let (class, name) = match who {
        Who::Person => ("user", "User"),
        Who::Model => ("model", "Assistant"),
        Who::Other(name) => ("other", *name),
    };
    writeln!(out, "<section class=\"{class}\">\n<h2>{name} · {at}</h2>")?;
    for part in parts {
        match (who, part) {
            (Who::Model, Part::Text(text)) => prose(text, out)?,
            (_, Part::Text(text)) => writeln!(out, "<div class=\"text\">{}</div>", escaped(text))?,
            (_, Part::Thinking(text)) => {
                let parts = [Part::Text(text.clone())];
                folded("Thinking", &parts, out)?;
            }
            (_, other) => self::part(other, out)?,
        }
    }
    writeln!(out, "</section>")?;
    Ok(())
}

/// What the model wrote: code between fences apart from the rest, in which line ends count.
fn prose(text: &str, out: &mut dyn Write) -> Result<(), Failure> {
    let (mut is_code, mut lines) = (false, Vec::new());
    for line in text.trim_end().lines() {
        if line.trim_start().starts_with("```") {
            stretch(&lines, is_code, out)?;
            lines.clear();
            is_code = !is_code;
        } else {
            lines.push(line);
        }
    }
    stretch(&lines, is_code, out)
}

fn stretch(lines: &[&str], is_code: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let text = escaped(lines.join("\n").trim_matches('\n'));
    match is_code {
        _ if text.is_empty() => {}
        true => writeln!(out, "<pre>{text}</pre>")?,
        false => writeln!(out, "<div class=\"text\">{text}</div>")?,
    }
    Ok(())
}

fn call(call: &Call, out: &mut dyn Write) -> Result<(), Failure> {
    let (class, state) = match (&call.result, call.is_error) {
        (None, _) => ("", " (no result)"),
        (Some(_), true) => (" class=\"failed\"", " (failed)"),
        (Some(_), false) => ("", ""),
    };
    let heading = escaped(&clipped(&format!("{} {}", call.name, call.gist), HEADING));
    writeln!(
        out,
        "<details{class}><summary>{heading}{state}</summary>\n<pre>{}</pre>",
        escaped(&call.input)
    )?;
    for part in call.result.iter().flatten() {
        self::part(part, out)?;
    }
    writeln!(out, "</details>")?;
    Ok(())
}

fn folded(title: &str, parts: &[Part], out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "<details><summary>{}</summary>", escaped(&clipped(title, HEADING)))?;
    for part in parts {
        self::part(part, out)?;
    }
    writeln!(out, "</details>")?;
    Ok(())
}

fn part(part: &Part, out: &mut dyn Write) -> Result<(), Failure> {
    match part {
        Part::Text(text) | Part::Thinking(text) | Part::Other(text) => {
            writeln!(out, "<pre>{}</pre>", escaped(text))?;
        }
        Part::Picture { media_type, data } if is_picture(media_type, data) => {
            writeln!(out, "<img alt=\"picture\" src=\"data:{media_type};base64,{data}\">")?;
        }
        Part::Picture { media_type, .. } => writeln!(out, "<pre>[picture: {}]</pre>", escaped(media_type))?,
    }
    Ok(())
}

/// Whether it is of a known type, and nothing but data.
fn is_picture(media_type: &str, data: &str) -> bool {
    let is_data = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    PICTURES.contains(&media_type) && data.bytes().all(is_data)
}

/// What a request took: how long the bar is says how large the prompt was, the colours how it was paid.
fn bar(row: &LedgerRow, largest: u64, out: &mut dyn Write) -> Result<(), Failure> {
    write!(out, "<div class=\"paid\"><span class=\"bar\">")?;
    if let Some(prompt) = row.prompt.filter(|_| largest > 0) {
        let written = prompt.written.saturating_add(prompt.written_1h);
        for (name, tokens) in [("read", prompt.read), ("written", written), ("uncached", prompt.uncached)] {
            let share = tokens as f64 / largest as f64 * 100.0;
            write!(out, "<i class=\"{name}\" style=\"width:{share:.1}%\"></i>")?;
        }
    }
    writeln!(out, "</span>{}</div>", escaped(&paid(row)))?;
    Ok(())
}

fn sums(transcript: &Transcript<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let ledger = &transcript.ledger;
    writeln!(out, "<h2>Cost</h2>")?;
    if ledger.all.requests == 0 {
        writeln!(out, "<p>Nothing was asked.</p>")?;
        return Ok(());
    }
    writeln!(
        out,
        "<p class=\"key\">Prompts:<i class=\"read\"></i>read from the cache<i class=\"written\"></i>written to it<i class=\"uncached\"></i>neither</p>\n<table>\n<tr><th>model</th><th>requests</th><th>read</th><th>written</th><th>uncached</th><th>output</th><th>cost</th></tr>"
    )?;
    for (model, totals) in &ledger.by_model {
        let prompt = &totals.prompt;
        let written = prompt.written.saturating_add(prompt.written_1h);
        let numbers = [totals.requests, prompt.read, written, prompt.uncached, totals.output].map(thousands);
        let cost = totals.known_cost().map_or(String::from("–"), money);
        let cells: String = numbers.iter().map(|number| format!("<td>{number}</td>")).collect();
        writeln!(out, "<tr><td>{}</td>{cells}<td>{cost}</td></tr>", escaped(model))?;
    }
    writeln!(out, "</table>")?;
    for line in closing(transcript) {
        writeln!(out, "<p>{}</p>", escaped(&line))?;
    }
    Ok(())
}

/// Text as it may stand between tags and in quotes.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + text.len() / 16);
    for character in clean(text).chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
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

    #[test]
    fn code_stands_apart() {
        let mut out = Vec::new();
        prose("one\n```rust\nlet a = \"<b>\";\n```\ntwo <i>", &mut out).unwrap();
        let expected = "<div class=\"text\">one</div>\n<pre>let a = &quot;&lt;b&gt;&quot;;</pre>\n<div class=\"text\">two &lt;i&gt;</div>\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
