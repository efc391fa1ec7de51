//! Passage search, and access to whole entries.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use pal_model::{EntryId, LogEntry, Timestamp};
use pal_search::{NearTerm, SearchError, WindowHit, WindowHits, WindowIndex, WindowQuery, WordMatcher};
use pal_store::LogReader;

use crate::Recall;
use crate::entry_parts::{EntryPart, KIND_WEIGHTS, PERSON_KIND, PartSpeaker, entry_parts};
use crate::index_update::{FILE_PART, description_note_name};
use crate::passage::{Passage, passage};
use crate::query_dates::QueryDates;
use crate::quoted_phrases::QuotedPhrases;
use crate::session_description::SessionDescription;
use crate::session_files::{modified, session_and_agent};
use crate::source_files::{SourceEntry, SourceFiles};
use crate::text_chunks::{CHUNK, text_of};

/// Factor of texts examined over passages wanted, since neighbors and copies are shown once.
const EXAMINED_FACTOR: usize = 4;
/// The same for queries with a phrase: many texts have its words, and few the phrase.
const PHRASE_EXAMINED_FACTOR: usize = 40;
/// Maximum recency bonus as a share of the score, and its half-life in days: just enough to decide between equals.
const RECENCY_BONUS_MAX: f32 = 0.05;
/// The same for questions about the newest state.
const NEWEST_BONUS_MAX: f32 = 0.5;
const RECENCY_HALF_LIFE_DAYS: f32 = 30.0;
const DAY_MS: f32 = 86_400_000.0;
/// Words of questions about the newest state.
const NEWEST_WORDS: [&str; 6] = ["current", "currently", "latest", "newest", "now", "recent"];
/// Bytes around a document in which a phrase may begin or end.
const PHRASE_BYTES_MAX: usize = 400;
/// Bytes of a file that are read around a chunk.
const CONTEXT_BYTES: u64 = 8_192;
/// Maximum bytes of a text shown before or after a passage.
const NEARBY_BYTES_MAX: usize = 500;

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
    /// Merges the results of another index and keeps the best.
    pub fn join(&mut self, more: RecallResults, most: usize) {
        let was_empty = self.passages.is_empty();
        self.is_partial = match more.passages.is_empty() {
            true => self.is_partial,
            false => more.is_partial && (was_empty || self.is_partial),
        };
        self.lacks_words |= more.lacks_words;
        self.passages.extend(more.passages);
        let new = more.corrections.into_iter().filter(|pair| !self.corrections.contains(pair));
        self.corrections.extend(new.collect::<Vec<_>>());
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
    /// What was said around the passage.
    pub nearby: NearbyTexts,
    /// Number of query words in the passage and the texts around it.
    pub words: usize,
    /// All query words are in its text and the texts around it.
    pub has_all_words: bool,
    /// Relevance; comparable within one search.
    pub score: f64,
}

/// Texts around a passage.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NearbyTexts {
    /// What was said right before the passage, if the passage is the start of its text.
    pub before: Option<NearbyText>,
    /// What was said right after the passage, if the passage is the end of its text.
    pub after: Option<NearbyText>,
}

/// Text before or after a passage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NearbyText {
    /// Speaker.
    pub speaker: PartSpeaker,
    /// Time.
    pub at: Timestamp,
    /// Log entry.
    pub entry: EntryId,
    /// Text, verbatim.
    pub text: String,
    /// It is cut at the start.
    pub is_cut_before: bool,
    /// It is cut at the end.
    pub is_cut_after: bool,
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
        let places = self.with_index(|index, _| index.places(&id.bits().to_be_bytes()))?;
        Ok(places.iter().find_map(|(name, offset)| {
            let window = entry_window(&self.sessions.join(name), name, *offset, (before, after))?;
            (window.entries.get(window.requested)?.entry.id == id).then_some(window)
        }))
    }
}

/// Finds the best passages in several indexes; call [`Recall::update`] on each first.
///
/// If no passage has all words, a word that is in no index is read as the nearest term of all, provided that this finds
/// one with all words, or that half of the words are such, or that nothing was found.
pub fn search_all(recalls: &mut [Recall], wanted: &RecallQuery<'_>) -> Result<RecallResults, SearchError> {
    let found = search_each(recalls, wanted)?;
    if !found.passages.is_empty() && !found.is_partial {
        return Ok(found);
    }
    let Some(CorrectedQuery { query, corrections }) = correct_spelling(recalls, wanted.query)? else {
        return Ok(found);
    };
    let corrected = search_each(recalls, &RecallQuery { query: &query, ..*wanted })?;
    let is_mostly_corrected = corrections.len() * 2 >= query.split(' ').count();
    if !found.passages.is_empty() && corrected.is_partial && !is_mostly_corrected {
        return Ok(found);
    }
    Ok(RecallResults { is_partial: true, lacks_words: corrected.is_partial, corrections, ..corrected })
}

fn search_each(recalls: &mut [Recall], wanted: &RecallQuery<'_>) -> Result<RecallResults, SearchError> {
    let mut found = RecallResults::default();
    for recall in recalls {
        let more =
            recall.with_index(|index, sessions| PassageSearch::new(index, sessions, wanted, 0).run())?;
        found.join(more, wanted.limit);
    }
    Ok(found)
}

/// Finds the best passages in an index of part of the logs, of about `population` texts; words are not corrected, since
/// others may be elsewhere.
pub(crate) fn search_index(
    index: &WindowIndex,
    sessions: &Path,
    wanted: &RecallQuery<'_>,
    population: usize,
) -> Result<RecallResults, SearchError> {
    PassageSearch::new(index, sessions, wanted, population).run()
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
    index: &'a WindowIndex,
    sessions: &'a Path,
    wanted: &'a RecallQuery<'a>,
    /// Number of texts to assume at least.
    population: usize,
    matcher: WordMatcher,
    phrases: QuotedPhrases,
    dates: QueryDates,
    within: String,
    files: SourceFiles,
    descriptions: HashMap<String, SessionDescription>,
}

impl<'a> PassageSearch<'a> {
    fn new(
        index: &'a WindowIndex,
        sessions: &'a Path,
        wanted: &'a RecallQuery<'a>,
        population: usize,
    ) -> PassageSearch<'a> {
        PassageSearch {
            index,
            sessions,
            wanted,
            population,
            matcher: WordMatcher::new(wanted.query),
            phrases: QuotedPhrases::of(wanted.query),
            dates: QueryDates::of(wanted.query, wanted.now),
            within: wanted.session.map_or(String::new(), |session| format!("{session}/")),
            files: SourceFiles::default(),
            descriptions: HashMap::new(),
        }
    }

    /// Finds the best passages that have the quoted phrases.
    fn run(&mut self) -> Result<RecallResults, SearchError> {
        let mut places: Vec<PassageHit> = Vec::new();
        // Texts that are shown beside a better passage.
        let mut shown = HashSet::new();
        // Forked sessions share entries, and adjacent chunks share lines.
        let mut seen = HashSet::new();
        let WindowHits { hits, lacks_words } = self.hits()?;
        for hit in hits {
            if places.len() >= self.wanted.limit {
                break;
            }
            if shown.contains(&hit.id) {
                continue;
            }
            let Some(mut place) = self.place(&hit) else { continue };
            if !seen.insert((place.entry, place.passage.text.clone())) {
                continue;
            }
            self.add_nearby(&hit, &mut place, &mut shown)?;
            shown.insert(hit.id);
            places.push(place);
        }
        self.count_lines(&mut places);
        let is_partial = lacks_words || !places.iter().any(|place| place.has_all_words);
        Ok(RecallResults { passages: places, is_partial, ..RecallResults::default() })
    }

    fn hits(&self) -> Result<WindowHits, SearchError> {
        let factor = match self.phrases.is_empty() {
            true => EXAMINED_FACTOR,
            false => PHRASE_EXAMINED_FACTOR,
        };
        let limit = self.wanted.limit.saturating_mul(factor).max(20);
        let required = self.phrases.to_query();
        let asks_for_newest = self
            .wanted
            .query
            .split(|letter: char| !letter.is_alphanumeric())
            .any(|word| NEWEST_WORDS.contains(&word.to_lowercase().as_str()));
        let bonus = if asks_for_newest { NEWEST_BONUS_MAX } else { RECENCY_BONUS_MAX };
        let found = self.index.find(&WindowQuery {
            query: self.wanted.query,
            prefix: &self.within,
            kind_weights: &KIND_WEIGHTS,
            time_factor: &|at| self.dates.factor(at) * recency_factor(at, self.wanted.now, bonus),
            population: self.population,
            required: &required,
            limit,
        })?;
        if found.hits.is_empty() && !self.dates.is_empty() && self.phrases.is_empty() {
            // A question for a day without any word that was said: the prompts of that day.
            let is_asked = |at: i64| self.dates.contain(at);
            let hits = self.index.texts_of_times(&self.within, PERSON_KIND, &is_asked, limit)?;
            return Ok(WindowHits { hits, ..found });
        }
        Ok(found)
    }

    fn place(&mut self, hit: &WindowHit) -> Option<PassageHit> {
        let file = self.sessions.join(&hit.sequence);
        let terms = SearchTerms {
            matcher: &self.matcher,
            phrases: &self.phrases,
            context_lines: self.wanted.context_lines,
        };
        let location = match hit.place.part {
            FILE_PART => find_in_text(&*self.files.reader(&file)?, hit.place.offset, &terms)?,
            _ => find_in_log(&*self.files.entry(&file, hit.place.offset)?, hit, &terms)?,
        };
        let PassageLocation { speaker, at, entry, offset, passage, has_phrases } = location;
        if !has_phrases || entry.is_some_and(|entry| self.is_ignored(entry)) {
            return None;
        }
        let at = at.or_else(|| modified(&file));
        let (session, agent) = session_and_agent(&hit.sequence);
        let description = self.description(session);
        Some(PassageHit {
            session: session.to_owned(),
            description,
            agent,
            speaker,
            at,
            entry,
            file,
            line: 0,
            offset,
            passage,
            nearby: NearbyTexts::default(),
            words: 0,
            has_all_words: hit.has_all_words,
            score: hit.score,
        })
    }

    fn is_ignored(&self, entry: EntryId) -> bool {
        self.wanted.caller.is_some_and(|caller| caller.ignored.contains(&entry))
    }

    /// Adds the texts around a passage that is the start or the end of its own, and counts the words of all.
    fn add_nearby(
        &self,
        hit: &WindowHit,
        place: &mut PassageHit,
        shown: &mut HashSet<i64>,
    ) -> Result<(), SearchError> {
        if hit.place.part != FILE_PART {
            let is_end = self.is_end(hit, &place.passage);
            let is_start = place.passage.character == 0 && !place.passage.is_cut_before;
            let [before, after] = self.index.neighbors(hit)?;
            let mut nearby = |neighbor: Option<WindowHit>, is_before: bool| {
                let neighbor = neighbor.filter(|neighbor| !shown.contains(&neighbor.id))?;
                let text = self.nearby_text(hit, &neighbor, is_before)?;
                if !text.is_cut_before && !text.is_cut_after {
                    shown.insert(neighbor.id);
                }
                Some(text)
            };
            place.nearby.before = before.filter(|_| is_start).and_then(|hit| nearby(Some(hit), true));
            place.nearby.after = after.filter(|_| is_end).and_then(|hit| nearby(Some(hit), false));
        }
        let texts = [place.nearby.before.as_ref(), place.nearby.after.as_ref()].into_iter().flatten();
        let texts = texts.map(|nearby| nearby.text.as_str()).chain([place.passage.text.as_str()]);
        let words: HashSet<usize> =
            texts.flat_map(|text| self.matcher.find_words(text)).map(|found| found.word).collect();
        place.words = words.len();
        Ok(())
    }

    /// Returns true if a passage reaches the end of the part of its entry.
    fn is_end(&self, hit: &WindowHit, passage: &Passage) -> bool {
        let Some(entry) = self.files.entry(&self.sessions.join(&hit.sequence), hit.place.offset) else {
            return false;
        };
        let part = entry.parts.get(hit.place.part as usize);
        part.is_some_and(|part| {
            let end = passage.character + passage.text.chars().count();
            !passage.is_cut_after && part.text.trim_end().chars().count() <= end
        })
    }

    /// Text of a neighbor: the end of a long one before a passage, the start of a long one after it. None within the same part of an entry, which context lines show.
    fn nearby_text(&self, hit: &WindowHit, neighbor: &WindowHit, is_before: bool) -> Option<NearbyText> {
        let is_same_part = (hit.place.offset, hit.place.part) == (neighbor.place.offset, neighbor.place.part);
        let entry = self.files.entry(&self.sessions.join(&neighbor.sequence), neighbor.place.offset)?;
        let part = entry.parts.get(neighbor.place.part as usize)?;
        if is_same_part || part.is_recall() || self.is_ignored(entry.entry.id) {
            return None;
        }
        let text = part.text.trim();
        let range = match text.len() {
            length if length <= NEARBY_BYTES_MAX => 0..length,
            length if is_before => text.ceil_char_boundary(length - NEARBY_BYTES_MAX)..length,
            _ => 0..text.floor_char_boundary(NEARBY_BYTES_MAX),
        };
        Some(NearbyText {
            speaker: part.speaker.clone(),
            at: entry.entry.at,
            entry: entry.entry.id,
            text: text[range.clone()].to_owned(),
            is_cut_before: range.start > 0,
            is_cut_after: range.end < text.len(),
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

    /// Counts the line numbers of passages.
    fn count_lines(&self, places: &mut [PassageHit]) {
        for place in places {
            let reader = self.files.reader(&place.file);
            place.line = reader.and_then(|reader| reader.line_number_at(place.offset).ok()).unwrap_or(0);
            if place.entry.is_none() {
                place.passage.line = usize::try_from(place.line).unwrap_or(usize::MAX);
            }
        }
    }
}

/// A passage and its position.
struct PassageLocation {
    speaker: PartSpeaker,
    at: Option<Timestamp>,
    entry: Option<EntryId>,
    offset: u64,
    passage: Passage,
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
    /// Best passage of a document, and whether the document has the phrases.
    fn passage(&self, text: &str, document: Range<usize>) -> (Passage, bool) {
        // A phrase may cross the border of two documents.
        let start = text.floor_char_boundary(document.start.saturating_sub(PHRASE_BYTES_MAX));
        let end = text.ceil_char_boundary((document.end + PHRASE_BYTES_MAX).min(text.len()));
        let around = text.get(start..end).unwrap_or_default();
        let has_phrases = self.phrases.are_in(around);
        let phrase = self.phrases.first_in(around).filter(|_| has_phrases);
        let within = phrase.map_or(document, |phrase| start + phrase.start..start + phrase.end);
        (passage(text, within, self.matcher, self.context_lines), has_phrases)
    }
}

/// Finds a passage in one part of an entry.
fn find_in_log(source: &SourceEntry, hit: &WindowHit, terms: &SearchTerms<'_>) -> Option<PassageLocation> {
    let part = source.parts.get(hit.place.part as usize).filter(|part| !part.is_recall())?;
    let (passage, has_phrases) = terms.passage(&part.text, stretch(&part.text, hit.place.start as usize));
    Some(PassageLocation {
        speaker: part.speaker.clone(),
        at: Some(source.entry.at),
        entry: Some(source.entry.id),
        offset: hit.place.offset,
        passage,
        has_phrases,
    })
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
    let (passage, has_phrases) = terms.passage(&text, stretch(&text, from));
    let before: usize = text.split('\n').take(passage.line - 1).map(|line| line.len() + 1).sum();
    let offset = start + (skip + before) as u64;
    let speaker = PartSpeaker::Output;
    Some(PassageLocation { speaker, at: None, entry: None, offset, passage, has_phrases })
}

/// Byte range of a document in its text.
fn stretch(text: &str, from: usize) -> Range<usize> {
    from.min(text.len())..(from + CHUNK).min(text.len())
}

/// Sorts by score, then newest first.
fn sort(places: &mut [PassageHit]) {
    places.sort_by(|one, other| {
        let by_place = || (other.at, &one.session, one.offset).cmp(&(one.at, &other.session, other.offset));
        other.score.total_cmp(&one.score).then_with(by_place)
    });
}

/// Recency factor of a score.
fn recency_factor(at: i64, now: Timestamp, bonus: f32) -> f32 {
    let days = now.milliseconds().saturating_sub(at).max(0) as f32 / DAY_MS;
    1.0 + bonus * 0.5_f32.powf(days / RECENCY_HALF_LIFE_DAYS)
}
