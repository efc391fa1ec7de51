//! Laws: whatever is done by whomever, every point of the history can be restored byte for byte; and whatever kills a change,
//! nothing that was acknowledged is lost.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pal_model::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::folder::kill_after;
use crate::topic::Kind;

/// Something that somebody does.
#[derive(Clone, Debug)]
enum Act {
    Write(usize, String),
    Edit(usize, String),
    Remove(usize),
    /// Somebody writes a file with an editor of their own; not all of them are memories.
    Outside(usize, Vec<u8>),
    OutsideRemove(usize),
    /// A share of the history to go back to.
    Undo(f64),
    /// The same as a point.
    UndoTo(u64),
    /// What a session did since then is taken back.
    TakeBack(f64),
    /// The same from a point on.
    TakeBackFrom(u64),
    Use(usize),
    Reopen,
    /// A run in the background that does all of this, and is kept or taken back.
    Run(Vec<Act>, bool),
}

const FILES: [&str; 5] = ["a.md", "b.md", "c.md", "MEMORY.md", "notes.txt"];

fn act() -> impl Strategy<Value = Act> {
    let body = "([a-z]{0,8} ?\n?){0,6}";
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        "(---\n(name|type|x): [a-z]{1,5}\n---\n)?[a-z\n]{0,20}".prop_map(String::into_bytes),
        "(- \\[[a-z]{1,3}\\]\\([abcz]\\.md\\): x\n|# by hand\n){0,4}".prop_map(String::into_bytes),
    ];
    let written = prop_oneof![
        (0..3_usize, body).prop_map(|(file, body)| Act::Write(file, body)),
        (0..3_usize, body).prop_map(|(file, body)| Act::Edit(file, body)),
        (0..3_usize).prop_map(Act::Remove),
        (0..FILES.len(), bytes.clone()).prop_map(|(file, bytes)| Act::Outside(file, bytes)),
    ];
    let run = (prop::collection::vec(written, 0..4), any::<bool>());
    prop_oneof![
        3 => run.prop_map(|(acts, is_kept)| Act::Run(acts, is_kept)),
        4 => (0..3_usize, body).prop_map(|(file, body)| Act::Write(file, body)),
        2 => (0..3_usize, body).prop_map(|(file, body)| Act::Edit(file, body)),
        2 => (0..3_usize).prop_map(Act::Remove),
        3 => (0..FILES.len(), bytes).prop_map(|(file, bytes)| Act::Outside(file, bytes)),
        1 => (0..FILES.len()).prop_map(Act::OutsideRemove),
        2 => (0.0..1.0).prop_map(Act::Undo),
        1 => (0.0..1.0).prop_map(Act::TakeBack),
        1 => (0..3_usize).prop_map(Act::Use),
        2 => Just(Act::Reopen),
    ]
}

/// All files of the directory that are not ours alone.
type Snapshot = BTreeMap<String, Vec<u8>>;

fn snapshot(directory: &Path) -> Snapshot {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let named = entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.path()));
    named
        .filter(|(name, _)| !name.starts_with('.'))
        .map(|(name, path)| (name, fs::read(path).unwrap()))
        .collect()
}

struct World {
    directory: PathBuf,
    memory: Memory,
    clock: u64,
    /// What the directory held at each point.
    points: BTreeMap<u64, Snapshot>,
}

fn moment(clock: u64) -> Timestamp {
    Timestamp::from_milliseconds(1_800_000_000_000).after(Duration::from_secs(clock * 3_600))
}

impl World {
    fn new(directory: &Path) -> World {
        let memory = Memory::open(directory, moment(0)).unwrap();
        World {
            directory: directory.to_owned(),
            memory,
            clock: 0,
            points: BTreeMap::from([(0, Snapshot::new())]),
        }
    }

    /// Does it, and notes what the directory holds at the points that it led to.
    fn act(&mut self, act: &Act) {
        let by = Author::Session { session: String::from("s"), entry: None };
        match act {
            Act::Run(acts, is_kept) => self.run(acts, *is_kept),
            act => self.act_as(act, &by),
        }
    }

    fn act_as(&mut self, act: &Act, by: &Author) {
        self.clock += 1;
        let before = snapshot(&self.directory);
        let from = self.memory.point();
        done(&mut self.memory, &self.directory, act, by, moment(self.clock));
        self.note(from, &before);
    }

    /// A run in the background does all of it; one that fails is taken back.
    fn run(&mut self, acts: &[Act], is_kept: bool) {
        self.reopen();
        let since = self.memory.point();
        let by = Author::Named(format!("dream {since}"));
        acts.iter().for_each(|act| self.act_as(act, &by));
        self.reopen();
        if is_kept {
            return;
        }
        let (from, before) = (self.memory.point(), snapshot(&self.directory));
        self.memory.take_back(&by, since, &by, moment(self.clock)).unwrap();
        self.note(from, &before);
        if acts.iter().all(is_ours) {
            assert_eq!(
                snapshot(&self.directory),
                self.points[&since],
                "a run that is taken back leaves nothing"
            );
        }
    }

    fn note(&mut self, from: u64, before: &Snapshot) {
        let changes = self.memory.log().unwrap();
        for change in changes.iter().filter(|change| change.id > from) {
            // What others did is the state that was found; everything else is what we left.
            let state = match change.what {
                What::Outside => before.clone(),
                _ => self.after(change),
            };
            self.points.insert(change.id, state);
        }
    }

    /// The state that a change led to, from the state before it and the versions that it names.
    fn after(&self, change: &Change) -> Snapshot {
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
        self.act(&Act::Reopen);
    }

    /// The last point is what the directory holds, and every point can be gone back to.
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

/// Does it. Some acts are refused, such as editing what is not there; that changes nothing.
fn done(memory: &mut Memory, directory: &Path, act: &Act, by: &Author, now: Timestamp) {
    let slug = |file: &usize| slug_of(FILES[*file]);
    match act {
        Act::Write(file, body) => {
            let head = Head {
                name: format!("About {}", slug(file)),
                description: body.clone(),
                kind: Kind::Project,
                modified: None,
                origin: by.clone(),
            };
            let _ = memory.write(slug(file), &Topic::new(head, body.clone()), by, now);
        }
        Act::Edit(file, new) => {
            let old = memory.read_file(slug(file)).unwrap_or_default();
            let line = old.lines().last().unwrap_or_default().to_owned();
            let _ = memory.edit(slug(file), (&line, new), by, now);
        }
        Act::Remove(file) => {
            let _ = memory.remove(slug(file), by, now);
        }
        Act::Outside(file, bytes) => fs::write(directory.join(FILES[*file]), bytes).unwrap(),
        Act::OutsideRemove(file) => {
            let _ = fs::remove_file(directory.join(FILES[*file]));
        }
        Act::Undo(share) => {
            let to = (memory.point() as f64 * share) as u64;
            let _ = memory.undo(to, by, now);
        }
        Act::UndoTo(to) => {
            let _ = memory.undo(*to, by, now);
        }
        Act::TakeBack(share) => {
            let since = (memory.point() as f64 * share) as u64;
            let _ = memory.take_back(by, since, by, now);
        }
        Act::TakeBackFrom(since) => {
            let _ = memory.take_back(by, *since, by, now);
        }
        // Whoever keeps the points does its acts one by one.
        Act::Run(acts, _) => acts.iter().for_each(|act| done(memory, directory, act, by, now)),
        Act::Use(file) => {
            let _ = memory.note_used(slug(file), now, None);
        }
        Act::Reopen => {
            if let Ok(opened) = Memory::open(directory, now) {
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

/// Only what we do ourselves can be killed half-way.
fn is_ours(act: &Act) -> bool {
    !matches!(act, Act::Outside(..) | Act::OutsideRemove(_) | Act::Use(_) | Act::Run(..))
}

/// Each case makes many files; `PAL_CASES` asks for more.
fn cases() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(pal_testkit::cases(32)) }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn every_point_of_the_history_can_be_restored(acts in prop::collection::vec(act(), 1..14)) {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(&folder.path().join("memory"));
        for act in &acts {
            world.act(act);
        }
        world.check()?;
    }

    #[test]
    fn a_kill_at_any_byte_loses_nothing(
        acts in prop::collection::vec(act(), 1..8),
        last in act().prop_filter("ours", is_ours),
        share in 0.0..1.0,
        again in prop::option::of(0_usize..4_000),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(&folder.path().join("memory"));
        for act in &acts {
            world.act(act);
        }
        let before = snapshot(&world.directory);
        let from = world.memory.point();
        let now = moment(world.clock + 1);
        let last = match last {
            Act::Undo(share) => Act::UndoTo((from as f64 * share) as u64),
            Act::TakeBack(share) => Act::TakeBackFrom((from as f64 * share) as u64),
            last => last,
        };
        // The same without a kill, to know what it takes and what comes of it.
        let by = Author::Session { session: String::from("s"), entry: None };
        let other = folder.path().join("other");
        copy(&world.directory, &other);
        let mut whole = Memory::open(&other, now).unwrap();
        let noticed = snapshot(&other);
        kill_after(Some(usize::MAX));
        done(&mut whole, &other, &last, &by, now);
        let taken = usize::MAX - kill_after(None).unwrap();
        let after = snapshot(&other);
        // The kill, and perhaps another one while the first is made good.
        kill_after(Some((taken as f64 * share) as usize));
        done(&mut world.memory, &world.directory, &last, &by, now);
        if let Some(again) = again {
            kill_after(Some(again));
            drop(Memory::open(&world.directory, now));
        }
        kill_after(None);
        world.memory = Memory::open(&world.directory, now).unwrap();
        let found = snapshot(&world.directory);
        prop_assert!(found == before || found == noticed || found == after, "{:?} {:?} {:?}", found, before, after);
        world.note(from, &before);
        world.check()?;
    }

    #[test]
    fn a_spoilt_history_opens_and_keeps_what_is_there(
        acts in prop::collection::vec(act(), 1..8),
        share in 0.0..1.0,
        spoilt in prop::sample::select(vec!["journal.jsonl", "state.json", "pending.json"]),
        junk in prop::option::of(prop::collection::vec(any::<u8>(), 0..60)),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(&folder.path().join("memory"));
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
        let mut memory = Memory::open(&world.directory, moment(world.clock)).unwrap();
        let mut found = snapshot(&world.directory);
        let mut before = before;
        // The index alone may be made anew.
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
