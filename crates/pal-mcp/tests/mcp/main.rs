//! Well-behaved and misbehaving servers against the real client.
//!
//! The scripted server is this program, started again with the test `scripted_server::play`, which otherwise does
//! nothing.

// A test that panics has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bad_servers;
mod config_files;
mod good_servers;
mod scripted_server;
mod test_servers;
