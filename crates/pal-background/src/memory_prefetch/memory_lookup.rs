//! Searches memories for the user's message on its own thread while the model answers.
//!
//! Nothing waits for it: late results are used later or never.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

use pal_memory::{MemoryLocation, MemoryStore};
use pal_model::Timestamp;

use super::FILES_MAX;

/// Extra results, since the model may read some of them itself.
const FOUND_MAX: usize = 2 * FILES_MAX;

/// Minimum score as a share of the best score.
const FITS_MIN: f64 = 0.4;

/// A matching memory.
pub(super) struct MemoryMatch {
    /// File.
    pub(super) path: PathBuf,
    /// Content.
    pub(super) text: String,
    /// Time of the last change.
    pub(super) changed: Timestamp,
    slug: String,
}

enum LookupJob {
    Find { number: u64, words: String, known: BTreeSet<PathBuf>, now: Timestamp },
    Book { used: Vec<MemoryMatch>, session: String, now: Timestamp },
}

/// Searches memories in the background.
pub(super) struct MemoryLookup {
    place: MemoryLocation,
    worker: Option<LookupWorker>,
    /// Number of the awaited search.
    awaited: Option<u64>,
    /// Number of searches started.
    searches: u64,
    /// Results of the awaited search.
    found: Option<Vec<MemoryMatch>>,
}

struct LookupWorker {
    jobs: Sender<LookupJob>,
    found: Receiver<(u64, Vec<MemoryMatch>)>,
    thread: JoinHandle<()>,
}

impl MemoryLookup {
    pub(super) fn new(place: MemoryLocation) -> MemoryLookup {
        MemoryLookup { place, worker: None, awaited: None, searches: 0, found: None }
    }

    /// Starts a search for unknown memories that match these words; replaces the previous search.
    pub(super) fn begin(&mut self, words: String, known: BTreeSet<PathBuf>, now: Timestamp) {
        self.searches += 1;
        self.found = None;
        self.awaited = Some(self.searches);
        let number = self.searches;
        self.send(LookupJob::Find { number, words, known, now });
    }

    /// Drops the running search.
    pub(super) fn give_up(&mut self) {
        (self.awaited, self.found) = (None, None);
    }

    /// Results, if they are ready.
    pub(super) fn found(&mut self) -> Option<Vec<MemoryMatch>> {
        if let Some(worker) = &self.worker {
            while let Ok((number, found)) = worker.found.try_recv() {
                if self.awaited == Some(number) {
                    self.found = Some(found);
                }
            }
        }
        self.found.take()
    }

    /// Records that memories were used.
    pub(super) fn book(&mut self, used: Vec<MemoryMatch>, session: &str, now: Timestamp) {
        if !used.is_empty() {
            self.send(LookupJob::Book { used, session: session.to_owned(), now });
        }
    }

    /// Ends the thread after its queue is empty.
    pub(super) fn end(&mut self) {
        if let Some(LookupWorker { jobs, thread, .. }) = self.worker.take() {
            drop(jobs);
            // A crashed thread has no result.
            let _ = thread.join();
        }
    }

    fn send(&mut self, job: LookupJob) {
        if self.worker.is_none() {
            self.worker = start(self.place.clone());
        }
        if let Some(worker) = &self.worker {
            // Without the thread, prefetch is off.
            let _ = worker.jobs.send(job);
        }
    }
}

fn start(place: MemoryLocation) -> Option<LookupWorker> {
    let (jobs, asked) = channel();
    let (tell, found) = channel();
    let work = move || {
        let mut open = OpenMemory { place, memories: Vec::new(), embeds: true };
        let mut next = asked.recv().ok();
        while let Some(job) = next.take() {
            match job {
                LookupJob::Find { number, words, known, now } => {
                    let fitting = open.find(&words, &known, now);
                    // The receiver may be gone.
                    let _ = tell.send((number, fitting));
                }
                LookupJob::Book { used, session, now } => open.book(&used, &session, now),
            }
            // A new job or the end waits for one memory at most.
            open.embed(|| match asked.try_recv() {
                Err(TryRecvError::Empty) => false,
                job => {
                    next = job.ok();
                    true
                }
            });
            if next.is_none() {
                next = asked.recv().ok();
            }
        }
    };
    let thread = std::thread::Builder::new().name("pal-prefetch".into()).spawn(work).ok()?;
    Some(LookupWorker { jobs, found, thread })
}

/// Open memory directories; only changes are read again.
struct OpenMemory {
    place: MemoryLocation,
    memories: Vec<MemoryStore>,
    /// Whether embeddings are computed; off after a failure.
    embeds: bool,
}

impl OpenMemory {
    /// Computes embeddings until another job arrives.
    fn embed(&mut self, mut is_wanted: impl FnMut() -> bool) {
        for memory in &mut self.memories {
            if !self.embeds {
                return;
            }
            match memory.embed_missing(&mut is_wanted) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    tracing::warn!(%error, "memories cannot be made ready to be found by their meaning");
                    self.embeds = false;
                }
            }
        }
    }

    fn find(&mut self, words: &str, known: &BTreeSet<PathBuf>, now: Timestamp) -> Vec<MemoryMatch> {
        if self.memories.is_empty() {
            // Unreadable directories were reported at the start.
            self.memories.extend(self.place.open_existing(now).ok().flatten());
            self.memories.extend(self.place.open_read_only().unwrap_or_default());
        }
        let mut fitting = Vec::new();
        let mut is_broken = false;
        for memory in &mut self.memories {
            match memory.search(words, FOUND_MAX + known.len(), now) {
                Ok(found) => {
                    let fits = found.into_iter().filter(|found| found.fit >= FITS_MIN);
                    fitting.extend(fits.filter_map(|found| read(memory, found)));
                }
                Err(error) => {
                    tracing::warn!(%error, "memories cannot be searched");
                    is_broken = true;
                }
            }
        }
        if is_broken {
            self.memories.clear();
        }
        fitting.retain(|fitting| !known.contains(&fitting.path));
        fitting.truncate(FOUND_MAX);
        fitting
    }

    fn book(&self, used: &[MemoryMatch], session: &str, now: Timestamp) {
        for fitting in used {
            let memory = self.memories.iter().find(|memory| fitting.path.starts_with(real(memory)));
            let noted = memory.map_or(Ok(()), |memory| memory.note_used(&fitting.slug, now, Some(session)));
            if let Err(error) = noted {
                tracing::warn!(%error, "a use of a memory is not in the books");
            }
        }
    }
}

fn read(memory: &MemoryStore, found: pal_memory::MemoryHit) -> Option<MemoryMatch> {
    let pal_memory::MemorySummary { slug, changed, .. } = found.memory;
    let text = memory.read_file(&slug).ok()?;
    let path = real(memory).join(format!("{slug}.md"));
    Some(MemoryMatch { path, text, changed, slug })
}

/// Real path of a directory, as tools name its files.
fn real(memory: &MemoryStore) -> PathBuf {
    memory.path().canonicalize().unwrap_or_else(|_| memory.path().to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use pal_memory::{Author, MemoryFile, MemoryHeader, MemoryKind};

    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_milliseconds(1_800_000_000_000)
    }

    fn place(home: &std::path::Path, names: &[&str]) -> MemoryLocation {
        let place = MemoryLocation::of_project(home, home);
        let mut memory = place.open(now()).unwrap();
        for name in names {
            let head = MemoryHeader {
                name: (*name).to_owned(),
                description: format!("about the {name}"),
                kind: MemoryKind::Project,
                modified: None,
                origin: Author::Person,
            };
            memory.write(name, &MemoryFile::new(head, "A text.\n"), &Author::Person, now()).unwrap();
        }
        place
    }

    /// Waits for results.
    fn awaited(prefetch: &mut MemoryLookup) -> Vec<String> {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(found) = prefetch.found() {
                return found.into_iter().map(|fitting| fitting.slug).collect();
            }
            assert!(Instant::now() < until, "nothing is found");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn an_unawaited_lookup_is_never_shown() {
        let home = tempfile::tempdir().unwrap();
        let mut prefetch = MemoryLookup::new(place(home.path(), &["parser", "lexer"]));
        prefetch.begin(String::from("the parser"), BTreeSet::new(), now());
        prefetch.give_up();
        prefetch.begin(String::from("the lexer"), BTreeSet::new(), now());
        assert_eq!(awaited(&mut prefetch), ["lexer"]);
        assert!(prefetch.found().is_none(), "it is handed over once");
        prefetch.end();
    }

    #[test]
    fn known_memories_are_left_out_and_used_ones_recorded() {
        let home = tempfile::tempdir().unwrap();
        let place = place(home.path(), &["parser", "parsers"]);
        let mut prefetch = MemoryLookup::new(place.clone());
        let known = place.directory.canonicalize().unwrap().join("parser.md");
        prefetch.begin(String::from("parser"), BTreeSet::from([known]), now());
        let until = Instant::now() + Duration::from_secs(60);
        let found = loop {
            match prefetch.found() {
                Some(found) => break found,
                None => assert!(Instant::now() < until, "nothing is found"),
            }
        };
        assert_eq!(found.iter().map(|fitting| fitting.slug.as_str()).collect::<Vec<_>>(), ["parsers"]);
        prefetch.book(found, "session", now());
        prefetch.end();
        let listed = place.open(now()).unwrap().list().unwrap();
        let uses: Vec<(&str, u64)> =
            listed.iter().map(|memory| (memory.slug.as_str(), memory.uses.count)).collect();
        assert_eq!(uses, [("parsers", 1), ("parser", 0)]);
    }
}
