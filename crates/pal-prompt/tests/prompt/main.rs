//! Tests of prompt assembly, through its public surface.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a helper that fails is a test that fails")]

mod account;
mod announcing;
mod chain;
mod common;
mod contexts;
mod spoofing;
mod stable;
mod tools;
mod wire;
