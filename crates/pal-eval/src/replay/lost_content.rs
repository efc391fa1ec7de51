//! User messages that are neither visible nor referenced after a compaction.

use std::path::Path;

use pal_model::{EntryBody, EntryId, LogEntry};
use pal_store::LogReader;
use rustc_hash::FxHashMap;

use crate::replay::ReplayError;
use crate::replay::recorded_session::{RecordedSession, texts};
use crate::replay::replay_report::LostContent;

/// User messages that the log, read again from disk, does not hold.
pub(crate) fn find_lost_content(
    recorded: &RecordedSession,
    log: &Path,
) -> Result<Vec<LostContent>, ReplayError> {
    let branch = LogReader::open(log)?.whole_branch()?;
    let kept: FxHashMap<EntryId, Vec<String>> = branch
        .entries
        .iter()
        .filter_map(|entry| match &entry.body {
            EntryBody::User(user) => Some((entry.id, texts(&user.content))),
            _ => None,
        })
        .collect();
    let is_lost = |(entry, said): &(&LogEntry, Vec<String>)| kept.get(&entry.id) != Some(said);
    let lost = recorded.said_by_people().filter(is_lost);
    let start = |said: &[String]| said.join("\n").chars().take(200).collect();
    Ok(lost.map(|(entry, said)| LostContent { id: entry.id, text: start(&said) }).collect())
}
