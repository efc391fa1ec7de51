//! End-to-end import tests: laws over real sessions, and made-up sources for what those lack.

// Outside of functions marked as tests, clippy does not see that this is one.
#![allow(clippy::unwrap_used)]

mod arbitrary_sources;
mod made_up_sources;
mod real_sources;
mod support;
