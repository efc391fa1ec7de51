//! Measurement of context policies on recorded sessions.
//!
//! [`replay`] runs one recorded session through the engine against the simulated provider. [`comparison`] does so for many
//! policies, models and windows and compares the costs with those of an offline optimum. [`fidelity`] measures what compactions keep
//! of the facts that the agent uses next.

pub mod comparison;
pub mod fidelity;
pub mod replay;
