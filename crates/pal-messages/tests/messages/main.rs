//! Messages between agents, as those who send and read them see it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod mailbox;
mod office;
mod presence;
mod processes;
mod socket;

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::time::SystemTime;

use pal_messages::{Address, Draft, Message, MessageId, Name};
use pal_model::{IdSource, Timestamp};

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn now() -> Timestamp {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    Timestamp::from_milliseconds(now.as_millis() as i64)
}

fn new_id() -> MessageId {
    thread_local! {
        static IDS: RefCell<IdSource> = RefCell::new(IdSource::seeded(RandomState::new().hash_one(std::process::id())));
    }
    IDS.with_borrow_mut(|ids| ids.next_id(now()).into())
}

fn message(from: &str, to: &str, text: &str) -> Message {
    let to: Address = to.parse().unwrap();
    Draft::text(name(from), to, "a message", text).seal(new_id(), now()).unwrap()
}

fn texts<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Vec<String> {
    messages.into_iter().map(|message| message.text.to_string()).collect()
}
