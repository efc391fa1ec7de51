//! Appends bytes atomically: all of them or none.
//!
//! A failed or short write is cut off again. If that fails too, the writer refuses further work, because
//! later bytes would be taken for part of the broken line. The content of the bytes does not matter here.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Deref;

/// File behind a writer; a trait, so that tests can make it fail at any byte.
pub(crate) trait AppendSink {
    /// Writes some of `bytes` at the end.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Length of the file.
    fn length(&self) -> io::Result<u64>;
    /// Truncates the file.
    fn set_length(&mut self, length: u64) -> io::Result<()>;
    /// Syncs the file to disk.
    fn sync(&mut self) -> io::Result<()>;
}

impl<F: Deref<Target = File>> AppendSink for F {
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

/// Only writer of a file opened for appending.
pub(crate) struct AppendWriter<S> {
    sink: S,
    length: u64,
    broken: bool,
    /// Length known to be on disk.
    synced: Option<u64>,
}

/// Bytes were not appended.
#[derive(Debug)]
pub(crate) enum SinkError {
    /// The file refused them; it is unchanged, or the writer is broken from now on.
    Io(io::Error),
    /// An earlier failure could not be undone.
    Broken,
}

impl<S: AppendSink> AppendWriter<S> {
    /// Writes to a file that has `length` bytes.
    pub(crate) fn new(sink: S, length: u64) -> AppendWriter<S> {
        // An earlier process may not have synced.
        AppendWriter { sink, length, broken: false, synced: None }
    }

    pub(crate) fn sink(&self) -> &S {
        &self.sink
    }

    /// Length of the file.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Appends all bytes, with one write unless the system splits it.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        if self.broken {
            return Err(SinkError::Broken);
        }
        match self.write_all(bytes) {
            Ok(()) => {
                self.length += bytes.len() as u64;
                Ok(())
            }
            Err(error) => {
                self.broken = self.roll_back().is_err();
                Err(SinkError::Io(error))
            }
        }
    }

    /// Syncs everything appended so far.
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

    /// Records that the first `length` bytes are on disk.
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

    /// Leaves a file alone that did not grow: truncation fails on disks that turned read-only.
    fn roll_back(&mut self) -> io::Result<()> {
        if self.sink.length()? != self.length {
            self.sink.set_length(self.length)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with limited room, which may refuse to truncate.
    struct FakeDisk {
        bytes: Vec<u8>,
        room: usize,
        interrupted: bool,
        cuts: bool,
        syncs: usize,
    }

    impl AppendSink for FakeDisk {
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

    fn writer(room: usize, cuts: bool) -> AppendWriter<FakeDisk> {
        AppendWriter::new(
            FakeDisk { bytes: b"first\n".to_vec(), room, interrupted: false, cuts, syncs: 0 },
            6,
        )
    }

    #[test]
    fn short_write_leaves_the_file_unchanged() {
        for room in 6..13 {
            let mut writer = writer(room, true);
            assert!(matches!(writer.append(b"second\n"), Err(SinkError::Io(_))), "room for {room}");
            assert_eq!((writer.sink.bytes.as_slice(), writer.length()), (&b"first\n"[..], 6));
            writer.sink.room = 100;
            writer.append(b"third\n").unwrap();
            assert_eq!((writer.sink.bytes.as_slice(), writer.length()), (&b"first\nthird\n"[..], 12));
        }
    }

    #[test]
    fn failed_rollback_breaks_the_writer() {
        let mut writer = writer(9, false);
        assert!(matches!(writer.append(b"second\n"), Err(SinkError::Io(_))));
        writer.sink.room = 100;
        assert!(matches!(writer.append(b"third\n"), Err(SinkError::Broken)));
        assert_eq!(writer.sink.bytes, b"first\nsec");
    }

    #[test]
    fn read_only_disk_does_not_break_the_writer() {
        let mut writer = writer(6, false);
        assert!(matches!(writer.append(b"second\n"), Err(SinkError::Io(_))));
        writer.sink.room = 100;
        writer.append(b"third\n").unwrap();
    }

    #[test]
    fn appends_during_a_sync_stay_unsynced() {
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
