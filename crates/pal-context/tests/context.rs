//! The layers: their effect on small scripted logs, and laws that hold for any log.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bytes;
mod cache;
mod common;
mod compaction;
mod cost_aware;
mod fold;
mod laws;
mod ledger;
mod microcompact;
mod notes;
mod provider;
mod snip;
mod spill;
