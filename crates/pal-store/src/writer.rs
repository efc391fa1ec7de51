//! Appending bytes so that they are there whole or not at all.
//!
//! What a failed or short write left behind is cut off again. If even that fails, the writer refuses all further
//! work: bytes behind a broken line would be taken for part of it. Nothing here knows what the bytes mean.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Deref;

/// The file behind a writer. A trait, so that tests can let it fail at any byte.
pub(crate) trait Sink {
    /// Writes some of `bytes` at the end.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// How long the file is.
    fn length(&self) -> io::Result<u64>;
    /// Cuts the file.
    fn set_length(&mut self, length: u64) -> io::Result<()>;
    /// Makes what was written last.
    fn sync(&mut self) -> io::Result<()>;
}

impl<F: Deref<Target = File>> Sink for F {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut file: &File = self;
        Write::write(&mut file, bytes)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// The only writer of one file that was opened for appending.
pub(crate) struct Writer<S> {
    sink: S,
    length: u64,
    broken: bool,
    /// How much of the file is known to last.
    synced: Option<u64>,
}

/// Bytes that were not appended.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// The file refused them; it is as before, or will be refused from now on.
    Io(io::Error),
    /// An earlier failure could not be undone.
    Broken,
}

impl<S: Sink> Writer<S> {
    /// A writer of a file that is `length` bytes long.
    pub(crate) fn new(sink: S, length: u64) -> Writer<S> {
        // What an earlier process wrote may not have been synced.
        Writer { sink, length, broken: false, synced: None }
    }

    pub(crate) fn sink(&self) -> &S {
        &self.sink
    }

    /// How long the file is.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Appends all bytes, with one write unless the system cuts it short.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        if self.broken {
            return Err(WriteError::Broken);
        }
        match self.write_all(bytes) {
            Ok(()) => {
                self.length += bytes.len() as u64;
                Ok(())
            }
            Err(error) => {
                self.broken = self.take_back().is_err();
                Err(WriteError::Io(error))
            }
        }
    }

    /// Makes everything appended so far last.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        if !self.is_synced() {
            self.sink.sync()?;
            self.note_synced(self.length);
        }
        Ok(())
    }

    pub(crate) fn is_synced(&self) -> bool {
        self.synced == Some(self.length)
    }

    /// Somebody made the first bytes last.
    pub(crate) fn note_synced(&mut self, length: u64) {
        self.synced = self.synced.max(Some(length));
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.sink.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// A file that did not grow is left alone: cutting fails on disks that turned read-only.
    fn take_back(&mut self) -> io::Result<()> {
        if self.sink.length()? != self.length {
            self.sink.set_length(self.length)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with room for some bytes, which may refuse to cut.
    struct Disk {
        bytes: Vec<u8>,
        room: usize,
        interrupted: bool,
        cuts: bool,
        syncs: usize,
    }

    impl Sink for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.interrupted = !self.interrupted;
            if self.interrupted {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let fits = bytes.len().min(self.room - self.bytes.len());
            if fits == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.bytes.extend_from_slice(&bytes[..fits]);
            Ok(fits)
        }

        fn length(&self) -> io::Result<u64> {
            Ok(self.bytes.len() as u64)
        }

        fn set_length(&mut self, length: u64) -> io::Result<()> {
            if !self.cuts {
                return Err(io::ErrorKind::ReadOnlyFilesystem.into());
            }
            self.bytes.truncate(length as usize);
            Ok(())
        }

        fn sync(&mut self) -> io::Result<()> {
            self.syncs += 1;
            Ok(())
        }
    }

    fn writer(room: usize, cuts: bool) -> Writer<Disk> {
        Writer::new(Disk { bytes: b"first\n".to_vec(), room, interrupted: false, cuts, syncs: 0 }, 6)
    }

    #[test]
    fn a_write_cut_short_at_any_byte_leaves_the_file_as_before() {
        for room in 6..13 {
            let mut writer = writer(room, true);
            assert!(matches!(writer.append(b"second\n"), Err(WriteError::Io(_))), "room for {room}");
            assert_eq!((writer.sink.bytes.as_slice(), writer.length()), (&b"first\n"[..], 6));
            writer.sink.room = 100;
            writer.append(b"third\n").unwrap();
            assert_eq!((writer.sink.bytes.as_slice(), writer.length()), (&b"first\nthird\n"[..], 12));
        }
    }

    #[test]
    fn what_cannot_be_taken_back_ends_the_writing() {
        let mut writer = writer(9, false);
        assert!(matches!(writer.append(b"second\n"), Err(WriteError::Io(_))));
        writer.sink.room = 100;
        assert!(matches!(writer.append(b"third\n"), Err(WriteError::Broken)));
        assert_eq!(writer.sink.bytes, b"first\nsec");
    }

    #[test]
    fn a_disk_that_turned_read_only_breaks_nothing() {
        let mut writer = writer(6, false);
        assert!(matches!(writer.append(b"second\n"), Err(WriteError::Io(_))));
        writer.sink.room = 100;
        writer.append(b"third\n").unwrap();
    }

    #[test]
    fn what_came_after_a_sync_began_is_not_taken_for_synced() {
        let mut writer = writer(100, true);
        let begun = writer.length();
        writer.append(b"second\n").unwrap();
        writer.note_synced(begun);
        assert!(!writer.is_synced());
        writer.sync().unwrap();
        writer.sync().unwrap();
        assert_eq!(writer.sink.syncs, 1, "once for the second line, not again for nothing");
    }
}
