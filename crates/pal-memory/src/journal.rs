//! The history of a memory directory: a line for every change, and every version of every file under its hash.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use pal_model::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::author::Author;
use crate::error::MemoryError;
use crate::folder::Folder;

/// The journal's file.
const JOURNAL: &str = "journal.jsonl";
/// The folder of all versions.
const BLOBS: &str = "blobs";

/// The BLAKE3 hash of a version of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The hash of these bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(*blake3::hash(bytes).as_bytes())
    }

    pub(crate) fn bytes(&self) -> [u8; 32] {
        self.0
    }

    /// How it begins: enough to tell versions of one file apart.
    pub fn short(&self) -> String {
        self.to_string().chars().take(8).collect()
    }
}

impl From<[u8; 32]> for Digest {
    fn from(bytes: [u8; 32]) -> Digest {
        Digest(bytes)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.short())
    }
}

impl FromStr for Digest {
    type Err = blake3::HexError;

    fn from_str(text: &str) -> Result<Digest, blake3::HexError> {
        Ok(Digest(*blake3::Hash::from_hex(text)?.as_bytes()))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// What was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// A memory was written whole.
    Write,
    /// A part of a memory was replaced.
    Edit,
    /// A memory was removed.
    Remove,
    /// Files were found other than we left them.
    Outside,
    /// The index was made to fit the files.
    Index,
    /// An earlier state was restored.
    Undo,
}

impl What {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            What::Write => "write",
            What::Edit => "edit",
            What::Remove => "remove",
            What::Outside => "outside",
            What::Index => "index",
            What::Undo => "undo",
        }
    }
}

/// One change: all of it was done, or nothing.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Change {
    /// Its number, which is also the point in the history that it leads to. 0 is the empty directory before all changes.
    pub id: u64,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub by: Author,
    /// What.
    pub what: What,
    /// For an undo, the point that was gone back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// Which files became what.
    pub files: Vec<FileChange>,
}

/// What became of one file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FileChange {
    /// The file.
    pub file: String,
    /// Its version before; none if there was none.
    pub before: Option<Digest>,
    /// Its version since; none if it is gone.
    pub after: Option<Digest>,
}

/// The files of the directory at a point: which version of each.
pub(crate) type Files = BTreeMap<String, Digest>;

/// Applies a change.
pub(crate) fn apply(files: &mut Files, change: &Change) {
    for changed in change.files.iter().filter(|changed| is_file_name(&changed.file)) {
        match changed.after {
            Some(digest) => files.insert(changed.file.clone(), digest),
            None => files.remove(&changed.file),
        };
    }
}

/// Whether a name can be that of a file in the directory. A journal may come with a repository that somebody made.
pub(crate) fn is_file_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0']) && name.len() <= 255
}

/// Journal and versions.
pub(crate) struct Journal {
    folder: Folder,
    blobs: Folder,
}

impl Journal {
    pub(crate) fn open(folder: Folder) -> Result<Journal, MemoryError> {
        let blobs = folder.below(BLOBS)?;
        Ok(Journal { folder, blobs })
    }

    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// How long the journal is: as long as it was, it says what it said.
    pub(crate) fn bytes(&self) -> Result<u64, MemoryError> {
        self.folder.size(JOURNAL)
    }

    /// All changes, in order. A line that a kill cut off was never acknowledged and is none.
    pub(crate) fn changes(&self) -> Result<Vec<Change>, MemoryError> {
        let bytes = self.folder.read(JOURNAL)?.unwrap_or_default();
        let mut changes: Vec<Change> = Vec::new();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let Ok(change) = serde_json::from_slice::<Change>(line) else { continue };
            if change.id > changes.last().map_or(0, |last| last.id) {
                changes.push(change);
            }
        }
        Ok(changes)
    }

    /// Adds a change; how long the journal is now.
    pub(crate) fn append(&self, change: &Change) -> Result<u64, MemoryError> {
        let line = serde_json::to_string(change)
            .map_err(|error| MemoryError::file("write", self.folder.path(), error.into()))?;
        self.folder.append_line(JOURNAL, &line)
    }

    /// Keeps a version of a file.
    pub(crate) fn keep(&self, bytes: &[u8]) -> Result<Digest, MemoryError> {
        let digest = Digest::of(bytes);
        if !self.is_kept(digest)? {
            self.blobs.replace(&digest.to_string(), bytes)?;
        }
        Ok(digest)
    }

    /// Keeps one of many versions: they last once [`Journal::settle`] was called.
    pub(crate) fn keep_soon(&self, bytes: &[u8]) -> Result<Digest, MemoryError> {
        let digest = Digest::of(bytes);
        if !self.is_kept(digest)? {
            self.blobs.replace_soon(&digest.to_string(), bytes)?;
        }
        Ok(digest)
    }

    /// Makes all versions last.
    pub(crate) fn settle(&self) -> Result<(), MemoryError> {
        self.blobs.settle()
    }

    /// Whether a version is there whole; one that is spoilt is mended by writing it again.
    fn is_kept(&self, digest: Digest) -> Result<bool, MemoryError> {
        Ok(self.blobs.read(&digest.to_string())?.is_some_and(|kept| Digest::of(&kept) == digest))
    }

    /// Where a version is kept.
    pub(crate) fn place(&self, digest: Digest) -> std::path::PathBuf {
        self.blobs.path().join(digest.to_string())
    }

    /// A version of a file.
    pub(crate) fn version(&self, file: &str, digest: Digest) -> Result<Vec<u8>, MemoryError> {
        let kept = self.blobs.read(&digest.to_string())?.filter(|bytes| Digest::of(bytes) == digest);
        kept.ok_or_else(|| MemoryError::VersionLost {
            file: file.to_owned(),
            digest: digest.short(),
            path: self.blobs.path().to_owned(),
        })
    }
}

/// The files as they were at a point.
pub(crate) fn files_at(changes: &[Change], point: u64) -> Files {
    let mut files = Files::new();
    for change in changes.iter().take_while(|change| change.id <= point) {
        apply(&mut files, change);
    }
    files
}
