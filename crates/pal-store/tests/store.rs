//! The log on disk, tested from outside: kills, full disks, broken files, branches.

#[path = "store/common.rs"]
mod common;
#[path = "store/crash.rs"]
mod crash;
#[path = "store/disk.rs"]
mod disk;
#[path = "store/naive.rs"]
mod naive;
#[path = "store/open.rs"]
mod open;
#[path = "store/tree.rs"]
mod tree;
