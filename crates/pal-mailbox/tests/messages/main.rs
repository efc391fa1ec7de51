//! Integration tests of messages between agents.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod mailbox;
mod presence;
mod processes;
mod socket;

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::time::SystemTime;

use pal_mailbox::{Address, AgentName, Envelope, EnvelopeDraft, MessageId};
use pal_model::{IdSource, Timestamp};

fn name(text: &str) -> AgentName {
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

fn message(from: &str, to: &str, text: &str) -> Envelope {
    let to: Address = to.parse().unwrap();
    EnvelopeDraft::text(name(from), to, "a message", text).seal(new_id(), now()).unwrap()
}

fn texts<'a>(messages: impl IntoIterator<Item = &'a Envelope>) -> Vec<String> {
    messages.into_iter().map(|message| message.text.to_string()).collect()
}
