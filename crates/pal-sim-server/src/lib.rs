//! HTTP server for the simulated provider on loopback, with a real or virtual clock and an optional record of
//! all exchanges.
//!
//! Besides the replies of [`pal_sim::SimulatedProvider`] it has two routes under `/sim`: the clock (`GET
//! /sim/clock`, and `POST /sim/clock` with `{"advance_seconds": 3600}` if it is virtual) and the ledger (`GET
//! /sim/ledger`) of all exchanges with usage and cost.

mod exchange_recorder;
mod routes;
mod server;
mod sim_clock;
mod sim_service;
mod timed_body;

pub use server::{SimServerOptions, serve};
pub use sim_clock::ClockSpeed;
pub use sim_service::ServerNotice;
