//! Tests of the view as its users see it: entries in, requests out.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
mod found;
mod items;
mod laws;
mod opening;
mod references;
mod scenarios;
mod spoofing;
