//! Index of token usage in session files: what was read once is not read again.
//!
//! The index lives in `usage/` of pal's home as 64 files (0600), by the directory of a session, so that a session that
//! grew rewrites a small part. Of a grown file only the rest is read; a file that was replaced is read as a whole. Rows
//! of files that were deleted since stay: the money was spent. The index holds token counts, times, model names, ids and
//! paths, and never text of a conversation.

mod shard_codec;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use pal_import::UsageScan;
use pal_model::TokenEstimator;
use xxhash_rust::xxh3::xxh3_64;

/// Number of files of the index.
const SHARDS: usize = 64;
/// Bytes read at a time.
const CHUNK_BYTES: usize = 8 << 20;
/// Bytes within which the format of a JSONL file shows.
const START_BYTES: usize = 1 << 20;
/// Largest file that is read as a whole.
const WHOLE_BYTES_MAX: u64 = 512 << 20;
/// Bytes before the end of a scan that are compared before it continues.
const TAIL_BYTES: u64 = 256;
/// Threads that read files at the same time.
const READERS_MAX: usize = 8;

/// A session file with its usage, as far as it was read.
#[derive(Clone, PartialEq, Debug)]
pub struct IndexedUsage {
    /// Path of the file.
    pub path: PathBuf,
    /// Size when it was read.
    size: u64,
    /// Time of its last change when it was read, in nanoseconds.
    modified_ns: i64,
    /// Hash of the bytes before the end of the scan.
    tail_hash: u64,
    /// Its usage; `None` if no known agent wrote it.
    pub scan: Option<UsageScan>,
    /// The file is no longer there.
    pub is_deleted: bool,
}

/// Result of [`read_usage`].
#[derive(Debug, Default)]
pub struct UsageFiles {
    /// Session files with usage, files of no known agent left out.
    pub files: Vec<IndexedUsage>,
    /// Files whose bytes were read: new, grown or replaced ones.
    pub read_files: usize,
    /// Bytes read from them.
    pub read_bytes: u64,
    /// Files that no known agent wrote.
    pub unknown_files: Vec<PathBuf>,
    /// Files that could not be read, with the reason.
    pub unreadable: Vec<(PathBuf, String)>,
    /// Reason why the index could not be saved.
    pub index_error: Option<String>,
}

/// Reads the usage of session files, through the index in `home`; without a home, all files are read. Indexed files
/// below `roots` that were deleted since are returned, too. `on_progress` is called on this thread with the number of
/// files looked at.
pub fn read_usage(
    paths: &[PathBuf],
    roots: &[PathBuf],
    home: Option<&Path>,
    measure: &(dyn TokenEstimator + Sync),
    mut on_progress: impl FnMut(usize),
) -> UsageFiles {
    let directory = home.map(|home| home.join("usage"));
    let mut known = directory.as_deref().map_or_else(BTreeMap::new, load_all);
    let mut work = Vec::with_capacity(paths.len());
    for path in paths {
        work.push((path, known.remove(path)));
    }
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let work: Vec<WorkSlot<'_>> = work.into_iter().map(|item| Mutex::new(Some(item))).collect();
    let run = |on_progress: &mut dyn FnMut(usize)| {
        let mut results = Vec::new();
        while let Some(slot) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
            // A slot is taken by one thread only, so the lock is free and was never poisoned.
            let taken = slot.lock().ok().and_then(|mut slot| slot.take());
            if let Some((path, entry)) = taken {
                results.push(refresh(path, entry, measure));
            }
            on_progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        }
        results
    };
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(READERS_MAX));
    let results = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(|| run(&mut |_| ()))).collect();
        let mut results = run(&mut on_progress);
        results.extend(others.into_iter().filter_map(|thread| thread.join().ok()).flatten());
        results
    });
    let mut found = UsageFiles::default();
    let mut changed = [false; SHARDS];
    let mut entries = Vec::with_capacity(results.len() + known.len());
    for result in results {
        match result {
            Refreshed::Unchanged(entry) => entries.push(entry),
            Refreshed::Read { entry, bytes } => {
                changed[shard_of(&entry.path)] = true;
                found.read_files += 1;
                found.read_bytes += bytes;
                entries.push(entry);
            }
            Refreshed::Failed(path, error) => found.unreadable.push((path, error.to_string())),
        }
    }
    // What was not asked for stays in the index.
    let others: Vec<IndexedUsage> = known
        .into_values()
        .map(|entry| {
            let is_wanted = roots.iter().any(|root| entry.path.starts_with(root));
            IndexedUsage { is_deleted: is_wanted && !entry.path.exists(), ..entry }
        })
        .collect();
    if let Some(directory) = directory.as_deref().filter(|_| changed.contains(&true)) {
        let saved = save(directory, &changed, entries.iter().chain(&others));
        found.index_error = saved.err().map(|error| format!("{}: {error}", directory.display()));
    }
    let deleted = others.into_iter().filter(|entry| entry.is_deleted);
    for entry in entries.into_iter().chain(deleted) {
        match &entry.scan {
            Some(_) => found.files.push(entry),
            None => found.unknown_files.push(entry.path),
        }
    }
    found.files.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

/// A file to look at, with what the index has of it, until a thread takes it.
type WorkSlot<'a> = Mutex<Option<(&'a PathBuf, Option<IndexedUsage>)>>;

/// Outcome for one file.
enum Refreshed {
    Unchanged(IndexedUsage),
    Read { entry: IndexedUsage, bytes: u64 },
    Failed(PathBuf, io::Error),
}

fn refresh(path: &Path, known: Option<IndexedUsage>, measure: &dyn TokenEstimator) -> Refreshed {
    match try_refresh(path, known, measure) {
        Ok(refreshed) => refreshed,
        Err(error) => Refreshed::Failed(path.to_owned(), error),
    }
}

fn try_refresh(
    path: &Path,
    known: Option<IndexedUsage>,
    measure: &dyn TokenEstimator,
) -> io::Result<Refreshed> {
    let metadata = std::fs::metadata(path)?;
    let (size, modified_ns) = (
        metadata.len(),
        metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec()),
    );
    let known = match known {
        Some(entry) if entry.size == size && entry.modified_ns == modified_ns => {
            return Ok(Refreshed::Unchanged(entry));
        }
        known => known,
    };
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut file = File::open(path)?;
    let mut entry = IndexedUsage { size, modified_ns, ..entry_of(path) };
    let mut scan = known.and_then(|known| continued(&known, size, &mut file));
    let start = scan.as_ref().map_or(0, |scan| scan.progress.bytes);
    if scan.is_none() {
        scan = begin(path, size, &mut file)?;
    }
    if let Some(scan) = &mut scan {
        read_rest(scan, size, &mut file, measure)?;
        entry.tail_hash = tail_hash(&mut file, scan.progress.bytes)?;
    }
    entry.scan = scan;
    Ok(Refreshed::Read { entry, bytes: size.saturating_sub(start) })
}

fn entry_of(path: &Path) -> IndexedUsage {
    IndexedUsage {
        path: path.to_owned(),
        size: 0,
        modified_ns: 0,
        tail_hash: 0,
        scan: None,
        is_deleted: false,
    }
}

/// The earlier scan, if the file only grew.
fn continued(known: &IndexedUsage, size: u64, file: &mut File) -> Option<UsageScan> {
    let scan = known.scan.as_ref()?;
    let is_same = scan.is_incremental()
        && size >= scan.progress.bytes
        && tail_hash(file, scan.progress.bytes).ok()? == known.tail_hash;
    is_same.then(|| scan.clone())
}

/// Detects the format of a file.
fn begin(path: &Path, size: u64, file: &mut File) -> io::Result<Option<UsageScan>> {
    let is_lines = path.extension().is_some_and(|ending| ending == "jsonl");
    let limit = if is_lines { START_BYTES as u64 } else { size.min(WHOLE_BYTES_MAX) };
    file.seek(SeekFrom::Start(0))?;
    let mut start = Vec::new();
    file.by_ref().take(limit).read_to_end(&mut start)?;
    let found = UsageScan::start(&start);
    if found.is_some() || !is_lines || size <= limit {
        return Ok(found);
    }
    // A first line longer than usual.
    file.seek(SeekFrom::Start(0))?;
    start.clear();
    file.by_ref().take(WHOLE_BYTES_MAX).read_to_end(&mut start)?;
    Ok(UsageScan::start(&start))
}

/// Reads a file from where the scan ended.
fn read_rest(
    scan: &mut UsageScan,
    size: u64,
    file: &mut File,
    measure: &dyn TokenEstimator,
) -> io::Result<()> {
    if !scan.is_incremental() {
        let mut whole = Vec::new();
        file.seek(SeekFrom::Start(0))?;
        file.by_ref().take(WHOLE_BYTES_MAX).read_to_end(&mut whole)?;
        scan.push(&whole, true, measure);
        return Ok(());
    }
    file.seek(SeekFrom::Start(scan.progress.bytes))?;
    let mut buffer = Vec::new();
    loop {
        let before = buffer.len();
        let read = file.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut buffer)?;
        if read == 0 {
            // A last line without a line end counts if it is whole; otherwise it is being written.
            if buffer.trim_ascii_end().ends_with(b"}") {
                scan.push(&buffer, true, measure);
            }
            return Ok(());
        }
        if memchr::memchr(b'\n', &buffer[before..]).is_some() {
            let taken = scan.push(&buffer, false, measure);
            buffer.drain(..taken);
        }
        if scan.progress.bytes + buffer.len() as u64 >= size && buffer.is_empty() {
            return Ok(());
        }
    }
}

/// Hash of the bytes before a position.
fn tail_hash(file: &mut File, end: u64) -> io::Result<u64> {
    let start = end.saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.by_ref().take(end - start).read_to_end(&mut bytes)?;
    Ok(xxh3_64(&bytes))
}

fn shard_of(path: &Path) -> usize {
    let directory = path.parent().unwrap_or(path).as_os_str().as_encoded_bytes();
    xxh3_64(directory) as usize % SHARDS
}

fn shard_path(directory: &Path, shard: usize) -> PathBuf {
    directory.join(format!("{shard:02}.index"))
}

/// Loads all entries; a damaged file, or one of another version, is read anew.
fn load_all(directory: &Path) -> BTreeMap<PathBuf, IndexedUsage> {
    let mut known = BTreeMap::new();
    for shard in 0..SHARDS {
        let Ok(bytes) = std::fs::read(shard_path(directory, shard)) else { continue };
        for entry in shard_codec::decode(&bytes).unwrap_or_default() {
            known.insert(entry.path.clone(), entry);
        }
    }
    known
}

fn save<'a>(
    directory: &Path,
    changed: &[bool; SHARDS],
    entries: impl Iterator<Item = &'a IndexedUsage>,
) -> io::Result<()> {
    pal_store::create_private_directory(directory).map_err(|error| io::Error::other(error.to_string()))?;
    let mut shards: BTreeMap<usize, Vec<&IndexedUsage>> = BTreeMap::new();
    for entry in entries {
        let shard = shard_of(&entry.path);
        if changed[shard] {
            shards.entry(shard).or_default().push(entry);
        }
    }
    for (shard, entries) in shards {
        // Two programs may save at once: the last one wins, and the next run reads what is missing.
        let path = shard_path(directory, shard);
        let part = directory.join(format!("{shard:02}-{}", std::process::id()));
        pal_store::replace_private_file(&part, &shard_codec::encode(&entries))?;
        std::fs::rename(&part, path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    use pal_testkit::ByteThirds;

    use super::*;

    fn line(id: &str, output: u64) -> String {
        format!(
            r#"{{"type":"assistant","uuid":"u-{id}","sessionId":"s1","cwd":"/src/app","timestamp":"2026-11-15T09:00:00.000Z","requestId":"r-{id}","message":{{"id":"{id}","model":"claude-opus-5","stop_reason":"end_turn","usage":{{"input_tokens":10,"output_tokens":{output}}},"content":[]}}}}"#
        ) + "\n"
    }

    struct World {
        directory: tempfile::TempDir,
    }

    impl World {
        fn new() -> World {
            World { directory: tempfile::tempdir().unwrap() }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.directory.path().join("sessions").join(name)
        }

        fn write(&self, name: &str, text: &str) -> PathBuf {
            let path = self.path(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            path
        }

        fn read(&self, paths: &[PathBuf]) -> UsageFiles {
            let home = self.directory.path().join("pal");
            let roots = [self.directory.path().join("sessions")];
            read_usage(paths, &roots, Some(&home), &ByteThirds, |_| ())
        }
    }

    fn outputs(found: &UsageFiles) -> Vec<u32> {
        found.files.iter().flat_map(|file| &file.scan.as_ref().unwrap().rows).map(|row| row.output).collect()
    }

    #[test]
    fn a_grown_file_costs_its_tail_and_an_unchanged_one_nothing() {
        let world = World::new();
        let path = world.write("a.jsonl", &line("m1", 5));
        let paths = [path.clone()];
        let first = world.read(&paths);
        assert_eq!((outputs(&first), first.read_files), (vec![5], 1));
        let again = world.read(&paths);
        assert_eq!((outputs(&again), again.read_files, again.read_bytes), (vec![5], 0, 0));
        let more = line("m2", 7);
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(more.as_bytes()).unwrap();
        // The start of a line that is being written.
        file.write_all(b"{\"type\":\"assistant\"").unwrap();
        let grown = world.read(&paths);
        assert_eq!((outputs(&grown), grown.read_files), (vec![5, 7], 1));
        assert_eq!(grown.read_bytes, more.len() as u64 + 19);
        std::fs::write(&path, line("m9", 1).repeat(3)).unwrap();
        assert_eq!(outputs(&world.read(&paths)), [1], "a replaced file is read anew");
    }

    #[test]
    fn files_of_the_index_are_private_and_damage_is_repaired_by_reading() {
        let world = World::new();
        let paths = [world.write("a.jsonl", &line("m1", 5)), world.write("notes.jsonl", "{\"a\":1}\n")];
        let found = world.read(&paths);
        assert_eq!(found.unknown_files, [world.path("notes.jsonl")]);
        let index = world.directory.path().join("pal/usage");
        let files: Vec<PathBuf> =
            std::fs::read_dir(&index).unwrap().map(|file| file.unwrap().path()).collect();
        assert_eq!(files.len(), 1);
        assert_eq!(std::fs::metadata(&files[0]).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(&index).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(world.read(&paths).read_files, 0, "a file of no agent is remembered, too");
        let bytes = std::fs::read(&files[0]).unwrap();
        for cut in 0..bytes.len() {
            assert!(shard_codec::decode(&bytes[..cut]).is_none(), "cut at {cut}");
        }
        std::fs::write(&files[0], &bytes[..bytes.len() / 2]).unwrap();
        let again = world.read(&paths);
        assert_eq!((outputs(&again), again.read_files), (vec![5], 2));
    }

    #[test]
    fn deleted_files_keep_their_figures() {
        let world = World::new();
        let (a, b) = (world.write("a.jsonl", &line("m1", 5)), world.write("b.jsonl", &line("m2", 6)));
        world.read(&[a.clone(), b.clone()]);
        std::fs::remove_file(&a).unwrap();
        let found = world.read(std::slice::from_ref(&b));
        assert_eq!(outputs(&found), [5, 6]);
        assert!(found.files[0].is_deleted && !found.files[1].is_deleted);
    }
}
