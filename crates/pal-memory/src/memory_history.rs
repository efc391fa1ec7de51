//! History of a memory directory: a journal of changes, and every version of every file by hash.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use pal_model::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::author::Author;
use crate::error::MemoryError;
use crate::memory_dir::MemoryDir;

/// Journal file.
const JOURNAL: &str = "journal.jsonl";
/// Directory of the versions.
const BLOBS: &str = "blobs";

/// BLAKE3 hash of a file version.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileDigest([u8; 32]);

impl FileDigest {
    /// Hashes bytes.
    pub fn of(bytes: &[u8]) -> FileDigest {
        FileDigest(*blake3::hash(bytes).as_bytes())
    }

    pub(crate) fn bytes(&self) -> [u8; 32] {
        self.0
    }

    /// First characters, enough to tell versions of one file apart.
    pub fn short(&self) -> String {
        self.to_string().chars().take(8).collect()
    }
}

impl From<[u8; 32]> for FileDigest {
    fn from(bytes: [u8; 32]) -> FileDigest {
        FileDigest(bytes)
    }
}

impl fmt::Display for FileDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for FileDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.short())
    }
}

impl FromStr for FileDigest {
    type Err = blake3::HexError;

    fn from_str(text: &str) -> Result<FileDigest, blake3::HexError> {
        Ok(FileDigest(*blake3::Hash::from_hex(text)?.as_bytes()))
    }
}

impl Serialize for FileDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FileDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FileDigest, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Kind of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryChangeKind {
    /// A memory was written.
    Write,
    /// Part of a memory was replaced.
    Edit,
    /// A memory was removed.
    Remove,
    /// Files were changed outside this program.
    Outside,
    /// The index was updated.
    Index,
    /// An earlier state was restored.
    Undo,
}

impl MemoryChangeKind {
    /// Name in the journal.
    pub fn name(self) -> &'static str {
        match self {
            MemoryChangeKind::Write => "write",
            MemoryChangeKind::Edit => "edit",
            MemoryChangeKind::Remove => "remove",
            MemoryChangeKind::Outside => "outside",
            MemoryChangeKind::Index => "index",
            MemoryChangeKind::Undo => "undo",
        }
    }
}

/// One atomic change.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MemoryChange {
    /// Number of the change, and the point in the history after it. 0 is the empty directory before all
    /// changes.
    pub id: u64,
    /// Time of the change.
    pub at: Timestamp,
    /// Author of the change.
    pub by: Author,
    /// Kind of the change.
    pub what: MemoryChangeKind,
    /// Restored point, for an undo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// Changed files.
    pub files: Vec<FileChange>,
}

/// Change of one file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FileChange {
    /// File name.
    pub file: String,
    /// Version before; none if the file did not exist.
    pub before: Option<FileDigest>,
    /// Version after; none if the file was removed.
    pub after: Option<FileDigest>,
}

/// Versions of all files at a point.
pub(crate) type FileVersions = BTreeMap<String, FileDigest>;

/// Applies a change.
pub(crate) fn apply(files: &mut FileVersions, change: &MemoryChange) {
    for changed in change.files.iter().filter(|changed| is_file_name(&changed.file)) {
        match changed.after {
            Some(digest) => files.insert(changed.file.clone(), digest),
            None => files.remove(&changed.file),
        };
    }
}

/// Reports whether a name is a valid file of the directory. A journal may come with an untrusted repository.
pub(crate) fn is_file_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0']) && name.len() <= 255
}

/// Journal and stored versions.
pub(crate) struct MemoryHistory {
    folder: MemoryDir,
    blobs: MemoryDir,
}

impl MemoryHistory {
    pub(crate) fn open(folder: MemoryDir) -> Result<MemoryHistory, MemoryError> {
        let blobs = folder.subdirectory(BLOBS)?;
        Ok(MemoryHistory { folder, blobs })
    }

    pub(crate) fn folder(&self) -> &MemoryDir {
        &self.folder
    }

    /// Length of the journal; unchanged length means unchanged content.
    pub(crate) fn bytes(&self) -> Result<u64, MemoryError> {
        self.folder.size(JOURNAL)
    }

    /// Reads all changes in order. Ignores a truncated line, which was never acknowledged.
    pub(crate) fn changes(&self) -> Result<Vec<MemoryChange>, MemoryError> {
        let bytes = self.folder.read(JOURNAL)?.unwrap_or_default();
        let mut changes: Vec<MemoryChange> = Vec::new();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let Ok(change) = serde_json::from_slice::<MemoryChange>(line) else { continue };
            if change.id > changes.last().map_or(0, |last| last.id) {
                changes.push(change);
            }
        }
        Ok(changes)
    }

    /// Appends a change; returns the new length of the journal.
    pub(crate) fn append(&self, change: &MemoryChange) -> Result<u64, MemoryError> {
        let line = serde_json::to_string(change)
            .map_err(|error| MemoryError::file("write", self.folder.path(), error.into()))?;
        self.folder.append_line(JOURNAL, &line)
    }

    /// Stores a version of a file.
    pub(crate) fn store_version(&self, bytes: &[u8]) -> Result<FileDigest, MemoryError> {
        let digest = FileDigest::of(bytes);
        if !self.is_kept(digest)? {
            self.blobs.replace(&digest.to_string(), bytes)?;
        }
        Ok(digest)
    }

    /// Stores one of many versions; [`MemoryHistory::sync_all`] syncs them all.
    pub(crate) fn store_version_unsynced(&self, bytes: &[u8]) -> Result<FileDigest, MemoryError> {
        let digest = FileDigest::of(bytes);
        if !self.is_kept(digest)? {
            self.blobs.replace_unsynced(&digest.to_string(), bytes)?;
        }
        Ok(digest)
    }

    /// Syncs all versions.
    pub(crate) fn sync_versions(&self) -> Result<(), MemoryError> {
        self.blobs.sync_all()
    }

    /// Reports whether a version is stored intact; a corrupt one is written again.
    fn is_kept(&self, digest: FileDigest) -> Result<bool, MemoryError> {
        Ok(self.blobs.read(&digest.to_string())?.is_some_and(|kept| FileDigest::of(&kept) == digest))
    }

    /// Path of a stored version.
    pub(crate) fn version_path(&self, digest: FileDigest) -> std::path::PathBuf {
        self.blobs.path().join(digest.to_string())
    }

    /// Reads a stored version.
    pub(crate) fn version(&self, file: &str, digest: FileDigest) -> Result<Vec<u8>, MemoryError> {
        let kept = self.blobs.read(&digest.to_string())?.filter(|bytes| FileDigest::of(bytes) == digest);
        kept.ok_or_else(|| MemoryError::VersionLost {
            file: file.to_owned(),
            digest: digest.short(),
            path: self.blobs.path().to_owned(),
        })
    }
}

/// Versions of all files at a point.
pub(crate) fn files_at(changes: &[MemoryChange], point: u64) -> FileVersions {
    let mut files = FileVersions::new();
    for change in changes.iter().take_while(|change| change.id <= point) {
        apply(&mut files, change);
    }
    files
}
