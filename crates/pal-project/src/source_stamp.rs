//! Stamp of a file (size, times, inode): tells without reading it that the file is unchanged.

use std::fs::Metadata;
use std::path::Path;
use std::time::SystemTime;

/// Size, times and place of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SourceStamp {
    bytes: u64,
    modified: Option<SystemTime>,
    /// Inode and time of the last change of it, which an editor that sets back the time of modification cannot hide.
    inode: (u64, i64, i64),
}

/// Stamp of the target of a path, if it exists.
pub(crate) fn stamp_of(path: &Path) -> Option<SourceStamp> {
    let metadata = path.metadata().ok()?;
    Some(SourceStamp {
        bytes: metadata.len(),
        modified: metadata.modified().ok(),
        inode: inode_of(&metadata),
    })
}

#[cfg(unix)]
fn inode_of(metadata: &Metadata) -> (u64, i64, i64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
}

#[cfg(not(unix))]
fn inode_of(_: &Metadata) -> (u64, i64, i64) {
    (0, 0, 0)
}
