//! SQLite tables of the index: full text, documents, and notes of the caller.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{
    Connection, ErrorCode, OptionalExtension, Transaction, TransactionBehavior, params, params_from_iter,
};

use crate::query_terms::{MatchMode, index_terms, query};

/// Maximum wait for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Version of the tables; another number means that the index is rebuilt.
const SCHEMA_VERSION: i64 = 2;

/// A full-text index of documents by key.
pub struct SearchIndex {
    connection: Connection,
    fields: usize,
}

/// A document to index.
#[derive(Clone, Copy, Debug)]
pub struct SearchDocument<'a> {
    /// Unique key.
    pub key: &'a str,
    /// Version marker that changes with the document, such as a hash or a time with a size.
    pub stamp: &'a str,
    /// Texts, one per field of the index.
    pub fields: &'a [&'a str],
}

/// A search result.
#[derive(Clone, PartialEq, Debug)]
pub struct SearchHit {
    /// Key of the document.
    pub key: String,
    /// Relevance; higher is better. Comparable within one search only.
    pub score: f64,
}

/// An indexed term near a misspelt word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NearTerm {
    /// The term, which is a stem.
    pub term: String,
    /// Edits between the word and the term.
    pub distance: usize,
    /// Number of documents with the term.
    pub documents: i64,
}

impl NearTerm {
    /// Returns true if the term is nearer than another one, or as near and more frequent.
    pub fn is_better_than(&self, other: &NearTerm) -> bool {
        (self.distance, -self.documents) < (other.distance, -other.documents)
    }
}

/// Shortest word that is corrected.
const CORRECTED_CHARS_MIN: usize = 4;
/// Longest ending that the stemmer cuts off a word.
const ENDING_CHARS_MAX: usize = 4;

/// Parameters of a search.
#[derive(Clone, Copy, Debug)]
pub struct SearchQuery<'a> {
    /// Words in any order. There are no operators.
    pub query: &'a str,
    /// Which of the words a document must contain.
    pub mode: MatchMode,
    /// Prefix of the keys to search; empty for all.
    pub key_prefix: &'a str,
    /// Weight of each field.
    pub weights: &'a [f64],
    /// Maximum number of hits.
    pub limit: usize,
}

/// The index cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("search index error: {0}; delete the index file, and pal rebuilds it")]
pub struct SearchError(#[from] rusqlite::Error);

impl SearchError {
    /// Reports whether the file is not a valid index and has to be rebuilt.
    pub fn is_corrupt(&self) -> bool {
        matches!(self.0.sqlite_error_code(), Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt))
    }

    /// Reports whether waiting for another process timed out.
    pub fn is_busy(&self) -> bool {
        matches!(self.0.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
    }
}

impl SearchIndex {
    /// Opens or creates an index with this number of fields. A corrupt index, or one of another version, is
    /// replaced by an empty one.
    pub fn open(path: &Path, fields: usize) -> Result<SearchIndex, SearchError> {
        // Restrict the mode; SQLite gives its side files the same one. Errors show up in the `open` that
        // follows.
        let _ = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
        match SearchIndex::prepare(Connection::open(path)?, fields) {
            Ok(index) => Ok(index),
            Err(error) if !error.is_corrupt() => Err(error),
            Err(_) => {
                SearchIndex::discard(path);
                SearchIndex::prepare(Connection::open(path)?, fields)
            }
        }
    }

    /// Deletes an index from disk. Processes that have it open keep their view.
    pub fn discard(path: &Path) {
        for ending in ["", "-wal", "-shm"] {
            let mut file = path.as_os_str().to_owned();
            file.push(ending);
            // The next `open` reports a file that cannot be removed.
            let _ = std::fs::remove_file(file);
        }
    }

    /// Creates an index that lives in memory only.
    pub fn in_memory(fields: usize) -> Result<SearchIndex, SearchError> {
        SearchIndex::prepare(Connection::open_in_memory()?, fields)
    }

    fn prepare(connection: Connection, fields: usize) -> Result<SearchIndex, SearchError> {
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        // The index can be rebuilt, so it need not survive a power failure.
        connection.pragma_update(None, "synchronous", "off")?;
        let form = SCHEMA_VERSION * 100 + fields as i64;
        let found = |connection: &Connection| -> rusqlite::Result<i64> {
            connection.pragma_query_value(None, "user_version", |row| row.get(0))
        };
        if found(&connection)? != form {
            // Another process may create the tables at the same time; check again inside the transaction.
            let transaction = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate)?;
            if found(&transaction)? != form {
                transaction.execute_batch(&tables(fields))?;
                transaction.pragma_update(None, "user_version", form)?;
            }
            transaction.commit()?;
        }
        Ok(SearchIndex { connection, fields })
    }

    /// Stamps of all documents by key.
    pub fn stamps(&self) -> Result<HashMap<String, String>, SearchError> {
        let mut statement = self.connection.prepare_cached("SELECT key, stamp FROM document")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Adds or replaces documents, atomically.
    pub fn put(&mut self, documents: &[SearchDocument<'_>]) -> Result<(), SearchError> {
        self.change(|changing| documents.iter().try_for_each(|document| changing.put(document)))
    }

    /// Removes documents; ignores unknown keys.
    pub fn remove(&mut self, keys: &[&str]) -> Result<(), SearchError> {
        self.change(|changing| keys.iter().try_for_each(|key| changing.remove(key)))
    }

    /// Runs `work` in one write transaction: everything is committed or nothing. No other process can write
    /// meanwhile.
    pub fn change<T, E: From<SearchError>>(
        &mut self,
        work: impl FnOnce(&mut IndexTransaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let fields = self.fields;
        let begun = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let mut changing = IndexTransaction { transaction: begun.map_err(SearchError)?, fields };
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

    /// Keys of the documents with this stamp, in insertion order.
    pub fn keys_with_stamp(&self, stamp: &str) -> Result<Vec<String>, SearchError> {
        let mut statement =
            self.connection.prepare_cached("SELECT key FROM document WHERE stamp = ?1 ORDER BY id")?;
        let rows = statement.query_map([stamp], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Finds the documents with any of the words, best first.
    pub fn search(
        &self,
        question: &str,
        weights: &[f64],
        most: usize,
    ) -> Result<Vec<SearchHit>, SearchError> {
        self.find(&SearchQuery {
            query: question,
            mode: MatchMode::Any,
            key_prefix: "",
            weights,
            limit: most,
        })
    }

    /// Returns true if a word of a query is indexed, in any of its forms, or is the start of an indexed term.
    pub fn has_word(&self, word: &str) -> Result<bool, SearchError> {
        let word = word.to_lowercase();
        let known =
            SearchQuery { query: &word, mode: MatchMode::All, key_prefix: "", weights: &[], limit: 1 };
        if !self.find(&known)?.is_empty() {
            return Ok(true);
        }
        self.create_vocabulary()?;
        // A prefix query would stem the word first: `documenation` would be the start of `document`.
        let mut statement = self
            .connection
            .prepare_cached("SELECT 1 FROM temp.vocabulary WHERE term >= ?1 AND term < ?2 LIMIT 1")?;
        Ok(statement.exists(params![word, format!("{word}\u{10ffff}")])?)
    }

    /// Finds the indexed term nearest to a misspelt word: the most frequent one at the smallest distance, with the same
    /// first letter. None if the word itself is indexed, or nothing is near.
    pub fn nearest_term(&self, word: &str) -> Result<Option<NearTerm>, SearchError> {
        let word = word.to_lowercase();
        let length = word.chars().count();
        let Some(first) = word.chars().next().filter(|first| first.is_alphabetic()) else { return Ok(None) };
        if length < CORRECTED_CHARS_MIN || self.has_word(&word)? {
            return Ok(None);
        }
        let distance_max = if length < 6 { 1 } else { 2 };
        let mut statement = self.connection.prepare_cached(
            "SELECT term, doc FROM temp.vocabulary WHERE term >= ?1 AND term < ?2 AND length(term) BETWEEN ?3 AND ?4",
        )?;
        let end = char::from_u32(first as u32 + 1).unwrap_or(char::MAX);
        // Terms are stems, which may be shorter than the word.
        let lengths = (
            length.saturating_sub(distance_max + ENDING_CHARS_MAX).max(3) as i64,
            (length + distance_max) as i64,
        );
        let rows = statement
            .query_map(params![first.to_string(), end.to_string(), lengths.0, lengths.1], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
            })?;
        let mut best: Option<NearTerm> = None;
        for row in rows {
            let (term, documents) = row?;
            let near = NearTerm { distance: stem_distance(&word, &term), documents, term };
            if near.distance <= distance_max && best.as_ref().is_none_or(|best| near.is_better_than(best)) {
                best = Some(near);
            }
        }
        Ok(best)
    }

    fn create_vocabulary(&self) -> Result<(), SearchError> {
        self.connection.execute_batch(
            "CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab('main', 'text', 'row')",
        )?;
        Ok(())
    }

    /// Finds the documents that match a query, best first.
    pub fn find(&self, wanted: &SearchQuery<'_>) -> Result<Vec<SearchHit>, SearchError> {
        let Some(query) = query(wanted.query, wanted.mode) else { return Ok(Vec::new()) };
        let weights: Vec<String> = (0..self.fields)
            .map(|field| wanted.weights.get(field).copied().unwrap_or(1.0).to_string())
            .collect();
        let mut statement = self.connection.prepare_cached(&format!(
            "SELECT document.key, bm25(text, {}) AS rank FROM text JOIN document ON document.id = text.rowid \
             WHERE text MATCH ?1 AND substr(document.key, 1, length(?2)) = ?2 ORDER BY rank, document.key LIMIT ?3",
            weights.join(", ")
        ))?;
        let most = i64::try_from(wanted.limit).unwrap_or(i64::MAX);
        let rows = statement.query_map(params![query, wanted.key_prefix, most], |row| {
            let rank: f64 = row.get(1)?;
            Ok(SearchHit { key: row.get(0)?, score: -rank })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

/// A write transaction on an index.
pub struct IndexTransaction<'a> {
    transaction: Transaction<'a>,
    fields: usize,
}

impl IndexTransaction<'_> {
    /// Adds or replaces a document.
    pub fn put(&mut self, document: &SearchDocument<'_>) -> Result<(), SearchError> {
        let fields = self.fields;
        self.transaction.prepare_cached(FORGET_TEXT)?.execute(params![document.key])?;
        let mut note = self.transaction.prepare_cached(
            "INSERT INTO document (key, stamp) VALUES (?1, ?2) \
             ON CONFLICT (key) DO UPDATE SET stamp = ?2 RETURNING id",
        )?;
        let id: i64 = note.query_row(params![document.key, document.stamp], |row| row.get(0))?;
        let places: Vec<String> = (0..fields).map(|field| format!("?{}", field + 2)).collect();
        let mut add = self.transaction.prepare_cached(&format!(
            "INSERT INTO text (rowid, {}) VALUES (?1, {})",
            columns(fields),
            places.join(", ")
        ))?;
        let texts =
            (0..fields).map(|field| index_terms(document.fields.get(field).copied().unwrap_or_default()));
        let values = std::iter::once(rusqlite::types::Value::from(id)).chain(texts.map(Into::into));
        add.execute(params_from_iter(values))?;
        Ok(())
    }

    /// Removes a document, if it exists.
    pub fn remove(&mut self, key: &str) -> Result<(), SearchError> {
        self.transaction.prepare_cached(FORGET_TEXT)?.execute([key])?;
        self.transaction.prepare_cached("DELETE FROM document WHERE key = ?1")?.execute([key])?;
        Ok(())
    }

    /// Removes all documents whose keys, and all notes whose names, start with a prefix.
    pub fn remove_prefix(&mut self, beginning: &str) -> Result<(), SearchError> {
        let is_so = |column: &str| format!("substr({column}, 1, length(?1)) = ?1");
        let ids = format!("SELECT id FROM document WHERE {}", is_so("key"));
        self.transaction.execute(&format!("DELETE FROM text WHERE rowid IN ({ids})"), [beginning])?;
        self.transaction.execute(&format!("DELETE FROM document WHERE {}", is_so("key")), [beginning])?;
        self.transaction.execute(&format!("DELETE FROM note WHERE {}", is_so("name")), [beginning])?;
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
}

/// Distance between a word and a stem. The stemmer turns a last `y` into `i` and cuts endings off; cutting one off the word
/// counts as an edit, and cutting anything else off as one for each letter.
fn stem_distance(word: &str, stem: &str) -> usize {
    let (letters, mut stem): (Vec<char>, Vec<char>) = (word.chars().collect(), stem.chars().collect());
    if let Some(last) = stem.last_mut().filter(|last| **last == 'i') {
        *last = 'y';
    }
    let cut = letters.len().saturating_sub(ENDING_CHARS_MAX).max(CORRECTED_CHARS_MIN);
    (cut..=letters.len())
        .map(|end| edit_distance(&letters[..end], &stem) + ending_cost(&letters[end..]))
        .min()
        .unwrap_or(usize::MAX)
}

/// Endings of more than two letters that the stemmer cuts off.
const ENDINGS: [&str; 30] = [
    "able", "ably", "ally", "ance", "ate", "ated", "ates", "ator", "ation", "ence", "ers", "ful", "ible",
    "ied", "ies", "ing", "ings", "ion", "ions", "ise", "ism", "ity", "ive", "ize", "less", "ment", "ness",
    "ors", "ous", "tion",
];

/// Edits that cutting these last letters off a word counts as. One or two may be the rest of a misspelt ending, more of them may be an
/// ending with one letter wrong.
fn ending_cost(letters: &[char]) -> usize {
    let is_like = |ending: &&str| {
        let ending: Vec<char> = ending.chars().collect();
        edit_distance(letters, &ending) <= usize::from(ending.len() > 3)
    };
    let is_ending = letters.len() <= 2 || ENDINGS.iter().any(|ending| is_like(&ending));
    if is_ending { usize::from(!letters.is_empty()) } else { letters.len() }
}

/// Number of letters to insert, delete, replace or swap with their neighbor.
fn edit_distance(one: &[char], other: &[char]) -> usize {
    let mut rows = vec![vec![0; other.len() + 1]; one.len() + 1];
    for (at, row) in rows.iter_mut().enumerate() {
        row[0] = at;
    }
    rows[0] = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        for (j, b) in other.iter().enumerate() {
            let replaced = rows[i][j] + usize::from(a != b);
            let mut least = replaced.min(rows[i][j + 1] + 1).min(rows[i + 1][j] + 1);
            if i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            rows[i + 1][j + 1] = least;
        }
    }
    rows[one.len()][other.len()]
}

const FORGET_TEXT: &str = "DELETE FROM text WHERE rowid = (SELECT id FROM document WHERE key = ?1)";

fn columns(fields: usize) -> String {
    (0..fields).map(|field| format!("f{field}")).collect::<Vec<_>>().join(", ")
}

fn tables(fields: usize) -> String {
    format!(
        "DROP TABLE IF EXISTS text;
         DROP TABLE IF EXISTS document;
         DROP TABLE IF EXISTS note;
         CREATE VIRTUAL TABLE text USING fts5({}, content='', contentless_delete=1, tokenize='porter unicode61');
         CREATE TABLE document (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, stamp TEXT NOT NULL);
         CREATE TABLE note (name TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;",
        columns(fields)
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn put(index: &mut SearchIndex, key: &str, text: &str) {
        index.put(&[SearchDocument { key, stamp: text, fields: &[text] }]).unwrap();
    }

    fn keys(index: &SearchIndex, question: &str) -> Vec<String> {
        index.search(question, &[1.0], 10).unwrap().into_iter().map(|hit| hit.key).collect()
    }

    #[test]
    fn replaced_documents_are_found_by_new_text() {
        let mut index = SearchIndex::in_memory(1).unwrap();
        put(&mut index, "a", "the parser drops comments");
        put(&mut index, "b", "comments are kept by the lexer");
        assert_eq!(keys(&index, "parsers"), ["a"], "stems");
        put(&mut index, "a", "the printer");
        assert_eq!(keys(&index, "parser"), [""; 0]);
        assert_eq!(keys(&index, "Druckér PRINTER"), ["a"]);
        index.remove(&["a", "nobody"]).unwrap();
        assert_eq!(keys(&index, "printer comments"), ["b"]);
        assert_eq!(index.stamps().unwrap().len(), 1);
    }

    #[test]
    fn misspelt_words_are_near_an_indexed_term() {
        let mut index = SearchIndex::in_memory(1).unwrap();
        put(&mut index, "a", "the retry policy of the migration and its connections, with documentation");
        put(&mut index, "b", "retry again, retired ones aside");
        put(&mut index, "c", "the keeper of the lighthouse puts out the light, and every other light");
        for (word, expected) in [
            ("retyr", Some("retri")),
            ("polciy", Some("polici")),
            ("migraton", Some("migrat")),
            ("conections", Some("connect")),
            // Its stem by the rules is `documen`, with which another term starts.
            ("documenation", Some("document")),
            // `light` is no stem of it: `hose` is no ending.
            ("lighthose", Some("lighthous")),
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

    #[test]
    fn index_persists_and_a_corrupt_one_is_rebuilt() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index.db");
        put(&mut SearchIndex::open(&path, 1).unwrap(), "a", "kept");
        assert_eq!(keys(&SearchIndex::open(&path, 1).unwrap(), "kept"), ["a"]);
        assert_eq!(keys(&SearchIndex::open(&path, 2).unwrap(), "kept"), [""; 0], "of another form");
        std::fs::write(&path, "no database at all, but long enough to look like one".repeat(100)).unwrap();
        let mut index = SearchIndex::open(&path, 1).unwrap();
        put(&mut index, "b", "again");
        assert_eq!(keys(&index, "again"), ["b"]);
    }

    #[test]
    fn concurrent_writers_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index.db");
        drop(SearchIndex::open(&path, 1).unwrap());
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    let mut index = SearchIndex::open(path, 1).unwrap();
                    for at in 0..25 {
                        put(&mut index, &format!("{writer}-{at}"), "word");
                    }
                });
            }
        });
        assert_eq!(SearchIndex::open(&path, 1).unwrap().stamps().unwrap().len(), 100);
    }

    #[test]
    fn rare_words_and_heavy_fields_count_more() {
        let mut index = SearchIndex::in_memory(2).unwrap();
        let documents: Vec<(String, [&str; 2])> = (0..20)
            .map(|at| (format!("{at:02}"), ["title", if at == 7 { "common rare" } else { "common words" }]))
            .chain([(String::from("named"), ["rare", "nothing else"])])
            .collect();
        let documents: Vec<SearchDocument<'_>> =
            documents.iter().map(|(key, fields)| SearchDocument { key, stamp: "", fields }).collect();
        index.put(&documents).unwrap();
        let found = index.search("common rare", &[4.0, 1.0], 3).unwrap();
        assert_eq!((found[0].key.as_str(), found[1].key.as_str()), ("named", "07"));
        let within = SearchQuery {
            query: "common",
            mode: MatchMode::Any,
            key_prefix: "1",
            weights: &[1.0, 1.0],
            limit: 50,
        };
        let found = index.find(&within).unwrap();
        assert!(found.len() == 10 && found.iter().all(|hit| hit.key.starts_with('1')), "{found:?}");
    }

    #[test]
    fn match_modes_require_all_words_or_prefixes() {
        let mut index = SearchIndex::in_memory(1).unwrap();
        put(&mut index, "a", "the parser drops comments");
        put(&mut index, "b", "comments are kept in readToken");
        let found = |question: &str, fit: MatchMode| {
            let wanted =
                SearchQuery { query: question, mode: fit, key_prefix: "", weights: &[1.0], limit: 9 };
            index.find(&wanted).unwrap().into_iter().map(|hit| hit.key).collect::<Vec<_>>()
        };
        assert_eq!(found("comment parsers", MatchMode::All), ["a"]);
        assert_eq!(found("comments readToken", MatchMode::All), ["b"], "an identifier is one word");
        assert_eq!(found("comments", MatchMode::All).len(), 2);
        assert_eq!(found("comm toke", MatchMode::All), [""; 0]);
        assert_eq!(found("toke", MatchMode::Prefixes), ["b"]);
    }

    #[test]
    fn notes_and_documents_change_atomically() {
        let mut index = SearchIndex::in_memory(1).unwrap();
        let document = SearchDocument { key: "log#1", stamp: "one", fields: &["word"] };
        let add = |changing: &mut IndexTransaction<'_>| -> Result<(), SearchError> {
            changing.put(&document)?;
            changing.set_note("log#", "17")
        };
        let failed: Result<(), SearchError> = index.change(|changing| {
            add(changing)?;
            Err(SearchError(rusqlite::Error::InvalidQuery))
        });
        assert!(failed.is_err());
        assert!(keys(&index, "word").is_empty() && index.notes("").unwrap().is_empty());
        index.change(add).unwrap();
        assert_eq!(index.notes("log").unwrap()["log#"], "17");
        assert_eq!(index.keys_with_stamp("one").unwrap(), ["log#1"]);
        index.change(|changing| changing.remove_prefix("log#")).unwrap();
        assert!(keys(&index, "word").is_empty() && index.notes("").unwrap().is_empty());
    }

    proptest! {
        #[test]
        fn no_question_is_an_error(question in ".{0,60}", text in ".{0,200}") {
            let mut index = SearchIndex::in_memory(1).unwrap();
            put(&mut index, "a", &text);
            index.search(&question, &[1.0], 5).unwrap();
            for fit in [MatchMode::All, MatchMode::Prefixes] {
                index.find(&SearchQuery { query: &question, mode: fit, key_prefix: &text, weights: &[], limit: 5 }).unwrap();
            }
        }

        #[test]
        fn a_document_is_found_by_each_of_its_words(words in prop::collection::vec("[a-z]{3,9}", 1..6)) {
            let mut index = SearchIndex::in_memory(1).unwrap();
            put(&mut index, "a", &words.join(" "));
            for word in words.iter().filter(|word| crate::query_terms::query(word, MatchMode::Any).is_some()) {
                prop_assert_eq!(keys(&index, word), ["a"]);
            }
        }
    }
}
