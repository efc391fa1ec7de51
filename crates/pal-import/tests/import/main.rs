//! Import as a whole: laws over real sessions, and made-up sources for what those lack.

mod real;
mod support;
