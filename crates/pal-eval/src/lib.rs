//! Measurement of context policies on recorded sessions.
//!
//! [`replay`] runs one recorded session through the engine against the simulated provider. [`comparison`] does so for many
//! policies, models and windows and compares the costs with those of an offline optimum.

pub mod comparison;
pub mod replay;
