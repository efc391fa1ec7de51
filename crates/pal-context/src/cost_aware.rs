//! The cost-aware policy (§10.5): before each request it compares the expected cost of every possible move,
//! and takes the cheapest.
//!
//! Three inputs of plain numbers: a [`SessionForecast`] learnt from the session, token prices from the card,
//! and the context that a move leaves, a [`ContextChange`]. [`weigh`] prices it; `choose` picks.
//! `policy_figures.rs` has what is fitted to recorded sessions, and `cargo run -p xtask -- fit` recomputes
//! them.
//!
//! Everything learnt within a session is part of the view's state, which a boundary carries. Pauses of earlier sessions come with the
//! settings; they may differ when a session is resumed, and change future decisions only.

mod expected_cost;
mod fit_statistics;
mod fitted_figures;
mod idle_compaction;
mod keepalive;
mod policy_choice;
mod result_reuse;
mod session_forecast;
mod ttl_choice;

pub use crate::context_policy::CostAwareSettings;

pub use crate::policy_figures::FittedFigures;
pub use expected_cost::{CachedContext, ContextChange, ExpectedCost, TokenRates, weigh};
pub use fit_statistics::{FitStatistics, recorded_activity};
pub(crate) use idle_compaction::evaluate_idle_compaction;
pub use idle_compaction::{IdleCompactionVerdict, idle_compaction_due};
pub(crate) use keepalive::evaluate_keepalive;
pub use keepalive::{KEEPALIVES_PER_PAUSE_MAX, KeepaliveVerdict, keepalive_due};
pub(crate) use policy_choice::{ClearableTokens, choose, worth_clearing};
pub use policy_choice::{PolicyChoice, PolicyMove};
pub(crate) use result_reuse::FileHistory;
pub use result_reuse::{FileActivity, ResultAge, ReuseObservation, observe_reuse, reuse_probability};
pub use session_forecast::{ForecastReliability, SessionForecast, pause_reliability, turn_reliability};
pub(crate) use ttl_choice::cheapest_ttl;
