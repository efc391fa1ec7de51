//! Finding passages, and showing entries whole.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use pal_model::{Entry, EntryId, Timestamp};
use pal_search::{Fit, Hit, Index, Marker, SearchError};
use pal_store::Reader;

use crate::Recall;
use crate::about::About;
use crate::chunks::CHUNK;
use crate::passage::{Passage, passage};
use crate::places::session_and_agent;
use crate::said::{Said, Who, said};
use crate::updating::about_name;

/// How much a word counts in what was said, and in what was returned or put in.
const WEIGHTS: [f64; crate::FIELDS] = [1.5, 1.0];
/// How many more are looked at than are wanted, since where words stand together changes the order.
const LOOKED_AT: usize = 4;
/// How much newness may add to a score, as a share of it, and the days after which that has halved.
const RECENCY: f64 = 0.3;
const HALF_DAYS: f64 = 30.0;
const DAY_MS: f64 = 86_400_000.0;
/// Bytes of a file that are read around a stretch of it.
const AROUND_TEXT: u64 = 8_192;

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Words, in any order. Nothing in it is an operator.
    pub query: &'a str,
    /// Only in this session.
    pub session: Option<&'a str>,
    /// Most passages.
    pub most: usize,
    /// Lines around what was found.
    pub around: usize,
    /// The time, since what is new matters more.
    pub now: Timestamp,
}

/// What was found.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Found {
    /// The places, the best first.
    pub places: Vec<Place>,
    /// Whether no place holds all words, so that these hold some of them, or words that begin so.
    pub is_loose: bool,
}

impl Found {
    /// Takes in what another index holds, and keeps the best. Places with some of the words count only where none has all.
    pub fn join(&mut self, more: Found, most: usize) {
        let takes_over =
            self.places.is_empty() || (self.is_loose && !more.is_loose && !more.places.is_empty());
        if takes_over {
            *self = more;
        } else if self.is_loose == more.is_loose {
            self.places.extend(more.places);
        }
        sort(&mut self.places);
        self.places.truncate(most);
    }
}

/// A place where something was said.
#[derive(Clone, PartialEq, Debug)]
pub struct Place {
    /// The session.
    pub session: String,
    /// What is known of the session.
    pub about: About,
    /// The agent that the session had sent, if it was said there.
    pub agent: Option<String>,
    /// Who said it.
    pub who: Who,
    /// When, if that is known.
    pub at: Option<Timestamp>,
    /// The entry of the log; none if it stands in a file of its own.
    pub entry: Option<EntryId>,
    /// The file that it stands in.
    pub file: PathBuf,
    /// The line of the file, from 1.
    pub line: u64,
    /// Where that line begins, in bytes.
    pub offset: u64,
    /// The words.
    pub passage: Passage,
    /// How many words of the question are in the passage.
    pub words: usize,
    /// How well it fits; comparable within one search.
    pub score: f64,
}

/// An entry, found by its id.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The session.
    pub session: String,
    /// The agent that the session had sent.
    pub agent: Option<String>,
    /// The entry.
    pub entry: Entry,
    /// What it says.
    pub said: Vec<Said>,
}

/// Entries in their order, and which of them was asked for.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    /// The entries.
    pub entries: Vec<Shown>,
    /// The one that was asked for.
    pub asked: usize,
}

impl Recall {
    /// The passages that fit best. Looks at what is indexed: [`Recall::update`] comes first.
    pub fn search(&mut self, wanted: &Wanted<'_>) -> Result<Found, SearchError> {
        self.with_index(|index, sessions| search_index(index, sessions, wanted))
    }

    /// An entry with those before and after it that say something, as they stand in its log; none if there is no such entry.
    pub fn entry(
        &mut self,
        id: EntryId,
        before: usize,
        after: usize,
    ) -> Result<Option<Entries>, SearchError> {
        let stamp = id.to_string();
        let keys = self.with_index(|index, _| index.stamped(&stamp))?;
        Ok(keys.iter().find_map(|key| {
            let spot = Spot::read(key)?;
            around_entry(&self.sessions.join(spot.name), spot.name, spot.offset, (before, after))
        }))
    }
}

/// The passages of an index that fit best.
pub(crate) fn search_index(
    index: &Index,
    sessions: &Path,
    wanted: &Wanted<'_>,
) -> Result<Found, SearchError> {
    let mut looking = Looking::new(index, sessions, wanted);
    let strict = looking.places(&looking.hits(Fit::All)?);
    if !strict.is_empty() {
        return Ok(looking.best(strict, false));
    }
    let mut hits = looking.hits(Fit::Any)?;
    if hits.is_empty() {
        hits = looking.hits(Fit::Beginnings)?;
    }
    let places = looking.places(&hits);
    Ok(looking.best(places, true))
}

/// Where a document stands, as its key says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Spot<'a> {
    name: &'a str,
    offset: u64,
    /// The part of the entry and where in it; none in a file of its own.
    within: Option<(usize, usize)>,
}

impl Spot<'_> {
    fn read(key: &str) -> Option<Spot<'_>> {
        let (name, rest) = key.rsplit_once('#')?;
        let mut numbers = rest.split('.').map(str::parse::<usize>);
        let offset = numbers.next()?.ok()? as u64;
        let within = match (numbers.next(), numbers.next()) {
            (Some(part), Some(from)) => Some((part.ok()?, from.ok()?)),
            _ => None,
        };
        Some(Spot { name, offset, within })
    }
}

fn around_entry(file: &Path, name: &str, offset: u64, (before, after): (usize, usize)) -> Option<Entries> {
    let reader = Reader::open(file).ok()?;
    let (session, agent) = session_and_agent(name);
    let shown = |entry: Entry| {
        let said = said(&entry);
        (!said.is_empty()).then(|| Shown { session: session.to_owned(), agent: agent.clone(), entry, said })
    };
    // Only who wants what stands before has all of it read.
    let from = if before == 0 { offset } else { 0 };
    let mut entries: Vec<Shown> = Vec::new();
    let mut asked = None;
    for line in reader.lines_from(from).ok()??.filter_map(Result::ok) {
        let at = line.offset;
        let Some(entry) = shown(line.entry) else { continue };
        entries.push(entry);
        if at == offset {
            asked = Some(entries.len() - 1);
        }
        match asked {
            None if entries.len() > before => {
                entries.remove(0);
            }
            Some(asked) if entries.len() > asked + after => break,
            _ => {}
        }
    }
    asked.map(|asked| Entries { entries, asked })
}

/// A text of a file of its own, byte by byte as long: what is no Unicode becomes a sign of as many bytes.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    text
}

/// One search.
struct Looking<'a> {
    index: &'a Index,
    sessions: &'a Path,
    wanted: &'a Wanted<'a>,
    marker: Marker,
    within: String,
    readers: HashMap<String, Option<Reader>>,
    abouts: HashMap<String, About>,
}

impl<'a> Looking<'a> {
    fn new(index: &'a Index, sessions: &'a Path, wanted: &'a Wanted<'a>) -> Looking<'a> {
        Looking {
            index,
            sessions,
            wanted,
            marker: Marker::new(wanted.query),
            within: wanted.session.map_or(String::new(), |session| format!("{session}/")),
            readers: HashMap::new(),
            abouts: HashMap::new(),
        }
    }

    fn hits(&self, fit: Fit) -> Result<Vec<Hit>, SearchError> {
        self.index.find(&pal_search::Wanted {
            question: self.wanted.query,
            fit,
            beginning: &self.within,
            weights: &WEIGHTS,
            most: self.wanted.most.saturating_mul(LOOKED_AT).max(20),
        })
    }

    /// The places of hits. What is not there any more is none.
    fn places(&mut self, hits: &[Hit]) -> Vec<Place> {
        let mut seen = HashSet::new();
        let mut places = Vec::new();
        for hit in hits {
            let Some(place) = self.place(hit) else { continue };
            // A session that was forked has the same entries, and neighbouring stretches share lines.
            let words = (place.entry, place.passage.text.clone());
            if seen.insert(words) {
                places.push(place);
            }
        }
        places
    }

    fn place(&mut self, hit: &Hit) -> Option<Place> {
        let spot = Spot::read(&hit.key)?;
        let file = self.sessions.join(spot.name);
        let reader = self.readers.entry(spot.name.to_owned()).or_insert_with(|| Reader::open(&file).ok());
        let reader = reader.as_ref()?;
        let stands = match spot.within {
            Some(within) => in_log(reader, spot.offset, within, &self.marker, self.wanted.around)?,
            None => in_text(reader, spot.offset, &self.marker, self.wanted.around)?,
        };
        let Stands { who, at, entry, offset, passage, words } = stands;
        let at = at.or_else(|| modified(&file));
        let (session, agent) = session_and_agent(spot.name);
        let about = self.about(session);
        let session = session.to_owned();
        let score = hit.score * newness(at, self.wanted.now);
        Some(Place { session, about, agent, who, at, entry, file, line: 0, offset, passage, words, score })
    }

    fn about(&mut self, session: &str) -> About {
        let read = || {
            let name = about_name(session);
            let note = self.index.notes(&name).ok()?.remove(&name)?;
            serde_json::from_str(&note).ok()
        };
        self.abouts.entry(session.to_owned()).or_insert_with(|| read().unwrap_or_default()).clone()
    }

    /// The best of them, with the numbers of their lines, which only these are counted for.
    fn best(&self, mut places: Vec<Place>, is_loose: bool) -> Found {
        sort(&mut places);
        places.truncate(self.wanted.most);
        for place in &mut places {
            let reader = Reader::open(&place.file);
            place.line = reader.ok().and_then(|reader| reader.number_at(place.offset).ok()).unwrap_or(0);
            if place.entry.is_none() {
                place.passage.line = usize::try_from(place.line).unwrap_or(usize::MAX);
            }
        }
        Found { places, is_loose }
    }
}

/// What stands in one place.
struct Stands {
    who: Who,
    at: Option<Timestamp>,
    entry: Option<EntryId>,
    offset: u64,
    passage: Passage,
    words: usize,
}

/// What stands in an entry, in a part of it from a place on.
fn in_log(
    reader: &Reader,
    offset: u64,
    (part, from): (usize, usize),
    marker: &Marker,
    around: usize,
) -> Option<Stands> {
    let entry = reader.entry_at(offset).ok()??;
    let Said { who, text } = said(&entry).into_iter().nth(part)?;
    let (passage, words) = passage(&text, stretch(&text, from), marker, around);
    Some(Stands { who, at: Some(entry.at), entry: Some(entry.id), offset, passage, words })
}

/// What stands in a file of its own, from a place on.
fn in_text(reader: &Reader, offset: u64, marker: &Marker, around: usize) -> Option<Stands> {
    let start = offset.saturating_sub(AROUND_TEXT);
    let bytes = reader.bytes(start, offset + CHUNK as u64 + AROUND_TEXT).ok()?;
    // The first line is cut unless it is the first of all.
    let skip = match start {
        0 => 0,
        _ => bytes.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1),
    };
    let text = text_of(&bytes[skip..]);
    let from = ((offset - start) as usize).saturating_sub(skip);
    let (passage, words) = passage(&text, stretch(&text, from), marker, around);
    let before: usize = text.split('\n').take(passage.line - 1).map(|line| line.len() + 1).sum();
    let offset = start + (skip + before) as u64;
    Some(Stands { who: Who::Output, at: None, entry: None, offset, passage, words })
}

/// Where the words of a document are looked for.
fn stretch(text: &str, from: usize) -> Range<usize> {
    from.min(text.len())..(from + CHUNK).min(text.len())
}

/// Puts places in order: those that hold most of the words together, then those that fit best, then the newest.
fn sort(places: &mut [Place]) {
    places.sort_by(|one, other| {
        let by_words = other.words.cmp(&one.words);
        let by_score = || other.score.total_cmp(&one.score);
        let by_place = || (other.at, &one.session, one.offset).cmp(&(one.at, &other.session, other.offset));
        by_words.then_with(by_score).then_with(by_place)
    });
}

/// What newness makes of a score.
fn newness(at: Option<Timestamp>, now: Timestamp) -> f64 {
    let Some(at) = at else { return 1.0 };
    let days = now.milliseconds().saturating_sub(at.milliseconds()).max(0) as f64 / DAY_MS;
    1.0 + RECENCY * 0.5_f64.powf(days / HALF_DAYS)
}

/// When a file was last written.
fn modified(file: &Path) -> Option<Timestamp> {
    let time = file.metadata().and_then(|metadata| metadata.modified()).ok()?;
    let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(Timestamp::from_milliseconds(i64::try_from(since.as_millis()).ok()?))
}
