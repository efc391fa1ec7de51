//! Property: on a disk that stops at any step, messages are delivered once and in order per sender.
//!
//! Every operation of the simulated disk consists of steps; at each step the process may be killed or another
//! may run. A kill during an append leaves its first bytes.

mod simulation;

use std::cell::RefCell;
use std::rc::Rc;

use proptest::prelude::*;

use super::Limits;
use simulation::{MailboxWorld, SimulatedDisk, StepHook, TestSender};

/// One event.
#[derive(Clone, Debug)]
enum MailboxAction {
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
    /// A reader runs at every step of a post.
    ReadMeanwhile {
        sender: usize,
        killed: Option<(u32, u8)>,
    },
    /// A sender runs at every step of a read.
    PostMeanwhile {
        sender: usize,
        killed: Option<u32>,
    },
}

fn any_act() -> impl Strategy<Value = MailboxAction> {
    let cut = || proptest::option::of((0..14u32, prop_oneof![any::<u8>(), Just(255)]));
    let killed = || proptest::option::of(0..24u32);
    prop_oneof![
        5 => (0..3usize, cut()).prop_map(|(sender, killed)| MailboxAction::Post { sender, killed }),
        1 => (0..3usize, any::<usize>()).prop_map(|(sender, which)| MailboxAction::Repeat { sender, which }),
        3 => (any::<bool>(), killed()).prop_map(|(confirms, killed)| MailboxAction::Read { confirms, killed }),
        2 => (0..3usize, cut()).prop_map(|(sender, killed)| MailboxAction::ReadMeanwhile { sender, killed }),
        2 => (0..3usize, killed()).prop_map(|(sender, killed)| MailboxAction::PostMeanwhile { sender, killed }),
    ]
}

fn perform(world: &MailboxWorld, act: &MailboxAction) {
    let limits = world.limits;
    match *act {
        MailboxAction::Post { sender, killed } => {
            let mut sender = world.senders[sender].borrow_mut();
            sender.disk.life.set(killed.map(|(steps, _)| steps));
            sender.disk.cut.set(killed.map_or(0, |(_, cut)| cut));
            sender.post(&world.ids, limits);
            sender.disk.life.set(None);
        }
        MailboxAction::Repeat { sender, which } => world.senders[sender].borrow_mut().repeat(which, limits),
        MailboxAction::Read { confirms, killed } => {
            let mut reader = world.reader.borrow_mut();
            reader.disk.life.set(killed);
            reader.read(limits, confirms);
            reader.disk.life.set(None);
        }
        MailboxAction::ReadMeanwhile { sender, killed } => {
            let reader = Rc::clone(&world.reader);
            let read = move || reader.borrow_mut().read(limits, true);
            with_meanwhile(&world.senders[sender], Rc::new(RefCell::new(read)));
            perform(world, &MailboxAction::Post { sender, killed });
            without_meanwhile(&world.senders[sender]);
        }
        MailboxAction::PostMeanwhile { sender, killed } => {
            let (other, ids) = (Rc::clone(&world.senders[sender]), Rc::clone(&world.ids));
            let post = move || other.borrow_mut().post(&ids, limits);
            let mut reader = world.reader.borrow_mut();
            reader.disk.meanwhile = Some(Rc::new(RefCell::new(post)));
            // A running reader keeps the disk that it was created with.
            reader.taker = None;
            drop(reader);
            perform(world, &MailboxAction::Read { confirms: true, killed });
            let mut reader = world.reader.borrow_mut();
            (reader.disk.meanwhile, reader.taker) = (None, None);
        }
    }
}

fn with_meanwhile(sender: &RefCell<TestSender>, meanwhile: StepHook) {
    let mut sender = sender.borrow_mut();
    (sender.disk.meanwhile, sender.poster) = (Some(meanwhile), None);
}

fn without_meanwhile(sender: &RefCell<TestSender>) {
    let mut sender = sender.borrow_mut();
    (sender.disk.meanwhile, sender.poster) = (None, None);
}

fn limits(clean_at_bytes: u64, remembered: usize) -> Limits {
    Limits { spool_bytes_max: 1 << 16, clean_at_bytes, remembered }
}

proptest! {
    #[test]
    fn messages_arrive_once_and_in_order_despite_kills(
        acts in proptest::collection::vec(any_act(), 1..60),
        clean_at_bytes in prop_oneof![Just(1u64), 1..2000u64, Just(1 << 20)],
    ) {
        let world = MailboxWorld::new(3, limits(clean_at_bytes, 1000));
        acts.iter().for_each(|act| perform(&world, act));
        world.check();
        prop_assert!(world.senders.iter().all(|sender| sender.borrow().refused == 0));
    }

    #[test]
    fn forgotten_messages_are_never_delivered_twice(acts in proptest::collection::vec(any_act(), 1..60), remembered in 0..4usize) {
        let world = MailboxWorld::new(3, limits(1, remembered));
        acts.iter().for_each(|act| perform(&world, act));
        world.check();
    }
}

/// A few rounds of posts and reads with two kills.
fn story(first: u32, second: u32, cut: u8) -> bool {
    let world = MailboxWorld::new(2, limits(300, 1000));
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

/// Runs with the rest of the first life, then of the second; returns whether that was a kill.
fn dies(disk: &SimulatedDisk, first: &mut Option<u32>, second: &mut Option<u32>, run: impl FnOnce()) -> bool {
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
            // The second life outlasts the story.
            if second > 160 - first.min(150) {
                break;
            }
        }
    }
    assert!(stories > 5000, "only {stories} stories");
}

#[test]
fn line_without_line_end_is_no_message() {
    let world = MailboxWorld::new(2, limits(1 << 20, 1000));
    perform(&world, &MailboxAction::Post { sender: 0, killed: None });
    let whole = world.files.spool.borrow().clone();
    world.files.spool.borrow_mut().as_mut().unwrap().pop();
    perform(&world, &MailboxAction::Post { sender: 1, killed: None });
    assert_eq!(world.files.spool.borrow().as_ref().unwrap()[whole.unwrap().len() - 1], 0x18);
    perform(&world, &MailboxAction::Read { confirms: true, killed: None });
    let kept: Vec<String> = world.reader.borrow().kept.iter().map(|kept| kept.from.to_string()).collect();
    assert_eq!(kept, ["sender-1"]);
}

#[test]
fn unread_mailbox_fills_up_with_an_error() {
    let small = Limits { spool_bytes_max: 2000, clean_at_bytes: 500, remembered: 10 };
    let world = MailboxWorld::new(1, small);
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
