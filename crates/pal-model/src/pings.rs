//! Requests that only keep the provider's cache warm while a session rests: how many there were, when the last one left,
//! what they cost.
//!
//! They are folded from the entries like the rhythm, but they are no part of it: how long a session pauses has nothing to
//! do with what is sent meanwhile.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// The pings of a session.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Pings {
    /// All of them.
    pub sent: u64,
    /// Those since the newest request of the conversation.
    pub in_pause: u64,
    /// When the last one left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Timestamp>,
    /// US dollars of all of them, as far as prices are known.
    pub cost: f64,
}

impl Pings {
    /// Whether there was none.
    pub fn is_empty(&self) -> bool {
        *self == Pings::default()
    }

    /// One left; the newest request of the conversation is of this time. One that comes to be known too late is of no pause any more.
    pub fn sent(&mut self, at: Timestamp, last_request: Option<Timestamp>) {
        self.sent += 1;
        self.in_pause += u64::from(last_request <= Some(at));
        self.last = self.last.max(Some(at));
    }

    /// It was answered.
    pub fn answered(&mut self, cost: Option<f64>) {
        self.cost += cost.unwrap_or(0.0);
    }

    /// The conversation goes on.
    pub fn pause_ended(&mut self) {
        self.in_pause = 0;
    }
}
