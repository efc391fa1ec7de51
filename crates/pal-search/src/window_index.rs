//! Full-text index of texts in sequence, such as the messages of a session, ranked together with their neighbors.
//!
//! A short message often lacks the words that the ones around it have. The score of a text therefore counts the words of
//! its neighbors as well, the less the farther they are. Words count once per text, so the index holds no positions and
//! no frequencies: it is small, and the lists of several words are read in milliseconds.

mod window_scores;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use rusqlite::types::ToSql;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::index_database::{SearchError, discard_database, memory_database, open_database};
use crate::near_terms::{NearTerm, has_term_start, nearest_term};
use crate::query_terms::{index_terms, query_terms, split_words};
use window_scores::{Stretch, WindowScores};

/// Version of the tables; another number means that the index is rebuilt.
const SCHEMA_VERSION: i64 = 300;
/// Milliseconds of a day: texts of different days are in different stretches.
const DAY_MS: i64 = 86_400_000;
/// Weight of a word that is found as the start of other words only.
const PREFIX_WEIGHT: f32 = 0.5;
/// Terms in more texts than this count only if the query has no rarer one: they say little, and their lists are long.
const COMMON_TEXTS: usize = 30_000;
/// Longest list of texts of one term that is read.
const TERM_TEXTS_MAX: usize = 400_000;

/// Full-text table.
const TERMS: &str = "term";

const TABLES: &str = "
    DROP TABLE IF EXISTS term;
    DROP TABLE IF EXISTS text;
    DROP TABLE IF EXISTS stretch;
    DROP TABLE IF EXISTS sequence;
    DROP TABLE IF EXISTS place;
    DROP TABLE IF EXISTS note;
    CREATE VIRTUAL TABLE term USING fts5(
        body, content='', contentless_delete=1, detail=none, tokenize='porter unicode61');
    CREATE TABLE text (id INTEGER PRIMARY KEY AUTOINCREMENT, offset INTEGER, part INTEGER, start INTEGER);
    CREATE TABLE sequence (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE);
    CREATE TABLE stretch (first INTEGER PRIMARY KEY, sequence INTEGER NOT NULL, at INTEGER NOT NULL,
        sizes BLOB NOT NULL);
    CREATE TABLE place (name BLOB NOT NULL, sequence INTEGER NOT NULL, offset INTEGER NOT NULL,
        PRIMARY KEY (name, sequence, offset)) WITHOUT ROWID;
    CREATE TABLE note (name TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;";

/// A full-text index of texts in sequences.
pub struct WindowIndex {
    connection: Connection,
}

/// A text to index.
#[derive(Clone, Copy, Debug)]
pub struct WindowText<'a> {
    /// Text; only its words are stored.
    pub text: &'a str,
    /// Position in its source.
    pub place: TextPlace,
    /// Kind of text, an index of [`WindowQuery::kind_weights`].
    pub kind: u8,
    /// Time in milliseconds.
    pub at: i64,
}

/// Position of a text in its source.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TextPlace {
    /// Byte offset in the source.
    pub offset: u64,
    /// Part of what is there.
    pub part: u32,
    /// Byte offset in the part.
    pub start: u32,
}

/// Parameters of a search.
#[derive(Clone, Copy)]
pub struct WindowQuery<'a> {
    /// Words in any order. There are no operators.
    pub query: &'a str,
    /// Prefix of the names of the sequences to search; empty for all.
    pub prefix: &'a str,
    /// Weight of each kind of text.
    pub kind_weights: &'a [f32],
    /// Factor of a text by its time in milliseconds.
    pub time_factor: &'a dyn Fn(i64) -> f32,
    /// Number of texts to assume at least, for an index of matching texts only.
    pub population: usize,
    /// Words that a text and its successor must contain together; empty for none.
    pub required: &'a str,
    /// Maximum number of hits.
    pub limit: usize,
}

/// Results of a search.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct WindowHits {
    /// Texts, best first.
    pub hits: Vec<WindowHit>,
    /// A word of the query is in no text, or only as the start of other words.
    pub lacks_words: bool,
}

/// A text that was found.
#[derive(Clone, PartialEq, Debug)]
pub struct WindowHit {
    /// Number of the text; neighbors in a sequence mostly have neighboring numbers.
    pub id: i64,
    /// Name of the sequence.
    pub sequence: String,
    /// Position in its source.
    pub place: TextPlace,
    /// Relevance; higher is better. Comparable within one index only.
    pub score: f64,
    /// The text and its neighbors contain all words.
    pub has_all_words: bool,
}

impl WindowIndex {
    /// Opens or creates an index. A corrupt index, or one of another version, is replaced by an empty one.
    pub fn open(path: &Path) -> Result<WindowIndex, SearchError> {
        Ok(WindowIndex { connection: open_database(path, SCHEMA_VERSION, TABLES)? })
    }

    /// Creates an index that lives in memory only.
    pub fn in_memory() -> Result<WindowIndex, SearchError> {
        Ok(WindowIndex { connection: memory_database(SCHEMA_VERSION, TABLES)? })
    }

    /// Deletes an index from disk. Processes that have it open keep their view.
    pub fn discard(path: &Path) {
        discard_database(path);
    }

    /// Runs `work` in one write transaction: everything is committed or nothing. No other process can write
    /// meanwhile.
    pub fn change<T, E: From<SearchError>>(
        &mut self,
        work: impl FnOnce(&mut WindowTransaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let begun = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let mut changing = WindowTransaction { transaction: begun.map_err(SearchError)? };
        let done = work(&mut changing)?;
        changing.transaction.commit().map_err(SearchError)?;
        Ok(done)
    }

    /// All notes whose names start with a prefix, by name.
    pub fn notes(&self, beginning: &str) -> Result<HashMap<String, String>, SearchError> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT name, text FROM note WHERE substr(name, 1, length(?1)) = ?1")?;
        let rows = statement.query_map([beginning], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Sequences and offsets that were given this name.
    pub fn places(&self, name: &[u8]) -> Result<Vec<(String, u64)>, SearchError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT sequence.name, place.offset FROM place JOIN sequence ON sequence.id = place.sequence \
             WHERE place.name = ?1 ORDER BY place.sequence, place.offset",
        )?;
        let rows = statement.query_map([name], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns true if a word is indexed, in any of its forms, or is the start of an indexed term.
    pub fn has_word(&self, word: &str) -> Result<bool, SearchError> {
        let terms = query_terms(word);
        for term in &terms {
            if self.texts_with(&quoted(term), 1)?.is_empty()
                && !has_term_start(&self.connection, TERMS, term)?
            {
                return Ok(false);
            }
        }
        Ok(!terms.is_empty())
    }

    /// Finds the indexed term nearest to a misspelt word: the most frequent one at the smallest distance, with the same
    /// first letter. None if the word itself is indexed, or nothing is near.
    pub fn nearest_term(&self, word: &str) -> Result<Option<NearTerm>, SearchError> {
        if self.has_word(word)? {
            return Ok(None);
        }
        nearest_term(&self.connection, TERMS, &word.to_lowercase())
    }

    /// Texts that match an FTS5 query, in order.
    fn texts_with(&self, query: &str, limit: usize) -> Result<Vec<usize>, SearchError> {
        let mut statement =
            self.connection.prepare_cached("SELECT rowid FROM term WHERE term MATCH ?1 LIMIT ?2")?;
        let rows = statement.query_map(params![query, limit as i64], |row| row.get::<_, i64>(0))?;
        let ids: Result<Vec<usize>, _> = rows.map(|id| id.map(|id| id as usize)).collect();
        Ok(ids?)
    }

    /// Texts of the terms of a query, and true if a term is in none. Leaves out common terms if there are rarer ones.
    fn term_lists(&self, query: &str) -> Result<(Vec<TermList>, bool), SearchError> {
        let terms = query_terms(query);
        let mut lacks_words = false;
        let mut lists = Vec::new();
        for term in &terms {
            let mut list = TermList { texts: self.texts_with(&quoted(term), COMMON_TEXTS + 1)?, weight: 1.0 };
            if list.texts.is_empty() {
                list =
                    TermList { texts: self.texts_with(&prefix(term), COMMON_TEXTS)?, weight: PREFIX_WEIGHT };
                lacks_words = true;
            }
            lists.push(list);
        }
        lists.retain(|list| list.texts.len() <= COMMON_TEXTS);
        if !terms.is_empty() && lists.iter().all(|list| list.texts.is_empty()) {
            lists.clear();
            for term in &terms {
                lists.push(TermList { texts: self.texts_with(&quoted(term), TERM_TEXTS_MAX)?, weight: 1.0 });
            }
        }
        Ok((lists, lacks_words))
    }

    /// Texts that contain all words of a query together with their successor.
    fn texts_with_all(&self, query: &str) -> Result<Vec<usize>, SearchError> {
        let mut common: Option<Vec<usize>> = None;
        for term in query_terms(query) {
            let texts = self.texts_with(&quoted(&term), TERM_TEXTS_MAX)?;
            let has =
                |text: &usize| texts.binary_search(text).is_ok() || texts.binary_search(&(text + 1)).is_ok();
            common = Some(match common {
                Some(mut common) => {
                    common.retain(has);
                    common
                }
                None => {
                    let mut either: Vec<usize> =
                        texts.iter().flat_map(|text| [text.saturating_sub(1), *text]).collect();
                    either.dedup();
                    either
                }
            });
        }
        Ok(common.unwrap_or_default())
    }

    /// Finds the texts that match a query, best first.
    pub fn find(&self, wanted: &WindowQuery<'_>) -> Result<WindowHits, SearchError> {
        let stretches = self.stretches()?;
        let mut scores = WindowScores::new(&stretches, wanted.population);
        let (mut lists, lacks_words) = self.term_lists(wanted.query)?;
        lists.sort_by_key(|list| list.texts.len());
        for list in &lists {
            scores.add_term(&list.texts, list.weight);
        }
        if !wanted.required.is_empty() {
            scores.restrict(&self.texts_with_all(wanted.required)?);
        }
        let names = self.sequence_names()?;
        let is_searched = |stretch: &Stretch| {
            names.get(&stretch.sequence).is_some_and(|name| name.starts_with(wanted.prefix))
        };
        let best = scores.best(
            &stretches,
            |stretch| if is_searched(stretch) { (wanted.time_factor)(stretch.at) } else { 0.0 },
            wanted.kind_weights,
            wanted.limit,
        );
        let mut hits = Vec::new();
        for (id, score) in best {
            let mut hit = self.hit(id, score, &stretches, &names)?;
            hit.has_all_words = !lacks_words && has_all_terms(scores.neighborhood(id), &lists);
            hits.push(hit);
        }
        Ok(WindowHits { hits, lacks_words })
    }

    /// First indexed texts of a kind within the times that `is_asked` accepts.
    pub fn texts_of_times(
        &self,
        prefix: &str,
        kind: u8,
        is_asked: &dyn Fn(i64) -> bool,
        limit: usize,
    ) -> Result<Vec<WindowHit>, SearchError> {
        let stretches = self.stretches()?;
        let names = self.sequence_names()?;
        let mut found = Vec::new();
        for stretch in stretches.iter().filter(|stretch| is_asked(stretch.at)) {
            if names.get(&stretch.sequence).is_some_and(|name| name.starts_with(prefix)) {
                let texts = stretch.sizes.chunks_exact(2).enumerate();
                found.extend(texts.filter(|(_, size)| size[1] == kind).map(|(at, _)| stretch.first + at));
            }
        }
        found.truncate(limit);
        found.into_iter().map(|id| self.hit(id, 1.0, &stretches, &names)).collect()
    }

    /// Texts before and after one in its sequence.
    pub fn neighbors(&self, hit: &WindowHit) -> Result<[Option<WindowHit>; 2], SearchError> {
        let of = |id: i64| -> Result<Option<WindowHit>, SearchError> {
            let mut statement = self.connection.prepare_cached(
                "SELECT sequence.name, stretch.first, length(stretch.sizes) / 2 FROM stretch \
                 JOIN sequence ON sequence.id = stretch.sequence WHERE first <= ?1 ORDER BY first DESC LIMIT 1",
            )?;
            let row = statement.query_row([id], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
            });
            let Some((name, first, count)) = row.optional()? else { return Ok(None) };
            if name != hit.sequence || id >= first + count {
                return Ok(None);
            }
            Ok(Some(WindowHit { id, place: self.place(id)?, ..hit.clone() }))
        };
        Ok([of(hit.id - 1)?, of(hit.id + 1)?])
    }

    fn place(&self, id: i64) -> Result<TextPlace, SearchError> {
        let mut statement =
            self.connection.prepare_cached("SELECT offset, part, start FROM text WHERE id = ?1")?;
        Ok(statement.query_row([id], |row| {
            Ok(TextPlace { offset: row.get::<_, i64>(0)? as u64, part: row.get(1)?, start: row.get(2)? })
        })?)
    }

    fn hit(
        &self,
        id: usize,
        score: f32,
        stretches: &[Stretch],
        names: &BTreeMap<i64, String>,
    ) -> Result<WindowHit, SearchError> {
        let at = stretches.partition_point(|stretch| stretch.first <= id).saturating_sub(1);
        let sequence = stretches.get(at).and_then(|stretch| names.get(&stretch.sequence));
        let id = id as i64;
        Ok(WindowHit {
            id,
            sequence: sequence.cloned().unwrap_or_default(),
            place: self.place(id)?,
            score: f64::from(score),
            has_all_words: false,
        })
    }

    fn stretches(&self) -> Result<Vec<Stretch>, SearchError> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT first, sequence, at, sizes FROM stretch ORDER BY first")?;
        let rows = statement.query_map([], |row| {
            let first: i64 = row.get(0)?;
            Ok(Stretch { first: first as usize, sequence: row.get(1)?, at: row.get(2)?, sizes: row.get(3)? })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn sequence_names(&self) -> Result<BTreeMap<i64, String>, SearchError> {
        let mut statement = self.connection.prepare_cached("SELECT id, name FROM sequence")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

/// Texts that contain a term, and the weight of the term.
struct TermList {
    texts: Vec<usize>,
    weight: f32,
}

/// Returns true if each list has a text of a range.
fn has_all_terms((first, last): (usize, usize), lists: &[TermList]) -> bool {
    lists.iter().all(|TermList { texts, .. }| {
        let at = texts.partition_point(|text| *text < first);
        texts.get(at).is_some_and(|text| *text <= last)
    })
}

/// A quoted term is never an operator; no term contains a quotation mark.
fn quoted(term: &str) -> String {
    format!("\"{term}\"")
}

fn prefix(term: &str) -> String {
    format!("\"{term}\" *")
}

/// A write transaction on an index.
pub struct WindowTransaction<'a> {
    transaction: Transaction<'a>,
}

impl WindowTransaction<'_> {
    /// Appends texts to a sequence.
    pub fn add_texts(&mut self, sequence: &str, texts: &[WindowText<'_>]) -> Result<(), SearchError> {
        if texts.is_empty() {
            return Ok(());
        }
        let sequence = self.sequence(sequence)?;
        let day = |text: &WindowText<'_>| text.at.div_euclid(DAY_MS);
        for texts in texts.chunk_by(|one, other| day(one) == day(other)) {
            self.add_stretch(sequence, texts)?;
        }
        Ok(())
    }

    fn add_stretch(&mut self, sequence: i64, texts: &[WindowText<'_>]) -> Result<(), SearchError> {
        let mut add_text =
            self.transaction.prepare_cached("INSERT INTO text (offset, part, start) VALUES (?1, ?2, ?3)")?;
        let mut add_terms =
            self.transaction.prepare_cached("INSERT INTO term (rowid, body) VALUES (?1, ?2)")?;
        let mut first = None;
        let mut sizes = Vec::with_capacity(texts.len() * 2);
        for text in texts {
            let id = add_text.insert(params![text.place.offset as i64, text.place.part, text.place.start])?;
            add_terms.execute(params![id, index_terms(text.text)])?;
            first = first.or(Some(id));
            let words = split_words(text.text).take(usize::from(u8::MAX)).count();
            sizes.extend([words.max(1) as u8, text.kind]);
        }
        let at = texts.first().map_or(0, |text| text.at);
        self.transaction
            .prepare_cached("INSERT INTO stretch (first, sequence, at, sizes) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![first, sequence, at, sizes])?;
        Ok(())
    }

    /// Number of a sequence, which is created if it is new.
    fn sequence(&mut self, name: &str) -> Result<i64, SearchError> {
        let mut add = self.transaction.prepare_cached(
            "INSERT INTO sequence (name) VALUES (?1) ON CONFLICT (name) DO UPDATE SET name = ?1 RETURNING id",
        )?;
        Ok(add.query_row([name], |row| row.get(0))?)
    }

    /// Removes a sequence with its texts and places.
    pub fn remove_sequence(&mut self, name: &str) -> Result<(), SearchError> {
        let known = "SELECT id FROM sequence WHERE name = ?1";
        let known: Option<i64> = self.transaction.query_row(known, [name], |row| row.get(0)).optional()?;
        let Some(sequence) = known else { return Ok(()) };
        self.remove_texts_from(name, 0)?;
        self.transaction.execute("DELETE FROM place WHERE sequence = ?1", [sequence])?;
        self.transaction.execute("DELETE FROM sequence WHERE id = ?1", [sequence])?;
        Ok(())
    }

    /// Removes the texts of a sequence from an offset in its source on.
    pub fn remove_texts_from(&mut self, name: &str, offset: u64) -> Result<(), SearchError> {
        let stretches: Vec<(i64, Vec<u8>)> = {
            let mut statement = self.transaction.prepare_cached(
                "SELECT first, sizes FROM stretch WHERE sequence = (SELECT id FROM sequence WHERE name = ?1) \
                 ORDER BY first DESC",
            )?;
            let rows = statement.query_map([name], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect::<Result<_, _>>()?
        };
        for (first, sizes) in stretches {
            let count = (sizes.len() / 2) as i64;
            let range: [&dyn ToSql; 3] = [&first, &(first + count), &(offset as i64)];
            let within = "id >= ?1 AND id < ?2 AND offset >= ?3";
            self.transaction.execute(
                &format!("DELETE FROM term WHERE rowid IN (SELECT id FROM text WHERE {within})"),
                &range[..],
            )?;
            let removed =
                self.transaction.execute(&format!("DELETE FROM text WHERE {within}"), &range[..])?;
            // Offsets grow along a sequence.
            let left = sizes.len().saturating_sub(removed * 2);
            match left {
                0 => self.transaction.execute("DELETE FROM stretch WHERE first = ?1", [first])?,
                _ if removed == 0 => break,
                _ => self.transaction.execute(
                    "UPDATE stretch SET sizes = ?2 WHERE first = ?1",
                    params![first, &sizes[..left]],
                )?,
            };
        }
        Ok(())
    }

    /// Gives an offset of a sequence a name.
    pub fn set_place(&mut self, name: &[u8], sequence: &str, offset: u64) -> Result<(), SearchError> {
        let sequence = self.sequence(sequence)?;
        let mut statement = self
            .transaction
            .prepare_cached("INSERT OR IGNORE INTO place (name, sequence, offset) VALUES (?1, ?2, ?3)")?;
        statement.execute(params![name, sequence, offset as i64])?;
        Ok(())
    }

    /// Reads a note.
    pub fn note(&self, name: &str) -> Result<Option<String>, SearchError> {
        let mut statement = self.transaction.prepare_cached("SELECT text FROM note WHERE name = ?1")?;
        Ok(statement.query_row([name], |row| row.get(0)).optional()?)
    }

    /// Writes or replaces a note.
    pub fn set_note(&mut self, name: &str, text: &str) -> Result<(), SearchError> {
        let mut statement =
            self.transaction.prepare_cached("INSERT OR REPLACE INTO note (name, text) VALUES (?1, ?2)")?;
        statement.execute([name, text])?;
        Ok(())
    }

    /// Removes a note, if it exists.
    pub fn remove_note(&mut self, name: &str) -> Result<(), SearchError> {
        self.transaction.prepare_cached("DELETE FROM note WHERE name = ?1")?.execute([name])?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str, offset: u64) -> WindowText<'_> {
        WindowText { text, place: TextPlace { offset, part: 0, start: 0 }, kind: 0, at: 0 }
    }

    fn index_of(sequences: &[(&str, &[&str])]) -> WindowIndex {
        let mut index = WindowIndex::in_memory().unwrap();
        for (name, texts) in sequences {
            let texts: Vec<WindowText<'_>> =
                texts.iter().zip(0..).map(|(words, at)| text(words, at)).collect();
            index.change(|changing| changing.add_texts(name, &texts)).unwrap();
        }
        index
    }

    fn query(words: &str) -> WindowQuery<'_> {
        WindowQuery {
            query: words,
            prefix: "",
            kind_weights: &[],
            time_factor: &|_| 1.0,
            population: 0,
            required: "",
            limit: 20,
        }
    }

    /// Sequence and offset of the hits.
    fn found(index: &WindowIndex, wanted: &WindowQuery<'_>) -> Vec<(String, u64)> {
        let found = index.find(wanted).unwrap();
        found.hits.into_iter().map(|hit| (hit.sequence, hit.place.offset)).collect()
    }

    fn offsets(index: &WindowIndex, words: &str) -> Vec<u64> {
        found(index, &query(words)).into_iter().map(|(_, offset)| offset).collect()
    }

    #[test]
    fn words_of_neighbors_count_within_a_sequence() {
        let index = index_of(&[
            ("a", &["which harbour did she mean", "the one in Lisbon", "thanks", "bye"]),
            ("b", &["Lisbon is far", &"and so on ".repeat(60), "the harbour is closed"]),
        ]);
        let hits = found(&index, &query("harbour Lisbon"));
        assert_eq!(hits[0].0, "a", "both words, side by side: {hits:?}");
        assert!(hits.iter().all(|(_, at)| *at != 3), "a text without any of the words is no hit: {hits:?}");
        let next = index_of(&[("a", &["harbour"]), ("b", &["Lisbon"])]);
        assert_eq!(offsets(&next, "harbour").len(), 1, "another sequence is no neighbor");
    }

    #[test]
    fn rare_words_count_more_than_many_common_ones() {
        let common = vec!["cached requirement satisfied in the cache"; 30];
        let mut texts = common.clone();
        texts.push("requirement of the zeppelin");
        let index = index_of(&[("a", &texts)]);
        assert_eq!(offsets(&index, "cached requirement satisfied zeppelin")[0], 30);
    }

    #[test]
    fn kinds_times_and_prefixes_restrict_and_weigh() {
        let mut index = WindowIndex::in_memory().unwrap();
        let day =
            |at: i64, kind: u8| WindowText { at: at * DAY_MS, kind, ..text("the same words", at as u64) };
        index.change(|changing| changing.add_texts("one/log", &[day(1, 0), day(2, 1)])).unwrap();
        index.change(|changing| changing.add_texts("two/log", &[day(3, 0)])).unwrap();
        let wanted = WindowQuery { prefix: "one/", kind_weights: &[1.0, 2.0], ..query("same words") };
        assert_eq!(found(&index, &wanted), [(String::from("one/log"), 2), (String::from("one/log"), 1)]);
        let wanted = WindowQuery {
            time_factor: &|at| if at >= 3 * DAY_MS { 2.0 } else { 1.0 },
            ..query("same words")
        };
        assert_eq!(found(&index, &wanted)[0].1, 3);
        let of_day = index.texts_of_times("", 1, &|at| at == 2 * DAY_MS, 9).unwrap();
        assert_eq!(of_day.iter().map(|hit| hit.place.offset).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn all_words_prefixes_and_identifiers_are_found() {
        let index = index_of(&[("a", &["the parser drops comments", "x", "comments are kept in readToken"])]);
        let all = |words: &str| found(&index, &WindowQuery { required: words, ..query(words) });
        assert_eq!(all("comment parsers").first(), Some(&(String::from("a"), 0)));
        assert_eq!(all("parser readToken"), []);
        assert_eq!(all("parser x"), [(String::from("a"), 0)], "with its successor");
        assert_eq!(offsets(&index, "token")[0], 2, "a part of an identifier");
        let begun = index.find(&query("toke")).unwrap();
        assert!(begun.lacks_words && begun.hits[0].place.offset == 2, "the start of a word: {begun:?}");
        assert!(!index.find(&query("token")).unwrap().lacks_words);
        let whole = |words: &str| index.find(&query(words)).unwrap().hits[0].has_all_words;
        assert!(
            !index_of(&[("a", &["parser"]), ("b", &["x"])]).find(&query("parser x")).unwrap().hits[0]
                .has_all_words
        );
        assert!(whole("parser x") && !whole("parser readToken") && !whole("parser zebra"));
    }

    #[test]
    fn removed_texts_are_gone() {
        let mut index = index_of(&[("a", &["one fish", "two fish"]), ("b", &["red fish"])]);
        index.change(|changing| changing.remove_texts_from("a", 1)).unwrap();
        assert_eq!(offsets(&index, "two"), [0; 0]);
        index.change(|changing| changing.add_texts("a", &[text("three fish", 1)])).unwrap();
        assert_eq!(found(&index, &query("three")), [(String::from("a"), 1)]);
        index.change(|changing| changing.set_place(b"id", "a", 1)).unwrap();
        assert_eq!(index.places(b"id").unwrap(), [(String::from("a"), 1)]);
        index.change(|changing| changing.remove_sequence("a")).unwrap();
        assert_eq!(found(&index, &query("fish")), [(String::from("b"), 0)]);
        assert!(index.places(b"id").unwrap().is_empty());
    }

    #[test]
    fn neighbors_are_of_the_same_sequence() {
        let index = index_of(&[("a", &["one", "two"]), ("b", &["three"])]);
        let hit = index.find(&query("two")).unwrap().hits.remove(0);
        let [before, after] = index.neighbors(&hit).unwrap();
        assert_eq!((before.map(|hit| hit.place.offset), after), (Some(0), None));
    }

    #[test]
    fn notes_and_texts_change_atomically() {
        let mut index = WindowIndex::in_memory().unwrap();
        let add = |changing: &mut WindowTransaction<'_>| -> Result<(), SearchError> {
            changing.add_texts("log", &[text("word", 0)])?;
            changing.set_note("log#", "17")
        };
        let failed: Result<(), SearchError> = index.change(|changing| {
            add(changing)?;
            Err(SearchError(rusqlite::Error::InvalidQuery))
        });
        assert!(failed.is_err());
        assert!(offsets(&index, "word").is_empty() && index.notes("").unwrap().is_empty());
        index.change(add).unwrap();
        assert_eq!((offsets(&index, "word").len(), index.notes("log").unwrap()["log#"].as_str()), (1, "17"));
        index.change(|changing| changing.remove_note("log#")).unwrap();
        assert!(index.notes("").unwrap().is_empty());
    }

    #[test]
    fn misspelt_words_are_near_an_indexed_term() {
        let index = index_of(&[
            ("a", &["the retry policy of the migration and its connections, with documentation"]),
            ("b", &["retry again, retired ones aside"]),
            ("c", &["the keeper of the lighthouse puts out the light, and every other light"]),
        ]);
        for (word, expected) in [
            // `light` is no stem of it: `hose` is no ending.
            ("lighthose", Some("lighthous")),
            ("retyr", Some("retri")),
            ("polciy", Some("polici")),
            ("migraton", Some("migrat")),
            ("conections", Some("connect")),
            // Its stem by the rules is `documen`, with which another term starts.
            ("documenation", Some("document")),
            ("docu", None),
            ("retry", None),
            ("migrations", None),
            ("xyzzy", None),
            ("the", None),
            ("12345", None),
            ("", None),
        ] {
            let near = index.nearest_term(word).unwrap().map(|near| near.term);
            assert_eq!(near.as_deref(), expected, "{word}");
        }
    }
}
