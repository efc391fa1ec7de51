//! Paths that a summary names: those that never occurred in the session are invented.

use pal_extract::find_paths;
use pal_model::escape_into;

use super::AuditInput;

/// Paths in the summary that never occurred in the session, in order.
pub(super) fn invented(input: &AuditInput<'_>) -> Vec<String> {
    let is_invented = |path: &&str| {
        // After it was flagged, the summary and the model may have repeated it: that is no evidence.
        let is_known = if is_flagged(input, path) {
            occurs(path, &|text| is_confirmed(input, text))
        } else {
            occurs(path, &|text| is_seen(input, text))
        };
        !is_known
    };
    find_paths(input.summary).into_iter().filter(is_invented).map(str::to_owned).collect()
}

/// Returns true if the previous audit flagged a path, whichever of the two is longer.
fn is_flagged(input: &AuditInput<'_>, path: &str) -> bool {
    let ends_with = |long: &str, short: &str| {
        long.strip_suffix(short).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    let path = without_start(path);
    let mut flagged = input.previous.iter().flat_map(|audit| &audit.invented).map(|path| without_start(path));
    flagged.any(|flagged| ends_with(flagged, path) || ends_with(path, flagged))
}

/// Returns true if the session contains a text, no matter who wrote it.
fn is_seen(input: &AuditInput<'_>, text: &str) -> bool {
    input.facts.mentions(text)
        || input.carried.messages.iter().any(|words| words.text.contains(text))
        || input.transcript.contains(text)
        || (input.seen)(text)
        || escaped(text).iter().any(|spelled| (input.seen)(spelled))
}

/// Returns true if something other than a model wrote a text.
fn is_confirmed(input: &AuditInput<'_>, text: &str) -> bool {
    input.facts.files.iter().any(|file| file.path.contains(text))
        || input.facts.words.iter().any(|words| words.text.contains(text))
        || input.carried.messages.iter().any(|words| words.text.contains(text))
        || (input.confirmed)(text)
        || escaped(text).iter().any(|spelled| (input.confirmed)(spelled))
}

fn without_start(path: &str) -> &str {
    path.trim_start_matches("./").trim_start_matches("~/").trim_start_matches("../")
}

/// Returns true if a path occurs by the test `seen`: whole, without leading directories, or as a name and its
/// parent directory, since listings name files without their directories.
fn occurs(path: &str, seen: &dyn Fn(&str) -> bool) -> bool {
    let path = without_start(path);
    if seen(path) {
        return true;
    }
    let Some((folder, name)) = path.rsplit_once('/') else { return false };
    let mut rest = path;
    while let Some((_, shorter)) = rest.split_once('/').filter(|(_, shorter)| shorter.contains('/')) {
        if seen(shorter) {
            return true;
        }
        rest = shorter;
    }
    let parent = folder.rsplit('/').next().unwrap_or_default();
    seen(name) && (parent.is_empty() || seen(parent))
}

/// Other JSON spellings of a text, since logs are searched as raw JSON: with escapes, with non-ASCII letters
/// as numbers, and each with escaped slashes.
pub(super) fn escaped(text: &str) -> Vec<String> {
    let mut quoted = String::new();
    escape_into(&mut quoted, text);
    let needed = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    let numbered = |spell: fn(u16) -> String| {
        let mut out = String::new();
        for letter in needed.chars() {
            if letter.is_ascii() {
                out.push(letter);
            } else {
                letter.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&spell(*unit)));
            }
        }
        out
    };
    let lower = numbered(|unit| format!("\\u{unit:04x}"));
    let upper = numbered(|unit| format!("\\u{unit:04X}"));
    let mut spellings = vec![needed.to_owned(), lower, upper];
    spellings.extend(spellings.clone().iter().map(|spelled| spelled.replace('/', "\\/")));
    spellings.sort_unstable();
    spellings.dedup();
    spellings.retain(|spelled| spelled != text);
    spellings
}
