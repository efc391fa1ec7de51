//! The log on disk, tested from outside: kills, full disks, broken files, branches.

// Clippy's leave for tests does not reach the helpers of an integration test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "store/common.rs"]
mod common;
#[path = "store/crash.rs"]
mod crash;
#[path = "store/damage.rs"]
mod damage;
#[path = "store/disk.rs"]
mod disk;
#[path = "store/naive.rs"]
mod naive;
#[path = "store/omitted_history.rs"]
mod omitted_history;
#[path = "store/open.rs"]
mod open;
#[path = "store/tree.rs"]
mod tree;
