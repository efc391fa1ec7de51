//! Tests of the view as its users see it: entries in, requests out.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
mod fuzz_regressions;
mod laws;
mod provider_summary;
mod references;
mod response_items;
mod scenarios;
mod spoofing;
