//! Eight at once draw memories and dream on one directory, and some of them are killed: one consolidation at a time, nothing
//! that was acknowledged is lost, and the last one finds everything in order.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Child;
use std::sync::{Arc, Mutex};

use pal_memory::{Author, INDEX_FILE, MemoryChangeKind, MemoryStore};
use pal_model::Timestamp;

use super::{is_dream, is_fork, turns, write};
use crate::test_world::{TestWorld, finish};
use pal_agent_testkit::{ProviderSetup, calls, says};

/// Processes that work at once.
const AT_ONCE: usize = 8;
const ROUNDS: u64 = 3;

/// A small generator of numbers: the same seed gives the same kills.
struct RaceRandom(u64);

impl RaceRandom {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// The word of a prompt or of a dream that tells runs apart.
fn number(text: &str) -> Option<u64> {
    text.split("fact ").nth(1)?.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

fn provider(place: &Arc<Mutex<PathBuf>>) -> ProviderSetup {
    let place = Arc::clone(place);
    let mut dreamt = 0;
    ProviderSetup::answers(move |_, ask| {
        let place = place.lock().unwrap().clone();
        let said: String = ask.messages.iter().map(|message| message.blocks.concat()).collect();
        if is_dream(ask) {
            dreamt += 1;
            return match turns(ask) {
                0 => calls(
                    "",
                    &[
                        write(&place, &format!("dream-{dreamt}"), "One."),
                        write(&place, "shared", &format!("By {dreamt}.")),
                    ],
                ),
                1 => calls("", &[write(&place, "shared", &format!("By {dreamt}, again."))]),
                _ => says("Done."),
            };
        }
        match (is_fork(ask), number(&said)) {
            (true, Some(number)) => calls("", &[write(&place, &format!("fact-{number}"), "A fact.")]),
            _ => says("Noted."),
        }
    })
}

/// A started process, and whether the test kills it.
struct StartedProcess {
    child: Child,
    fact: Option<u64>,
    is_killed: bool,
}

#[test]
fn eight_parallel_processes_with_kills_lose_nothing() {
    let place = Arc::new(Mutex::new(PathBuf::new()));
    let world = TestWorld::new(provider(&place));
    place.lock().unwrap().push(world.memory());
    world.remember("kept", "This stays.");
    let mut kept = BTreeSet::new();
    let mut killed = 0;
    for round in 0..ROUNDS {
        let mut chance = RaceRandom(round + 1);
        let start = |at: usize| {
            let fact = at.is_multiple_of(2).then_some(round * 100 + at as u64);
            let mut command = match fact {
                Some(number) => world.learning(&[&format!("Remember fact {number}.")]),
                None => world.dreaming(&["--now", "--json"]),
            };
            StartedProcess { child: command.spawn().unwrap(), fact, is_killed: chance.below(3) == 0 }
        };
        let mut started: Vec<StartedProcess> = (0..AT_ONCE).map(start).collect();
        // A kill comes after a random number of requests: somewhere in the middle of the work.
        let asked = world.provider.heard().asked.len();
        let after = asked + chance.below(10) as usize;
        world.provider.wait_until(crate::test_world::PATIENCE, |heard| heard.asked.len() > after);
        for started in started.iter_mut().filter(|started| started.is_killed) {
            started.child.kill().unwrap();
        }
        for StartedProcess { child, fact, .. } in started {
            let said = finish(child);
            killed += usize::from(said.code == -1);
            // Who ended by itself has waited for what it wrote.
            kept.extend(fact.filter(|_| said.code == 0));
        }
        check(&world, &kept);
    }
    let last = world.dream(&["--now"]);
    assert_eq!(last.code, 0, "{}{}", last.out, last.err);
    let lock = std::fs::read_to_string(world.memory().join(".consolidate-lock")).unwrap();
    assert_eq!(lock, "", "the lock is given back, whoever held it");
    check(&world, &kept);
    println!("{killed} were killed, {} facts were kept", kept.len());
}

/// All that was acknowledged is there, the directory is what its history says, and the index is that of its files.
fn check(world: &TestWorld, kept: &BTreeSet<u64>) {
    let memories = world.memories();
    for number in kept {
        assert!(
            memories.contains_key(&format!("fact-{number}.md")),
            "fact {number} is lost: {:?}",
            memories.keys()
        );
    }
    assert!(memories["kept.md"].contains("This stays."));
    let now = Timestamp::from_milliseconds(1_900_000_000_000);
    let mut memory = MemoryStore::open(&world.memory(), now).unwrap();
    assert!(
        memory.outside_changes().is_empty(),
        "nothing was written behind the back of the history: {:?}",
        memory.outside_changes()
    );
    let index = &world.memories()[INDEX_FILE];
    let listed: BTreeSet<String> =
        memory.list().unwrap().into_iter().map(|listed| format!("{}.md", listed.slug)).collect();
    assert_eq!(index.lines().count(), listed.len(), "{index}");
    assert!(listed.iter().all(|file| index.contains(&format!("({file})"))), "{index}");
    // What two dreams write does not mix: the first has ended, or was taken back, before the second begins.
    let changes = memory.log().unwrap();
    let is_dream = |by: &&Author| matches!(by, Author::Named(name) if name.starts_with("dream "));
    let wrote = changes.iter().filter(|change| change.what != MemoryChangeKind::Undo);
    let mut order: Vec<&Author> = wrote.map(|change| &change.by).filter(is_dream).collect();
    order.dedup();
    let once: BTreeSet<String> = order.iter().map(ToString::to_string).collect();
    assert_eq!(once.len(), order.len(), "one consolidation at a time: {order:?}");
}
