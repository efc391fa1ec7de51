//! Renews what the README shows of the program: the picture `docs/demo.svg` and the table of the demo.
//!
//! `crates/pal-cli/tests/pal/readme.rs` fails when either no longer matches what `pal demo` prints.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Size of a character cell of the picture in pixels.
const CELL: (f64, f64) = (8.4, 19.0);
/// Columns of the demo's output.
const COLUMNS: usize = 80;
/// First words of the lines that are shown.
const LABELS: [&str; 9] =
    ["user", "condensed", "to", "cleared", "compacted", "checked", "restored", "kill", "✓"];
/// Lines around the table in the README.
const MARKS: (&str, &str) = ("<!-- demo -->", "<!-- /demo -->");

/// Runs `pal demo` and writes the picture and the table.
pub(crate) fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let program = arguments.first().map_or_else(|| root.join("target/debug/pal"), PathBuf::from);
    let output = Command::new(program)
        .arg("demo")
        .env("NO_COLOR", "1")
        .env("COLUMNS", COLUMNS.to_string())
        .output()?;
    if !output.status.success() {
        return Err(format!("pal demo failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let text = String::from_utf8(output.stdout)?;
    fs::write(root.join("docs/demo.svg"), picture(&demo_lines(&text)))?;
    let path = root.join("README.md");
    let readme = fs::read_to_string(&path)?;
    fs::write(
        path,
        with_table(&readme, &table(&text)).ok_or("README.md has no place for the demo's table")?,
    )?;
    Ok(())
}

/// The lines that tell the story: headings, and what was decided and seen.
fn demo_lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut is_shown = false;
    for line in text.lines().take_while(|line| !line.starts_with("What each layer saved")) {
        let indent = line.len() - line.trim_start().len();
        let label = line.split_whitespace().next().unwrap_or_default();
        let is_heading = indent == 0 && line.starts_with(|letter: char| letter.is_ascii_digit());
        if is_heading {
            lines.push("");
        }
        // Continuations of a line are indented further than its label.
        is_shown = match indent {
            0 => is_heading,
            3 => LABELS.contains(&label),
            5 => is_shown && lines.last().is_some_and(|last| last.trim_start().starts_with('✓')),
            _ => is_shown,
        };
        if is_shown && !line.is_empty() {
            lines.push(line);
        }
    }
    // The introduction is prose that the README has already.
    let start = lines.iter().position(|line| line.starts_with("1.")).unwrap_or(0);
    lines.split_off(start)
}

/// The table of what each layer saved, and the sentence on costs behind it.
fn table(text: &str) -> String {
    let lines = text.lines().skip_while(|line| !line.starts_with("What each layer saved")).skip(1);
    let lines = lines.take_while(|line| !line.starts_with("Context in tokens"));
    lines.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

fn with_table(readme: &str, table: &str) -> Option<String> {
    let (before, rest) = readme.split_once(MARKS.0)?;
    let (_, after) = rest.split_once(MARKS.1)?;
    Some(format!("{before}{}\n```text\n{table}\n```\n{}{after}", MARKS.0, MARKS.1))
}

/// A terminal window with these lines.
fn picture(lines: &[&str]) -> String {
    let (width, height) = (COLUMNS as f64 * CELL.0 + 32.0, (lines.len() + 3) as f64 * CELL.1 + 24.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"ui-monospace, \
         SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"14\">\n\
         <title>pal demo</title>\n<rect width=\"100%\" height=\"100%\" rx=\"10\" fill=\"#1b1e25\"/>\n"
    );
    for (idx, color) in ["#e0655c", "#dfb14a", "#6bb85f"].iter().enumerate() {
        let _ = writeln!(svg, "<circle cx=\"{}\" cy=\"20\" r=\"6\" fill=\"{color}\"/>", 22 + 20 * idx);
    }
    let mut color = "";
    for (row, line) in std::iter::once(&"$ pal demo").chain(lines).enumerate() {
        let y = (row as f64 + 3.0) * CELL.1;
        // The rest of a line has the color of its beginning.
        color = color_of(line).unwrap_or(color);
        let _ = writeln!(
            svg,
            "<text x=\"16\" y=\"{y:.0}\" fill=\"{}\" xml:space=\"preserve\">{}</text>",
            color,
            escape(line)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn color_of(line: &str) -> Option<&'static str> {
    match line.trim_start().split(' ').next().unwrap_or_default() {
        "user" => Some("#e6e9ef"),
        "✓" => Some("#8fd07f"),
        "kill" => Some("#f08d84"),
        "$" => Some("#9aa4b5"),
        label if LABELS.contains(&label) => Some("#8fb8ea"),
        _ if !line.starts_with(' ') => Some("#ffffff"),
        _ => None,
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "Palimpsest\n   A real session.\n\n1. A bug\n\n   user      Fix <it>.\n   model     Yes.   1k in\n     Bash    sh\n   \
                          condensed 73 KB to\n             1 KB.\n\nWhat each layer saved\nlayer  acted\nspill  1\n\n   20 requests\n\nContext in tokens\n";

    #[test]
    fn the_story_and_the_table_are_cut_out() {
        assert_eq!(
            demo_lines(OUTPUT),
            ["1. A bug", "   user      Fix <it>.", "   condensed 73 KB to", "             1 KB."]
        );
        assert_eq!(table(OUTPUT), "layer  acted\nspill  1\n\n   20 requests");
        assert!(picture(&demo_lines(OUTPUT)).contains("Fix &lt;it&gt;."));
    }

    #[test]
    fn the_table_replaces_the_one_before() {
        let readme = "a\n<!-- demo -->\nold\n<!-- /demo -->\nb\n";
        assert_eq!(
            with_table(readme, "new").as_deref(),
            Some("a\n<!-- demo -->\n```text\nnew\n```\n<!-- /demo -->\nb\n")
        );
    }
}
