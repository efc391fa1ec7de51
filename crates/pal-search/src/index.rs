//! The index: a table of full text beside a table of what is in it, and a table of notes of whoever fills it.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{
    Connection, ErrorCode, OptionalExtension, Transaction, TransactionBehavior, params, params_from_iter,
};

use crate::words::{Fit, indexed, query};

/// How long a process waits for another that writes.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the tables look like; another number means that they are made anew.
const FORM: i64 = 2;

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

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The question: words in any order. Nothing in it is an operator.
    pub question: &'a str,
    /// How much of it a document must hold.
    pub fit: Fit,
    /// How the keys of the documents begin that are looked at; empty for all.
    pub beginning: &'a str,
    /// How much each field counts.
    pub weights: &'a [f64],
    /// Most documents.
    pub most: usize,
}

/// An index that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the search index: {0}; it can be deleted, and is then made anew")]
pub struct SearchError(#[from] rusqlite::Error);

impl SearchError {
    /// Whether the file is no index, or no whole one: only making it anew helps.
    pub fn is_spoilt(&self) -> bool {
        matches!(self.0.sqlite_error_code(), Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt))
    }

    /// Whether another process wrote for so long that waiting for it was given up.
    pub fn is_busy(&self) -> bool {
        matches!(self.0.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
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
                Index::discard(path);
                Index::ready(Connection::open(path)?, fields)
            }
        }
    }

    /// Removes an index from the disk. A process that has it open goes on with what it has.
    pub fn discard(path: &Path) {
        for ending in ["", "-wal", "-shm"] {
            let mut file = path.as_os_str().to_owned();
            file.push(ending);
            // What cannot be removed is told by the next opening.
            let _ = std::fs::remove_file(file);
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
        self.change(|changing| documents.iter().try_for_each(|document| changing.put(document)))
    }

    /// Removes documents; a key that is not there is none.
    pub fn remove(&mut self, keys: &[&str]) -> Result<(), SearchError> {
        self.change(|changing| keys.iter().try_for_each(|key| changing.remove(key)))
    }

    /// Changes several things at once: all of them or, if it fails, none. No other process changes anything meanwhile, so what
    /// is read in here stays true until the end.
    pub fn change<T, E: From<SearchError>>(
        &mut self,
        work: impl FnOnce(&mut Changing<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let fields = self.fields;
        let begun = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let mut changing = Changing { transaction: begun.map_err(SearchError)?, fields };
        let done = work(&mut changing)?;
        changing.transaction.commit().map_err(SearchError)?;
        Ok(done)
    }

    /// All notes whose names begin so, by name.
    pub fn notes(&self, beginning: &str) -> Result<HashMap<String, String>, SearchError> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT name, text FROM note WHERE substr(name, 1, length(?1)) = ?1")?;
        let rows = statement.query_map([beginning], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The keys of the documents with this stamp, in their order.
    pub fn stamped(&self, stamp: &str) -> Result<Vec<String>, SearchError> {
        let mut statement =
            self.connection.prepare_cached("SELECT key FROM document WHERE stamp = ?1 ORDER BY id")?;
        let rows = statement.query_map([stamp], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The documents that fit a question best, the best first. `weights` says how much each field counts.
    pub fn search(&self, question: &str, weights: &[f64], most: usize) -> Result<Vec<Hit>, SearchError> {
        self.find(&Wanted { question, fit: Fit::Any, beginning: "", weights, most })
    }

    /// The documents that fit best, the best first.
    pub fn find(&self, wanted: &Wanted<'_>) -> Result<Vec<Hit>, SearchError> {
        let Some(query) = query(wanted.question, wanted.fit) else { return Ok(Vec::new()) };
        let weights: Vec<String> = (0..self.fields)
            .map(|field| wanted.weights.get(field).copied().unwrap_or(1.0).to_string())
            .collect();
        let mut statement = self.connection.prepare_cached(&format!(
            "SELECT document.key, bm25(text, {}) AS rank FROM text JOIN document ON document.id = text.rowid \
             WHERE text MATCH ?1 AND substr(document.key, 1, length(?2)) = ?2 ORDER BY rank, document.key LIMIT ?3",
            weights.join(", ")
        ))?;
        let most = i64::try_from(wanted.most).unwrap_or(i64::MAX);
        let rows = statement.query_map(params![query, wanted.beginning, most], |row| {
            let rank: f64 = row.get(1)?;
            Ok(Hit { key: row.get(0)?, score: -rank })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

/// An index that is being changed.
pub struct Changing<'a> {
    transaction: Transaction<'a>,
    fields: usize,
}

impl Changing<'_> {
    /// Adds a document, or puts it in the place of the one with the same key.
    pub fn put(&mut self, document: &Document<'_>) -> Result<(), SearchError> {
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
        let texts = (0..fields).map(|field| indexed(document.fields.get(field).copied().unwrap_or_default()));
        let values = std::iter::once(rusqlite::types::Value::from(id)).chain(texts.map(Into::into));
        add.execute(params_from_iter(values))?;
        Ok(())
    }

    /// Removes a document, if it is there.
    pub fn remove(&mut self, key: &str) -> Result<(), SearchError> {
        self.transaction.prepare_cached(FORGET_TEXT)?.execute([key])?;
        self.transaction.prepare_cached("DELETE FROM document WHERE key = ?1")?.execute([key])?;
        Ok(())
    }

    /// Removes all documents whose keys begin so, and all notes whose names do.
    pub fn remove_beginning(&mut self, beginning: &str) -> Result<(), SearchError> {
        let is_so = |column: &str| format!("substr({column}, 1, length(?1)) = ?1");
        let ids = format!("SELECT id FROM document WHERE {}", is_so("key"));
        self.transaction.execute(&format!("DELETE FROM text WHERE rowid IN ({ids})"), [beginning])?;
        self.transaction.execute(&format!("DELETE FROM document WHERE {}", is_so("key")), [beginning])?;
        self.transaction.execute(&format!("DELETE FROM note WHERE {}", is_so("name")), [beginning])?;
        Ok(())
    }

    /// A note.
    pub fn note(&self, name: &str) -> Result<Option<String>, SearchError> {
        let mut statement = self.transaction.prepare_cached("SELECT text FROM note WHERE name = ?1")?;
        Ok(statement.query_row([name], |row| row.get(0)).optional()?)
    }

    /// Writes a note, in the place of the one of the same name.
    pub fn set_note(&mut self, name: &str, text: &str) -> Result<(), SearchError> {
        let mut statement =
            self.transaction.prepare_cached("INSERT OR REPLACE INTO note (name, text) VALUES (?1, ?2)")?;
        statement.execute([name, text])?;
        Ok(())
    }
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
        let within =
            Wanted { question: "common", fit: Fit::Any, beginning: "1", weights: &[1.0, 1.0], most: 50 };
        let found = index.find(&within).unwrap();
        assert!(found.len() == 10 && found.iter().all(|hit| hit.key.starts_with('1')), "{found:?}");
    }

    #[test]
    fn a_document_may_have_to_hold_every_word_or_how_words_begin() {
        let mut index = Index::in_memory(1).unwrap();
        put(&mut index, "a", "the parser drops comments");
        put(&mut index, "b", "comments are kept in readToken");
        let found = |question: &str, fit: Fit| {
            let wanted = Wanted { question, fit, beginning: "", weights: &[1.0], most: 9 };
            index.find(&wanted).unwrap().into_iter().map(|hit| hit.key).collect::<Vec<_>>()
        };
        assert_eq!(found("comment parsers", Fit::All), ["a"]);
        assert_eq!(found("comments readToken", Fit::All), ["b"], "an identifier is one word");
        assert_eq!(found("comments", Fit::All).len(), 2);
        assert_eq!(found("comm toke", Fit::All), [""; 0]);
        assert_eq!(found("toke", Fit::Beginnings), ["b"]);
    }

    #[test]
    fn notes_and_documents_change_together_or_not_at_all() {
        let mut index = Index::in_memory(1).unwrap();
        let document = Document { key: "log#1", stamp: "one", fields: &["word"] };
        let add = |changing: &mut Changing<'_>| -> Result<(), SearchError> {
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
        assert_eq!(index.stamped("one").unwrap(), ["log#1"]);
        index.change(|changing| changing.remove_beginning("log#")).unwrap();
        assert!(keys(&index, "word").is_empty() && index.notes("").unwrap().is_empty());
    }

    proptest! {
        #[test]
        fn no_question_is_an_error(question in ".{0,60}", text in ".{0,200}") {
            let mut index = Index::in_memory(1).unwrap();
            put(&mut index, "a", &text);
            index.search(&question, &[1.0], 5).unwrap();
            for fit in [Fit::All, Fit::Beginnings] {
                index.find(&Wanted { question: &question, fit, beginning: &text, weights: &[], most: 5 }).unwrap();
            }
        }

        #[test]
        fn a_document_is_found_by_each_of_its_words(words in prop::collection::vec("[a-z]{3,9}", 1..6)) {
            let mut index = Index::in_memory(1).unwrap();
            put(&mut index, "a", &words.join(" "));
            for word in words.iter().filter(|word| crate::words::query(word, Fit::Any).is_some()) {
                prop_assert_eq!(keys(&index, word), ["a"]);
            }
        }
    }
}
