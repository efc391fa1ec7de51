//! SQLite tables of the index: full text and documents.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::{Connection, Transaction, TransactionBehavior, params, params_from_iter};

use crate::index_database::{SearchError, discard_database, memory_database, open_database};
use crate::query_terms::{any_word_query, index_terms};

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

impl SearchIndex {
    /// Opens or creates an index with this number of fields. A corrupt index, or one of another version, is
    /// replaced by an empty one.
    pub fn open(path: &Path, fields: usize) -> Result<SearchIndex, SearchError> {
        Ok(SearchIndex { connection: open_database(path, form(fields), &tables(fields))?, fields })
    }

    /// Deletes an index from disk. Processes that have it open keep their view.
    pub fn discard(path: &Path) {
        discard_database(path);
    }

    /// Creates an index that lives in memory only.
    pub fn in_memory(fields: usize) -> Result<SearchIndex, SearchError> {
        Ok(SearchIndex { connection: memory_database(form(fields), &tables(fields))?, fields })
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

    /// Runs `work` in one write transaction: everything is committed or nothing.
    fn change(
        &mut self,
        work: impl FnOnce(&mut IndexTransaction<'_>) -> Result<(), SearchError>,
    ) -> Result<(), SearchError> {
        let fields = self.fields;
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut changing = IndexTransaction { transaction, fields };
        work(&mut changing)?;
        Ok(changing.transaction.commit()?)
    }

    /// Finds the documents with any of the words, best first. `weights` has one weight per field.
    pub fn search(
        &self,
        question: &str,
        weights: &[f64],
        most: usize,
    ) -> Result<Vec<SearchHit>, SearchError> {
        let Some(query) = any_word_query(question) else { return Ok(Vec::new()) };
        let weights: Vec<String> =
            (0..self.fields).map(|field| weights.get(field).copied().unwrap_or(1.0).to_string()).collect();
        let mut statement = self.connection.prepare_cached(&format!(
            "SELECT document.key, bm25(text, {}) AS rank FROM text JOIN document ON document.id = text.rowid \
             WHERE text MATCH ?1 ORDER BY rank, document.key LIMIT ?2",
            weights.join(", ")
        ))?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let rows = statement.query_map(params![query, most], |row| {
            let rank: f64 = row.get(1)?;
            Ok(SearchHit { key: row.get(0)?, score: -rank })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

/// A write transaction on an index.
struct IndexTransaction<'a> {
    transaction: Transaction<'a>,
    fields: usize,
}

impl IndexTransaction<'_> {
    /// Adds or replaces a document.
    fn put(&mut self, document: &SearchDocument<'_>) -> Result<(), SearchError> {
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
    fn remove(&mut self, key: &str) -> Result<(), SearchError> {
        self.transaction.prepare_cached(FORGET_TEXT)?.execute([key])?;
        self.transaction.prepare_cached("DELETE FROM document WHERE key = ?1")?.execute([key])?;
        Ok(())
    }
}

const FORGET_TEXT: &str = "DELETE FROM text WHERE rowid = (SELECT id FROM document WHERE key = ?1)";

/// Number that identifies the tables.
fn form(fields: usize) -> i64 {
    SCHEMA_VERSION * 100 + fields as i64
}

fn columns(fields: usize) -> String {
    (0..fields).map(|field| format!("f{field}")).collect::<Vec<_>>().join(", ")
}

fn tables(fields: usize) -> String {
    format!(
        "DROP TABLE IF EXISTS text;
         DROP TABLE IF EXISTS document;
         CREATE VIRTUAL TABLE text USING fts5({}, content='', contentless_delete=1, tokenize='porter unicode61');
         CREATE TABLE document (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, stamp TEXT NOT NULL);",
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
    }

    proptest! {
        #[test]
        fn no_question_is_an_error(question in ".{0,60}", text in ".{0,200}") {
            let mut index = SearchIndex::in_memory(1).unwrap();
            put(&mut index, "a", &text);
            index.search(&question, &[1.0], 5).unwrap();
        }

        #[test]
        fn a_document_is_found_by_each_of_its_words(words in prop::collection::vec("[a-z]{3,9}", 1..6)) {
            let mut index = SearchIndex::in_memory(1).unwrap();
            put(&mut index, "a", &words.join(" "));
            for word in words.iter().filter(|word| any_word_query(word).is_some()) {
                prop_assert_eq!(keys(&index, word), ["a"]);
            }
        }
    }
}
