//! Import as a whole: laws over real sessions, and made-up sources for what those lack.

// Outside of functions marked as tests, clippy does not see that this is one.
#![allow(clippy::unwrap_used)]

mod any;
mod made;
mod real;
mod support;
