//! Condensing: formats of many programs, laws on made-up texts, and all real tool results.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod formats;
mod laws;
mod real;
