//! Messages inside one process: names with a queue each.
//!
//! An agent takes what waits for it at its next round of tools. One lock keeps everything in order: what one sender
//! sends arrives in that order, a broadcast reaches all who are there or nobody, and a message is taken once.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pal_model::nearest;

use crate::message::Message;
use crate::name::{Address, Name};

/// How many messages may wait for one agent. Whoever does not read does not fill the memory.
pub const QUEUE_MESSAGES_MAX: usize = 10_000;

/// How many bytes may wait for one agent.
pub const QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The post office of a process. Clones share it.
#[derive(Clone, Default)]
pub struct Office {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    queues: Mutex<BTreeMap<Name, Queue>>,
    arrived: Condvar,
}

#[derive(Default)]
struct Queue {
    messages: VecDeque<Message>,
    bytes: usize,
}

/// A message that was not sent. Nobody got it.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// There is no such agent.
    #[error("there is no agent `{to}`{}", who_is_there(.to, .present))]
    Unknown {
        /// Who was written to.
        to: Name,
        /// Who is there.
        present: Vec<Name>,
    },
    /// A broadcast that nobody would get.
    #[error("nobody else is here to read a message to `*`")]
    Alone,
    /// Too much waits for this agent already.
    #[error("{waiting} messages wait for `{to}`, which does not read them; wait until it does, or end it")]
    Full {
        /// Whose queue it is.
        to: Name,
        /// How many messages are in it.
        waiting: usize,
    },
    /// The address is a socket, which is no matter of the office.
    #[error("`{0}` is the socket of another session; post to it there")]
    Elsewhere(Address),
}

/// The name is in use.
#[derive(Debug, thiserror::Error)]
#[error("there is already an agent `{0}`; choose another name")]
pub struct NameTaken(pub Name);

impl Office {
    /// An office where nobody is registered.
    pub fn new() -> Office {
        Office::default()
    }

    /// Opens a queue for this name.
    pub fn register(&self, name: &Name) -> Result<(), NameTaken> {
        let mut queues = self.queues();
        if queues.contains_key(name) {
            return Err(NameTaken(name.clone()));
        }
        queues.insert(name.clone(), Queue::default());
        Ok(())
    }

    /// Closes the queue of this name and gives back what nobody took.
    pub fn leave(&self, name: &Name) -> Vec<Message> {
        let queue = self.queues().remove(name);
        self.shared.arrived.notify_all();
        queue.map_or(Vec::new(), |queue| queue.messages.into())
    }

    /// Who is registered, in the order of the alphabet.
    pub fn present(&self) -> Vec<Name> {
        self.queues().keys().cloned().collect()
    }

    /// Puts a message into the queue of whom it is for, or of all but the sender. Answers how many got it.
    pub fn send(&self, message: &Message) -> Result<usize, SendError> {
        let mut queues = self.queues();
        let reached = match &message.to {
            Address::Name(name) => send_to_one(&mut queues, name, message)?,
            Address::Everyone => send_to_all(&mut queues, message)?,
            Address::Socket(_) => return Err(SendError::Elsewhere(message.to.clone())),
        };
        drop(queues);
        self.shared.arrived.notify_all();
        Ok(reached)
    }

    /// Takes everything that waits for this name, the oldest first.
    pub fn take(&self, name: &Name) -> Vec<Message> {
        self.queues().get_mut(name).map_or(Vec::new(), |queue| std::mem::take(queue).messages.into())
    }

    /// How many messages wait for this name.
    pub fn waiting(&self, name: &Name) -> usize {
        self.queues().get(name).map_or(0, |queue| queue.messages.len())
    }

    /// Waits until something is there for this name, for an agent that has nothing else to do. False if nothing came
    /// within the limit, or the name was closed.
    pub fn wait(&self, name: &Name, limit: Duration) -> bool {
        let is_idle = |queues: &mut BTreeMap<Name, Queue>| {
            queues.get(name).is_some_and(|queue| queue.messages.is_empty())
        };
        let waited = self.shared.arrived.wait_timeout_while(self.queues(), limit, is_idle);
        let (queues, _) = waited.unwrap_or_else(PoisonError::into_inner);
        queues.get(name).is_some_and(|queue| !queue.messages.is_empty())
    }

    /// No one panics while holding the lock half-way through a change, so a poisoned one is still whole.
    fn queues(&self) -> MutexGuard<'_, BTreeMap<Name, Queue>> {
        self.shared.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn has_room(&self, message: &Message) -> bool {
        self.messages.len() < QUEUE_MESSAGES_MAX && self.bytes + message.line().len() <= QUEUE_BYTES_MAX
    }

    fn push(&mut self, message: Message) {
        self.bytes += message.line().len();
        self.messages.push_back(message);
    }
}

fn send_to_one(
    queues: &mut BTreeMap<Name, Queue>,
    name: &Name,
    message: &Message,
) -> Result<usize, SendError> {
    let Some(queue) = queues.get_mut(name) else {
        let present = queues.keys().filter(|present| **present != message.from).cloned().collect();
        return Err(SendError::Unknown { to: name.clone(), present });
    };
    if !queue.has_room(message) {
        return Err(SendError::Full { to: name.clone(), waiting: queue.messages.len() });
    }
    queue.push(message.clone());
    Ok(1)
}

/// Looks for room everywhere first, so that a failure means that nobody got it.
fn send_to_all(queues: &mut BTreeMap<Name, Queue>, message: &Message) -> Result<usize, SendError> {
    let mut others = queues.iter().filter(|(name, _)| **name != message.from);
    if let Some((name, queue)) = others.clone().find(|(_, queue)| !queue.has_room(message)) {
        return Err(SendError::Full { to: name.clone(), waiting: queue.messages.len() });
    }
    if others.next().is_none() {
        return Err(SendError::Alone);
    }
    let mut reached = 0;
    for (_, queue) in queues.iter_mut().filter(|(name, _)| **name != message.from) {
        queue.push(message.clone());
        reached += 1;
    }
    Ok(reached)
}

/// The end of a sentence about an unknown agent: who may have been meant, and who is there.
fn who_is_there(to: &Name, present: &[Name]) -> String {
    let names: Vec<&str> = present.iter().map(Name::as_str).collect();
    let meant = nearest(to.as_str(), &names).map(|near| format!("; did you mean `{near}`?"));
    match names.is_empty() {
        true => String::from("; nobody else is here"),
        false => format!("{} (here are: {})", meant.unwrap_or_default(), names.join(", ")),
    }
}
