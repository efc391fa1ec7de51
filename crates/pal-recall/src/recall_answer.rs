//! Answers to a model: exact passages in bounded texts, for our own tool and for the MCP server.

use pal_model::{EntryId, Timestamp, quote_name};
use serde::Deserialize;

use crate::Recall;
use crate::entry_parts::{ANSWER_END, EMPTY_ADVICE};
use crate::index_update::IndexProgress;
use crate::passage_search::{
    NearbyText, PassageHit, RecallCaller, RecallQuery, RecallResults, RecalledEntry, search_all,
};
use crate::quoted_phrases::QuotedPhrases;

/// Default and maximum number of passages.
const HITS_DEFAULT: usize = 10;
const HITS_MAX: usize = 50;
/// Lines of context around a match.
const CONTEXT_LINES: usize = 3;
/// Maximum characters of a requested entry and of each neighbor, and maximum neighbors per side.
const ENTRY_CHARS_MAX: usize = 40_000;
const NEIGHBOR_CHARS_MAX: usize = 2_000;
const NEIGHBORS_MAX: usize = 20;
/// Maximum characters of all passages in one answer.
const ANSWER_CHARS_MAX: usize = 30_000;
/// Maximum characters of a title.
const TITLE_CHARS_MAX: usize = 80;

/// Input of the recall tool.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(default)]
pub struct RecallRequest {
    /// Words to search for.
    pub query: Option<String>,
    /// Sessions to search.
    pub scope: Option<RecallScope>,
    /// Maximum number of passages.
    pub limit: Option<usize>,
    /// Id of an entry to show in full.
    pub entry: Option<String>,
    /// First character of the entry to show.
    pub offset: usize,
    /// Entries to show before it.
    pub before: usize,
    /// Entries to show after it.
    pub after: usize,
}

/// Sessions that a model searches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecallScope {
    /// The calling session.
    Session,
    /// All sessions of the project.
    Project,
}

/// Answers a request from several indexes; the error is a text for the model. The default scope is the project:
/// the calling session rarely says by itself what it asks for.
pub fn answer_request(
    recalls: &mut [Recall],
    caller: Option<RecallCaller<'_>>,
    request: &RecallRequest,
    now: Timestamp,
    go_on: &mut dyn FnMut(IndexProgress) -> bool,
) -> Result<String, String> {
    let wrong = |error: crate::SearchError| error.to_string();
    let own = caller.map(|caller| caller.session);
    let mut is_behind = false;
    for recall in recalls.iter_mut() {
        is_behind |= recall.update(go_on).map_err(wrong)?.is_behind;
    }
    let mut text = match (&request.entry, &request.query) {
        (Some(id), _) => show_entry(recalls, id, request)?,
        (None, Some(query)) if !query.trim().is_empty() => {
            let most = request.limit.unwrap_or(HITS_DEFAULT).clamp(1, HITS_MAX);
            let session = own.filter(|_| request.scope == Some(RecallScope::Session));
            let wanted =
                RecallQuery { query, session, limit: most, context_lines: CONTEXT_LINES, now, caller };
            let found = search_all(recalls, &wanted).map_err(wrong)?;
            format_results(&found, &wanted, own)
        }
        _ => return Err(String::from("give a `query` to search for, or the id of an `entry` to show")),
    };
    if is_behind {
        text.push_str("\nNot everything is indexed yet: what is missing may be found a little later.");
    }
    Ok(text)
}

fn format_results(found: &RecallResults, wanted: &RecallQuery<'_>, own: Option<&str>) -> String {
    let query = quote_name(wanted.query, TITLE_CHARS_MAX);
    let place = if wanted.session.is_some() { "this session" } else { "the sessions of this project" };
    if found.passages.is_empty() {
        let wider = match (wanted.session, own) {
            (Some(_), _) => " Earlier sessions are searched with `scope` set to `project`.",
            _ => "",
        };
        let quotes = match QuotedPhrases::of(wanted.query).is_empty() {
            true => "",
            false => " Text between double quotes must stand there exactly so: search again without them.",
        };
        return format!("Nothing in {place} holds {query}.{quotes} {EMPTY_ADVICE}{wider}");
    }
    let read = |(word, term): &(String, String)| format!("`{word}` was read as `{term}`. ");
    let corrections: String = found.corrections.iter().map(read).collect();
    let mut text = match found.is_partial {
        true if !corrections.is_empty() && !found.lacks_words => {
            format!("No place in {place} holds {query}. {corrections}So found, the best first:\n")
        }
        true => format!(
            "No place in {place} holds all of {query}. {corrections}These hold some of its words, the best first:\n"
        ),
        false => {
            let count = found.passages.iter().filter(|place| place.has_all_words).count();
            let others = match found.passages.len() - count {
                0 => String::new(),
                others => format!(", and {others} with some of the words"),
            };
            format!("{} in {place} with all words{others}, the best first:\n", count_places(count))
        }
    };
    for (shown, place) in found.passages.iter().enumerate() {
        let passage = format_passage(place, own);
        if text.len() + passage.len() > ANSWER_CHARS_MAX && shown > 0 {
            text.push_str(&format!("\n{} more are left out: ask for less.\n", found.passages.len() - shown));
            break;
        }
        text.push_str(&passage);
    }
    text.push('\n');
    text.push_str(ANSWER_END);
    text
}

fn count_places(count: usize) -> String {
    format!("{count} {}", if count == 1 { "place" } else { "places" })
}

fn format_passage(place: &PassageHit, own: Option<&str>) -> String {
    let at = place.at.map_or(String::new(), |at| format!(", {at}"));
    let session = session(&place.session, place.description.title(), place.agent.as_deref(), own);
    let stands = match place.entry {
        Some(entry) => format!("entry {entry}"),
        None => format!("{} line {}", quote_name(&place.file.to_string_lossy(), 400), place.line),
    };
    let cut = |is_cut: bool| if is_cut { "…" } else { "" };
    let (before, after) = (cut(place.passage.is_cut_before), cut(place.passage.is_cut_after));
    let nearby = |nearby: &Option<NearbyText>, label: &str| {
        nearby.as_ref().map_or(String::new(), |nearby| {
            let (before, after) = (cut(nearby.is_cut_before), cut(nearby.is_cut_after));
            format!("[{label} it, {}:] {before}{}{after}\n", nearby.speaker, nearby.text)
        })
    };
    let (earlier, later) = (nearby(&place.nearby.before, "before"), nearby(&place.nearby.after, "after"));
    let text = format!("{before}{}{after}", place.passage.text);
    format!("\n--- {stands} ({}{at}; {session})\n{earlier}{text}\n{later}", place.speaker)
}

fn session(id: &str, title: Option<&str>, agent: Option<&str>, own: Option<&str>) -> String {
    let agent =
        agent.map_or(String::new(), |agent| format!(", the agent {}", quote_name(agent, TITLE_CHARS_MAX)));
    match own == Some(id) {
        true => format!("this session{agent}"),
        false => {
            let title =
                title.map_or(String::new(), |title| format!(" {}", quote_name(title, TITLE_CHARS_MAX)));
            format!("session {id}{title}{agent}")
        }
    }
}

/// Shows an entry in full, with shortened neighbors.
fn show_entry(recalls: &mut [Recall], id: &str, request: &RecallRequest) -> Result<String, String> {
    let id: EntryId =
        id.trim().parse().map_err(|_| format!("{} is no id of an entry", quote_name(id, 60)))?;
    let (before, after) = (request.before.min(NEIGHBORS_MAX), request.after.min(NEIGHBORS_MAX));
    let mut found = None;
    for recall in recalls {
        found = found.or(recall.entry(id, before, after).map_err(|error| error.to_string())?);
    }
    let found = found.ok_or_else(|| format!("there is no entry {id} here that says anything"))?;
    let texts = found.entries.iter().enumerate().map(|(at, shown)| match at == found.requested {
        true => entry_page(shown, request.offset, ENTRY_CHARS_MAX),
        false => entry_page(shown, 0, NEIGHBOR_CHARS_MAX),
    });
    let texts: Vec<String> = texts.collect();
    if found.entries.len() == 1 {
        return Ok(texts.concat());
    }
    let headed = found.entries.iter().zip(texts).map(|(shown, text)| {
        let who = shown.parts.first().map_or(String::new(), |part| part.speaker.to_string());
        format!("--- entry {} ({who}, {})\n{text}\n", shown.entry.id, shown.entry.at)
    });
    Ok(headed.collect::<Vec<_>>().join("\n"))
}

fn entry_page(shown: &RecalledEntry, offset: usize, most: usize) -> String {
    let texts: Vec<&str> = shown.parts.iter().map(|part| part.text.as_str()).collect();
    let text = texts.join("\n\n");
    let page: String = text.chars().skip(offset).take(most).collect();
    let rest = text.chars().count().saturating_sub(offset + page.chars().count());
    match rest {
        0 => page,
        rest => format!("{page}\n[{rest} more characters: ask with offset {}]", offset + most),
    }
}
