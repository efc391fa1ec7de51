//! Integration tests of the log: kills, full disks, damaged files, branches.

// Clippy's exception for tests does not cover helpers of an integration test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "store/branches.rs"]
mod branches;
#[path = "store/crash.rs"]
mod crash;
#[path = "store/damage.rs"]
mod damage;
#[path = "store/full_disk.rs"]
mod full_disk;
#[path = "store/naive_resume.rs"]
mod naive_resume;
#[path = "store/omitted_history.rs"]
mod omitted_history;
#[path = "store/open_errors.rs"]
mod open_errors;
#[path = "store/test_log.rs"]
mod test_log;
