//! Tests of prompt assembly, through its public surface.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a helper that fails is a test that fails")]

mod announcement_deltas;
mod chain;
mod common;
mod lean_profile;
mod prefix_account;
mod session_context;
mod spoofing;
mod static_prefix;
mod tools;
mod wire;
