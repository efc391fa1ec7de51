//! Condensing: what a tool printed, made shorter before it is sent for the first time.
//!
//! Only what is verbose by nature is shortened: logs of builds and tests, progress, listings, JSON, diffs, and any
//! long output of a shell. The full text stays with whoever calls; what was left out is said at each gap, in a form
//! that no program prints. Nothing here reads files, and what a tool read from a file is never touched.
//!
//! Laws: lines that report errors or warnings stay, or are counted where there are more than fit; first and last
//! lines stay; what was condensed once is not condensed again; the time is linear in the text.

mod alarm;
mod assemble;
mod clean;
mod diff;
mod json;
mod listing;
mod log;
mod mark;
mod noise;
mod prefix;
mod read;

use std::borrow::Cow;

use assemble::{Line, Room, assemble};
use log::Hint;

/// What a tool was asked, as far as condensing needs to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asked<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The command line, if the tool runs one.
    pub command: Option<&'a str>,
}

/// A text made shorter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Condensed {
    /// The shorter text, with a mark at each gap.
    pub text: String,
    /// What the text was taken for.
    pub by: &'static str,
    /// How many lines are not in it.
    pub lines_left_out: u64,
}

/// Texts with fewer characters are left alone.
const CHARACTERS_LEAST: usize = 2_000;
/// Characters of a line that stay where a text is too long; of a listing, where the name is what is used again, fewer.
const LINE_MOST: usize = 600;
const LISTED_LINE_MOST: usize = 200;
/// How many times as long as anything else a listing may be: what it leaves out is missed much more often.
const LISTING_TIMES: usize = 2;
/// What condensing must save to be worth a text that is not whole.
const SAVED_LEAST: usize = 1_000;

/// Shortens what a tool printed, aiming at `most` characters, at twice as many for a listing.
///
/// None if the text is short, was read from a file, was condensed before, or if too little is gained: at least a
/// quarter and 1 000 characters. Texts that are not recognised stay whole up to `most` characters.
///
/// ```
/// use pal_context::{Asked, condense};
/// let log: String = (0..200).map(|crate_idx| format!("   Compiling part-{crate_idx} v0.1.0\n")).collect();
/// let log = log + "error[E0425]: cannot find value `x` in this scope\n --> src/lib.rs:3:5\n";
/// let asked = Asked { tool: "Bash", command: Some("cargo build") };
/// let condensed = condense(asked, &log, 4_000).unwrap();
/// assert_eq!(condensed.by, "build log");
/// assert!(condensed.text.contains(" --> src/lib.rs:3:5"));
/// assert!(condensed.text.contains("[… 197 lines left out …]"));
/// ```
pub fn condense(asked: Asked<'_>, text: &str, most: usize) -> Option<Condensed> {
    if text.len() < CHARACTERS_LEAST || read::reads_file(asked) || mark::is_in(text) {
        return None;
    }
    let before = text.chars().count();
    if before < CHARACTERS_LEAST {
        return None;
    }
    let clean = clean::clean(text);
    let lines: Vec<&str> = clean.lines().collect();
    if read::is_numbered(&lines) {
        return None;
    }
    let cleaned = clean.chars().count();
    let found = by_kind(asked, &clean, &lines, Size { characters: cleaned, most });
    if let Some(condensed) = found.filter(|found| gains(cleaned, &found.text)) {
        return Some(condensed);
    }
    match clean {
        Cow::Owned(text) if gains(before, &text) => {
            let is_empty = text.trim().is_empty();
            let text = if is_empty { mark::note("nothing but terminal control sequences") } else { text };
            Some(Condensed { text, by: "terminal redraws", lines_left_out: 0 })
        }
        _ => None,
    }
}

/// How long a text is, and how long it should be.
#[derive(Clone, Copy)]
struct Size {
    characters: usize,
    most: usize,
}

fn gains(before: usize, after: &str) -> bool {
    let after = after.chars().count();
    after + SAVED_LEAST <= before && after <= before / 4 * 3
}

/// Recognises what the text is by its shape and shortens it accordingly.
fn by_kind(asked: Asked<'_>, text: &str, lines: &[&str], size: Size) -> Option<Condensed> {
    let is_long = size.characters > size.most;
    if is_long && let Some(found) = json::condense(text, size.most) {
        return Some(found);
    }
    let ends_line = text.ends_with('\n');
    let finish_within = |lines: Vec<Line<'_>>, by, room| {
        let (text, lines_left_out) = assemble(&lines, room, ends_line);
        Some(Condensed { text, by, lines_left_out })
    };
    let finish = |lines, by| finish_within(lines, by, Room { most: size.most, line_most: LINE_MOST });
    if let Some(lines) = diff::lines(lines, is_long) {
        return finish(lines, "diff");
    }
    let is_shell = read::is_shell(asked);
    let hint = match asked.command {
        Some(command) if noise::is_hinted(command) => Hint::Command,
        _ if is_shell => Hint::Shell,
        _ => Hint::Nothing,
    };
    if let Some((lines, by)) = log::recognised(lines, hint) {
        return finish(lines, by);
    }
    if !is_long {
        return None;
    }
    if let Some(lines) = listing::lines(lines) {
        let room = Room { most: LISTING_TIMES * size.most, line_most: LISTED_LINE_MOST };
        return finish_within(lines, "listing", room);
    }
    // What came without a command may be anything, a file included; and a manual is no log.
    if log::has_shape(lines) || (asked.command.is_some() && !read::is_document(lines)) {
        return finish(log::any(lines), "log");
    }
    None
}
