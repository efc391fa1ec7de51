//! SQLite files of indexes: created on demand, rebuilt if corrupt or of another version.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};

/// Maximum wait for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The index cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("search index error: {0}; delete the index file, and pal rebuilds it")]
pub struct SearchError(#[from] pub(crate) rusqlite::Error);

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

/// Opens or creates a database with the tables of this form. A corrupt one, or one of another form, is replaced by an
/// empty one.
pub(crate) fn open_database(path: &Path, form: i64, tables: &str) -> Result<Connection, SearchError> {
    // Restrict the mode; SQLite gives its side files the same one. Errors show up in the `open` that
    // follows.
    let _ = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
    match prepare(Connection::open(path)?, form, tables) {
        Ok(connection) => Ok(connection),
        Err(error) if !error.is_corrupt() => Err(error),
        Err(_) => {
            discard_database(path);
            prepare(Connection::open(path)?, form, tables)
        }
    }
}

/// Creates a database that lives in memory only.
pub(crate) fn memory_database(form: i64, tables: &str) -> Result<Connection, SearchError> {
    prepare(Connection::open_in_memory()?, form, tables)
}

/// Deletes a database from disk. Processes that have it open keep their view.
pub(crate) fn discard_database(path: &Path) {
    for ending in ["", "-wal", "-shm"] {
        let mut file = path.as_os_str().to_owned();
        file.push(ending);
        // The next `open` reports a file that cannot be removed.
        let _ = std::fs::remove_file(file);
    }
}

fn prepare(connection: Connection, form: i64, tables: &str) -> Result<Connection, SearchError> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    // The index can be rebuilt, so it need not survive a power failure.
    connection.pragma_update(None, "synchronous", "off")?;
    let found = |connection: &Connection| -> rusqlite::Result<i64> {
        connection.pragma_query_value(None, "user_version", |row| row.get(0))
    };
    if found(&connection)? != form {
        // Another process may create the tables at the same time; check again inside the transaction.
        let transaction = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate)?;
        if found(&transaction)? != form {
            transaction.execute_batch(tables)?;
            transaction.pragma_update(None, "user_version", form)?;
        }
        transaction.commit()?;
    }
    Ok(connection)
}
