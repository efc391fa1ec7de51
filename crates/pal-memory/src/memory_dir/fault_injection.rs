//! Fault injection for tests: a simulated kill at any byte or step.

use std::cell::Cell;

use super::*;

thread_local! {
    static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Makes all writes fail after `limit` bytes and steps, until the next call. Returns the rest of the previous
/// limit; none if there was no limit.
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
