//! Properties: every point of the history can be restored byte for byte, and a kill loses nothing that was
//! acknowledged.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pal_model::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::memory_dir::kill_after;
use crate::memory_file::{MemoryHeader, MemoryKind};

/// An action of a user, an agent or another program.
#[derive(Clone, Debug)]
enum StoreAction {
    Write(usize, String),
    Edit(usize, String),
    Remove(usize),
    /// An outside write; not all of these files are memories.
    Outside(usize, Vec<u8>),
    OutsideRemove(usize),
    /// Undo to a share of the history.
    Undo(f64),
    /// Undo to a point.
    UndoTo(u64),
    /// Revert of a session's changes since a share of the history.
    TakeBack(f64),
    /// Revert of a session's changes since a point.
    TakeBackFrom(u64),
    Use(usize),
    Reopen,
    /// A background run of several actions that is kept or reverted.
    Run(Vec<StoreAction>, bool),
}

const FILES: [&str; 5] = ["a.md", "b.md", "c.md", "MEMORY.md", "notes.txt"];

fn act() -> impl Strategy<Value = StoreAction> {
    let body = "([a-z]{0,8} ?\n?){0,6}";
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        "(---\n(name|type|x): [a-z]{1,5}\n---\n)?[a-z\n]{0,20}".prop_map(String::into_bytes),
        "(- \\[[a-z]{1,3}\\]\\([abcz]\\.md\\): x\n|# by hand\n){0,4}".prop_map(String::into_bytes),
    ];
    let written = prop_oneof![
        (0..3_usize, body).prop_map(|(file, body)| StoreAction::Write(file, body)),
        (0..3_usize, body).prop_map(|(file, body)| StoreAction::Edit(file, body)),
        (0..3_usize).prop_map(StoreAction::Remove),
        (0..FILES.len(), bytes.clone()).prop_map(|(file, bytes)| StoreAction::Outside(file, bytes)),
    ];
    let run = (prop::collection::vec(written, 0..4), any::<bool>());
    prop_oneof![
        3 => run.prop_map(|(acts, is_kept)| StoreAction::Run(acts, is_kept)),
        4 => (0..3_usize, body).prop_map(|(file, body)| StoreAction::Write(file, body)),
        2 => (0..3_usize, body).prop_map(|(file, body)| StoreAction::Edit(file, body)),
        2 => (0..3_usize).prop_map(StoreAction::Remove),
        3 => (0..FILES.len(), bytes).prop_map(|(file, bytes)| StoreAction::Outside(file, bytes)),
        1 => (0..FILES.len()).prop_map(StoreAction::OutsideRemove),
        2 => (0.0..1.0).prop_map(StoreAction::Undo),
        1 => (0.0..1.0).prop_map(StoreAction::TakeBack),
        1 => (0..3_usize).prop_map(StoreAction::Use),
        2 => Just(StoreAction::Reopen),
    ]
}

/// Visible files of the directory.
type DirSnapshot = BTreeMap<String, Vec<u8>>;

fn snapshot(directory: &Path) -> DirSnapshot {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let named = entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.path()));
    named
        .filter(|(name, _)| !name.starts_with('.'))
        .map(|(name, path)| (name, fs::read(path).unwrap()))
        .collect()
}

struct StoreHarness {
    directory: PathBuf,
    memory: MemoryStore,
    clock: u64,
    /// Content of the directory at each point.
    points: BTreeMap<u64, DirSnapshot>,
}

fn moment(clock: u64) -> Timestamp {
    Timestamp::from_milliseconds(1_800_000_000_000).after(Duration::from_secs(clock * 3_600))
}

impl StoreHarness {
    fn new(directory: &Path) -> StoreHarness {
        let memory = MemoryStore::open(directory, moment(0)).unwrap();
        StoreHarness {
            directory: directory.to_owned(),
            memory,
            clock: 0,
            points: BTreeMap::from([(0, DirSnapshot::new())]),
        }
    }

    /// Performs an action and records the content at the points that it led to.
    fn act(&mut self, act: &StoreAction) {
        let by = Author::Session { session: String::from("s"), entry: None };
        match act {
            StoreAction::Run(acts, is_kept) => self.run(acts, *is_kept),
            act => self.act_as(act, &by),
        }
    }

    fn act_as(&mut self, act: &StoreAction, by: &Author) {
        self.clock += 1;
        let before = snapshot(&self.directory);
        let from = self.memory.point();
        perform(&mut self.memory, &self.directory, act, by, moment(self.clock));
        self.note(from, &before);
    }

    /// Performs a background run; reverts it unless it is kept.
    fn run(&mut self, acts: &[StoreAction], is_kept: bool) {
        self.reopen();
        let since = self.memory.point();
        let by = Author::Named(format!("dream {since}"));
        acts.iter().for_each(|act| self.act_as(act, &by));
        self.reopen();
        if is_kept {
            return;
        }
        let (from, before) = (self.memory.point(), snapshot(&self.directory));
        self.memory.revert_author(&by, since, &by, moment(self.clock)).unwrap();
        self.note(from, &before);
        if acts.iter().all(goes_through_the_store) {
            assert_eq!(
                snapshot(&self.directory),
                self.points[&since],
                "a run that is taken back leaves nothing"
            );
        }
    }

    fn note(&mut self, from: u64, before: &DirSnapshot) {
        let changes = self.memory.log().unwrap();
        for change in changes.iter().filter(|change| change.id > from) {
            // An outside change leads to the state that was found.
            let state = match change.what {
                MemoryChangeKind::Outside => before.clone(),
                _ => self.after(change),
            };
            self.points.insert(change.id, state);
        }
    }

    /// State after a change, from the state before it and its versions.
    fn after(&self, change: &MemoryChange) -> DirSnapshot {
        let mut state = self.points.get(&(change.id - 1)).cloned().unwrap_or_default();
        for changed in &change.files {
            match changed.after {
                Some(digest) => {
                    let bytes = self.memory.journal().unwrap().version(&changed.file, digest).unwrap();
                    state.insert(changed.file.clone(), bytes)
                }
                None => state.remove(&changed.file),
            };
        }
        state
    }

    fn reopen(&mut self) {
        self.act(&StoreAction::Reopen);
    }

    /// Checks that the last point matches the directory and that every point can be restored.
    fn check(&mut self) -> Result<(), TestCaseError> {
        self.reopen();
        prop_assert_eq!(&snapshot(&self.directory), &self.points[&self.memory.point()]);
        for (point, state) in self.points.clone() {
            self.memory.undo(point, &Author::Person, moment(self.clock)).unwrap();
            prop_assert_eq!(&snapshot(&self.directory), &state, "point {}", point);
        }
        Ok(())
    }
}

/// Performs an action. Refused ones, such as editing a missing file, change nothing.
fn perform(memory: &mut MemoryStore, directory: &Path, act: &StoreAction, by: &Author, now: Timestamp) {
    let slug = |file: &usize| slug_of(FILES[*file]);
    match act {
        StoreAction::Write(file, body) => {
            let head = MemoryHeader {
                name: format!("About {}", slug(file)),
                description: body.clone(),
                kind: MemoryKind::Project,
                modified: None,
                origin: by.clone(),
            };
            let _ = memory.write(slug(file), &MemoryFile::new(head, body.clone()), by, now);
        }
        StoreAction::Edit(file, new) => {
            let old = memory.read_file(slug(file)).unwrap_or_default();
            let line = old.lines().last().unwrap_or_default().to_owned();
            let _ = memory.edit(slug(file), (&line, new), by, now);
        }
        StoreAction::Remove(file) => {
            let _ = memory.remove(slug(file), by, now);
        }
        StoreAction::Outside(file, bytes) => fs::write(directory.join(FILES[*file]), bytes).unwrap(),
        StoreAction::OutsideRemove(file) => {
            let _ = fs::remove_file(directory.join(FILES[*file]));
        }
        StoreAction::Undo(share) => {
            let to = (memory.point() as f64 * share) as u64;
            let _ = memory.undo(to, by, now);
        }
        StoreAction::UndoTo(to) => {
            let _ = memory.undo(*to, by, now);
        }
        StoreAction::TakeBack(share) => {
            let since = (memory.point() as f64 * share) as u64;
            let _ = memory.revert_author(by, since, by, now);
        }
        StoreAction::TakeBackFrom(since) => {
            let _ = memory.revert_author(by, *since, by, now);
        }
        // The harness performs the actions of a run one by one.
        StoreAction::Run(acts, _) => acts.iter().for_each(|act| perform(memory, directory, act, by, now)),
        StoreAction::Use(file) => {
            let _ = memory.note_used(slug(file), now, None);
        }
        StoreAction::Reopen => {
            if let Ok(opened) = MemoryStore::open(directory, now) {
                *memory = opened;
            }
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Reports whether the action goes through the store and can be killed halfway.
fn goes_through_the_store(act: &StoreAction) -> bool {
    !matches!(
        act,
        StoreAction::Outside(..) | StoreAction::OutsideRemove(_) | StoreAction::Use(_) | StoreAction::Run(..)
    )
}

/// Number of cases; each makes many files, and `PAL_CASES` asks for more.
fn cases() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(pal_testkit::cases(32)) }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn every_point_of_the_history_can_be_restored(acts in prop::collection::vec(act(), 1..14)) {
        let folder = tempfile::tempdir().unwrap();
        let mut world = StoreHarness::new(&folder.path().join("memory"));
        for act in &acts {
            world.act(act);
        }
        world.check()?;
    }

    #[test]
    fn a_kill_at_any_byte_loses_nothing(
        acts in prop::collection::vec(act(), 1..8),
        last in act().prop_filter("ours", goes_through_the_store),
        share in 0.0..1.0,
        again in prop::option::of(0_usize..4_000),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut world = StoreHarness::new(&folder.path().join("memory"));
        for act in &acts {
            world.act(act);
        }
        let before = snapshot(&world.directory);
        let from = world.memory.point();
        let now = moment(world.clock + 1);
        let last = match last {
            StoreAction::Undo(share) => StoreAction::UndoTo((from as f64 * share) as u64),
            StoreAction::TakeBack(share) => StoreAction::TakeBackFrom((from as f64 * share) as u64),
            last => last,
        };
        // First without a kill, to learn its cost and result.
        let by = Author::Session { session: String::from("s"), entry: None };
        let other = folder.path().join("other");
        copy(&world.directory, &other);
        let mut whole = MemoryStore::open(&other, now).unwrap();
        let noticed = snapshot(&other);
        kill_after(Some(usize::MAX));
        perform(&mut whole, &other, &last, &by, now);
        let taken = usize::MAX - kill_after(None).unwrap();
        let after = snapshot(&other);
        // The kill, and possibly another one during recovery.
        kill_after(Some((taken as f64 * share) as usize));
        perform(&mut world.memory, &world.directory, &last, &by, now);
        if let Some(again) = again {
            kill_after(Some(again));
            drop(MemoryStore::open(&world.directory, now));
        }
        kill_after(None);
        world.memory = MemoryStore::open(&world.directory, now).unwrap();
        let found = snapshot(&world.directory);
        prop_assert!(found == before || found == noticed || found == after, "{:?} {:?} {:?}", found, before, after);
        world.note(from, &before);
        world.check()?;
    }

    #[test]
    fn corrupt_history_opens_and_keeps_the_files(
        acts in prop::collection::vec(act(), 1..8),
        share in 0.0..1.0,
        spoilt in prop::sample::select(vec!["journal.jsonl", "state.json", "pending.json"]),
        junk in prop::option::of(prop::collection::vec(any::<u8>(), 0..60)),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut world = StoreHarness::new(&folder.path().join("memory"));
        for act in &acts {
            world.act(act);
        }
        world.reopen();
        let before = snapshot(&world.directory);
        let file = world.directory.join(".versions").join(spoilt);
        let bytes = fs::read(&file).unwrap_or_default();
        let cut = (bytes.len() as f64 * share) as usize;
        let mut spoilt_bytes = bytes[..cut].to_vec();
        spoilt_bytes.extend(junk.unwrap_or_default());
        fs::write(&file, &spoilt_bytes).unwrap();
        let mut memory = MemoryStore::open(&world.directory, moment(world.clock)).unwrap();
        let mut found = snapshot(&world.directory);
        let mut before = before;
        // Only the index may be rebuilt.
        found.remove(INDEX_FILE);
        before.remove(INDEX_FILE);
        prop_assert_eq!(found, before);
        let whole = spoilt_bytes.iter().take(cut).filter(|byte| **byte == b'\n').count() as u64;
        let whole = if spoilt == "journal.jsonl" { whole } else { world.points.len() as u64 - 1 };
        for (point, state) in world.points.iter().filter(|(point, _)| **point <= whole) {
            memory.undo(*point, &Author::Person, moment(world.clock)).unwrap();
            prop_assert_eq!(&snapshot(&world.directory), state, "point {}", point);
        }
    }
}
