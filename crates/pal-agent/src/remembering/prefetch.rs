//! Looks up what is remembered of what the user says, on a thread of its own, while the model answers.
//!
//! Nobody ever waits for it: what is not found when it could be used is used later or never.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

use pal_memory::{Memory, Place};
use pal_model::Timestamp;

use super::FILES_MOST;

/// How many more are found than are handed over: the model may read some of them itself meanwhile.
const FOUND_MOST: usize = 2 * FILES_MOST;

/// What fits less than this share as well as the best does not fit.
const FITS_LEAST: f64 = 0.4;

/// A memory that fits.
pub(super) struct Fitting {
    /// Its file.
    pub(super) path: PathBuf,
    /// What it holds.
    pub(super) text: String,
    /// When it was changed last.
    pub(super) changed: Timestamp,
    slug: String,
}

enum Job {
    Find { number: u64, words: String, known: BTreeSet<PathBuf>, now: Timestamp },
    Book { used: Vec<Fitting>, session: String, now: Timestamp },
}

/// Looks memories up.
pub(super) struct Prefetch {
    place: Place,
    worker: Option<Worker>,
    /// The search that somebody waits for.
    awaited: Option<u64>,
    /// How many searches were begun.
    searches: u64,
    /// What the awaited search found.
    found: Option<Vec<Fitting>>,
}

struct Worker {
    jobs: Sender<Job>,
    found: Receiver<(u64, Vec<Fitting>)>,
    thread: JoinHandle<()>,
}

impl Prefetch {
    pub(super) fn new(place: Place) -> Prefetch {
        Prefetch { place, worker: None, awaited: None, searches: 0, found: None }
    }

    /// Begins to look for what fits these words and is not known yet. What was looked for before is forgotten.
    pub(super) fn begin(&mut self, words: String, known: BTreeSet<PathBuf>, now: Timestamp) {
        self.searches += 1;
        self.found = None;
        self.awaited = Some(self.searches);
        let number = self.searches;
        self.send(Job::Find { number, words, known, now });
    }

    /// Forgets what is being looked for.
    pub(super) fn give_up(&mut self) {
        (self.awaited, self.found) = (None, None);
    }

    /// What was found, if it was found by now.
    pub(super) fn found(&mut self) -> Option<Vec<Fitting>> {
        if let Some(worker) = &self.worker {
            while let Ok((number, found)) = worker.found.try_recv() {
                if self.awaited == Some(number) {
                    self.found = Some(found);
                }
            }
        }
        self.found.take()
    }

    /// Notes that memories were used.
    pub(super) fn book(&mut self, used: Vec<Fitting>, session: &str, now: Timestamp) {
        if !used.is_empty() {
            self.send(Job::Book { used, session: session.to_owned(), now });
        }
    }

    /// Ends the thread once it has done what it was asked for.
    pub(super) fn end(&mut self) {
        if let Some(Worker { jobs, thread, .. }) = self.worker.take() {
            drop(jobs);
            // One that broke down has nothing more to say.
            let _ = thread.join();
        }
    }

    fn send(&mut self, job: Job) {
        if self.worker.is_none() {
            self.worker = start(self.place.clone());
        }
        if let Some(worker) = &self.worker {
            // Without the thread nothing is found, and everything else works.
            let _ = worker.jobs.send(job);
        }
    }
}

fn start(place: Place) -> Option<Worker> {
    let (jobs, asked) = channel();
    let (tell, found) = channel();
    let work = move || {
        let mut open = Open { place, memories: Vec::new(), embeds: true };
        let mut next = asked.recv().ok();
        while let Some(job) = next.take() {
            match job {
                Job::Find { number, words, known, now } => {
                    let fitting = open.find(&words, &known, now);
                    // Nobody may want it any more.
                    let _ = tell.send((number, fitting));
                }
                Job::Book { used, session, now } => open.book(&used, &session, now),
            }
            // Whoever asks for something, or ends the thread, waits for one memory at most.
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
    Some(Worker { jobs, found, thread })
}

/// The directories, which stay open so that only what changed is read again.
struct Open {
    place: Place,
    memories: Vec<Memory>,
    /// Whether memories are made ready to be found by their meaning; not once that has failed.
    embeds: bool,
}

impl Open {
    /// Makes memories ready to be found by their meaning, until somebody wants something else.
    fn embed(&mut self, mut is_wanted: impl FnMut() -> bool) {
        for memory in &mut self.memories {
            if !self.embeds {
                return;
            }
            match memory.embed_some(&mut is_wanted) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    tracing::warn!(%error, "memories cannot be made ready to be found by their meaning");
                    self.embeds = false;
                }
            }
        }
    }

    fn find(&mut self, words: &str, known: &BTreeSet<PathBuf>, now: Timestamp) -> Vec<Fitting> {
        if self.memories.is_empty() {
            // What cannot be read was told when the session began.
            self.memories.extend(self.place.open_existing(now).ok().flatten());
            self.memories.extend(self.place.open_others().unwrap_or_default());
        }
        let mut fitting = Vec::new();
        let mut is_broken = false;
        for memory in &mut self.memories {
            match memory.search(words, FOUND_MOST + known.len(), now) {
                Ok(found) => {
                    let fits = found.into_iter().filter(|found| found.fit >= FITS_LEAST);
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
        fitting.truncate(FOUND_MOST);
        fitting
    }

    fn book(&self, used: &[Fitting], session: &str, now: Timestamp) {
        for fitting in used {
            let memory = self.memories.iter().find(|memory| fitting.path.starts_with(real(memory)));
            let noted = memory.map_or(Ok(()), |memory| memory.note_used(&fitting.slug, now, Some(session)));
            if let Err(error) = noted {
                tracing::warn!(%error, "a use of a memory is not in the books");
            }
        }
    }
}

fn read(memory: &Memory, found: pal_memory::Found) -> Option<Fitting> {
    let pal_memory::Listed { slug, changed, .. } = found.memory;
    let text = memory.read_file(&slug).ok()?;
    let path = real(memory).join(format!("{slug}.md"));
    Some(Fitting { path, text, changed, slug })
}

/// Where a directory really is, as tools name the files in it.
fn real(memory: &Memory) -> PathBuf {
    memory.path().canonicalize().unwrap_or_else(|_| memory.path().to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use pal_memory::{Author, Head, Kind, Topic};

    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_milliseconds(1_800_000_000_000)
    }

    fn place(home: &std::path::Path, names: &[&str]) -> Place {
        let place = Place::of_project(home, home);
        let mut memory = place.open(now()).unwrap();
        for name in names {
            let head = Head {
                name: (*name).to_owned(),
                description: format!("about the {name}"),
                kind: Kind::Project,
                modified: None,
                origin: Author::Person,
            };
            memory.write(name, &Topic::new(head, "A text.\n"), &Author::Person, now()).unwrap();
        }
        place
    }

    /// What is found, sooner or later.
    fn awaited(prefetch: &mut Prefetch) -> Vec<String> {
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
    fn what_nobody_waits_for_any_more_is_never_seen() {
        let home = tempfile::tempdir().unwrap();
        let mut prefetch = Prefetch::new(place(home.path(), &["parser", "lexer"]));
        prefetch.begin(String::from("the parser"), BTreeSet::new(), now());
        prefetch.give_up();
        prefetch.begin(String::from("the lexer"), BTreeSet::new(), now());
        assert_eq!(awaited(&mut prefetch), ["lexer"]);
        assert!(prefetch.found().is_none(), "it is handed over once");
        prefetch.end();
    }

    #[test]
    fn what_is_known_is_not_found_and_what_was_used_is_booked() {
        let home = tempfile::tempdir().unwrap();
        let place = place(home.path(), &["parser", "parsers"]);
        let mut prefetch = Prefetch::new(place.clone());
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
