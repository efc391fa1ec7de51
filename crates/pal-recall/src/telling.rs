//! What a model is told of what was found: exact passages in bounded answers. The tool of our agent and the server for
//! others both answer with it.

use pal_model::{EntryId, Timestamp, one_line};
use serde::Deserialize;

use crate::Recall;
use crate::finding::{Found, Place, Shown, Wanted};
use crate::updating::Progress;

/// Passages that a search shows unless it asks for another number.
const HITS: usize = 10;
const HITS_MAX: usize = 50;
/// Lines around what was found.
const AROUND: usize = 3;
/// Most characters of an entry that is shown by its id, and of each of its neighbours.
const ENTRY_MOST: usize = 40_000;
const NEIGHBOUR_MOST: usize = 2_000;
const NEIGHBOURS_MAX: usize = 20;
/// Most characters of the passages of one answer.
const ANSWER_MOST: usize = 30_000;
/// Characters of a title.
const TITLE_MOST: usize = 80;

/// What a model asks for.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Asked {
    /// Words to look for.
    pub query: Option<String>,
    /// Where to look.
    pub scope: Option<Scope>,
    /// Most passages.
    pub limit: Option<usize>,
    /// An entry to be shown whole.
    pub entry: Option<String>,
    /// The first character of it that is shown.
    pub offset: usize,
    /// How many entries to show before it.
    pub before: usize,
    /// How many to show after it.
    pub after: usize,
}

/// Where a model looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// In the session that asks.
    Session,
    /// In all sessions of the project.
    Project,
}

/// Answers a question of a model out of several indexes, or says what is wrong with it. `own` is the session that asks, if one
/// of ours does: it is where is looked unless the question says otherwise.
pub fn answer(
    recalls: &mut [Recall],
    own: Option<&str>,
    asked: &Asked,
    now: Timestamp,
    go_on: &mut dyn FnMut(Progress) -> bool,
) -> Result<String, String> {
    let wrong = |error: crate::SearchError| error.to_string();
    let mut is_behind = false;
    for recall in recalls.iter_mut() {
        is_behind |= recall.update(go_on).map_err(wrong)?.is_behind;
    }
    let mut text = match (&asked.entry, &asked.query) {
        (Some(id), _) => whole(recalls, id, asked)?,
        (None, Some(query)) if !query.trim().is_empty() => {
            let most = asked.limit.unwrap_or(HITS).clamp(1, HITS_MAX);
            let session = own.filter(|_| asked.scope != Some(Scope::Project));
            let wanted = Wanted { query, session, most, around: AROUND, now };
            let mut found = Found::default();
            for recall in recalls {
                found.join(recall.search(&wanted).map_err(wrong)?, most);
            }
            tell(&found, &wanted, own)
        }
        _ => return Err(String::from("give a `query` to search for, or the id of an `entry` to show")),
    };
    if is_behind {
        text.push_str("\nNot everything is indexed yet: what is missing may be found a little later.");
    }
    Ok(text)
}

fn tell(found: &Found, wanted: &Wanted<'_>, own: Option<&str>) -> String {
    let query = one_line(wanted.query, TITLE_MOST);
    let place = if wanted.session.is_some() { "this session" } else { "the sessions of this project" };
    if found.places.is_empty() {
        let wider = match (wanted.session, own) {
            (Some(_), _) => " Earlier sessions are searched with `scope` set to `project`.",
            _ => "",
        };
        return format!(
            "Nothing in {place} holds {query}. Try fewer or other words: names, paths, words of an error message.{wider}"
        );
    }
    let mut text = match found.is_loose {
        true => format!(
            "No place in {place} holds all the words of {query}. These hold some of them, the best first:\n"
        ),
        false => format!("{} in {place}, the best first:\n", places(found.places.len())),
    };
    for (shown, place) in found.places.iter().enumerate() {
        let passage = tell_place(place, own);
        if text.len() + passage.len() > ANSWER_MOST && shown > 0 {
            text.push_str(&format!("\n{} more are left out: ask for less.\n", found.places.len() - shown));
            break;
        }
        text.push_str(&passage);
    }
    text.push_str("\nAn entry is shown whole with `entry` set to its id.");
    text
}

fn places(count: usize) -> String {
    format!("{count} {}", if count == 1 { "place" } else { "places" })
}

fn tell_place(place: &Place, own: Option<&str>) -> String {
    let at = place.at.map_or(String::new(), |at| format!(", {at}"));
    let session = session(&place.session, place.about.title(), place.agent.as_deref(), own);
    let stands = match place.entry {
        Some(entry) => format!("entry {entry}"),
        None => format!("{} line {}", one_line(&place.file.to_string_lossy(), 400), place.line),
    };
    let cut = |is_cut: bool| if is_cut { "…" } else { "" };
    let (before, after) = (cut(place.passage.is_cut_before), cut(place.passage.is_cut_after));
    format!("\n--- {stands} ({}{at}; {session})\n{before}{}{after}\n", place.who, place.passage.text)
}

fn session(id: &str, title: Option<&str>, agent: Option<&str>, own: Option<&str>) -> String {
    let agent = agent.map_or(String::new(), |agent| format!(", the agent {}", one_line(agent, TITLE_MOST)));
    match own == Some(id) {
        true => format!("this session{agent}"),
        false => {
            let title = title.map_or(String::new(), |title| format!(" {}", one_line(title, TITLE_MOST)));
            format!("session {id}{title}{agent}")
        }
    }
}

/// An entry and its neighbours, the entry as it is.
fn whole(recalls: &mut [Recall], id: &str, asked: &Asked) -> Result<String, String> {
    let id: EntryId = id.trim().parse().map_err(|_| format!("{} is no id of an entry", one_line(id, 60)))?;
    let (before, after) = (asked.before.min(NEIGHBOURS_MAX), asked.after.min(NEIGHBOURS_MAX));
    let mut found = None;
    for recall in recalls {
        found = found.or(recall.entry(id, before, after).map_err(|error| error.to_string())?);
    }
    let found = found.ok_or_else(|| format!("there is no entry {id} here that says anything"))?;
    let texts = found.entries.iter().enumerate().map(|(at, shown)| match at == found.asked {
        true => exactly(shown, asked.offset, ENTRY_MOST),
        false => exactly(shown, 0, NEIGHBOUR_MOST),
    });
    let texts: Vec<String> = texts.collect();
    if found.entries.len() == 1 {
        return Ok(texts.concat());
    }
    let headed = found.entries.iter().zip(texts).map(|(shown, text)| {
        let who = shown.said.first().map_or(String::new(), |said| said.who.to_string());
        format!("--- entry {} ({who}, {})\n{text}\n", shown.entry.id, shown.entry.at)
    });
    Ok(headed.collect::<Vec<_>>().join("\n"))
}

fn exactly(shown: &Shown, offset: usize, most: usize) -> String {
    let texts: Vec<&str> = shown.said.iter().map(|said| said.text.as_str()).collect();
    let text = texts.join("\n\n");
    let page: String = text.chars().skip(offset).take(most).collect();
    let rest = text.chars().count().saturating_sub(offset + page.chars().count());
    match rest {
        0 => page,
        rest => format!("{page}\n[{rest} more characters: ask with offset {}]", offset + most),
    }
}
