//! The law of the mailbox on a disk that stops at any step: delivered once, in order per sender.
//!
//! Every operation of the simulated disk is a few steps; at each of them the process that does it may be killed, or
//! another may get a turn. A kill in the middle of an append leaves its first bytes.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use pal_model::{EntryId, Timestamp};
use proptest::prelude::*;

use super::disk::Disk;
use super::poster::Poster;
use super::taker::Taker;
use super::{Limits, PostError, Posted};
use crate::message::{Draft, Message, MessageId};

/// What all processes share.
#[derive(Default)]
struct Files {
    spool: RefCell<Option<Vec<u8>>>,
    cursor: RefCell<Option<Vec<u8>>>,
    is_locked: Cell<bool>,
    stamps: Cell<u64>,
}

/// What somebody else does at a step.
type Meanwhile = Rc<RefCell<dyn FnMut()>>;

/// One process's view of the files, and when it is killed.
#[derive(Clone, Default)]
struct Simulated {
    files: Rc<Files>,
    /// How many steps are left; none for a process that lives on.
    life: Rc<Cell<Option<u32>>>,
    /// At which part of an append a kill in its middle comes, of 256.
    cut: Rc<Cell<u8>>,
    meanwhile: Option<Meanwhile>,
}

struct Held(Rc<Files>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.is_locked.set(false);
    }
}

impl Simulated {
    fn step(&self) -> io::Result<()> {
        if let Some(meanwhile) = &self.meanwhile
            && let Ok(mut meanwhile) = meanwhile.try_borrow_mut()
        {
            meanwhile();
        }
        match self.life.get() {
            Some(0) => Err(io::Error::other("killed")),
            Some(steps) => {
                self.life.set(Some(steps - 1));
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn replace(&self, file: &RefCell<Option<Vec<u8>>>, bytes: &[u8]) -> io::Result<()> {
        self.step()?;
        file.replace(Some(bytes.to_vec()));
        self.step()
    }
}

impl Disk for Simulated {
    type Lock = Held;

    fn lock(&mut self, _limit: Duration) -> io::Result<Option<Held>> {
        self.step()?;
        Ok((!self.files.is_locked.replace(true)).then(|| Held(Rc::clone(&self.files))))
    }

    fn read(&self, from: u64, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
        self.step()?;
        let spool = self.files.spool.borrow();
        let rest = spool.as_ref().map(|spool| spool.get(from as usize..).unwrap_or_default());
        Ok(rest.map(|rest| rest.iter().copied().take(bytes_max as usize).collect()))
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        assert!(self.files.is_locked.get(), "appends are made under the lock");
        let append = |part: &[u8]| {
            self.files.spool.borrow_mut().as_mut().expect("there is a spool").extend_from_slice(part)
        };
        let (first, rest) = bytes.split_at(bytes.len() * usize::from(self.cut.get()) / 256);
        self.step()?;
        append(first);
        self.step()?;
        append(rest);
        self.step()
    }

    fn sync(&mut self) -> io::Result<()> {
        self.step()
    }

    fn replace_spool(&mut self, bytes: &[u8]) -> io::Result<()> {
        assert!(self.files.is_locked.get(), "a spool is replaced under the lock");
        self.replace(&self.files.spool, bytes)
    }

    fn cursor(&self) -> io::Result<Option<Vec<u8>>> {
        self.step()?;
        Ok(self.files.cursor.borrow().clone())
    }

    fn replace_cursor(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.replace(&self.files.cursor, bytes)
    }

    fn stamp(&mut self) -> u64 {
        self.files.stamps.set(self.files.stamps.get() + 1);
        self.files.stamps.get()
    }

    fn path(&self) -> &Path {
        Path::new("mailbox")
    }
}

/// One who posts numbered messages, and after a kill posts the same again.
struct Sender {
    disk: Simulated,
    poster: Option<Poster<Simulated>>,
    name: String,
    next: u64,
    pending: Option<Message>,
    acknowledged: Vec<Message>,
    refused: usize,
}

/// The one who reads, and what it keeps: that lasts, as its log would.
struct Reader {
    disk: Simulated,
    taker: Option<Taker<Simulated>>,
    kept: Vec<Message>,
}

/// Ids grow over all senders, as times do.
#[derive(Default)]
struct Ids(Cell<u128>);

impl Ids {
    fn next(&self) -> MessageId {
        self.0.set(self.0.get() + 1);
        EntryId::from_bits(self.0.get()).into()
    }
}

impl Sender {
    fn new(files: &Rc<Files>, name: &str) -> Sender {
        let disk = Simulated { files: Rc::clone(files), ..Simulated::default() };
        let (poster, pending, acknowledged) = (None, None, Vec::new());
        Sender { disk, poster, name: name.into(), next: 0, pending, acknowledged, refused: 0 }
    }

    /// Posts the next message, or the one that a kill left in doubt.
    fn post(&mut self, ids: &Ids, limits: Limits) {
        let message = self.pending.take().unwrap_or_else(|| {
            self.next += 1;
            let (from, to) = (self.name.parse().unwrap(), "reader".parse::<crate::Name>().unwrap());
            let draft = Draft::text(from, to, "", &self.next.to_string());
            draft.seal(ids.next(), Timestamp::default()).unwrap()
        });
        let poster = self.poster.get_or_insert_with(|| Poster::new(self.disk.clone(), limits));
        match poster.post(&message, Duration::ZERO) {
            Ok(_) => self.acknowledged.push(message),
            Err(PostError::Forgotten { .. }) => self.refused += 1,
            Err(PostError::Busy { .. } | PostError::Full { .. }) => self.pending = Some(message),
            Err(PostError::Folder(_)) => {
                (self.pending, self.poster) = (Some(message), None);
                self.disk.life.set(None);
            }
        }
    }

    /// Posts once more what was acknowledged long ago.
    fn repeat(&mut self, which: usize, limits: Limits) {
        let Some(message) = self.acknowledged.get(which % self.acknowledged.len().max(1)) else { return };
        let poster = self.poster.get_or_insert_with(|| Poster::new(self.disk.clone(), limits));
        let again = poster.post(message, Duration::ZERO);
        assert!(
            !matches!(again, Ok(Posted::Now) | Err(PostError::Folder(_))),
            "{} was posted twice: {again:?}",
            message.id
        );
    }
}

impl Reader {
    fn new(files: &Rc<Files>) -> Reader {
        let disk = Simulated { files: Rc::clone(files), ..Simulated::default() };
        Reader { disk, taker: None, kept: Vec::new() }
    }

    /// Takes, keeps and confirms; a kill ends it anywhere, also between two that it keeps.
    fn read(&mut self, limits: Limits, confirms: bool) {
        if self.try_read(limits, confirms).is_err() {
            self.taker = None;
            self.disk.life.set(None);
        }
    }

    fn try_read(&mut self, limits: Limits, confirms: bool) -> Result<(), Box<dyn std::error::Error>> {
        let taker = match &mut self.taker {
            Some(taker) => taker,
            None => self.taker.insert(Taker::new(self.disk.clone(), limits)?),
        };
        for delivery in taker.take()? {
            self.disk.step()?;
            let is_kept = self.kept.iter().any(|kept| kept.id == delivery.message.id);
            assert!(delivery.perhaps_seen || !is_kept, "{} came twice, unmarked", delivery.message.id);
            if !is_kept {
                self.kept.push(delivery.message);
            }
        }
        if confirms {
            taker.confirm()?;
        }
        Ok(())
    }
}

/// Everybody, on one disk.
struct World {
    files: Rc<Files>,
    ids: Rc<Ids>,
    limits: Limits,
    senders: Vec<Rc<RefCell<Sender>>>,
    reader: Rc<RefCell<Reader>>,
}

impl World {
    fn new(senders: usize, limits: Limits) -> World {
        let files = Rc::new(Files::default());
        let sender = |number: usize| Rc::new(RefCell::new(Sender::new(&files, &format!("sender-{number}"))));
        let senders = (0..senders).map(sender).collect();
        let reader = Rc::new(RefCell::new(Reader::new(&files)));
        World { files, ids: Rc::default(), limits, senders, reader }
    }

    /// Lets everybody finish, and looks at what was kept.
    fn check(&self) {
        for _ in 0..2 {
            self.reader.borrow_mut().read(self.limits, true);
            for sender in &self.senders {
                let mut sender = sender.borrow_mut();
                while sender.pending.is_some() {
                    sender.post(&self.ids, self.limits);
                    self.reader.borrow_mut().read(self.limits, true);
                }
            }
        }
        let reader = self.reader.borrow();
        let mut kept: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for message in &reader.kept {
            kept.entry(message.from.as_str()).or_default().push(message.text.parse().unwrap());
        }
        for sender in &self.senders {
            let sender = sender.borrow();
            let mut kept: VecDeque<u64> = kept.remove(sender.name.as_str()).unwrap_or_default().into();
            for message in &sender.acknowledged {
                let number = message.text.parse().unwrap();
                // One that was refused as forgotten may be among them: it was posted before a kill.
                while sender.refused > 0 && kept.front().is_some_and(|first| *first < number) {
                    kept.pop_front();
                }
                assert_eq!(kept.pop_front(), Some(number), "of {}, once and in order", sender.name);
            }
            assert!(kept.len() <= sender.refused, "{} never posted {kept:?}", sender.name);
        }
        let spool = self.files.spool.borrow();
        let length = spool.as_ref().map_or(0, Vec::len) as u64;
        assert!(length <= self.limits.spool_bytes_max, "the spool stays bounded");
    }
}

/// One thing that happens.
#[derive(Clone, Debug)]
enum Act {
    Post {
        sender: usize,
        killed: Option<(u32, u8)>,
    },
    Repeat {
        sender: usize,
        which: usize,
    },
    Read {
        confirms: bool,
        killed: Option<u32>,
    },
    /// A reader gets a turn at every step of a post.
    ReadMeanwhile {
        sender: usize,
        killed: Option<(u32, u8)>,
    },
    /// A sender gets a turn at every step of a read.
    PostMeanwhile {
        sender: usize,
        killed: Option<u32>,
    },
}

fn any_act() -> impl Strategy<Value = Act> {
    let cut = || proptest::option::of((0..14u32, prop_oneof![any::<u8>(), Just(255)]));
    let killed = || proptest::option::of(0..24u32);
    prop_oneof![
        5 => (0..3usize, cut()).prop_map(|(sender, killed)| Act::Post { sender, killed }),
        1 => (0..3usize, any::<usize>()).prop_map(|(sender, which)| Act::Repeat { sender, which }),
        3 => (any::<bool>(), killed()).prop_map(|(confirms, killed)| Act::Read { confirms, killed }),
        2 => (0..3usize, cut()).prop_map(|(sender, killed)| Act::ReadMeanwhile { sender, killed }),
        2 => (0..3usize, killed()).prop_map(|(sender, killed)| Act::PostMeanwhile { sender, killed }),
    ]
}

fn carry_out(world: &World, act: &Act) {
    let limits = world.limits;
    match *act {
        Act::Post { sender, killed } => {
            let mut sender = world.senders[sender].borrow_mut();
            sender.disk.life.set(killed.map(|(steps, _)| steps));
            sender.disk.cut.set(killed.map_or(0, |(_, cut)| cut));
            sender.post(&world.ids, limits);
            sender.disk.life.set(None);
        }
        Act::Repeat { sender, which } => world.senders[sender].borrow_mut().repeat(which, limits),
        Act::Read { confirms, killed } => {
            let mut reader = world.reader.borrow_mut();
            reader.disk.life.set(killed);
            reader.read(limits, confirms);
            reader.disk.life.set(None);
        }
        Act::ReadMeanwhile { sender, killed } => {
            let reader = Rc::clone(&world.reader);
            let read = move || reader.borrow_mut().read(limits, true);
            with_meanwhile(&world.senders[sender], Rc::new(RefCell::new(read)));
            carry_out(world, &Act::Post { sender, killed });
            without_meanwhile(&world.senders[sender]);
        }
        Act::PostMeanwhile { sender, killed } => {
            let (other, ids) = (Rc::clone(&world.senders[sender]), Rc::clone(&world.ids));
            let post = move || other.borrow_mut().post(&ids, limits);
            let mut reader = world.reader.borrow_mut();
            reader.disk.meanwhile = Some(Rc::new(RefCell::new(post)));
            // A reader that runs has the disk that it was made with.
            reader.taker = None;
            drop(reader);
            carry_out(world, &Act::Read { confirms: true, killed });
            let mut reader = world.reader.borrow_mut();
            (reader.disk.meanwhile, reader.taker) = (None, None);
        }
    }
}

fn with_meanwhile(sender: &RefCell<Sender>, meanwhile: Meanwhile) {
    let mut sender = sender.borrow_mut();
    (sender.disk.meanwhile, sender.poster) = (Some(meanwhile), None);
}

fn without_meanwhile(sender: &RefCell<Sender>) {
    let mut sender = sender.borrow_mut();
    (sender.disk.meanwhile, sender.poster) = (None, None);
}

fn limits(clean_at_bytes: u64, remembered: usize) -> Limits {
    Limits { spool_bytes_max: 1 << 16, clean_at_bytes, remembered }
}

proptest! {
    #[test]
    fn delivered_once_and_in_order_whatever_is_killed(
        acts in proptest::collection::vec(any_act(), 1..60),
        clean_at_bytes in prop_oneof![Just(1u64), 1..2000u64, Just(1 << 20)],
    ) {
        let world = World::new(3, limits(clean_at_bytes, 1000));
        acts.iter().for_each(|act| carry_out(&world, act));
        world.check();
        prop_assert!(world.senders.iter().all(|sender| sender.borrow().refused == 0));
    }

    #[test]
    fn what_is_forgotten_never_comes_twice(acts in proptest::collection::vec(any_act(), 1..60), remembered in 0..4usize) {
        let world = World::new(3, limits(1, remembered));
        acts.iter().for_each(|act| carry_out(&world, act));
        world.check();
    }
}

/// A few rounds of posts and reads, the first of which is killed after some steps, and what follows it, too.
fn story(first: u32, second: u32, cut: u8) -> bool {
    let world = World::new(2, limits(300, 1000));
    let (mut first, mut second) = (Some(first), Some(second));
    let mut was_killed = false;
    for round in 0..8 {
        for disk in [world.senders[round % 2].borrow().disk.clone(), world.reader.borrow().disk.clone()] {
            disk.cut.set(cut);
        }
        let disk = world.senders[round % 2].borrow().disk.clone();
        was_killed |= dies(&disk, &mut first, &mut second, || {
            world.senders[round % 2].borrow_mut().post(&world.ids, world.limits)
        });
        let disk = world.reader.borrow().disk.clone();
        was_killed |= dies(&disk, &mut first, &mut second, || {
            world.reader.borrow_mut().read(world.limits, round % 3 > 0)
        });
    }
    world.check();
    was_killed
}

/// Runs with what is left of the first life, then of the second; says whether that was a kill.
fn dies(disk: &Simulated, first: &mut Option<u32>, second: &mut Option<u32>, run: impl FnOnce()) -> bool {
    let life = if first.is_some() { first } else { second };
    let Some(steps) = *life else {
        run();
        return false;
    };
    disk.life.set(Some(steps));
    run();
    *life = disk.life.take();
    life.is_none()
}

#[test]
fn two_kills_at_every_pair_of_steps() {
    let mut stories = 0;
    for first in 0.. {
        if !story(first, u32::MAX, 128) {
            break;
        }
        for second in 0.. {
            stories += 1;
            let cut = [1, 128, 255][(first + second) as usize % 3];
            story(first, second, cut);
            // The second life is longer than what is left of the story.
            if second > 160 - first.min(150) {
                break;
            }
        }
    }
    assert!(stories > 5000, "only {stories} stories");
}

#[test]
fn a_line_that_lacks_only_its_end_is_no_message_until_it_is_posted_again() {
    let world = World::new(2, limits(1 << 20, 1000));
    carry_out(&world, &Act::Post { sender: 0, killed: None });
    let whole = world.files.spool.borrow().clone();
    world.files.spool.borrow_mut().as_mut().unwrap().pop();
    carry_out(&world, &Act::Post { sender: 1, killed: None });
    assert_eq!(world.files.spool.borrow().as_ref().unwrap()[whole.unwrap().len() - 1], 0x18);
    carry_out(&world, &Act::Read { confirms: true, killed: None });
    let kept: Vec<String> = world.reader.borrow().kept.iter().map(|kept| kept.from.to_string()).collect();
    assert_eq!(kept, ["sender-1"]);
}

#[test]
fn a_mailbox_that_nobody_reads_fills_up_and_says_so() {
    let small = Limits { spool_bytes_max: 2000, clean_at_bytes: 500, remembered: 10 };
    let world = World::new(1, small);
    let mut sender = world.senders[0].borrow_mut();
    while sender.pending.is_none() {
        sender.post(&world.ids, small);
    }
    let posted = sender.acknowledged.len();
    assert!((8..20).contains(&posted), "{posted} messages fit");
    drop(sender);
    world.check();
    assert_eq!(world.reader.borrow().kept.len(), posted + 1, "once it is read, there is room");
}
