//! Tests of the view as its users see it: entries in, requests out.

#![allow(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod common;
mod found;
mod laws;
