//! Condensing: shortens tool output before it is sent for the first time.
//!
//! Only verbose formats are shortened: build and test logs, progress, listings, JSON, diffs, tables, and any
//! long shell output. The caller says which of them may be, and keeps the full text; each gap is marked in a
//! form that no program prints. Nothing here reads files, and file content is never shortened.
//!
//! Laws: lines that report errors or warnings stay, or are counted if they do not fit; first and last lines
//! stay; condensed output is not condensed again; time is linear in the text.

mod diff_output;
mod file_content;
mod gap_marker;
mod json_output;
mod line_prefix;
mod line_selection;
mod listing_output;
mod log_output;
mod output_format;
mod routine_lines;
mod severity;
mod table_output;
mod terminal_output;

use std::borrow::Cow;

use line_selection::{OutputRoom, RankedLine, assemble};
use log_output::LogHint;
pub use output_format::{CondenseMode, CondenseModes, OutputFormat};

/// Tool and command that produced an output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutputOrigin<'a> {
    /// Tool name.
    pub tool: &'a str,
    /// The command line, if the tool runs one.
    pub command: Option<&'a str>,
}

/// Condensed output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CondensedOutput {
    /// The shorter text, with a marker at each gap.
    pub text: String,
    /// Recognized format.
    pub format: OutputFormat,
    /// Number of omitted lines.
    pub lines_left_out: u64,
}

/// Minimum length in characters to condense a text.
const CHARACTERS_MIN: usize = 2_000;
/// Maximum characters of a line in a text that is too long; fewer in a listing.
const LINE_MAX: usize = 600;
const LISTED_LINE_MAX: usize = 200;
/// Multiple of the target length for a listing: its omissions are missed much more often.
const LISTING_TIMES: usize = 2;
/// Minimum saving in characters.
const SAVED_MIN: usize = 1_000;

/// Condenses tool output to about `most` characters, twice as many for a listing.
///
/// Returns `None` if the text is short, was read from a file, was condensed before, or if less than a quarter
/// or 1,000 characters would be saved. Unrecognized texts stay whole up to `most` characters.
///
/// ```
/// use pal_context::{OutputOrigin, condense_output};
/// let log: String = (0..200).map(|crate_idx| format!("   Compiling part-{crate_idx} v0.1.0\n")).collect();
/// let log = log + "error[E0425]: cannot find value `x` in this scope\n --> src/lib.rs:3:5\n";
/// let origin = OutputOrigin { tool: "Bash", command: Some("cargo build") };
/// let condensed = condense_output(origin, &log, 4_000).unwrap();
/// assert_eq!(condensed.format.name(), "build log");
/// assert!(condensed.text.contains(" --> src/lib.rs:3:5"));
/// assert!(condensed.text.contains("[… 197 lines left out …]"));
/// ```
pub fn condense_output(asked: OutputOrigin<'_>, text: &str, most: usize) -> Option<CondensedOutput> {
    condense_formats(asked, text, most, &|_| true)
}

/// Like [`condense_output`], for the formats that `may_condense` accepts.
pub(crate) fn condense_formats(
    asked: OutputOrigin<'_>,
    text: &str,
    most: usize,
    may_condense: &dyn Fn(OutputFormat) -> bool,
) -> Option<CondensedOutput> {
    if text.len() < CHARACTERS_MIN || file_content::reads_file(asked) || gap_marker::is_in(text) {
        return None;
    }
    let before = text.chars().count();
    if before < CHARACTERS_MIN {
        return None;
    }
    let clean = terminal_output::clean(text);
    let lines: Vec<&str> = clean.lines().collect();
    if file_content::is_numbered(&lines) {
        return None;
    }
    let cleaned = clean.chars().count();
    let found = by_kind(asked, &clean, &lines, OutputLength { characters: cleaned, most });
    let is_useful = |found: &CondensedOutput| may_condense(found.format) && gains(cleaned, &found.text);
    if let Some(condensed) = found.filter(is_useful) {
        return Some(condensed);
    }
    match clean {
        Cow::Owned(text) if may_condense(OutputFormat::Redraws) && gains(before, &text) => {
            let is_empty = text.trim().is_empty();
            let text =
                if is_empty { gap_marker::note("nothing but terminal control sequences") } else { text };
            Some(CondensedOutput { text, format: OutputFormat::Redraws, lines_left_out: 0 })
        }
        _ => None,
    }
}

/// Actual and target length of a text.
#[derive(Clone, Copy)]
struct OutputLength {
    characters: usize,
    most: usize,
}

fn gains(before: usize, after: &str) -> bool {
    let after = after.chars().count();
    after + SAVED_MIN <= before && after <= before / 4 * 3
}

/// Recognizes the format of the text and shortens it accordingly.
fn by_kind(
    asked: OutputOrigin<'_>,
    text: &str,
    lines: &[&str],
    size: OutputLength,
) -> Option<CondensedOutput> {
    let is_long = size.characters > size.most;
    if is_long && let Some(found) = json_output::condense(text, size.most) {
        return Some(found);
    }
    let ends_line = text.ends_with('\n');
    let finish_within = |lines: Vec<RankedLine<'_>>, format, room| {
        let (text, lines_left_out) = assemble(&lines, room, ends_line);
        Some(CondensedOutput { text, format, lines_left_out })
    };
    let finish =
        |lines, format| finish_within(lines, format, OutputRoom { most: size.most, line_most: LINE_MAX });
    if let Some(lines) = diff_output::lines(lines, is_long) {
        return finish(lines, OutputFormat::Diff);
    }
    let is_shell = file_content::is_shell(asked);
    let hint = match asked.command {
        Some(command) if routine_lines::is_hinted(command) => LogHint::Command,
        _ if is_shell => LogHint::Shell,
        _ => LogHint::Nothing,
    };
    if let Some((lines, format)) = log_output::recognized(lines, hint) {
        return finish(lines, format);
    }
    if !is_long {
        return None;
    }
    if let Some(lines) = listing_output::lines(lines) {
        let room = OutputRoom { most: LISTING_TIMES * size.most, line_most: LISTED_LINE_MAX };
        return finish_within(lines, OutputFormat::Listing, room);
    }
    let is_log = log_output::has_shape(lines);
    // Output without a command may be anything, a file included; and a manual is no log.
    if !is_log && (asked.command.is_none() || file_content::is_document(lines)) {
        return None;
    }
    let is_table = !is_log && table_output::is_table(lines);
    finish(log_output::any(lines), if is_table { OutputFormat::Table } else { OutputFormat::Other })
}
