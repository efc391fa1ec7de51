//! Standard output that several threads write lines to.

use std::io::{self, Write};

/// Collects what is written until it is flushed, and writes it in one piece.
#[derive(Default)]
pub(super) struct LockedStdout {
    collected: Vec<u8>,
}

impl Write for LockedStdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.collected.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(&std::mem::take(&mut self.collected))?;
        out.flush()
    }
}
