//! Tool calls as HTML: commands, edits as diffs, and results folded by size.

use std::io::{self, Write};

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use super::html_text::escaped;
use super::{MessagePart, TranscriptCall};
use crate::text_layout::clip_line;
use crate::units::format_bytes;
use pal_model::text::count_noun;

/// Maximum columns of a heading.
const HEADING_COLUMNS_MAX: usize = 120;
/// Lines of a result that are shown without folding.
const OPEN_LINES_MAX: usize = 8;
/// Lines of an edit, before and after, that are shown without folding.
const OPEN_DIFF_LINES_MAX: usize = 60;
/// Largest text of an edit that is compared line by line; larger ones are shown whole.
const DIFF_BYTES_MAX: usize = 200_000;
/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 3;

/// Writes a call with its result.
pub(super) fn write_call(
    call: &TranscriptCall,
    write_part: &mut dyn FnMut(&MessagePart, &mut dyn Write) -> io::Result<()>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (class, state) = match (&call.result, call.is_error) {
        (None, _) => ("", " (no result)"),
        (Some(_), true) => (" class=\"failed\"", " (failed)"),
        (Some(_), false) => ("", ""),
    };
    let heading = escaped(&clip_line(&format!("{} {}", call.name, call.description), HEADING_COLUMNS_MAX));
    let edits = edits_of(call);
    // A short edit is what a reader looks for; everything else is folded.
    let lines: usize =
        edits.iter().map(|(before, after)| before.lines().count() + after.lines().count()).sum();
    let open = if lines == 0 || lines > OPEN_DIFF_LINES_MAX || call.is_error { "" } else { " open" };
    writeln!(out, "<details{class}{open}><summary>{heading}{state}</summary>")?;
    if edits.is_empty() {
        writeln!(out, "<pre>{}</pre>", escaped(&input_text(call)))?;
    }
    for (before, after) in &edits {
        writeln!(out, "<pre class=\"diff\">{}</pre>", diff_lines(before, after))?;
    }
    for part in call.result.iter().flatten() {
        match part {
            MessagePart::Text(text) => write_result(text, out)?,
            other => write_part(other, out)?,
        }
    }
    writeln!(out, "</details>")
}

/// A command as such, anything else as JSON.
fn input_text(call: &TranscriptCall) -> String {
    let command = serde_json::from_str::<Value>(&call.input).ok();
    let command = command.as_ref().and_then(|input| input["command"].as_str());
    match command {
        Some(command) => format!("$ {command}"),
        None => call.input.clone(),
    }
}

/// Texts before and after each edit of a call; empty for calls that edit nothing.
fn edits_of(call: &TranscriptCall) -> Vec<(String, String)> {
    let Ok(input) = serde_json::from_str::<Value>(&call.input) else { return Vec::new() };
    let text = |value: &Value, names: [&str; 3]| {
        names.iter().find_map(|name| value[*name].as_str()).map(str::to_owned)
    };
    let edit = |value: &Value| {
        let before = text(value, ["old_string", "old_str", "oldText"])?;
        Some((before, text(value, ["new_string", "new_str", "newText"]).unwrap_or_default()))
    };
    if let Some(edits) = input["edits"].as_array() {
        return edits.iter().filter_map(edit).collect();
    }
    if let Some(edit) = edit(&input) {
        return vec![edit];
    }
    let is_write = matches!(call.name.to_ascii_lowercase().as_str(), "write" | "create" | "write_file");
    match text(&input, ["content", "file_text", "text"]).filter(|_| is_write) {
        Some(content) => vec![(String::new(), content)],
        None => Vec::new(),
    }
}

/// Lines of a diff, each a block of its kind; unchanged stretches are left out.
fn diff_lines(before: &str, after: &str) -> String {
    if before.len() + after.len() > DIFF_BYTES_MAX {
        return format!("{}{}", marked_lines("del", "-", before), marked_lines("ins", "+", after));
    }
    let diff = TextDiff::from_lines(before, after);
    let mut html = String::new();
    for (at, group) in diff.grouped_ops(CONTEXT_LINES).iter().enumerate() {
        if at > 0 {
            html.push_str("<i>…</i>");
        }
        for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
            let line = escaped(change.value().trim_end_matches(['\r', '\n']));
            html.push_str(&match change.tag() {
                ChangeTag::Delete => format!("<del>- {line}</del>"),
                ChangeTag::Insert => format!("<ins>+ {line}</ins>"),
                ChangeTag::Equal => format!("<span>  {line}</span>"),
            });
        }
    }
    html
}

fn marked_lines(tag: &str, sign: &str, text: &str) -> String {
    text.lines().map(|line| format!("<{tag}>{sign} {}</{tag}>", escaped(line))).collect()
}

/// Writes a result: short ones openly, long ones folded under their size.
fn write_result(text: &str, out: &mut dyn Write) -> io::Result<()> {
    let lines = text.lines().count();
    let body = if is_patch(text) { patch_lines(text) } else { escaped(text) };
    let class = if is_patch(text) { " class=\"diff\"" } else { "" };
    if lines <= OPEN_LINES_MAX && text.len() <= 2_000 {
        return writeln!(out, "<pre{class}>{body}</pre>");
    }
    let size = format!("result: {}, {}", count_noun(lines, "line"), format_bytes(text.len() as u64));
    writeln!(out, "<details class=\"result\"><summary>{size}</summary>\n<pre{class}>{body}</pre>\n</details>")
}

/// Returns true for the output of `diff` or `git diff`.
fn is_patch(text: &str) -> bool {
    let mut lines = text.lines().take(12);
    text.starts_with("diff --git ") || lines.any(|line| line.starts_with("@@ -")) && text.contains("\n+++ ")
}

fn patch_lines(text: &str) -> String {
    let line = |line: &str| {
        let safe = escaped(line);
        match line.as_bytes().first() {
            Some(b'+') if !line.starts_with("+++") => format!("<ins>{safe}</ins>"),
            Some(b'-') if !line.starts_with("---") => format!("<del>{safe}</del>"),
            Some(b'@') => format!("<i>{safe}</i>"),
            _ => format!("<span>{safe}</span>"),
        }
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, input: &str, result: &str) -> String {
        let call = TranscriptCall {
            name: name.into(),
            input: input.into(),
            description: "src/a.rs".into(),
            result: Some(vec![MessagePart::Text(result.into())]),
            is_error: false,
        };
        let mut out = Vec::new();
        write_call(&call, &mut |_, _| Ok(()), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_edit_is_a_diff_and_a_command_a_command() {
        let html =
            call("Edit", r#"{"file_path":"a","old_string":"one\ntwo <b>\n","new_string":"one\n2\n"}"#, "ok");
        assert!(html.contains("<details open>"), "{html}");
        assert!(html.contains("<span>  one</span><del>- two &lt;b&gt;</del><ins>+ 2</ins>"), "{html}");
        let html = call("Write", r#"{"file_path":"a","content":"x\ny"}"#, "ok");
        assert!(html.contains("<ins>+ x</ins><ins>+ y</ins>"), "{html}");
        let html = call("Bash", r#"{"command":"ls <x>"}"#, "ok");
        assert!(html.contains("<pre>$ ls &lt;x&gt;</pre>") && !html.contains(" open"), "{html}");
    }

    #[test]
    fn long_results_are_folded_under_their_size() {
        let html = call("Bash", r#"{"command":"ls"}"#, &"line\n".repeat(40));
        assert!(html.contains("<summary>result: 40 lines, 200 B</summary>"), "{html}");
        assert_eq!(html.matches("<details").count(), html.matches("</details>").count());
        let html = call(
            "Bash",
            r#"{"command":"git diff"}"#,
            "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+<b>\n",
        );
        assert!(html.contains("<del>-a</del><ins>+&lt;b&gt;</ins>"), "{html}");
    }
}
