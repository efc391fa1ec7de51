//! The agent as its users run it: the real program, real tools on real files, and the simulator as its provider.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod agents;
mod commanding;
mod consenting;
mod damage;
mod editors;
mod faults;
mod kills;
mod leftovers;
mod limits;
mod memories;
mod notes;
mod provider;
mod remembering;
mod sandboxing;
mod servers;
mod settings;
mod talking;
mod team;
mod world;
