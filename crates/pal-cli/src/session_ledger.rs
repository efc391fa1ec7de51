//! The ledger of a session by name, or of the newest session of the current directory.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use pal_context::CostLedger;
use pal_report::session_name;

use crate::failure::Failure;
use crate::loaded_session::LoadedSession;
use crate::notices::Notices;
use crate::session_lookup::find_or_newest;
use crate::settings::Settings;

/// Reading a file above this size is announced.
const LARGE_FILE_BYTES: u64 = 8 << 20;

/// A session and its ledger.
pub(crate) struct SessionLedger {
    pub(crate) path: PathBuf,
    /// Display name.
    pub(crate) name: String,
    pub(crate) ledger: CostLedger,
}

impl SessionLedger {
    pub(crate) fn open(
        session: Option<&str>,
        settings: &Settings,
        notices: &Notices,
    ) -> Result<SessionLedger, Failure> {
        let path = find_or_newest(session, settings)?;
        let is_reported = notices.allows_progress() && report_reading(&path);
        let session = LoadedSession::read_all(&path, settings)?;
        for problem in &session.problems {
            notices.add(problem);
        }
        let ledger = CostLedger::from_entries(&session.branch, &settings.cards);
        if is_reported {
            eprint!("\r\x1b[2K");
        }
        Ok(SessionLedger { name: session_name(&session.branch, &path), path, ledger })
    }
}

/// Prints that a large file is being read, if standard error is a terminal. Returns whether it did.
fn report_reading(path: &Path) -> bool {
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let is_reported = bytes > LARGE_FILE_BYTES && std::io::stderr().is_terminal();
    if is_reported {
        eprint!("reading {} MB …", bytes >> 20);
    }
    is_reported
}
