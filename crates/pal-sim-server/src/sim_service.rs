//! State shared by all connections, and the notices sent to the server's owner.

use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pal_sim::{HttpReply, ModelExchange, SimulatedProvider};

use crate::exchange_recorder::ExchangeRecorder;
use crate::sim_clock::SimClock;

/// An event for the server's terminal.
#[derive(Clone, Copy, Debug)]
pub enum ServerNotice<'a> {
    /// A model answered.
    Exchange(&'a ModelExchange),
    /// Another route was requested, or the request was refused.
    Other {
        /// Requested path.
        path: &'a str,
        /// Reply sent.
        reply: &'a HttpReply,
    },
    /// An exchange could not be recorded.
    NotRecorded(&'a io::Error),
}

/// State shared by all connections.
pub(crate) struct SimService {
    pub(crate) simulator: Mutex<SimulatedProvider>,
    pub(crate) clock: Arc<SimClock>,
    pub(crate) record: Option<ExchangeRecorder>,
    /// Number of the next recorded request.
    pub(crate) numbers: AtomicU64,
    pub(crate) announces: bool,
    pub(crate) notice: Box<dyn Fn(ServerNotice<'_>) + Send + Sync>,
}

impl SimService {
    pub(crate) fn simulator(&self) -> MutexGuard<'_, SimulatedProvider> {
        // The simulator is consistent after a panic: one call handles one request.
        self.simulator.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
