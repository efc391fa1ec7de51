//! The provider's cache: where marks go, what is fixed for a session so that they keep their worth, and why reads fell.

mod compare;
mod diff;
mod judge;
mod latch;
mod plan;

pub use compare::{Asked, difference};
pub use diff::diff;
pub use judge::{Baseline, Expected, Fall, judge, kept_ms, reads_fell};
pub use latch::{Eligibility, LIFETIME_LATCH, latched_lifetime, lifetime_of};
pub use plan::{Marking, plan};
