//! The simulator behind a socket: HTTP on loopback, a clock that is real or virtual, and a folder of what was said.
//!
//! It adds nothing to what [`pal_sim::Simulator`] answers but two doors of its own under `/sim`: the clock
//! (`GET /sim/clock`, and `POST /sim/clock` with `{"advance_seconds": 3600}` where it is virtual) and the ledger
//! (`GET /sim/ledger`), in which every exchange stands with its usage and its cost.

mod clock;
mod doors;
mod play;
mod record;
mod server;

pub use clock::Speed;
pub use server::{Notice, Options, serve};
