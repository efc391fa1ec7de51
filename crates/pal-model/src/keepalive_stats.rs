//! Cache keepalive statistics: requests that only keep the provider's cache warm while a session is idle.
//!
//! They are accumulated entry by entry like the activity statistics, but kept apart: a keepalive request does not end a
//! pause.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// Number, time and cost of a session's keepalive requests.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct KeepaliveStats {
    /// Total number.
    pub sent: u64,
    /// Number since the newest request of the conversation.
    pub in_pause: u64,
    /// Time of the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Timestamp>,
    /// Total cost in US dollars; responses without a known price count as zero.
    pub cost: f64,
}

impl KeepaliveStats {
    /// Returns true if there was none.
    pub fn is_empty(&self) -> bool {
        *self == KeepaliveStats::default()
    }

    /// Records a keepalive request. One sent before `last_request`, the conversation's newest request, does not count
    /// for the current pause.
    pub fn record_request(&mut self, at: Timestamp, last_request: Option<Timestamp>) {
        self.sent += 1;
        self.in_pause += u64::from(last_request <= Some(at));
        self.last = self.last.max(Some(at));
    }

    /// Adds the cost of a response.
    pub fn add_cost(&mut self, cost: Option<f64>) {
        self.cost += cost.unwrap_or(0.0);
    }

    /// Ends the pause: the conversation continues.
    pub fn end_pause(&mut self) {
        self.in_pause = 0;
    }
}
