//! The provider's prompt cache: breakpoint plan, values latched for a session, and causes of cache-read
//! drops.

mod break_cause;
mod breakpoint_plan;
mod cold_turn;
mod fork_price;
mod request_comparison;
mod request_diff;
mod ttl_latch;

pub use break_cause::{
    CacheBaseline, CacheReadDrop, ExpectedDrop, cache_read_drop, cache_ttl_ms, diagnose_drop,
};
pub use breakpoint_plan::{BreakpointOptions, plan_breakpoints};
pub use cold_turn::{ColdTurn, cache_expiry, cold_turn};
pub use fork_price::{ForkPrice, fork_price};
pub use request_comparison::{SentRequest, find_differences};
pub use request_diff::request_diff;
pub use ttl_latch::{TtlPreference, choose_ttl, latched_ttl};

pub use crate::cache_ttl::TTL_LATCH;
