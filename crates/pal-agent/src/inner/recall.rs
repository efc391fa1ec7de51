//! `Recall` (§7.8): finds in the whole log of the session what is no longer in sight, and shows it exactly as it was.
//!
//! The log holds everything, spilled and cleared results included, so one reading of it finds all. It is read line by
//! line: a long session costs time, never memory.

use std::path::Path;

use pal_model::{Block, BlockType, Body, Content, Entry, EntryId, Origin};
use pal_process::Cancel;
use pal_store::Reader;
use serde::Deserialize;

/// Passages that a search shows unless it asks for another number.
const HITS: usize = 8;
const HITS_MAX: usize = 50;
/// Lines around what was found.
const AROUND: usize = 3;
/// Most characters of one passage, and of an entry that is shown by its id.
const PASSAGE_MOST: usize = 1_500;
const ENTRY_MOST: usize = 40_000;

/// What is looked for.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub(crate) struct Recall {
    /// Words that all have to be there.
    #[serde(default)]
    query: Option<String>,
    /// Most passages.
    #[serde(default)]
    limit: Option<usize>,
    /// An entry to be shown whole.
    #[serde(default)]
    entry: Option<String>,
    /// The first character of it that is shown.
    #[serde(default)]
    offset: usize,
}

/// A passage that was found.
struct Hit {
    entry: EntryId,
    who: &'static str,
    at: String,
    passage: String,
    words: usize,
}

/// Looks in a log; what the model reads, or what is wrong.
pub(crate) fn recall(log: &Path, input: &str, cancel: &Cancel) -> Result<String, String> {
    let wanted: Recall =
        serde_json::from_str(input).map_err(|error| format!("the input does not fit: {error}"))?;
    match (&wanted.entry, &wanted.query) {
        (Some(id), _) => whole(log, id, wanted.offset, cancel),
        (None, Some(query)) if !query.trim().is_empty() => {
            search(log, query, wanted.limit.unwrap_or(HITS).clamp(1, HITS_MAX), cancel)
        }
        _ => Err(String::from("give a `query` to search for, or the id of an `entry` to show")),
    }
}

/// Hands over the entries of a log, one after the other, until `see` has seen enough.
fn each(log: &Path, cancel: &Cancel, mut see: impl FnMut(Entry) -> bool) -> Result<(), String> {
    let reader = Reader::open(log).map_err(|error| format!("the log cannot be read: {error}"))?;
    // A damaged line is not what is looked for; whoever opens the session is told of it.
    for line in reader.lines().filter_map(|line| line.ok()) {
        if cancel.is_cancelled() || !see(line.entry) {
            break;
        }
    }
    Ok(())
}

fn search(log: &Path, query: &str, limit: usize, cancel: &Cancel) -> Result<String, String> {
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let mut hits: Vec<Hit> = Vec::new();
    let mut found = 0_usize;
    each(log, cancel, |entry| {
        for (who, text) in texts(&entry) {
            let Some((passage, count)) = passage(&text, &words) else { continue };
            found += 1;
            let at = entry.at.to_string();
            hits.push(Hit { entry: entry.id, who, at, passage, words: count });
            if hits.len() > limit * 4 {
                keep_best(&mut hits, limit);
            }
        }
        true
    })?;
    keep_best(&mut hits, limit);
    if hits.is_empty() {
        return Ok(format!(
            "Nothing in this session holds all the words of `{query}`. Try fewer or other words."
        ));
    }
    hits.sort_by_key(|hit| hit.entry);
    let mut text = format!("{found} places; {} shown, oldest first:\n", hits.len());
    for hit in &hits {
        text.push_str(&format!("\n--- entry {} ({}, {})\n{}\n", hit.entry, hit.who, hit.at, hit.passage));
    }
    text.push_str("\nAn entry is shown whole with `entry` set to its id.");
    Ok(text)
}

/// Those that hold most of the words come first, then the newest.
fn keep_best(hits: &mut Vec<Hit>, limit: usize) {
    hits.sort_by_key(|hit| std::cmp::Reverse((hit.words, hit.entry)));
    hits.truncate(limit);
}

fn whole(log: &Path, id: &str, offset: usize, cancel: &Cancel) -> Result<String, String> {
    let id: EntryId = id.trim().parse().map_err(|_| format!("`{id}` is no id of an entry"))?;
    let mut found = None;
    each(log, cancel, |entry| {
        found = (entry.id == id).then_some(entry);
        found.is_none()
    })?;
    let entry = found.ok_or_else(|| format!("this session has no entry {id}"))?;
    let text: Vec<String> = texts(&entry).into_iter().map(|(_, text)| text).collect();
    let text = text.join("\n\n");
    let shown: String = text.chars().skip(offset).take(ENTRY_MOST).collect();
    let rest = text.chars().count().saturating_sub(offset + shown.chars().count());
    let more = match rest {
        0 => String::new(),
        rest => format!("\n[{rest} more characters: ask with offset {}]", offset + ENTRY_MOST),
    };
    Ok(format!("{shown}{more}"))
}

/// What an entry says, and who says it.
fn texts(entry: &Entry) -> Vec<(&'static str, String)> {
    match &entry.body {
        Body::User(user) => match user.origin {
            Origin::Person => said("the user", &user.content),
            Origin::Tool | Origin::Synthetic => said("a tool", &user.content),
            Origin::Agent => said("the program", &user.content),
        },
        Body::Assistant(assistant) => said("you", &assistant.content),
        Body::Attachment(attachment) => said("the program", &attachment.content),
        Body::Boundary(boundary) => said("a summary", &boundary.summary),
        _ => Vec::new(),
    }
}

fn said(who: &'static str, content: &Content) -> Vec<(&'static str, String)> {
    content.blocks().iter().filter_map(words).map(|text| (who, text)).collect()
}

fn words(block: &Block) -> Option<String> {
    match block.kind() {
        BlockType::Text => block.string("text").map(|text| text.into_owned()),
        BlockType::ToolUse => {
            Some(format!("{} {}", block.string("name")?, block.field("input").unwrap_or("{}")))
        }
        BlockType::ToolResult => {
            let content = block.content();
            let texts: Vec<String> = content
                .blocks()
                .iter()
                .filter_map(|block| Some(block.string("text")?.into_owned()))
                .collect();
            Some(texts.join("\n"))
        }
        _ => None,
    }
}

/// The lines around the place where the words stand together, and how often they occur; none if one is missing.
fn passage(text: &str, words: &[String]) -> Option<(String, usize)> {
    let small = text.to_lowercase();
    if !words.iter().all(|word| small.contains(word.as_str())) {
        return None;
    }
    let count = words.iter().map(|word| small.matches(word.as_str()).count()).sum();
    let lines: Vec<&str> = text.lines().collect();
    let score = |line: &&str| {
        let line = line.to_lowercase();
        words.iter().filter(|word| line.contains(word.as_str())).count()
    };
    let best = lines.iter().map(score).enumerate().max_by_key(|(at, score)| (*score, usize::MAX - at))?.0;
    let from = best.saturating_sub(AROUND);
    let to = (best + AROUND + 1).min(lines.len());
    let mut passage = String::new();
    for line in &lines[from..to] {
        passage.extend(line.chars().take(PASSAGE_MOST));
        passage.push('\n');
    }
    let end = passage.floor_char_boundary(PASSAGE_MOST.min(passage.len()));
    Some((passage[..end].trim_end().to_owned(), count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pal_model::{Draft, IdSource, Timestamp, escape_into};
    use pal_store::Log;

    fn log_of(texts: &[&str]) -> (tempfile::TempDir, Vec<EntryId>) {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::create(&folder.path().join("log.jsonl"), IdSource::seeded(1)).unwrap();
        let ids = texts.iter().enumerate().map(|(at, text)| {
            let mut content = String::new();
            escape_into(&mut content, text);
            let now = Timestamp::from_milliseconds(1_800_000_000_000 + at as i64);
            log.append(Draft::user(Origin::Person, &content), now).unwrap().id
        });
        let ids = ids.collect();
        (folder, ids)
    }

    #[test]
    fn all_words_have_to_be_there_and_the_lines_around_them_are_shown() {
        let long = format!("{}\nthe Parser fails on empty input\nafter", "line\n".repeat(50));
        let (folder, ids) = log_of(&["hello", &long, "a parser without the rest"]);
        let log = folder.path().join("log.jsonl");
        let found = recall(&log, r#"{"query":"parser INPUT"}"#, &Cancel::new()).unwrap();
        assert!(found.contains("the Parser fails on empty input\nafter"), "{found}");
        assert!(found.starts_with("1 places") && found.contains(&ids[1].to_string()), "{found}");
        assert!(recall(&log, r#"{"query":"nowhere"}"#, &Cancel::new()).unwrap().starts_with("Nothing"));
        for wrong in ["{}", r#"{"query":" "}"#, r#"{"entry":"x"}"#, r#"{"query":7}"#] {
            assert!(recall(&log, wrong, &Cancel::new()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_entry_is_shown_exactly_and_page_by_page() {
        let long = "äb".repeat(ENTRY_MOST);
        let (folder, ids) = log_of(&[&long]);
        let log = folder.path().join("log.jsonl");
        let page = |offset: usize| {
            recall(&log, &format!(r#"{{"entry":"{}","offset":{offset}}}"#, ids[0]), &Cancel::new()).unwrap()
        };
        let first = page(0);
        let second = page(ENTRY_MOST);
        let note = first.rfind("\n[").unwrap();
        assert_eq!(format!("{}{second}", &first[..note]), long);
    }
}
