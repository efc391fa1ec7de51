//! Servers that behave and servers that do not, against the real client.
//!
//! The scripted server is this very program, started again: the test that plays it is `server::play`, which does nothing
//! unless it is asked to.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod behaving;
mod configuring;
mod misbehaving;
mod server;
mod world;
