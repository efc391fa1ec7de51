//! Kills at any byte and any step, for tests: from then on nothing reaches the disk.

use std::cell::Cell;

use super::*;

thread_local! {
    static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// After so many bytes and steps the disk takes nothing more, until this is called again. What is left of the last
/// limit; none if it was passed.
pub(crate) fn kill_after(limit: Option<usize>) -> Option<usize> {
    LEFT.replace(limit)
}

fn take(wanted: usize) -> usize {
    LEFT.with(|left| match left.get() {
        None => wanted,
        Some(there) => {
            left.set(Some(there.saturating_sub(wanted)));
            wanted.min(there)
        }
    })
}

pub(super) fn step() -> io::Result<()> {
    if take(1) == 1 { Ok(()) } else { Err(io::Error::other("killed")) }
}

pub(super) fn put(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    let taken = take(bytes.len());
    file.write_all(&bytes[..taken])?;
    if taken < bytes.len() { Err(io::Error::other("killed")) } else { step() }
}

pub(super) fn sync_handle(_handle: impl AsFd) -> io::Result<()> {
    step()
}

pub(super) fn settle_handle(_handle: &OwnedFd) -> io::Result<()> {
    step()
}
