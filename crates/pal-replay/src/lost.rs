//! What people said and nobody can find any more.

use std::path::Path;

use pal_model::{Body, Entry, EntryId};
use pal_store::Reader;
use rustc_hash::FxHashMap;

use crate::ReplayError;
use crate::recorded::{Recorded, texts};
use crate::report::Lost;

/// What people said and the log, read anew from the disk, does not hold.
pub(crate) fn lost(recorded: &Recorded, log: &Path) -> Result<Vec<Lost>, ReplayError> {
    let branch = Reader::open(log)?.whole_branch()?;
    let kept: FxHashMap<EntryId, Vec<String>> = branch
        .entries
        .iter()
        .filter_map(|entry| match &entry.body {
            Body::User(user) => Some((entry.id, texts(&user.content))),
            _ => None,
        })
        .collect();
    let is_lost = |(entry, said): &(&Entry, Vec<String>)| kept.get(&entry.id) != Some(said);
    let lost = recorded.said_by_people().filter(is_lost);
    let start = |said: &[String]| said.join("\n").chars().take(200).collect();
    Ok(lost.map(|(entry, said)| Lost { id: entry.id, text: start(&said) }).collect())
}
