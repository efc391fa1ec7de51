//! The index: a table of full text beside a table of what is in it.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior, params, params_from_iter};

use crate::words::{indexed, query};

/// How long a process waits for another that writes.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the tables look like; another number means that they are made anew.
const FORM: i64 = 1;

/// Documents by key, to be searched.
pub struct Index {
    connection: Connection,
    fields: usize,
}

/// A document.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// What it is known by.
    pub key: &'a str,
    /// What changes when it changes: a time and a size, a hash.
    pub stamp: &'a str,
    /// Its text, as many fields as the index has.
    pub fields: &'a [&'a str],
}

/// A document that was found.
#[derive(Clone, PartialEq, Debug)]
pub struct Hit {
    /// Its key.
    pub key: String,
    /// How well it fits; more is better. Comparable within one search only.
    pub score: f64,
}

/// An index that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the search index: {0}; it can be deleted, and is then made anew")]
pub struct SearchError(#[from] rusqlite::Error);

impl SearchError {
    fn is_spoilt(&self) -> bool {
        matches!(self.0.sqlite_error_code(), Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt))
    }
}

impl Index {
    /// Opens an index with so many fields, or makes it. One that is spoilt or of another form is made anew, empty.
    pub fn open(path: &Path, fields: usize) -> Result<Index, SearchError> {
        // What is indexed is nobody else's business; what the database puts beside its file has the same mode. What cannot be
        // made here is told by the opening that follows.
        let _ = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
        match Index::ready(Connection::open(path)?, fields) {
            Ok(index) => Ok(index),
            Err(error) if !error.is_spoilt() => Err(error),
            Err(_) => {
                for ending in ["", "-wal", "-shm"] {
                    let mut file = path.as_os_str().to_owned();
                    file.push(ending);
                    // What cannot be removed is told by the opening that follows.
                    let _ = std::fs::remove_file(file);
                }
                Index::ready(Connection::open(path)?, fields)
            }
        }
    }

    /// An index that is gone when this is.
    pub fn in_memory(fields: usize) -> Result<Index, SearchError> {
        Index::ready(Connection::open_in_memory()?, fields)
    }

    fn ready(connection: Connection, fields: usize) -> Result<Index, SearchError> {
        connection.busy_timeout(PATIENCE)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        // It can be made anew at any time, so it need not survive a loss of power.
        connection.pragma_update(None, "synchronous", "off")?;
        let form = FORM * 100 + fields as i64;
        let found = |connection: &Connection| -> rusqlite::Result<i64> {
            connection.pragma_query_value(None, "user_version", |row| row.get(0))
        };
        if found(&connection)? != form {
            // Another process may make it at this moment: whoever comes second finds it made.
            let transaction = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate)?;
            if found(&transaction)? != form {
                transaction.execute_batch(&tables(fields))?;
                transaction.pragma_update(None, "user_version", form)?;
            }
            transaction.commit()?;
        }
        Ok(Index { connection, fields })
    }

    /// What is in it: the stamp of every key.
    pub fn stamps(&self) -> Result<HashMap<String, String>, SearchError> {
        let mut statement = self.connection.prepare_cached("SELECT key, stamp FROM document")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Adds documents, or puts them in the place of those with the same keys. All of them or, if it fails, none.
    pub fn put(&mut self, documents: &[Document<'_>]) -> Result<(), SearchError> {
        let fields = self.fields;
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut forget = transaction
                .prepare_cached("DELETE FROM text WHERE rowid = (SELECT id FROM document WHERE key = ?1)")?;
            let mut note = transaction.prepare_cached(
                "INSERT INTO document (key, stamp) VALUES (?1, ?2) \
                 ON CONFLICT (key) DO UPDATE SET stamp = ?2 RETURNING id",
            )?;
            let places: Vec<String> = (0..fields).map(|field| format!("?{}", field + 2)).collect();
            let mut add = transaction.prepare_cached(&format!(
                "INSERT INTO text (rowid, {}) VALUES (?1, {})",
                columns(fields),
                places.join(", ")
            ))?;
            for document in documents {
                forget.execute(params![document.key])?;
                let id: i64 = note.query_row(params![document.key, document.stamp], |row| row.get(0))?;
                let texts =
                    (0..fields).map(|field| indexed(document.fields.get(field).copied().unwrap_or_default()));
                let values = std::iter::once(rusqlite::types::Value::from(id)).chain(texts.map(Into::into));
                add.execute(params_from_iter(values))?;
            }
        }
        transaction.commit()?;
        Ok(())
    }

    /// Removes documents; a key that is not there is none.
    pub fn remove(&mut self, keys: &[&str]) -> Result<(), SearchError> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for key in keys {
            transaction
                .execute("DELETE FROM text WHERE rowid = (SELECT id FROM document WHERE key = ?1)", [key])?;
            transaction.execute("DELETE FROM document WHERE key = ?1", [key])?;
        }
        transaction.commit()?;
        Ok(())
    }

    /// The documents that fit a question best, the best first. `weights` says how much each field counts.
    pub fn search(&self, question: &str, weights: &[f64], most: usize) -> Result<Vec<Hit>, SearchError> {
        self.search_within(question, "", weights, most)
    }

    /// The same among the documents whose keys begin so.
    pub fn search_within(
        &self,
        question: &str,
        beginning: &str,
        weights: &[f64],
        most: usize,
    ) -> Result<Vec<Hit>, SearchError> {
        let Some(query) = query(question) else { return Ok(Vec::new()) };
        let weights: Vec<String> =
            (0..self.fields).map(|field| weights.get(field).copied().unwrap_or(1.0).to_string()).collect();
        let mut statement = self.connection.prepare_cached(&format!(
            "SELECT document.key, bm25(text, {}) AS rank FROM text JOIN document ON document.id = text.rowid \
             WHERE text MATCH ?1 AND substr(document.key, 1, length(?2)) = ?2 ORDER BY rank, document.key LIMIT ?3",
            weights.join(", ")
        ))?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let rows = statement.query_map(params![query, beginning, most], |row| {
            let rank: f64 = row.get(1)?;
            Ok(Hit { key: row.get(0)?, score: -rank })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
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

    fn put(index: &mut Index, key: &str, text: &str) {
        index.put(&[Document { key, stamp: text, fields: &[text] }]).unwrap();
    }

    fn keys(index: &Index, question: &str) -> Vec<String> {
        index.search(question, &[1.0], 10).unwrap().into_iter().map(|hit| hit.key).collect()
    }

    #[test]
    fn what_changes_is_found_as_it_is_now() {
        let mut index = Index::in_memory(1).unwrap();
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
    fn an_index_outlives_its_process_and_a_spoilt_one_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index.db");
        put(&mut Index::open(&path, 1).unwrap(), "a", "kept");
        assert_eq!(keys(&Index::open(&path, 1).unwrap(), "kept"), ["a"]);
        assert_eq!(keys(&Index::open(&path, 2).unwrap(), "kept"), [""; 0], "of another form");
        std::fs::write(&path, "no database at all, but long enough to look like one".repeat(100)).unwrap();
        let mut index = Index::open(&path, 1).unwrap();
        put(&mut index, "b", "again");
        assert_eq!(keys(&index, "again"), ["b"]);
    }

    #[test]
    fn several_processes_may_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index.db");
        drop(Index::open(&path, 1).unwrap());
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    let mut index = Index::open(path, 1).unwrap();
                    for at in 0..25 {
                        put(&mut index, &format!("{writer}-{at}"), "word");
                    }
                });
            }
        });
        assert_eq!(Index::open(&path, 1).unwrap().stamps().unwrap().len(), 100);
    }

    #[test]
    fn rare_words_and_heavy_fields_count_more() {
        let mut index = Index::in_memory(2).unwrap();
        let documents: Vec<(String, [&str; 2])> = (0..20)
            .map(|at| (format!("{at:02}"), ["title", if at == 7 { "common rare" } else { "common words" }]))
            .chain([(String::from("named"), ["rare", "nothing else"])])
            .collect();
        let documents: Vec<Document<'_>> =
            documents.iter().map(|(key, fields)| Document { key, stamp: "", fields }).collect();
        index.put(&documents).unwrap();
        let found = index.search("common rare", &[4.0, 1.0], 3).unwrap();
        assert_eq!((found[0].key.as_str(), found[1].key.as_str()), ("named", "07"));
        assert!(
            index
                .search_within("common", "1", &[1.0, 1.0], 50)
                .unwrap()
                .iter()
                .all(|hit| hit.key.starts_with('1'))
        );
    }

    proptest! {
        #[test]
        fn no_question_is_an_error(question in ".{0,60}", text in ".{0,200}") {
            let mut index = Index::in_memory(1).unwrap();
            put(&mut index, "a", &text);
            index.search(&question, &[1.0], 5).unwrap();
        }

        #[test]
        fn a_document_is_found_by_each_of_its_words(words in prop::collection::vec("[a-z]{3,9}", 1..6)) {
            let mut index = Index::in_memory(1).unwrap();
            put(&mut index, "a", &words.join(" "));
            for word in words.iter().filter(|word| crate::words::query(word).is_some()) {
                prop_assert_eq!(keys(&index, word), ["a"]);
            }
        }
    }
}
