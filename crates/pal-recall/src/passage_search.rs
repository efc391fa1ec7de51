//! Passage search, and access to whole entries.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use pal_model::{EntryId, LogEntry, Timestamp};
use pal_search::{MatchMode, NearTerm, SearchError, SearchHit, SearchIndex, WordMatcher};
use pal_store::LogReader;

use crate::Recall;
use crate::entry_parts::{EntryPart, PartSpeaker, entry_parts};
use crate::index_update::description_note_name;
use crate::passage::{Passage, passage};
use crate::quoted_phrases::QuotedPhrases;
use crate::session_description::SessionDescription;
use crate::session_files::session_and_agent;
use crate::text_chunks::{CHUNK, text_of};

/// Weights of spoken text, and of results and injected text.
const WEIGHTS: [f64; crate::FIELDS] = [1.5, 1.0];
/// Factor of hits examined over hits wanted, since the proximity of words changes the order.
const EXAMINED_FACTOR: usize = 4;
/// Maximum recency bonus as a share of the score, and its half-life in days.
const RECENCY_BONUS_MAX: f64 = 0.3;
const RECENCY_HALF_LIFE_DAYS: f64 = 30.0;
const DAY_MS: f64 = 86_400_000.0;
/// Bytes around a document in which a phrase may begin or end.
const PHRASE_BYTES_MAX: usize = 400;
/// Bytes of a file that are read around a chunk.
const CONTEXT_BYTES: u64 = 8_192;

/// Parameters of a search.
#[derive(Clone, Copy, Debug)]
pub struct RecallQuery<'a> {
    /// Words in any order; phrases in double quotes must stand in the text as they are. There are no other
    /// operators.
    pub query: &'a str,
    /// Session to search; none for all.
    pub session: Option<&'a str>,
    /// Maximum number of passages.
    pub limit: usize,
    /// Lines of context around a match.
    pub context_lines: usize,
    /// Current time, for the recency bonus.
    pub now: Timestamp,
    /// Model that searches; none for a person.
    pub caller: Option<RecallCaller<'a>>,
}

/// A model that searches.
#[derive(Clone, Copy, Debug)]
pub struct RecallCaller<'a> {
    /// Session id.
    pub session: &'a str,
    /// Entries to ignore: the prompt that it works on and the response that makes the call repeat the words of the
    /// query without an answer.
    pub ignored: &'a [EntryId],
}

/// Result of a search.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RecallResults {
    /// Passages, best first.
    pub passages: Vec<PassageHit>,
    /// No passage contains all words; these contain some of them, or words with these prefixes.
    pub is_partial: bool,
    /// Even with the corrections, no passage contains all words.
    pub lacks_words: bool,
    /// Misspelt words of the query with the indexed terms that were searched for instead.
    pub corrections: Vec<(String, String)>,
}

impl RecallResults {
    /// Merges the results of another index and keeps the best. Loose results count only if no index has exact
    /// ones.
    pub fn join(&mut self, more: RecallResults, most: usize) {
        let takes_over =
            self.passages.is_empty() || (self.is_partial && !more.is_partial && !more.passages.is_empty());
        if takes_over {
            *self = more;
        } else if self.is_partial == more.is_partial {
            self.passages.extend(more.passages);
            let new = more.corrections.into_iter().filter(|pair| !self.corrections.contains(pair));
            self.corrections.extend(new.collect::<Vec<_>>());
        }
        sort(&mut self.passages);
        self.passages.truncate(most);
    }
}

/// A passage with its source.
#[derive(Clone, PartialEq, Debug)]
pub struct PassageHit {
    /// Session id.
    pub session: String,
    /// Description of the session.
    pub description: SessionDescription,
    /// Subagent that said it, if any.
    pub agent: Option<String>,
    /// Speaker.
    pub speaker: PartSpeaker,
    /// Time, if known.
    pub at: Option<Timestamp>,
    /// Log entry; none if the text is in a separate file.
    pub entry: Option<EntryId>,
    /// File that contains it.
    pub file: PathBuf,
    /// Line number in the file, from 1.
    pub line: u64,
    /// Byte offset of that line.
    pub offset: u64,
    /// Matching lines.
    pub passage: Passage,
    /// Number of query words in the passage.
    pub words: usize,
    /// Relevance; comparable within one search.
    pub score: f64,
}

/// An entry with its source.
#[derive(Clone, Debug)]
pub struct RecalledEntry {
    /// Session id.
    pub session: String,
    /// Subagent that wrote it, if any.
    pub agent: Option<String>,
    /// The entry itself.
    pub entry: LogEntry,
    /// Readable parts of the entry.
    pub parts: Vec<EntryPart>,
}

/// Consecutive entries around a requested one.
#[derive(Clone, Debug, Default)]
pub struct EntryWindow {
    /// Entries in log order.
    pub entries: Vec<RecalledEntry>,
    /// Index of the requested entry.
    pub requested: usize,
}

impl Recall {
    /// Finds the best passages in the index; call [`Recall::update`] first.
    pub fn search(&mut self, wanted: &RecallQuery<'_>) -> Result<RecallResults, SearchError> {
        search_all(std::slice::from_mut(self), wanted)
    }

    /// Returns an entry with its readable neighbors in log order; none if the id is unknown.
    pub fn entry(
        &mut self,
        id: EntryId,
        before: usize,
        after: usize,
    ) -> Result<Option<EntryWindow>, SearchError> {
        let stamp = id.to_string();
        let keys = self.with_index(|index, _| index.keys_with_stamp(&stamp))?;
        Ok(keys.iter().find_map(|key| {
            let key = DocumentKey::read(key)?;
            entry_window(&self.sessions.join(key.name), key.name, key.offset, (before, after))
        }))
    }
}

/// Finds the best passages in several indexes; call [`Recall::update`] on each first.
///
/// A word that is in none of them is read as the nearest term of all, so the passages of all indexes answer the same query.
pub fn search_all(recalls: &mut [Recall], wanted: &RecallQuery<'_>) -> Result<RecallResults, SearchError> {
    let exact = search_each(recalls, wanted, SearchStage::AllWords)?;
    if !exact.passages.is_empty() {
        return Ok(exact);
    }
    let corrected = correct_spelling(recalls, wanted.query)?;
    let query = corrected.as_ref().map_or(wanted.query, |corrected| corrected.query.as_str());
    let corrected_query = RecallQuery { query, ..*wanted };
    let mut found = match &corrected {
        Some(_) => search_each(recalls, &corrected_query, SearchStage::AllWords)?,
        None => RecallResults::default(),
    };
    for stage in [SearchStage::AnyWord, SearchStage::Prefixes] {
        if found.passages.is_empty() {
            found = RecallResults {
                lacks_words: corrected.is_some(),
                ..search_each(recalls, &corrected_query, stage)?
            };
        }
    }
    found.is_partial = true;
    found.corrections = corrected.map_or_else(Vec::new, |corrected| corrected.corrections);
    Ok(found)
}

fn search_each(
    recalls: &mut [Recall],
    wanted: &RecallQuery<'_>,
    stage: SearchStage,
) -> Result<RecallResults, SearchError> {
    let mut found = RecallResults::default();
    for recall in recalls {
        let more =
            recall.with_index(|index, sessions| PassageSearch::new(index, sessions, wanted).run(stage))?;
        found.join(more, wanted.limit);
    }
    Ok(found)
}

/// Finds the best passages in an index of part of the logs; words are not corrected, since others may be elsewhere.
pub(crate) fn search_index(
    index: &SearchIndex,
    sessions: &Path,
    wanted: &RecallQuery<'_>,
) -> Result<RecallResults, SearchError> {
    let mut search = PassageSearch::new(index, sessions, wanted);
    let mut found = RecallResults::default();
    for stage in [SearchStage::AllWords, SearchStage::AnyWord, SearchStage::Prefixes] {
        if found.passages.is_empty() {
            found = search.run(stage)?;
        }
    }
    Ok(found)
}

/// Words that a passage must contain; it must contain the quoted phrases in any case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SearchStage {
    AllWords,
    AnyWord,
    Prefixes,
}

/// A query with misspelt words replaced.
struct CorrectedQuery {
    query: String,
    /// Words with the terms that replace them.
    corrections: Vec<(String, String)>,
}

/// Replaces the words of a query that no text has by the nearest terms that texts have; none if there are none, or if the
/// query quotes a phrase, which must stand in the text as it is.
fn correct_spelling(recalls: &mut [Recall], query: &str) -> Result<Option<CorrectedQuery>, SearchError> {
    if query.contains(['"', '“']) {
        return Ok(None);
    }
    let mut corrections = Vec::new();
    let mut words = Vec::new();
    for word in query.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()) {
        match nearest_term(recalls, word)? {
            Some(term) => {
                corrections.push((word.to_owned(), term.clone()));
                words.push(term);
            }
            None => words.push(word.to_owned()),
        }
    }
    Ok((!corrections.is_empty()).then(|| CorrectedQuery { query: words.join(" "), corrections }))
}

/// The term of all indexes that is nearest to a word; none if any of them has the word.
fn nearest_term(recalls: &mut [Recall], word: &str) -> Result<Option<String>, SearchError> {
    for recall in recalls.iter_mut() {
        if recall.with_index(|index, _| index.has_word(word))? {
            return Ok(None);
        }
    }
    let mut best: Option<NearTerm> = None;
    for recall in recalls {
        let near = recall.with_index(|index, _| index.nearest_term(word))?;
        if let Some(near) = near.filter(|near| best.as_ref().is_none_or(|best| near.is_better_than(best))) {
            best = Some(near);
        }
    }
    Ok(best.map(|near| near.term))
}

/// Position of a document, parsed from its key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct DocumentKey<'a> {
    name: &'a str,
    offset: u64,
    /// Part of the entry and offset in it; none for a separate file.
    within: Option<(usize, usize)>,
}

impl DocumentKey<'_> {
    fn read(key: &str) -> Option<DocumentKey<'_>> {
        let (name, rest) = key.rsplit_once('#')?;
        let mut numbers = rest.split('.').map(str::parse::<usize>);
        let offset = numbers.next()?.ok()? as u64;
        let within = match (numbers.next(), numbers.next()) {
            (Some(part), Some(from)) => Some((part.ok()?, from.ok()?)),
            _ => None,
        };
        Some(DocumentKey { name, offset, within })
    }
}

fn entry_window(
    file: &Path,
    name: &str,
    offset: u64,
    (before, after): (usize, usize),
) -> Option<EntryWindow> {
    let reader = LogReader::open(file).ok()?;
    let (session, agent) = session_and_agent(name);
    let shown = |entry: LogEntry| {
        let parts = entry_parts(&entry);
        (!parts.is_empty()).then(|| RecalledEntry {
            session: session.to_owned(),
            agent: agent.clone(),
            entry,
            parts,
        })
    };
    // Read from the start only if earlier entries are wanted.
    let from = if before == 0 { offset } else { 0 };
    let mut entries: Vec<RecalledEntry> = Vec::new();
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
    asked.map(|asked| EntryWindow { entries, requested: asked })
}

/// State of one search.
struct PassageSearch<'a> {
    index: &'a SearchIndex,
    sessions: &'a Path,
    wanted: &'a RecallQuery<'a>,
    matcher: WordMatcher,
    phrases: QuotedPhrases,
    within: String,
    readers: HashMap<String, Option<LogReader>>,
    descriptions: HashMap<String, SessionDescription>,
}

impl<'a> PassageSearch<'a> {
    fn new(index: &'a SearchIndex, sessions: &'a Path, wanted: &'a RecallQuery<'a>) -> PassageSearch<'a> {
        PassageSearch {
            index,
            sessions,
            wanted,
            matcher: WordMatcher::new(wanted.query),
            phrases: QuotedPhrases::of(wanted.query),
            within: wanted.session.map_or(String::new(), |session| format!("{session}/")),
            readers: HashMap::new(),
            descriptions: HashMap::new(),
        }
    }

    /// Finds the best passages of a stage.
    fn run(&mut self, stage: SearchStage) -> Result<RecallResults, SearchError> {
        let hits = match stage {
            SearchStage::AllWords => self.hits(self.wanted.query, MatchMode::All)?,
            // The words of the phrases are all required.
            SearchStage::AnyWord if !self.phrases.is_empty() => {
                self.hits(&self.phrases.to_query(), MatchMode::All)?
            }
            SearchStage::AnyWord => self.hits(self.wanted.query, MatchMode::Any)?,
            SearchStage::Prefixes => self.hits(self.wanted.query, MatchMode::Prefixes)?,
        };
        let places = self.places(&hits);
        Ok(self.best(places, stage != SearchStage::AllWords))
    }

    fn hits(&self, query: &str, fit: MatchMode) -> Result<Vec<SearchHit>, SearchError> {
        self.index.find(&pal_search::SearchQuery {
            query,
            mode: fit,
            key_prefix: &self.within,
            weights: &WEIGHTS,
            limit: self.wanted.limit.saturating_mul(self.examined_factor()).max(20),
        })
    }

    /// Many texts have the words of a phrase, and few the phrase.
    fn examined_factor(&self) -> usize {
        if self.phrases.is_empty() { EXAMINED_FACTOR } else { EXAMINED_FACTOR * 10 }
    }

    /// Passages of hits that have the quoted phrases. Skips those whose source no longer exists.
    fn places(&mut self, hits: &[SearchHit]) -> Vec<PassageHit> {
        let mut seen = HashSet::new();
        let mut places = Vec::new();
        for hit in hits {
            let Some(place) = self.place(hit) else { continue };
            // Forked sessions share entries, and adjacent chunks share lines.
            let words = (place.entry, place.passage.text.clone());
            if seen.insert(words) {
                places.push(place);
            }
        }
        places
    }

    fn place(&mut self, hit: &SearchHit) -> Option<PassageHit> {
        let key = DocumentKey::read(&hit.key)?;
        let file = self.sessions.join(key.name);
        let reader = self.readers.entry(key.name.to_owned()).or_insert_with(|| LogReader::open(&file).ok());
        let reader = reader.as_ref()?;
        let terms = SearchTerms {
            matcher: &self.matcher,
            phrases: &self.phrases,
            context_lines: self.wanted.context_lines,
        };
        let location = match key.within {
            Some(within) => find_in_log(reader, key.offset, within, &terms)?,
            None => find_in_text(reader, key.offset, &terms)?,
        };
        let PassageLocation { speaker, at, entry, offset, passage, words, has_phrases } = location;
        if !has_phrases {
            return None;
        }
        let at = at.or_else(|| modified(&file));
        let (session, agent) = session_and_agent(key.name);
        let ignored = self.wanted.caller.map_or(&[][..], |caller| caller.ignored);
        if entry.is_some_and(|entry| ignored.contains(&entry)) {
            return None;
        }
        let description = self.description(session);
        let session = session.to_owned();
        let score = hit.score * recency_factor(at, self.wanted.now);
        Some(PassageHit {
            session,
            description,
            agent,
            speaker,
            at,
            entry,
            file,
            line: 0,
            offset,
            passage,
            words,
            score,
        })
    }

    fn description(&mut self, session: &str) -> SessionDescription {
        let read = || {
            let name = description_note_name(session);
            let note = self.index.notes(&name).ok()?.remove(&name)?;
            serde_json::from_str(&note).ok()
        };
        self.descriptions.entry(session.to_owned()).or_insert_with(|| read().unwrap_or_default()).clone()
    }

    /// Sorts and truncates the passages, then counts the line numbers of those that remain.
    fn best(&self, mut places: Vec<PassageHit>, is_partial: bool) -> RecallResults {
        sort(&mut places);
        places.truncate(self.wanted.limit);
        for place in &mut places {
            let reader = LogReader::open(&place.file);
            place.line = reader.ok().and_then(|reader| reader.line_number_at(place.offset).ok()).unwrap_or(0);
            if place.entry.is_none() {
                place.passage.line = usize::try_from(place.line).unwrap_or(usize::MAX);
            }
        }
        RecallResults { passages: places, is_partial, ..RecallResults::default() }
    }
}

/// A passage and its position.
struct PassageLocation {
    speaker: PartSpeaker,
    at: Option<Timestamp>,
    entry: Option<EntryId>,
    offset: u64,
    passage: Passage,
    words: usize,
    /// True if the text around it contains the quoted phrases.
    has_phrases: bool,
}

/// Terms of a search, and the context to show.
struct SearchTerms<'a> {
    matcher: &'a WordMatcher,
    phrases: &'a QuotedPhrases,
    context_lines: usize,
}

impl SearchTerms<'_> {
    /// Best passage of a document, its number of words, and whether the document has the phrases.
    fn passage(&self, text: &str, document: Range<usize>) -> (Passage, usize, bool) {
        // A phrase may cross the border of two documents.
        let start = text.floor_char_boundary(document.start.saturating_sub(PHRASE_BYTES_MAX));
        let end = text.ceil_char_boundary((document.end + PHRASE_BYTES_MAX).min(text.len()));
        let around = text.get(start..end).unwrap_or_default();
        let has_phrases = self.phrases.are_in(around);
        let phrase = self.phrases.first_in(around).filter(|_| has_phrases);
        let within = phrase.map_or(document, |phrase| start + phrase.start..start + phrase.end);
        let (passage, words) = passage(text, within, self.matcher, self.context_lines);
        (passage, words, has_phrases)
    }
}

/// Finds a passage in one part of an entry.
fn find_in_log(
    reader: &LogReader,
    offset: u64,
    (part, from): (usize, usize),
    terms: &SearchTerms<'_>,
) -> Option<PassageLocation> {
    let entry = reader.entry_at(offset).ok()??;
    let part = entry_parts(&entry).into_iter().nth(part).filter(|part| !part.is_recall())?;
    let EntryPart { speaker, text } = part;
    let (passage, words, has_phrases) = terms.passage(&text, stretch(&text, from));
    let (at, entry) = (Some(entry.at), Some(entry.id));
    Some(PassageLocation { speaker, at, entry, offset, passage, words, has_phrases })
}

/// Finds a passage in a separate file.
fn find_in_text(reader: &LogReader, offset: u64, terms: &SearchTerms<'_>) -> Option<PassageLocation> {
    let start = offset.saturating_sub(CONTEXT_BYTES);
    let bytes = reader.bytes(start, offset + CHUNK as u64 + CONTEXT_BYTES).ok()?;
    // Skip a partial first line.
    let skip = match start {
        0 => 0,
        _ => bytes.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1),
    };
    let text = text_of(&bytes[skip..]);
    let from = ((offset - start) as usize).saturating_sub(skip);
    let (passage, words, has_phrases) = terms.passage(&text, stretch(&text, from));
    let before: usize = text.split('\n').take(passage.line - 1).map(|line| line.len() + 1).sum();
    let offset = start + (skip + before) as u64;
    let speaker = PartSpeaker::Output;
    Some(PassageLocation { speaker, at: None, entry: None, offset, passage, words, has_phrases })
}

/// Byte range of a document in its text.
fn stretch(text: &str, from: usize) -> Range<usize> {
    from.min(text.len())..(from + CHUNK).min(text.len())
}

/// Sorts by number of words, then score, then newest first.
fn sort(places: &mut [PassageHit]) {
    places.sort_by(|one, other| {
        let by_words = other.words.cmp(&one.words);
        let by_score = || other.score.total_cmp(&one.score);
        let by_place = || (other.at, &one.session, one.offset).cmp(&(one.at, &other.session, other.offset));
        by_words.then_with(by_score).then_with(by_place)
    });
}

/// Recency factor of a score.
fn recency_factor(at: Option<Timestamp>, now: Timestamp) -> f64 {
    let Some(at) = at else { return 1.0 };
    let days = now.milliseconds().saturating_sub(at.milliseconds()).max(0) as f64 / DAY_MS;
    1.0 + RECENCY_BONUS_MAX * 0.5_f64.powf(days / RECENCY_HALF_LIFE_DAYS)
}

/// Modification time of a file.
fn modified(file: &Path) -> Option<Timestamp> {
    let time = file.metadata().and_then(|metadata| metadata.modified()).ok()?;
    let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(Timestamp::from_milliseconds(i64::try_from(since.as_millis()).ok()?))
}
