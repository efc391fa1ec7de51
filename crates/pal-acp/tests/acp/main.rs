//! The protocol server in the process of the test: the client side of the protocol's own crate on an in-memory transport,
//! real agents and tools, and the simulated provider.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod prompts;
mod sessions;
mod test_editor;
mod test_host;
